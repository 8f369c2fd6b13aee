//! Collection runs that begin by themselves: one in so long over all machines,
//! beside the polls of what is due. Whoever moves the mark runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidings_store::SharedValue;
use tracing::{info, warn};

use super::{CollectError, CollectOptions, Poller};

/// The mark that says when the next run is due.
const MARK: &str = "collect_due";
/// When a run could not begin, or another machine has it.
const SOON: Duration = Duration::from_secs(60);

impl Poller {
    /// Runs over all sources at the interval, until the poller is asked to end.
    pub(super) async fn collect_now_and_then(self: &Arc<Self>) {
        let Some(every) = self.options.collect_every else {
            return;
        };
        while !self.is_stopping.load(Ordering::SeqCst) {
            let round = async {
                let wait = self.collect_if_due(every).await.unwrap_or_else(|error| {
                    warn!(%error, "nothing is collected now");
                    SOON
                });
                tokio::time::sleep(wait).await;
            };
            // A run that is broken off is given up by its lease.
            tokio::select! {
                () = round => {}
                () = self.stop_collecting.notified() => {}
            }
        }
    }

    /// Runs over all sources if that is due; how long until it is again.
    pub async fn collect_if_due(
        self: &Arc<Self>,
        every: Duration,
    ) -> Result<Duration, CollectError> {
        let store = &self.outside.store;
        let (now, seen) = (store.now().await?, store.shared_value(MARK).await?);
        if let Some(mark) = &seen
            && mark.at > now
        {
            // A shorter interval than before counts at once.
            return Ok(mark.at.since(now).min(every));
        }
        let next = SharedValue {
            value: String::new(),
            n: seen.as_ref().map_or(0, |mark| mark.n) + 1,
            at: now.plus(every),
        };
        if !store
            .replace_shared_value(MARK, seen.as_ref(), &next)
            .await?
        {
            return Ok(SOON.min(every));
        }
        match self.collect(&CollectOptions::default(), |_| {}).await {
            Ok(collected) => info!(
                sources = collected.attempted,
                failed = collected.attempted - collected.succeeded,
                new = collected.items_new,
                "all sources were asked"
            ),
            // Somebody was faster; theirs is as good.
            Err(CollectError::Running(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(every)
    }
}
