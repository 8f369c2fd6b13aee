//! One `_bulk` request and the outcome of each item of its response. Pure.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidings_document::Document;

use crate::sink::Verdict;

/// Only the fields that verdicts need: the response to a large batch is large, too.
pub(crate) const FILTER_PATH: &str = "errors,items.*._index,items.*.status,items.*.error.type,items.*.error.reason,items.*.error.caused_by.reason";

/// The maximum length of `_id`; a longer one fails the whole request.
const MAX_ID_BYTES: usize = 512;

/// Why a document cannot be part of any bulk request.
pub(crate) fn unsendable(document: &Document) -> Option<String> {
    if document.id.is_empty() || document.id.len() > MAX_ID_BYTES {
        return Some(format!(
            "the index id must have 1 to {MAX_ID_BYTES} bytes, not {}",
            document.id.len()
        ));
    }
    (!(0..1 << (63 - REVISION_SHIFT)).contains(&document.revision))
        .then(|| format!("the revision {} is not a valid version", document.revision))
}

/// A reader's `_update` increments the version of a document: the revision is in the
/// upper bits, which it can't reach.
const REVISION_SHIFT: u32 = 32;

/// The revision that is stored under a version.
pub(crate) fn revision_of(version: i64) -> i64 {
    version >> REVISION_SHIFT
}

/// The two lines of one document. External versions: the server stores the higher
/// revision, in whatever order they arrive.
pub(crate) fn lines(
    document: &Document,
    index: &str,
    is_alias: bool,
    source: &Map<String, Value>,
) -> Vec<u8> {
    let mut action = json!({
        "_index": index,
        "_id": document.id,
        "version": document.revision << REVISION_SHIFT,
        "version_type": "external_gte",
    });
    if is_alias {
        // Else a missing alias would become an index without our mapping.
        action["require_alias"] = Value::Bool(true);
    }
    let mut lines = json!({ "index": action }).to_string().into_bytes();
    lines.push(b'\n');
    // A map of JSON values is always JSON.
    let _ = serde_json::to_writer(&mut lines, source);
    lines.push(b'\n');
    lines
}

pub(crate) fn gzip(parts: &[&[u8]]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    for part in parts {
        // Writing to memory does not fail.
        let _ = gzip.write_all(part);
    }
    gzip.finish().unwrap_or_default()
}

/// The outcome of one item of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// This index has a higher version of the document, or of its deletion.
    Conflict {
        index: String,
    },
    /// The server is overloaded.
    Overloaded(String),
    /// The index does not exist (any more).
    NoIndex(String),
    /// A temporary error.
    Retry(String),
    /// The document itself is invalid.
    Invalid(String),
}

impl Outcome {
    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Self::Done => Verdict::Accepted,
            // Until the stored revision is known.
            Self::Conflict { index } => Verdict::retry(format!("version conflict in {index}")),
            Self::Overloaded(error) | Self::NoIndex(error) | Self::Retry(error) => {
                Verdict::retry(error.as_str())
            }
            Self::Invalid(reason) => Verdict::dead(reason.as_str()),
        }
    }
}

