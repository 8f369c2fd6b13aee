//! Polling: due feeds are claimed, fetched, parsed and ingested, and the policy
//! schedules the next poll. Any number of pollers share the work through the
//! store; none holds anything longer than a lease.

mod adapter;
mod adapter_items;
mod budget;
mod check;
mod collect;
mod complete_poll;
mod feed_poll;
mod feed_state;
mod find_feed;
mod ingest_items;
mod items;
mod list_source;
mod listing;
mod listing_items;
mod poll_error;
mod poll_feed;
mod poll_source;
mod run_reports;
mod run_task;
mod scheduled_runs;
mod sitemap;
mod sitemap_index;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use tidings_adapters::ServiceOptions;
use tidings_sinks::Sink;
use tidings_store::{FeedClaim, Result};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::{debug, warn};

pub use adapter::environment;
pub use check::SourceCheck;
pub use collect::{CollectError, CollectOptions, Collected, CollectedSource};
pub use complete_poll::MANY_FAILURES;
pub use poll_error::LIMITED;
pub use poll_source::{PollTask, PolledSource, SeenItem, StartedPoll};
pub use run_task::RunTask;

use crate::metrics::LoopMetrics;
use crate::politeness::FetchContext;
use budget::RequestBudget;

/// How long after a claim the next one is, while polls are in flight.
const CLAIM_INTERVAL: Duration = Duration::from_secs(1);

/// Options of a poller.
#[derive(Debug, Clone)]
pub struct PollOptions {
    /// Feeds polled concurrently by this process.
    pub concurrency: usize,
    /// How long a poll may take before another poller may claim the feed.
    pub lease: Duration,
    /// The longest sleep between two claims.
    pub check_interval: Duration,
    /// Requests per day for all adaptive feeds together; by default as many as a poll
    /// of each every 15 minutes.
    pub requests_per_day: Option<f64>,
    /// Interval of scheduled collection runs, if there are any.
    pub collect_interval: Option<Duration>,
    /// Sources that a collection run lists concurrently, unless it says otherwise.
    pub collect_concurrency: usize,
    /// New items that a collection run submits at most, unless it says otherwise.
    pub collect_max_new: usize,
    /// Sinks that show the last collection run.
    pub run_sinks: Vec<Arc<dyn Sink>>,
    /// The secrets of adapters, by name.
    pub secrets: fn(&str) -> Option<String>,
    /// New URLs per day that a source may submit, unless its settings say otherwise.
    pub max_new_urls_per_day: u64,
    /// What is configured for services, by the kind of their adapter.
    pub services: BTreeMap<String, ServiceOptions>,
    pub metrics: Arc<LoopMetrics>,
}

impl Default for PollOptions {
    fn default() -> Self {
        Self {
            concurrency: 10,
            lease: Duration::from_secs(300),
            check_interval: Duration::from_secs(30),
            requests_per_day: None,
            collect_interval: None,
            collect_concurrency: 5,
            collect_max_new: 2000,
            run_sinks: Vec::new(),
            secrets: environment,
            max_new_urls_per_day: 100_000,
            services: BTreeMap::new(),
            metrics: Arc::default(),
        }
    }
}

/// The outcome of a poll, as in the fetch log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PollOutcome {
    /// Parsed and ingested, with new items or without.
    Ok,
    /// The server responded 304.
    NotModified,
    /// The same bytes as before.
    SameBody,
    /// Other bytes, the same items.
    Redundant,
    /// The feed of a site was found; it is polled next.
    Found,
    Failed,
}

impl PollOutcome {
    const ALL: [Self; 6] = [
        Self::Ok,
        Self::NotModified,
        Self::SameBody,
        Self::Redundant,
        Self::Found,
        Self::Failed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotModified => "not_modified",
            Self::SameBody => "same_body",
            Self::Redundant => "redundant",
            Self::Found => "found",
            Self::Failed => "failed",
        }
    }
}

/// The report of one poll.
#[derive(Debug, Clone, Serialize)]
pub struct PollReport {
    pub feed_id: i64,
    pub url: String,
    pub outcome: PollOutcome,
    pub items_seen: usize,
    pub items_new: usize,
    /// Items that could not be submitted, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped: BTreeMap<&'static str, usize>,
    /// Why it failed, or a remark.
    pub error: Option<String>,
    pub next_poll_in: Duration,
}

