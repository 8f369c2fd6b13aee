//! The two documents in which older collectors report their last run, so that
//! their readers continue to work: `collection_metrics/latest` and
//! `last_collection_run/state`.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::Firestore;
use super::values::{integer, list, map, moment, text};
use crate::run_report::{RunReport, SourceReport};

/// Bytes of errors or of sources: a document may have 1 MiB.
const MAX_BYTES: usize = 700_000;

/// Characters of one error.
const MAX_ERROR: usize = 500;

impl Firestore {
    /// Replaces both documents.
    pub(super) async fn write_run(&self, run: &RunReport, now: Timestamp) -> Result<(), String> {
        let total = self.count(now).await?;
        let metrics = metrics(run, total, now);
        self.replace("collection_metrics/latest", metrics, now)
            .await?;
        self.replace("last_collection_run/state", state(run, now), now)
            .await
    }
}

fn metrics(run: &RunReport, total: u64, now: Timestamp) -> Map<String, Value> {
    let failed = |source: &SourceReport| {
        let error: String = source.error.as_deref()?.chars().take(MAX_ERROR).collect();
        Some(object([
            ("source", text(&source.name)),
            ("error", text(&error)),
        ]))
    };
    let millis = u64::try_from(run.duration.as_millis()).unwrap_or(u64::MAX);
    fields([
        ("timestamp", moment(now)),
        ("feedsAttempted", count(run.sources.len() as u64)),
        ("feedsSucceeded", count(run.succeeded() as u64)),
        ("newItemsAdded", count(run.items_new())),
        ("totalItemsInFirestore", count(total)),
        ("duration", count(millis)),
        (
            "errors",
            list(fitting(run.sources.iter().filter_map(failed))),
        ),
    ])
}

fn state(run: &RunReport, now: Timestamp) -> Map<String, Value> {
    let stats = |source: &SourceReport| {
        let stats = object([
            ("attempted", count(1)),
            ("succeeded", count(u64::from(source.error.is_none()))),
            ("items", count(source.items_new)),
        ]);
        (source.name.clone(), stats)
    };
    let size = |(name, stats): &(String, Value)| name.len() + stats.to_string().len();
    let per_source = within(run.sources.iter().map(stats), size);
    fields([
        ("timestamp", moment(now)),
        ("totalItems", count(run.items_new())),
        ("perSourceStats", map(per_source.collect())),
    ])
}

/// The first values, as many as a document has room for.
fn fitting(values: impl Iterator<Item = Value>) -> impl Iterator<Item = Value> {
    within(values, |value| value.to_string().len())
}

fn within<T>(
    values: impl Iterator<Item = T>,
    size: impl Fn(&T) -> usize,
) -> impl Iterator<Item = T> {
    let mut bytes = 0;
    values.take_while(move |value| {
        bytes += size(value);
        bytes <= MAX_BYTES
    })
}

fn count(number: u64) -> Value {
    integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn object<const N: usize>(named: [(&str, Value); N]) -> Value {
    map(fields(named))
}

fn fields<const N: usize>(named: [(&str, Value); N]) -> Map<String, Value> {
    let named = named.map(|(name, value)| (name.to_owned(), value));
    Map::from_iter(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_over_very_many_sources_fits_into_a_document() {
        let source = |n: usize| SourceReport {
            name: format!("source {n}"),
            items_new: 1,
            error: Some("é".repeat(1000)),
        };
        let run = RunReport {
            sources: (0..20_000).map(source).collect(),
            ..RunReport::default()
        };
        for written in [
            metrics(&run, 1, Timestamp::UNIX_EPOCH),
            state(&run, Timestamp::UNIX_EPOCH),
        ] {
            let bytes = Value::Object(written).to_string().len();
            assert!((MAX_BYTES / 2..1_000_000).contains(&bytes), "{bytes}");
        }
    }
}
