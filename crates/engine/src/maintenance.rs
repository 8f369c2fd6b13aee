//! Maintenance: folds counters and deletes expired rows, so that a store that runs
//! for years stays as small and as fast as it was. Every process runs this loop; a
//! lease in the store lets one at a time work, and expires when its process dies.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tidings_store::{ExpiringTable, Pruning, Result, SharedValue, Store};
use tokio::sync::Notify;
use tracing::{debug, info, warn};

use crate::fetch::PageArchive;

/// The shared value that holds the lease, and between two passes the time of the next.
const LEASE_KEY: &str = "maintenance";
const LEASE: Duration = Duration::from_secs(30);
/// Between two passes: counter changes must not pile up.
const PASS_INTERVAL: Duration = Duration::from_secs(5);
/// Between two passes that look for expired rows.
const PRUNE_INTERVAL: Duration = Duration::from_secs(300);

/// Between two searches for expired pages: they look at every file.
const PRUNE_PAGES_INTERVAL: Duration = HOUR;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// How long rows are kept, by table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    pub events: Duration,
    pub fetch_log: Duration,
    pub seen_titles: Duration,
    pub seen_guids: Duration,
    pub tasks: Duration,
    pub idempotency: Duration,
    pub audit: Duration,
    pub runs: Duration,
    /// Of the page archive; none: for ever.
    pub pages: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            events: 90 * DAY,
            fetch_log: 30 * DAY,
            seen_titles: 14 * DAY,
            seen_guids: 30 * DAY,
            tasks: HOUR,
            idempotency: DAY,
            audit: 365 * DAY,
            runs: 90 * DAY,
            pages: None,
        }
    }
}

impl Retention {
    fn tables(&self) -> [(ExpiringTable, Duration); 8] {
        [
            (ExpiringTable::Events, self.events),
            (ExpiringTable::FetchLog, self.fetch_log),
            (ExpiringTable::SeenTitles, self.seen_titles),
            (ExpiringTable::SeenGuids, self.seen_guids),
            (ExpiringTable::Tasks, self.tasks),
            (ExpiringTable::Idempotency, self.idempotency),
            (ExpiringTable::Audit, self.audit),
            (ExpiringTable::Runs, self.runs),
        ]
    }
}

/// The maintenance loop of one process.
#[derive(Debug)]
pub struct Maintenance {
    store: Store,
    retention: Retention,
    page_archive: Option<PageArchive>,
    is_stopping: AtomicBool,
    stop: Notify,
}

impl Maintenance {
    pub fn new(store: Store, retention: Retention) -> Self {
        Self {
            store,
            retention,
            page_archive: None,
            is_stopping: AtomicBool::new(false),
            stop: Notify::new(),
        }
    }

    /// The page archive of this node, which no other process can reach.
    #[must_use]
    pub fn with_page_archive(self, page_archive: PageArchive) -> Self {
        Self {
            page_archive: Some(page_archive),
            ..self
        }
    }

