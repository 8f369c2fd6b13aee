//! What a worker has done so far, for people who watch. Counts only; the store
//! has the truth.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use tidings_store::Outcome;

/// How many claims ended how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub claimed: u64,
    /// Pages that were read and kept.
    pub documents: u64,
    pub not_modified: u64,
    pub redirected: u64,
    /// Waiting for another try.
    pub failed: u64,
    /// Put off without anyone's fault.
    pub deferred: u64,
    pub released: u64,
    /// Leases that were lost to another worker.
    pub lost: u64,
    /// Given up, by reason.
    pub dead: BTreeMap<String, u64>,
    pub quarantined: u64,
}

impl Tally {
    /// Answers of any kind.
    pub fn answered(&self) -> u64 {
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

#[derive(Debug, Default)]
pub(super) struct SharedTally(Mutex<Tally>);

impl SharedTally {
    pub(super) fn change(&self, change: impl FnOnce(&mut Tally)) {
        // Numbers only: a panic elsewhere leaves them usable.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn count(&self, outcome: &Outcome) {
        self.change(|tally| tally.count(outcome));
    }

    pub(super) fn get(&self) -> Tally {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
