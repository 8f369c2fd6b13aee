//! The values of the outbox: deliveries, the verdicts of sinks, and the result of
//! retrying dead letters.

use std::time::Duration;

use serde::Serialize;

use crate::ids::FrontierId;

/// A claimed delivery of a document to a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: FrontierId,
    pub revision: i64,
    /// How often it was claimed, this time included: the fencing number.
    pub attempt: i64,
}

/// The result that a sink reported for one delivery.
#[derive(Debug, Clone)]
pub enum DeliveryVerdict {
    Accepted,
    Retry {
        error: String,
        after: Duration,
    },
    /// It can never succeed.
    Dead {
        reason: String,
    },
}

/// What became of the dead letters of a sink that were retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RetriedDeadLetters {
    /// Their documents are pending again.
    pub retried: u64,
    /// Deleted, because their documents are not stored any more.
    pub missing_documents: u64,
}
