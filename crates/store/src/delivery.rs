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

/// A claim in the making: as many deliveries as its documents may have bytes.
#[derive(Debug)]
pub(crate) struct DeliveryBatch {
    pub(crate) deliveries: Vec<Delivery>,
    room: u64,
}

impl DeliveryBatch {
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self {
            deliveries: Vec::new(),
            room: max_bytes,
        }
    }

    /// Adds a delivery if it fits, or is the first; whether it was added.
    pub(crate) fn add(&mut self, delivery: Delivery, bytes: i64) -> bool {
        let bytes = u64::try_from(bytes).unwrap_or(0);
        let has_room = self.deliveries.is_empty() || bytes <= self.room;
        if has_room {
            self.room = self.room.saturating_sub(bytes);
            self.deliveries.push(delivery);
        }
        has_room
    }
}