    /// Runs until `stop` is done; a batch that has begun is finished.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let passes = async {
            let mut pages_pruned_at: Option<Instant> = None;
            while !self.is_stopping.load(Ordering::SeqCst) {
                // An outage of the store ends; the loop must outlive it.
                let pause = self.run_if_due().await.unwrap_or_else(|error| {
                    warn!(%error, "maintenance failed; retried in {PASS_INTERVAL:?}");
                    PASS_INTERVAL
                });
                if pages_pruned_at.is_none_or(|at| at.elapsed() >= PRUNE_PAGES_INTERVAL) {
                    pages_pruned_at = Some(Instant::now());
                    self.prune_pages().await;
                }
                // Woken early only to stop.
                let _ = tokio::time::timeout(pause, self.stop.notified()).await;
            }
        };
        let mut passes = std::pin::pin!(passes);
        tokio::select! {
            () = &mut passes => {}
            () = stop => {
                self.is_stopping.store(true, Ordering::SeqCst);
                self.stop.notify_one();
                passes.await;
            }
        }
    }

    /// One pass if it is due and no other process runs one; the time until the next.
    pub async fn run_if_due(&self) -> Result<Duration> {
        let store = &self.store;
        let (now, seen) = (store.now().await?, store.shared_value(LEASE_KEY).await?);
        if let Some(mark) = &seen
            && mark.at > now
        {
            return Ok(mark.at.since(now).min(PASS_INTERVAL));
        }
        let Some(lease) = self.replace_lease(seen.as_ref(), LEASE).await? else {
            return Ok(PASS_INTERVAL);
        };
        self.fold_counts().await?;
        let report = store.maintenance_report().await?;
        let is_due = report.is_none_or(|report| now.since(report.at) >= PRUNE_INTERVAL);
        let lease = match is_due {
            true => self.prune(lease).await?,
            false => Some(lease),
        };
        if let Some(lease) = &lease {
            self.replace_lease(Some(lease), PASS_INTERVAL).await?;
        }
        Ok(PASS_INTERVAL)
    }

    /// Deletes pages of the archive that have expired. Files are this node's alone, so
    /// no lease is needed.
    async fn prune_pages(&self) {
        let (Some(archive), Some(ttl)) = (self.page_archive.clone(), self.retention.pages) else {
            return;
        };
        let pruning = tokio::task::spawn_blocking(move || archive.prune(ttl, SystemTime::now()));
        match pruning.await {
            Ok(Ok(0)) => {}
            Ok(Ok(removed)) => info!(removed, "expired pages removed from the archive"),
            Ok(Err(error)) => warn!(%error, "cannot remove expired pages from the archive"),
            Err(error) => warn!(%error, "removal of expired pages panicked"),
        }
    }

    async fn fold_counts(&self) -> Result<()> {
        while self.store.fold_counts().await? {
            if self.is_stopping.load(Ordering::SeqCst) {
                break;
            }
        }
        Ok(())
    }

    /// Deletes what has expired; `None` when the lease was lost meanwhile.
    async fn prune(&self, mut lease: SharedValue) -> Result<Option<SharedValue>> {
        let store = &self.store;
        let mut removed = BTreeMap::new();
        let mut is_held = true;
        'tables: for (table, ttl) in self.retention.tables() {
            let mut pruning = Pruning::new(table, store.now().await?, ttl);
            loop {
                let batch = store.prune(&mut pruning).await?;
                if batch == 0 {
                    break;
                }
                *removed.entry(table.as_str()).or_insert(0) += batch;
                if self.is_stopping.load(Ordering::SeqCst) {
                    break 'tables;
                }
                // A large backlog takes a while, and counters are folded meanwhile.
                if lease.at.since(store.now().await?) + PASS_INTERVAL > LEASE {
                    continue;
                }
                self.fold_counts().await?;
                match self.replace_lease(Some(&lease), LEASE).await? {
                    Some(extended) => lease = extended,
                    None => {
                        is_held = false;
                        break 'tables;
                    }
                }
            }
        }
        if !removed.is_empty() {
            info!(?removed, "expired rows removed");
        }
        store.record_maintenance(&removed).await?;
        Ok(is_held.then_some(lease))
    }

    /// Takes, extends or ends the lease; `None` when another process has it.
    async fn replace_lease(
        &self,
        seen: Option<&SharedValue>,
        time: Duration,
    ) -> Result<Option<SharedValue>> {
        let new = SharedValue {
            value: String::new(),
            n: seen.map_or(0, |seen| seen.n) + 1,
            at: self.store.now().await?.plus(time),
        };
        let replaced = self
            .store
            .replace_shared_value(LEASE_KEY, seen, &new)
            .await?;
        if !replaced {
            debug!("another process runs maintenance");
        }
        Ok(replaced.then_some(new))
    }
}