#[derive(Deserialize)]
struct BulkResponse {
    items: Vec<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default, rename = "_index")]
    index: String,
    status: u16,
    error: Option<ItemError>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ItemError {
    r#type: String,
    reason: String,
    caused_by: Option<Cause>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cause {
    reason: String,
}

/// The outcome of each item; none unless the response has exactly `items` of them.
pub(crate) fn outcomes(reply: &[u8], items: usize) -> Option<Vec<Outcome>> {
    let reply: BulkResponse = serde_json::from_slice(reply).ok()?;
    if reply.items.len() != items {
        return None;
    }
    let outcome = |item: Map<String, Value>| {
        let (_, value) = item.into_iter().next()?;
        let item: Item = serde_json::from_value(value).ok()?;
        let error = item.error.unwrap_or_default();
        Some(match classify(item.status, &error) {
            Outcome::Conflict { .. } => Outcome::Conflict { index: item.index },
            outcome => outcome,
        })
    };
    reply.items.into_iter().map(outcome).collect()
}

/// The version of each document of a `_mget` response, none where it is not there;
/// none at all unless the response has exactly `items` of them.
pub(crate) fn stored_versions(reply: &[u8], items: usize) -> Option<Vec<Option<i64>>> {
    #[derive(Deserialize)]
    struct Found {
        docs: Vec<Stored>,
    }
    #[derive(Deserialize)]
    struct Stored {
        _version: Option<i64>,
    }
    let found: Found = serde_json::from_slice(reply).ok()?;
    let versions = found.docs.iter().map(|stored| stored._version);
    (found.docs.len() == items).then(|| versions.collect())
}

fn classify(status: u16, error: &ItemError) -> Outcome {
    let mut error_text = format!("{status} {}: {}", error.r#type, error.reason);
    if let Some(cause) = error
        .caused_by
        .as_ref()
        .filter(|cause| !cause.reason.is_empty())
    {
        error_text = format!("{error_text} ({})", cause.reason);
    }
    match status {
        200..=299 => Outcome::Done,
        409 if error.r#type == "version_conflict_engine_exception" => Outcome::Conflict {
            index: String::new(),
        },
        // A full disk, as newer servers report it: smaller batches don't help.
        429 if error.r#type == "cluster_block_exception" => Outcome::Retry(error_text),
        429 => Outcome::Overloaded(error_text),
        404 => Outcome::NoIndex(error_text),
        400 if is_about_the_document(error) => Outcome::Invalid(error_text),
        _ => Outcome::Retry(error_text),
    }
}

/// 400 is also returned for closed indices, aliases without a write index and
/// full clusters: no document is dead for that.
fn is_about_the_document(error: &ItemError) -> bool {
    match error.r#type.as_str() {
        "mapper_parsing_exception"
        | "document_parsing_exception"
        | "strict_dynamic_mapping_exception"
        | "parsing_exception"
        | "x_content_parse_exception" => true,
        "illegal_argument_exception" => !["write index", "maximum", "alias"]
            .iter()
            .any(|words| error.reason.contains(words)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn item(status: u16, kind: &str, reason: &str) -> Outcome {
        let reply = json!({ "errors": true, "items": [
            { "index": { "status": status, "error": { "type": kind, "reason": reason } } },
        ]});
        let mut all = outcomes(reply.to_string().as_bytes(), 1).unwrap();
        all.remove(0)
    }

    #[test]
    fn every_status_has_its_outcome() {
        use Outcome::{Conflict, Invalid, NoIndex, Overloaded, Retry};
        type Is = fn(&Outcome) -> bool;
        let conflict: Is = |it| matches!(it, Conflict { .. });
        let overloaded: Is = |it| matches!(it, Overloaded(_));
        let retry: Is = |it| matches!(it, Retry(_));
        let invalid: Is = |it| matches!(it, Invalid(_));
        let no_index: Is = |it| matches!(it, NoIndex(_));
        let rows = [
            (409, "version_conflict_engine_exception", "", conflict),
            (409, "something_else", "", retry),
            (429, "es_rejected_execution_exception", "", overloaded),
            (429, "cluster_block_exception", "flood stage", retry),
            (403, "cluster_block_exception", "read-only", retry),
            (403, "security_exception", "", retry),
            (404, "index_not_found_exception", "", no_index),
            (400, "strict_dynamic_mapping_exception", "", invalid),
            (400, "mapper_parsing_exception", "field [x]", invalid),
            (400, "document_parsing_exception", "field [x]", invalid),
            (400, "illegal_argument_exception", "immense term", invalid),
            (
                400,
                "illegal_argument_exception",
                "no write index is defined",
                retry,
            ),
            (400, "validation_exception", "maximum shards open", retry),
            (400, "index_closed_exception", "", retry),
            (503, "unavailable_shards_exception", "", retry),
            (500, "", "", retry),
            (302, "", "", retry),
        ];
        for (status, kind, reason, expected) in rows {
            let outcome = item(status, kind, reason);
            assert!(expected(&outcome), "{status} {kind} {reason}: {outcome:?}");
        }
    }

    #[test]
    fn an_unexpected_response_has_no_outcomes() {
        let rows = [
            ("", 1),
            ("<html>", 1),
            ("{}", 0),
            (r#"{"items":[]}"#, 1),
            (r#"{"items":[{}]}"#, 1),
            (r#"{"items":[{"index":{}}]}"#, 1),
            (r#"{"items":[{"index":{"status":"201"}}]}"#, 1),
            (
                r#"{"items":[{"index":{"status":201}},{"index":{"status":201}}]}"#,
                1,
            ),
        ];
        for (reply, items) in rows {
            assert_eq!(outcomes(reply.as_bytes(), items), None, "{reply}");
        }
        let fine = r#"{"items":[{"index":{"status":201}}]}"#;
        assert_eq!(outcomes(fine.as_bytes(), 1), Some(vec![Outcome::Done]));
    }
}
