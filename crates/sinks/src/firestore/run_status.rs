//! The two documents in which older collectors report their last run, so that
//! their readers continue to work.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Map;

use super::values::{integer, list, map, moment, text};
use super::{Firestore, number_map, signed};

/// `collection_metrics/latest`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectionMetrics {
    pub timestamp: Timestamp,
    pub feeds_attempted: u64,
    pub feeds_succeeded: u64,
    pub new_items_added: u64,
    pub total_items_in_firestore: u64,
    /// Written in milliseconds.
    pub duration: Duration,
    pub errors: Vec<SourceError>,
}

/// The error of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceError {
    pub source: String,
    pub error: String,
}

/// `last_collection_run/state`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunState {
    pub timestamp: Timestamp,
    pub total_items: u64,
    /// New items of each source.
    pub per_source: BTreeMap<String, u64>,
}

impl Firestore {
    pub async fn write_metrics(
        &self,
        metrics: &CollectionMetrics,
        now: Timestamp,
    ) -> Result<(), String> {
        let error = |error: &SourceError| {
            let fields = [
                ("source".to_owned(), text(&error.source)),
                ("error".to_owned(), text(&error.error)),
            ];
            map(Map::from_iter(fields))
        };
        let millis = i64::try_from(metrics.duration.as_millis()).unwrap_or(i64::MAX);
        let fields = [
            ("timestamp", moment(metrics.timestamp)),
            ("feedsAttempted", integer(signed(metrics.feeds_attempted))),
            ("feedsSucceeded", integer(signed(metrics.feeds_succeeded))),
            ("newItemsAdded", integer(signed(metrics.new_items_added))),
            (
                "totalItemsInFirestore",
                integer(signed(metrics.total_items_in_firestore)),
            ),
            ("duration", integer(millis)),
            ("errors", list(metrics.errors.iter().map(error))),
        ];
        let named = fields.map(|(name, value)| (name.to_owned(), value));
        self.replace("collection_metrics/latest", Map::from_iter(named), now)
            .await
    }

    pub async fn write_run_state(&self, state: &RunState, now: Timestamp) -> Result<(), String> {
        let fields = [
            ("timestamp", moment(state.timestamp)),
            ("totalItems", integer(signed(state.total_items))),
            ("perSourceStats", number_map(&state.per_source)),
        ];
        let named = fields.map(|(name, value)| (name.to_owned(), value));
        self.replace("last_collection_run/state", Map::from_iter(named), now)
            .await
    }
}
