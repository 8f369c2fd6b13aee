//! What a worker has under way: from the claim to the commit. Knows nothing of
//! pages; only who is in the air, who has lost its lease, and when one lands.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidings_store::{Completion, Ticket};
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(super) struct Flights {
    in_air: Arc<Mutex<HashMap<Ticket, Arc<Notify>>>>,
    landings: Arc<Notify>,
}

/// One claim under way. It is counted until it is dropped, so nothing can be
/// forgotten, whatever breaks.
#[derive(Debug)]
pub(super) struct Flight {
    ticket: Ticket,
    lost: Arc<Notify>,
    in_air: Arc<Mutex<HashMap<Ticket, Arc<Notify>>>>,
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
    pub(super) fn start(&self, ticket: Ticket) -> Flight {
        let lost = Arc::new(Notify::new());
        lock(&self.in_air).insert(ticket, Arc::clone(&lost));
        Flight {
            ticket,
            lost,
            in_air: Arc::clone(&self.in_air),
            landings: Arc::clone(&self.landings),
        }
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.in_air).len()
    }

    pub(super) fn tickets(&self) -> Vec<Ticket> {
        lock(&self.in_air).keys().copied().collect()
    }

    /// Tells a flight that its lease is another's.
    pub(super) fn lose(&self, ticket: Ticket) {
        if let Some(lost) = lock(&self.in_air).get(&ticket) {
            lost.notify_one();
        }
    }

    /// Returns when one has been committed since the last time.
    pub(super) async fn landed(&self) {
        self.landings.notified().await;
    }
}

impl Flight {
    pub(super) async fn lost(&self) {
        self.lost.notified().await;
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

fn lock(
    in_air: &Mutex<HashMap<Ticket, Arc<Notify>>>,
) -> MutexGuard<'_, HashMap<Ticket, Arc<Notify>>> {
    // Entries are added and removed whole.
    in_air.lock().unwrap_or_else(PoisonError::into_inner)
}
