//! The claims in flight of a worker, from the claim to the commit: until when each
//! lease is safely held, which leases are lost, and when a claim is committed.
//! Knows nothing of pages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidings_store::{Completion, LeaseToken};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

type Leases = Mutex<HashMap<LeaseToken, watch::Sender<Lease>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lease {
    /// Safely held until then, by the clock of this process.
    HeldUntil(Instant),
    Lost,
}

#[derive(Debug, Default)]
pub(super) struct InFlight {
    leases: Arc<Leases>,
    committed: Arc<Notify>,
}

/// One claim in flight. It is counted until it is dropped, so none is forgotten,
/// whatever panics.
#[derive(Debug)]
pub(super) struct ClaimInFlight {
    lease_token: LeaseToken,
    lease: watch::Receiver<Lease>,
    leases: Arc<Leases>,
    committed: Arc<Notify>,
}

/// A claim with its completion, waiting to be committed.
#[derive(Debug)]
pub(super) struct FinishedClaim {
    completion: Completion,
    in_flight: ClaimInFlight,
}

impl FinishedClaim {
    /// The completion, and the guard that keeps it counted until it is dropped.
    pub(super) fn split(self) -> (Completion, ClaimInFlight) {
        (self.completion, self.in_flight)
    }
}

impl InFlight {
    pub(super) fn start(&self, lease_token: LeaseToken, until: Instant) -> ClaimInFlight {
        let (lease, held) = watch::channel(Lease::HeldUntil(until));
        lock(&self.leases).insert(lease_token, lease);
        ClaimInFlight {
            lease_token,
            lease: held,
            leases: Arc::clone(&self.leases),
            committed: Arc::clone(&self.committed),
        }
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.leases).len()
    }

    pub(super) fn lease_tokens(&self) -> Vec<LeaseToken> {
        lock(&self.leases).keys().copied().collect()
    }

    /// A lease was extended.
    pub(super) fn extend(&self, lease_token: LeaseToken, until: Instant) {
        self.set(lease_token, Lease::HeldUntil(until));
    }

    /// A lease was lost to another worker.
    pub(super) fn lose(&self, lease_token: LeaseToken) {
        self.set(lease_token, Lease::Lost);
    }

    fn set(&self, lease_token: LeaseToken, state: Lease) {
        if let Some(lease) = lock(&self.leases).get(&lease_token) {
            lease.send_replace(state);
        }
    }

    /// Returns when a claim has been committed since the last call.
    pub(super) async fn claim_committed(&self) {
        self.committed.notified().await;
    }
}

impl ClaimInFlight {
    /// Returns when the lease is lost, or may be: without the store it cannot be
    /// extended, and a suspended process extends nothing.
    pub(super) async fn lease_lost(&self) {
        let mut lease = self.lease.clone();
        loop {
            let Lease::HeldUntil(until) = *lease.borrow_and_update() else {
                return;
            };
            if until <= Instant::now() {
                return;
            }
            tokio::select! {
                () = sleep_until(until) => {}
                changed = lease.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
            }
        }
    }

    pub(super) fn finish(self, completion: Completion) -> FinishedClaim {
        FinishedClaim {
            completion,
            in_flight: self,
        }
    }
}

impl Drop for ClaimInFlight {
    fn drop(&mut self) {
        lock(&self.leases).remove(&self.lease_token);
        self.committed.notify_one();
    }
}

fn lock(leases: &Leases) -> MutexGuard<'_, HashMap<LeaseToken, watch::Sender<Lease>>> {
    // Entries are added and removed whole.
    leases.lock().unwrap_or_else(PoisonError::into_inner)
}
