//! What a worker has under way: from the claim to the commit. Knows nothing of
//! pages; only who is in the air, until when its lease is certainly ours, who has
//! lost it, and when one lands.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidings_store::{Completion, LeaseToken};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

type InAir = Mutex<HashMap<LeaseToken, watch::Sender<Lease>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lease {
    /// Ours until then, by our own clock; maybe longer, but who knows.
    Until(Instant),
    Lost,
}

#[derive(Debug, Default)]
pub(super) struct Flights {
    in_air: Arc<InAir>,
    landings: Arc<Notify>,
}

/// One claim under way. It is counted until it is dropped, so nothing can be
/// forgotten, whatever breaks.
#[derive(Debug)]
pub(super) struct Flight {
    ticket: LeaseToken,
    lease: watch::Receiver<Lease>,
    in_air: Arc<InAir>,
    landings: Arc<Notify>,
}

/// A flight with its result, waiting to be committed.
#[derive(Debug)]
pub(super) struct Landed {
    completion: Completion,
    flight: Flight,
}

impl Landed {
    /// The result, and what keeps it counted until that is dropped.
    pub(super) fn split(self) -> (Completion, Flight) {
        (self.completion, self.flight)
    }
}

impl Flights {
    pub(super) fn start(&self, ticket: LeaseToken, until: Instant) -> Flight {
        let (lease, held) = watch::channel(Lease::Until(until));
        lock(&self.in_air).insert(ticket, lease);
        Flight {
            ticket,
            lease: held,
            in_air: Arc::clone(&self.in_air),
            landings: Arc::clone(&self.landings),
        }
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.in_air).len()
    }

    pub(super) fn tickets(&self) -> Vec<LeaseToken> {
        lock(&self.in_air).keys().copied().collect()
    }

    /// A lease was extended.
    pub(super) fn keep(&self, ticket: LeaseToken, until: Instant) {
        self.tell(ticket, Lease::Until(until));
    }

    /// Tells a flight that its lease is another's.
    pub(super) fn lose(&self, ticket: LeaseToken) {
        self.tell(ticket, Lease::Lost);
    }

    fn tell(&self, ticket: LeaseToken, news: Lease) {
        if let Some(lease) = lock(&self.in_air).get(&ticket) {
            lease.send_replace(news);
        }
    }

    /// Returns when one has been committed since the last time.
    pub(super) async fn landed(&self) {
        self.landings.notified().await;
    }
}

impl Flight {
    /// Returns when the lease is another's, or may be: a store that can't be
    /// asked says nothing, and a process that was stopped can't know.
    pub(super) async fn lost(&self) {
        let mut lease = self.lease.clone();
        loop {
            let Lease::Until(until) = *lease.borrow_and_update() else {
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

    pub(super) fn land(self, completion: Completion) -> Landed {
        Landed {
            completion,
            flight: self,
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        lock(&self.in_air).remove(&self.ticket);
        self.landings.notify_one();
    }
}

fn lock(in_air: &InAir) -> MutexGuard<'_, HashMap<LeaseToken, watch::Sender<Lease>>> {
    // Entries are added and removed whole.
    in_air.lock().unwrap_or_else(PoisonError::into_inner)
}
