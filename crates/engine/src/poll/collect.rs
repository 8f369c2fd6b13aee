//! Collection runs: one pass over all or some sources, due or not. First every
//! source is listed, then the limit of new items is shared among them, then each
//! share is submitted; the rest comes with the next run. A source that fails or
//! hangs affects no other. Only one run at a time, over all machines.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde::Serialize;
use thiserror::Error;
use tidings_adapters::{AdapterErrorKind, Pull, adapter};
use tidings_store::{
    FeedClaim, FrontierId, Moment, Newness, SharedValue, Source, Store, StoreError, Submission,
    Verdict,
};
use tokio::task::JoinSet;

use super::adapter::{PullLimits, pull_error};
use super::adapter_items::listed;
use super::feed_poll::{FeedPoll, FeedRead};
use super::{PollOutcome, Poller};
use crate::sources::SourceSettings;

/// Options of a run.
#[derive(Debug, Clone)]
pub struct CollectOptions {
    /// Only these, by name; all enabled sources if empty.
    pub sources: Vec<String>,
    /// Reports what would be new, and writes nothing.
    pub dry_run: bool,
    /// Sources listed concurrently.
    pub concurrency: usize,
    pub max_new: usize,
    pub request_timeout: Duration,
    /// Of one source with all its requests.
    pub source_timeout: Duration,
    pub retry_delays: Vec<Duration>,
}

impl Default for CollectOptions {
    fn default() -> Self {
        Self {
            sources: Vec::new(),
            dry_run: false,
            concurrency: 5,
            max_new: 2000,
            request_timeout: Duration::from_secs(10),
            source_timeout: Duration::from_secs(120),
            retry_delays: [1, 2, 4].map(Duration::from_secs).to_vec(),
        }
    }
}

