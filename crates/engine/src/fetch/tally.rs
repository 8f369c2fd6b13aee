//! Counters of a worker, for progress displays. The store has the authoritative
//! totals.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde::Serialize;
use tidings_store::Outcome;

/// Claims by outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub claimed: u64,
    /// Pages that became documents.
    pub documents: u64,
    pub not_modified: u64,
    pub redirected: u64,
    /// Waiting for a retry.
    pub failed: u64,
    /// Deferred without counting an attempt.
    pub deferred: u64,
    pub released: u64,
    /// Leases that were lost to another worker.
    pub lost: u64,
    /// Failed permanently, by reason.
    pub dead: BTreeMap<String, u64>,
    pub quarantined: u64,
}

impl Tally {
    /// Responses and failures of any kind.
    pub fn responses(&self) -> u64 {
        self.documents + self.not_modified + self.failed + self.dead.values().sum::<u64>()
    }

    fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Fetched { document, .. } => self.documents += u64::from(document.is_some()),
            Outcome::Redirected { document, .. } => {
                self.documents += u64::from(document.is_some());
                self.redirected += 1;
            }
            Outcome::NotModified { .. } => self.not_modified += 1,
            Outcome::Failed { .. } => self.failed += 1,
            Outcome::Deferred { .. } => self.deferred += 1,
            Outcome::Released => self.released += 1,
            Outcome::Dead { reason, .. } => *self.dead.entry(reason.clone()).or_default() += 1,
        }
    }
}

/// Time by stage, in nanoseconds. Fetches overlap with everything; claims, reading
/// and commits are work.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct StageTimes {
    pub claiming: u64,
    pub fetching: u64,
    pub reading: u64,
    pub committing: u64,
}

#[derive(Debug, Default)]
pub(super) struct StageClocks {
    pub(super) claiming: AtomicU64,
    pub(super) fetching: AtomicU64,
    pub(super) reading: AtomicU64,
    pub(super) committing: AtomicU64,
}

impl StageClocks {
    pub(super) fn get(&self) -> StageTimes {
        let read = |clock: &AtomicU64| clock.load(Ordering::Relaxed);
        StageTimes {
            claiming: read(&self.claiming),
            fetching: read(&self.fetching),
            reading: read(&self.reading),
            committing: read(&self.committing),
        }
    }
}

/// Adds the time since `start` to a clock.
pub(super) fn add_elapsed(clock: &AtomicU64, start: Instant) {
    clock.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
}

#[derive(Debug, Default)]
pub(super) struct SharedTally(Mutex<Tally>);

impl SharedTally {
    pub(super) fn update(&self, update: impl FnOnce(&mut Tally)) {
        // Numbers only: a panic elsewhere leaves them usable.
        update(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn count(&self, outcome: &Outcome) {
        self.update(|tally| tally.count(outcome));
    }

    pub(super) fn get(&self) -> Tally {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
