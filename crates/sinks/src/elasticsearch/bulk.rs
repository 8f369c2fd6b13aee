//! One `_bulk` request and what its reply says of each document. Pure.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidings_document::Document;

use crate::sink::Verdict;

/// Only what verdicts need: the reply to a large batch is large, too.
pub(crate) const REPLY: &str =
    "errors,items.*.status,items.*.error.type,items.*.error.reason,items.*.error.caused_by.reason";

/// Longest `_id`; a longer one fails the whole request.
const LONGEST_ID: usize = 512;

/// Why a document can't be put into any bulk request.
pub(crate) fn unsendable(document: &Document) -> Option<String> {
    if document.id.is_empty() || document.id.len() > LONGEST_ID {
        return Some(format!(
            "an index id has 1 to {LONGEST_ID} bytes, not {}",
            document.id.len()
        ));
    }
    (document.revision < 0)
        .then(|| format!("the revision {} can't be a version", document.revision))
}

/// The two lines of one document. External versions: the server keeps what has
/// the higher revision, in whatever order they arrive.
pub(crate) fn lines(
    document: &Document,
    index: &str,
    is_alias: bool,
    source: &Map<String, Value>,
) -> Vec<u8> {
    let mut action = json!({
        "_index": index,
        "_id": document.id,
        "version": document.revision,
        "version_type": "external",
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

/// What became of one item of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// The server has too much to do.
    Overrun(String),
    /// The index is not there (any more).
    NoIndex(String),
    /// For now it can't be written.
    Later(String),
    /// This document never fits.
    Never(String),
}

impl Outcome {
    pub(crate) fn verdict(self) -> Verdict {
        match self {
            Self::Done => Verdict::Accepted,
            Self::Overrun(error) | Self::NoIndex(error) | Self::Later(error) => {
                Verdict::retry(error)
            }
            Self::Never(reason) => Verdict::dead(reason),
        }
    }
}

#[derive(Deserialize)]
struct Reply {
    items: Vec<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Item {
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

/// The outcome of each item; none if this is no reply to so many items.
pub(crate) fn outcomes(reply: &[u8], items: usize) -> Option<Vec<Outcome>> {
    let reply: Reply = serde_json::from_slice(reply).ok()?;
    if reply.items.len() != items {
        return None;
    }
    let outcome = |item: Map<String, Value>| {
        let (_, value) = item.into_iter().next()?;
        let item: Item = serde_json::from_value(value).ok()?;
        Some(judge(item.status, &item.error.unwrap_or_default()))
    };
    reply.items.into_iter().map(outcome).collect()
}

fn judge(status: u16, error: &ItemError) -> Outcome {
    let mut why = format!("{status} {}: {}", error.r#type, error.reason);
    if let Some(cause) = error
        .caused_by
        .as_ref()
        .filter(|cause| !cause.reason.is_empty())
    {
        why = format!("{why} ({})", cause.reason);
    }
    match status {
        200..=299 => Outcome::Done,
        // What is there is as new, or newer.
        409 if error.r#type == "version_conflict_engine_exception" => Outcome::Done,
        // A full disk, as newer servers say it: smaller batches don't help.
        429 if error.r#type == "cluster_block_exception" => Outcome::Later(why),
        429 => Outcome::Overrun(why),
        404 => Outcome::NoIndex(why),
        400 if is_about_the_document(error) => Outcome::Never(why),
        _ => Outcome::Later(why),
    }
}

/// 400 is also said of indices that are closed, of aliases that lead nowhere
/// and of clusters that are full: no document is buried for that.
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
        use Outcome::{Done, Later, Never, NoIndex, Overrun};
        type Is = fn(&Outcome) -> bool;
        let done: Is = |it| matches!(it, Done);
        let overrun: Is = |it| matches!(it, Overrun(_));
        let later: Is = |it| matches!(it, Later(_));
        let never: Is = |it| matches!(it, Never(_));
        let no_index: Is = |it| matches!(it, NoIndex(_));
        let rows = [
            (409, "version_conflict_engine_exception", "", done),
            (409, "something_else", "", later),
            (429, "es_rejected_execution_exception", "", overrun),
            (429, "cluster_block_exception", "flood stage", later),
            (403, "cluster_block_exception", "read-only", later),
            (403, "security_exception", "", later),
            (404, "index_not_found_exception", "", no_index),
            (400, "strict_dynamic_mapping_exception", "", never),
            (400, "mapper_parsing_exception", "field [x]", never),
            (400, "document_parsing_exception", "field [x]", never),
            (400, "illegal_argument_exception", "immense term", never),
            (
                400,
                "illegal_argument_exception",
                "no write index is defined",
                later,
            ),
            (400, "validation_exception", "maximum shards open", later),
            (400, "index_closed_exception", "", later),
            (503, "unavailable_shards_exception", "", later),
            (500, "", "", later),
            (302, "", "", later),
        ];
        for (status, kind, reason, expected) in rows {
            let outcome = item(status, kind, reason);
            assert!(expected(&outcome), "{status} {kind} {reason}: {outcome:?}");
        }
    }

    #[test]
    fn what_is_no_reply_to_the_request_says_nothing() {
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
