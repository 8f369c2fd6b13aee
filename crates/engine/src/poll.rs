//! Polling: due feeds are leased, asked, read and submitted, and the policy says
//! when each is due again. Any number of pollers share the work through the
//! store; none of them holds anything that another could need.

mod adapter;
mod automatic;
mod check;
mod collect;
mod items;
mod listing;
mod one;
mod poll_source;
mod price;
mod search;
mod sitemap;
mod take;
mod trouble;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use tidings_store::{FeedClaim, Result};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::{debug, warn};

pub use adapter::environment;
pub use check::SourceCheck;
pub use collect::{CollectError, CollectOptions, Collected, CollectedSource};
pub use poll_source::{PolledSource, SeenItem};

use crate::outside::FetchContext;
use price::SharedPrice;

/// How the pollers work.
#[derive(Debug, Clone, Copy)]
pub struct PollOptions {
    /// Feeds polled at once by this process.
    pub at_once: usize,
    /// How long a poll may take before another poller may take over.
    pub lease: Duration,
    /// The longest sleep between two looks for due feeds.
    pub every: Duration,
    /// Requests a day for all adaptive feeds together; as many as a poll of each
    /// every quarter of an hour would make when nothing is said.
    pub requests_per_day: Option<f64>,
    /// Between two runs over all sources, if they come by themselves.
    pub collect_every: Option<Duration>,
    /// Where the keys of adapters are, by name.
    pub secrets: fn(&str) -> Option<String>,
}

impl Default for PollOptions {
    fn default() -> Self {
        Self {
            at_once: 10,
            lease: Duration::from_secs(300),
            every: Duration::from_secs(30),
            requests_per_day: None,
            collect_every: None,
            secrets: environment,
        }
    }
}

/// How a poll ended, in the words of the fetch log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PollOutcome {
    /// Read and submitted, with news or without.
    Ok,
    /// The server said that nothing has changed.
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

/// One poll that has ended.
#[derive(Debug, Clone, Serialize)]
pub struct PollReport {
    pub feed_id: i64,
    pub url: String,
    pub outcome: PollOutcome,
    pub items_seen: usize,
    pub items_new: usize,
    pub error: Option<String>,
    pub next_poll_in: Duration,
}

/// Polls whatever is due.
#[derive(Debug)]
pub struct Poller {
    outside: FetchContext,
    options: PollOptions,
    price: SharedPrice,
    is_stopping: AtomicBool,
    stop: Notify,
    stop_collecting: Notify,
}

impl Poller {
    pub fn new(outside: FetchContext, options: PollOptions) -> Self {
        Self {
            price: SharedPrice::new(options.requests_per_day),
            outside,
            options,
            is_stopping: AtomicBool::new(false),
            stop: Notify::new(),
            stop_collecting: Notify::new(),
        }
    }

    /// Polls every feed that is due now, and tells of each as it ends. How many
    /// there were.
    pub async fn poll_due(self: &Arc<Self>, mut ended: impl FnMut(&PollReport)) -> Result<usize> {
        let mut polls: JoinSet<Option<PollReport>> = JoinSet::new();
        let mut count = 0;
        loop {
            // Only as many as can start: a lease should not be spent waiting.
            let room = self.options.at_once - polls.len();
            let store = &self.outside.store;
            let claims = match self.is_stopping.load(Ordering::SeqCst) {
                true => Vec::new(),
                false => store.claim_feeds(room as u32, self.options.lease).await?,
            };
            for claim in claims {
                let poller = Arc::clone(self);
                polls.spawn(async move { poller.poll(&claim).await });
            }
            match polls.join_next().await {
                Some(Ok(Some(poll))) => {
                    count += 1;
                    ended(&poll);
                }
                Some(Ok(None)) => {}
                Some(Err(error)) => warn!(%error, "a poll broke off; its lease will end"),
                None => return Ok(count),
            }
        }
    }

    /// Polls until `stop` is done; then ends what is under way.
    pub async fn run(
        self: &Arc<Self>,
        stop: impl Future<Output = ()>,
        mut ended: impl FnMut(&PollReport),
    ) -> Result<()> {
        let polling = async {
            while !self.is_stopping.load(Ordering::SeqCst) {
                // A store that is away comes back; a poller that gave up would not.
                if let Err(error) = self.poll_due(&mut ended).await {
                    warn!(%error, "feeds can't be polled now");
                }
                let pause = self.pause().await.unwrap_or(self.options.every);
                let _ = tokio::time::timeout(pause, self.stop.notified()).await;
            }
        };
        let polling = async { tokio::join!(polling, self.collect_now_and_then()) };
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
        let store = &self.outside.store;
        let (now, due) = (store.now().await?, store.next_feed_due().await?);
        let wait = due.map_or(self.options.every, |due| due.since(now));
        Ok(wait.clamp(Duration::from_millis(200), self.options.every))
    }

    /// One poll. `None` when it was put off, or lost to another poller.
    async fn poll(&self, claim: &FeedClaim) -> Option<PollReport> {
        match self.poll_feed(claim).await {
            Ok(ended) => ended,
            Err(error) => {
                // Ours, not the feed's: the lease ends, and it is due again.
                debug!(%error, feed = claim.feed.url, "a poll could not be kept");
                None
            }
        }
    }
}
