//! Scheduled collection runs: one per interval over all machines, beside the polls
//! of due feeds. The machine that moves the shared due time runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidings_store::SharedValue;
use tracing::{info, warn};

use super::{CollectError, Poller};

/// The shared value that holds when the next run is due.
const DUE_KEY: &str = "collect_due";
/// Retry delay when a run could not start, or another machine runs.
const RETRY_DELAY: Duration = Duration::from_secs(60);

impl Poller {
    /// Runs over all sources at the interval, until the poller is stopped.
    pub(super) async fn run_scheduled_collections(self: &Arc<Self>) {
        let Some(interval) = self.options.collect_interval else {
            return;
        };
        while !self.is_stopping.load(Ordering::SeqCst) {
            let round = async {
                let wait = self.collect_if_due(interval).await.unwrap_or_else(|error| {
                    warn!(%error, "cannot start collection run");
                    RETRY_DELAY
                });
                tokio::time::sleep(wait).await;
            };
            // The lease of a cancelled run expires.
            tokio::select! {
                () = round => {}
                () = self.stop_collecting.notified() => {}
            }
        }
    }

    /// Runs over all sources if a run is due; returns the time until the next.
    pub async fn collect_if_due(
        self: &Arc<Self>,
        interval: Duration,
    ) -> Result<Duration, CollectError> {
        let store = &self.context.store;
        let (now, seen) = (store.now().await?, store.shared_value(DUE_KEY).await?);
        if let Some(mark) = &seen
            && mark.at > now
        {
            // A shorter interval than before applies immediately.
            return Ok(mark.at.since(now).min(interval));
        }
        let next = SharedValue {
            value: String::new(),
            n: seen.as_ref().map_or(0, |mark| mark.n) + 1,
            at: now.plus(interval),
        };
        if !store
            .replace_shared_value(DUE_KEY, seen.as_ref(), &next)
            .await?
        {
            return Ok(RETRY_DELAY.min(interval));
        }
        let options = self.collect_options();
        // Boxed: the compiler limits how deep futures nest.
        match Box::pin(self.collect(&options, |_| {})).await {
            Ok(collected) => info!(
                sources = collected.attempted,
                failed = collected.attempted - collected.succeeded,
                new = collected.items_new,
                "collection run finished"
            ),
            // Another run started first; it serves as well.
            Err(CollectError::Running(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(interval)
    }
}
