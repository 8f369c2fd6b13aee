//! Completes claims in batches: one transaction for documents, deliveries,
//! frontier, hosts and events of many pages. An unavailable store is waited for;
//! a page that the store rejects is deferred and holds up no other.

use std::sync::Arc;
use std::time::Duration;

use tidings_store::{Completion, StoreError};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::{debug, error, warn};

use super::in_flight::FinishedClaim;
use super::tally::add_elapsed;
use super::{OUTAGE_RETRY_DELAY, Worker, outcome};

/// Pages per transaction.
const MAX_BATCH: usize = 256;
/// How long the first page of a batch waits for others.
const LINGER: Duration = Duration::from_millis(5);

pub(super) struct Committer {
    worker: Arc<Worker>,
    completions: mpsc::Receiver<FinishedClaim>,
}

impl Committer {
    pub(super) fn new(worker: Arc<Worker>, completions: mpsc::Receiver<FinishedClaim>) -> Self {
        Self {
            worker,
            completions,
        }
    }

    /// Commits until all senders are dropped.
    pub(super) async fn run(mut self) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while self.completions.recv_many(&mut batch, MAX_BATCH).await > 0 {
            if batch.len() < MAX_BATCH / 4 {
                sleep(LINGER).await;
                while batch.len() < MAX_BATCH
                    && let Ok(more) = self.completions.try_recv()
                {
                    batch.push(more);
                }
            }
            let (completions, in_flight): (Vec<_>, Vec<_>) =
                batch.drain(..).map(FinishedClaim::split).unzip();
            self.commit(&completions).await;
            // Only now they are no longer in flight.
            drop(in_flight);
        }
    }

    async fn commit(&self, completions: &[Completion]) {
        let mut attempts = 0u32;
        loop {
            let error = match self.complete(completions).await {
                Ok(()) => return,
                Err(error) => error,
            };
            attempts += 1;
            // An outage ends; a page that cannot be stored does not. Committing each
            // page alone shows which of the two it is.
            if attempts.is_multiple_of(3)
                && !error.is_transient()
                && self.commit_each(completions).await
            {
                return;
            }
            warn!(%error, pages = completions.len(), "cannot commit pages");
            sleep(OUTAGE_RETRY_DELAY).await;
        }
    }

    /// Commits each page alone; true when the store accepted at least one.
    async fn commit_each(&self, completions: &[Completion]) -> bool {
        let mut has_committed = false;
        for completion in completions {
            let Err(error) = self.complete(std::slice::from_ref(completion)).await else {
                has_committed = true;
                continue;
            };
            error!(%error, id = ?completion.lease_token.id, "cannot store page; deferred");
            let deferred = Completion::new(completion.lease_token, outcome::storage_failed(error));
            has_committed |= self.complete(&[deferred]).await.is_ok();
        }
        has_committed
    }

    async fn complete(&self, completions: &[Completion]) -> Result<(), StoreError> {
        let start = std::time::Instant::now();
        let held = self.worker.context.store.complete(completions).await?;
        add_elapsed(&self.worker.clocks.committing, start);
        for (completion, held) in completions.iter().zip(held) {
            if held {
                self.worker.tally.count(&completion.outcome);
            } else {
                debug!(id = ?completion.lease_token.id, "lease lost");
                self.worker.tally.update(|tally| tally.lost += 1);
            }
        }
        Ok(())
    }
}
