//! The end of claims, in batches: one transaction for document, deliveries,
//! frontier, host and events of many pages. A store that is away is waited for;
//! a page that it refuses is put off, and holds up no other.

use std::sync::Arc;
use std::time::Duration;

use tidings_store::{Completion, StoreError};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::{debug, error, warn};

use super::flight::Landed;
use super::tally::note_time;
use super::{AFTER_OUTAGE, Worker, verdict};

/// Pages in one transaction.
const MOST: usize = 256;
/// How long the first of a batch waits for others.
const LINGER: Duration = Duration::from_millis(5);

pub(super) struct Committer {
    worker: Arc<Worker>,
    completions: mpsc::Receiver<Landed>,
}

impl Committer {
    pub(super) fn new(worker: Arc<Worker>, completions: mpsc::Receiver<Landed>) -> Self {
        Self {
            worker,
            completions,
        }
    }

    /// Commits until nobody is left who could send.
    pub(super) async fn run(mut self) {
        let mut batch = Vec::with_capacity(MOST);
        while self.completions.recv_many(&mut batch, MOST).await > 0 {
            if batch.len() < MOST / 4 {
                sleep(LINGER).await;
                while batch.len() < MOST
                    && let Ok(more) = self.completions.try_recv()
                {
                    batch.push(more);
                }
            }
            let (completions, flights): (Vec<_>, Vec<_>) =
                batch.drain(..).map(Landed::split).unzip();
            self.commit(&completions).await;
            // Only now they are no longer under way.
            drop(flights);
        }
    }

    async fn commit(&self, completions: &[Completion]) {
        let mut tries = 0u32;
        loop {
            let error = match self.complete(completions).await {
                Ok(()) => return,
                Err(error) => error,
            };
            tries += 1;
            // An outage ends; a page that can't be stored does not. Which of the
            // two it is, shows when each is tried alone.
            if tries.is_multiple_of(3)
                && !error.is_transient()
                && self.commit_each(completions).await
            {
                return;
            }
            warn!(%error, pages = completions.len(), "pages can't be committed now");
            sleep(AFTER_OUTAGE).await;
        }
    }

    /// Each alone; true when the store took at least one, so that it is there.
    async fn commit_each(&self, completions: &[Completion]) -> bool {
        let mut has_taken = false;
        for completion in completions {
            let Err(error) = self.complete(std::slice::from_ref(completion)).await else {
                has_taken = true;
                continue;
            };
            error!(%error, id = ?completion.ticket.id, "a page can't be stored; it is put off");
            let put_off = Completion::new(completion.ticket, verdict::broken(error));
            has_taken |= self.complete(&[put_off]).await.is_ok();
        }
        has_taken
    }

    async fn complete(&self, completions: &[Completion]) -> Result<(), StoreError> {
        let start = std::time::Instant::now();
        let held = self.worker.outside.store.complete(completions).await?;
        note_time(&self.worker.clocks.committing, start);
        for (completion, held) in completions.iter().zip(held) {
            if held {
                self.worker.tally.count(&completion.outcome);
            } else {
                debug!(id = ?completion.ticket.id, "a lease was lost; another worker has the page");
                self.worker.tally.change(|tally| tally.lost += 1);
            }
        }
        Ok(())
    }
}