/// Why there was no run.
#[derive(Debug, Error)]
pub enum CollectError {
    #[error("a collection run is in progress; wait for its end, or until its lease expires at {0}")]
    Running(Moment),
    #[error("there is no source named {0:?}; `tidings source ls` lists them")]
    NoSuchSource(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The result of a run, as it is also stored.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Collected {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<i64>,
    pub dry_run: bool,
    pub attempted: usize,
    pub succeeded: usize,
    pub items_seen: usize,
    /// Submitted; in a dry run: what would be.
    pub items_new: usize,
    /// New as well, but left for the next run.
    pub items_left: usize,
    pub elapsed_ms: u64,
    pub sources: Vec<CollectedSource>,
}

/// The result of one source.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CollectedSource {
    pub name: String,
    pub kind: String,
    pub items_seen: usize,
    pub items_new: usize,
    pub items_left: usize,
    pub elapsed_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A source after it was listed.
struct ListedSource {
    source: Source,
    elapsed: Duration,
    offer: Result<Offer, String>,
}

/// The items that a source offers.
pub(super) struct Offer {
    seen: usize,
    pub(super) new: Vec<Submission>,
    /// New as well, but left to another source of the run.
    repeated: Vec<FrontierId>,
    /// Of a service: its claim, and the pull with the new cursor.
    pub(super) pulled: Option<(FeedClaim, Pull)>,
}

/// The shared value that holds the lease of a run.
const LEASE_KEY: &str = "collect";
/// A run that does not extend its lease within this time has died.
const RUN_LEASE: Duration = Duration::from_secs(120);

impl Poller {
    /// Options of a run over all sources, as this poller is configured.
    pub fn collect_options(&self) -> CollectOptions {
        CollectOptions {
            concurrency: self.options.collect_concurrency,
            max_new: self.options.collect_max_new,
            ..CollectOptions::default()
        }
    }

    /// One run. `on_source` is called for each source when it is listed.
    pub async fn collect(
        self: &std::sync::Arc<Self>,
        options: &CollectOptions,
        mut on_source: impl FnMut(&CollectedSource),
    ) -> Result<Collected, CollectError> {
        let store = &self.context.store;
        let sources = selected(store, &options.sources).await?;
        if options.dry_run {
            return self.pass(sources, options, &mut on_source).await;
        }
        let mut lease = begin(store).await?;
        let run_id = store.start_run().await?;
        let mut pass = std::pin::pin!(self.pass(sources, options, &mut on_source));
        let passed = loop {
            tokio::select! {
                passed = &mut pass => break passed,
                () = tokio::time::sleep(RUN_LEASE / 4) => lease = extend(store, lease, RUN_LEASE).await?,
            }
        };
        let passed = passed.map(|collected| Collected {
            run_id: Some(run_id),
            ..collected
        });
        let metrics = match &passed {
            Ok(collected) => serde_json::to_string(collected).unwrap_or_default(),
            Err(error) => serde_json::json!({ "error": error.to_string() }).to_string(),
        };
        store.finish_run(run_id, &metrics).await?;
        if let Ok(collected) = &passed {
            // While the lease is held: an earlier run never overwrites a later one.
            let report = self.report_run(collected, &options.retry_delays);
            // Boxed: the compiler limits how deep futures nest.
            Box::pin(report).await;
        }
        extend(store, lease, Duration::ZERO).await?;
        passed
    }

    async fn pass(
        self: &std::sync::Arc<Self>,
        sources: Vec<Source>,
        options: &CollectOptions,
        on_source: &mut impl FnMut(&CollectedSource),
    ) -> Result<Collected, CollectError> {
        let start = Instant::now();
        let mut listed = Vec::new();
        let mut listing: JoinSet<ListedSource> = JoinSet::new();
        let mut waiting = sources.into_iter();
        loop {
            while listing.len() < options.concurrency.max(1)
                && let Some(source) = waiting.next()
            {
                let (poller, options) = (std::sync::Arc::clone(self), options.clone());
                listing.spawn(async move { poller.list_within(source, &options).await });
            }
            match listing.join_next().await {
                Some(Ok(source)) => {
                    on_source(&source.report(0));
                    listed.push(source);
                }
                Some(Err(error)) => tracing::error!(%error, "collection task panicked"),
                None => break,
            }
        }
        // The order of the responses must not matter.
        listed.sort_by(|a, b| a.source.name.cmp(&b.source.name));
        keep_first(&mut listed);
        let mut submitted = HashSet::new();
        let demands: Vec<usize> = listed.iter().map(ListedSource::demand).collect();
        let shares = shares(&demands, options.max_new);
        let mut collected = Collected {
            dry_run: options.dry_run,
            ..Collected::default()
        };
        for (source, share) in listed.into_iter().zip(shares) {
            let mut line = source.report(share);
            if !options.dry_run
                && let Err(error) = self.submit_share(source, share, &mut submitted).await
            {
                line.error = Some(error.to_string());
                line.items_left += line.items_new;
                line.items_new = 0;
            }
            collected.add(line);
        }
        collected.elapsed_ms = start.elapsed().as_millis() as u64;
        Ok(collected)
    }

    /// Lists one source within its timeout.
    async fn list_within(&self, source: Source, options: &CollectOptions) -> ListedSource {
        let start = Instant::now();
        let limit = options.source_timeout;
        let offer = match tokio::time::timeout(limit, self.offer(&source, options)).await {
            Ok(Ok(offer)) => offer,
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("timed out after {} s", limit.as_secs_f32())),
        };
        ListedSource {
            source,
            elapsed: start.elapsed(),
            offer,
        }
    }

    async fn offer(
        &self,
        source: &Source,
        options: &CollectOptions,
    ) -> tidings_store::Result<Result<Offer, String>> {
        let settings = match SourceSettings::of(source) {
            Ok(settings) => settings,
            Err(error) => return Ok(Err(error.to_string())),
        };
        if settings.adapter().is_some() {
            return self.pull_offer(source, settings, options).await;
        }
        let timeout = Some(options.request_timeout);
        let listed = match self.list_source(source, timeout).await? {
            Ok(listed) => listed,
            Err(why) => return Ok(Err(why)),
        };
        let listed = listed.items.into_iter().map(|item| item.submission);
        let listed: Vec<Submission> = listed.collect();
        Ok(Ok(Offer {
            seen: listed.len(),
            new: self.unknown(listed).await?,
            repeated: Vec::new(),
            pulled: None,
        }))
    }

    /// Pulls a service. A dry run takes no lease on it.
    pub(super) async fn pull_offer(
        &self,
        source: &Source,
        settings: SourceSettings,
        options: &CollectOptions,
    ) -> tidings_store::Result<Result<Offer, String>> {
        let store = &self.context.store;
        let feeds = store.feeds_of_source(source.source_id).await?;
        let Some(feed) = feeds.into_iter().find(|feed| feed.kind == settings.kind) else {
            return Ok(Err(
                "the source has no feed; remove it and add it again".to_owned()
            ));
        };
        let claim = match options.dry_run {
            true => Some(FeedClaim { feed, attempt: 0 }),
            false => store.claim_feed(feed.feed_id, self.options.lease).await?,
        };
        let Some(claim) = claim else {
            return Ok(Err("the source is being polled right now".to_owned()));
        };
        let Some(adapter) = adapter(&settings.kind) else {
            return Ok(Err(format!("there is no adapter {:?}", settings.kind)));
        };
        let now = store.now().await?;
        let poll = FeedPoll::new(&claim, source.clone(), settings, now);
        let limits = PullLimits {
            max_items: options.max_new,
            time_limit: options.request_timeout,
            retry_waits: &options.retry_delays,
        };
        let limit = options.source_timeout;
        let pulling = self.pull(&poll, adapter, &limits);
        let pull = match tokio::time::timeout(limit, pulling).await {
            Ok(Ok(pull)) => pull,
            Ok(Err(error)) => {
                let why = error.message.clone();
                match error.kind {
                    _ if options.dry_run => {}
                    AdapterErrorKind::Busy { after } => store.defer_feed(&claim, after).await?,
                    _ => {
                        let read = FeedRead::Failed(pull_error(error));
                        self.complete_poll(poll, read).await?;
                    }
                }
                return Ok(Err(why));
            }
            Err(_) => {
                if !options.dry_run {
                    store.defer_feed(&claim, limit).await?;
                }
                return Ok(Err(format!("timed out after {} s", limit.as_secs_f32())));
            }
        };
        let listed = listed(&pull, &self.listing(&poll));
        Ok(Ok(Offer {
            seen: pull.items.len(),
            new: self.unknown(listed.submissions).await?,
            repeated: Vec::new(),
            pulled: Some((claim, pull)),
        }))
    }

    /// The submissions that are new.
    async fn unknown(&self, listed: Vec<Submission>) -> tidings_store::Result<Vec<Submission>> {
        let newness = self.context.store.judge(&listed).await?;
        let judged = listed.into_iter().zip(newness);
        let new = judged.filter(|(_, newness)| *newness == Newness::New);
        Ok(new.map(|(submission, _)| submission).collect())
    }

    /// Submits the share of a source, and adds it to what this run has submitted. A
    /// service of which something was left is pulled again with the same cursor.
    async fn submit_share(
        &self,
        listed: ListedSource,
        share: usize,
        submitted: &mut HashSet<FrontierId>,
    ) -> Result<(), CollectError> {
        let store = &self.context.store;
        let Ok(offer) = listed.offer else {
            return Ok(());
        };
        let new = &offer.new[..share.min(offer.new.len())];
        let verdicts = store.submit(new).await?;
        submitted.extend(new.iter().map(|submission| submission.target.id()));
        let is_whole =
            share >= offer.new.len() && offer.repeated.iter().all(|id| submitted.contains(id));
        let new = verdicts.iter().filter(|verdict| **verdict == Verdict::New);
        let source_id = listed.source.source_id;
        store.count_new_urls(source_id, new.count() as u64).await?;
        let Some((claim, pull)) = offer.pulled else {
            return Ok(());
        };
        if !is_whole {
            store.defer_feed(&claim, Duration::ZERO).await?;
            return Ok(());
        }
        let settings = SourceSettings::of(&listed.source);
        let Ok(settings) = settings else {
            return Ok(());
        };
        let now = store.now().await?;
        let mut poll = FeedPoll::new(&claim, listed.source, settings, now);
        let read = poll.pulled(pull);
        let report = self.complete_poll(poll, read).await?;
        debug_assert!(report.is_none_or(|report| report.outcome != PollOutcome::Failed));
        Ok(())
    }
}

impl ListedSource {
    fn demand(&self) -> usize {
        self.offer.as_ref().map_or(0, |offer| offer.new.len())
    }