/// Polls the feeds that are due.
#[derive(Debug)]
pub struct Poller {
    context: FetchContext,
    options: PollOptions,
    budget: RequestBudget,
    is_stopping: AtomicBool,
    stop: Notify,
    stop_collecting: Notify,
}

impl Poller {
    pub fn new(context: FetchContext, options: PollOptions) -> Self {
        let results = PollOutcome::ALL.map(PollOutcome::as_str);
        options.metrics.expect_polls(results);
        Self {
            budget: RequestBudget::new(options.requests_per_day),
            context,
            options,
            is_stopping: AtomicBool::new(false),
            stop: Notify::new(),
            stop_collecting: Notify::new(),
        }
    }

    /// Polls every feed that is due now, and calls `on_poll` for each; returns their
    /// number. When a claim fails, the polls in flight are finished first.
    pub async fn poll_due(self: &Arc<Self>, mut on_poll: impl FnMut(&PollReport)) -> Result<usize> {
        let mut polls: JoinSet<Option<PollReport>> = JoinSet::new();
        let mut count = 0;
        let mut failed = None;
        loop {
            // Only as many as can start: a lease should not pass in a queue.
            let room = self.options.concurrency - polls.len();
            let store = &self.context.store;
            let is_over = room == 0 || failed.is_some() || self.is_stopping.load(Ordering::SeqCst);
            let claims = match is_over {
                true => Vec::new(),
                false => {
                    let claims = store.claim_feeds(room as u32, self.options.lease).await;
                    claims.unwrap_or_else(|error| {
                        failed = Some(error);
                        Vec::new()
                    })
                }
            };
            for claim in claims {
                let poller = Arc::clone(self);
                polls.spawn(async move { poller.poll(&claim).await });
            }
            match tokio::time::timeout(CLAIM_INTERVAL, polls.join_next()).await {
                Ok(Some(Ok(Some(poll)))) => {
                    count += 1;
                    on_poll(&poll);
                }
                Ok(Some(Ok(None))) => {}
                Ok(Some(Err(error))) => warn!(%error, "poll task panicked; lease will expire"),
                Ok(None) => return failed.map_or(Ok(count), Err),
                // Others may be due by now, however long these polls take.
                Err(_) => {}
            }
        }
    }

    /// Polls until `stop` is done; then finishes the polls in flight.
    pub async fn run(
        self: &Arc<Self>,
        stop: impl Future<Output = ()>,
        mut on_poll: impl FnMut(&PollReport),
    ) -> Result<()> {
        let polling = async {
            while !self.is_stopping.load(Ordering::SeqCst) {
                // An outage of the store ends; the poller must outlive it.
                if let Err(error) = self.poll_due(&mut on_poll).await {
                    warn!(%error, "store unavailable; cannot poll feeds");
                }
                let pause = self.pause().await.unwrap_or(self.options.check_interval);
                let _ = tokio::time::timeout(pause, self.stop.notified()).await;
            }
        };
        let polling = async { tokio::join!(polling, self.run_scheduled_collections()) };
        let mut polling = std::pin::pin!(polling);
        tokio::select! {
            ((), ()) = &mut polling => {}
            () = stop => {
                self.is_stopping.store(true, Ordering::SeqCst);
                self.stop.notify_one();
                self.stop_collecting.notify_one();
                polling.await;
            }
        }
        Ok(())
    }

    /// Until the next feed is due, within bounds.
    async fn pause(&self) -> Result<Duration> {
        let store = &self.context.store;
        let (now, due) = (store.now().await?, store.next_feed_due().await?);
        let wait = due.map_or(self.options.check_interval, |due| due.since(now));
        Ok(wait.clamp(Duration::from_millis(200), self.options.check_interval))
    }

    /// One poll. `None` when it was deferred, or its lease was lost.
    async fn poll(&self, claim: &FeedClaim) -> Option<PollReport> {
        match self.poll_feed(claim).await {
            Ok(report) => report,
            Err(error) => {
                // An internal error, not the feed's: the lease expires, and it is due again.
                debug!(%error, feed = claim.feed.url, "cannot complete poll");
                None
            }
        }
    }
}