    fn report(&self, share: usize) -> CollectedSource {
        let (seen, error) = match &self.offer {
            Ok(offer) => (offer.seen, None),
            Err(why) => (0, Some(why.clone())),
        };
        CollectedSource {
            name: self.source.name.clone(),
            kind: self.source.kind.clone(),
            items_seen: seen,
            items_new: share,
            items_left: self.demand() - share,
            elapsed_ms: self.elapsed.as_millis() as u64,
            error,
        }
    }
}

impl Collected {
    fn add(&mut self, line: CollectedSource) {
        self.attempted += 1;
        self.succeeded += usize::from(line.error.is_none());
        self.items_seen += line.items_seen;
        self.items_new += line.items_new;
        self.items_left += line.items_left;
        self.sources.push(line);
    }
}

/// Leaves each URL to the first source that lists it: a run counts it once.
fn keep_first(listed: &mut [ListedSource]) {
    let mut seen = HashSet::new();
    let offers = listed.iter_mut().filter_map(|one| one.offer.as_mut().ok());
    for offer in offers {
        let repeated = &mut offer.repeated;
        offer.new.retain(|submission| {
            let id = submission.target.id();
            let is_first = seen.insert(id);
            if !is_first {
                repeated.push(id);
            }
            is_first
        });
    }
}

/// The selected sources; an unknown name is an error.
pub(super) async fn selected(store: &Store, names: &[String]) -> Result<Vec<Source>, CollectError> {
    let mut sources = Vec::new();
    for name in names {
        let found = store.source_named(name).await?;
        sources.push(found.ok_or_else(|| CollectError::NoSuchSource(name.clone()))?);
    }
    if !names.is_empty() {
        return Ok(sources);
    }
    let mut after = i64::MIN;
    loop {
        let page = store.sources_after(after, 1000).await?;
        let Some(last) = page.last() else {
            return Ok(sources);
        };
        after = last.source_id;
        sources.extend(page.into_iter().filter(|source| source.enabled));
    }
}

/// The lease of the last run, unless one is in progress.
pub(super) async fn last_lease(store: &Store) -> Result<Option<SharedValue>, CollectError> {
    let (now, seen) = (store.now().await?, store.shared_value(LEASE_KEY).await?);
    match seen {
        Some(mark) if mark.at > now => Err(CollectError::Running(mark.at)),
        seen => Ok(seen),
    }
}

/// Takes the lease of a run, unless another run holds it.
async fn begin(store: &Store) -> Result<SharedValue, CollectError> {
    let seen = last_lease(store).await?;
    let now = store.now().await?;
    let mark = SharedValue {
        value: String::new(),
        n: seen.as_ref().map_or(0, |mark| mark.n) + 1,
        at: now.plus(RUN_LEASE),
    };
    match store
        .replace_shared_value(LEASE_KEY, seen.as_ref(), &mark)
        .await?
    {
        true => Ok(mark),
        false => Err(CollectError::Running(mark.at)),
    }
}

/// Extends the lease of a run; zero releases it.
async fn extend(
    store: &Store,
    held: SharedValue,
    lease: Duration,
) -> Result<SharedValue, StoreError> {
    let next = SharedValue {
        n: held.n + 1,
        at: store.now().await?.plus(lease),
        ..held.clone()
    };
    store
        .replace_shared_value(LEASE_KEY, Some(&held), &next)
        .await?;
    Ok(next)
}

/// Max-min fair shares of a limit: no source gets more than it offers, and none
/// gets less than another unless it offers no more.
fn shares(demands: &[usize], limit: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by_key(|at| demands[*at]);
    let mut shares = vec![0; demands.len()];
    let mut left = limit;
    for (done, at) in order.into_iter().enumerate() {
        let even = left / (demands.len() - done);
        shares[at] = demands[at].min(even);
        left -= shares[at];
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_shared_fairly() {
        let rows: [(&[usize], usize, &[usize]); 6] = [
            (&[10, 20], 100, &[10, 20]),
            (&[5000, 5000], 2000, &[1000, 1000]),
            (&[5000, 10, 5000], 2000, &[995, 10, 995]),
            (&[0, 3, 0], 2, &[0, 2, 0]),
            (&[7, 7, 7], 10, &[3, 3, 4]),
            (&[], 10, &[]),
        ];
        for (demands, limit, expected) in rows {
            assert_eq!(shares(demands, limit), expected, "{demands:?} of {limit}");
        }
    }
}
