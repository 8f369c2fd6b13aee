//! Collection runs: one pass over all or some sources, whether they are due or
//! not. First everybody is asked, then the room for new items is shared, then
//! each source gives its share; what is left comes with the next run. A source
//! that fails or hangs costs nobody else anything. Never two runs at once.

use std::time::{Duration, Instant};

use serde::Serialize;
use thiserror::Error;
use tidings_adapters::{AdapterErrorKind, Pull, adapter};
use tidings_store::{FeedClaim, Moment, SharedValue, Source, Store, StoreError, Submission};
use tokio::task::JoinSet;

use super::adapter::{Bounds, listed, trouble};
use super::one::{Polling, Read};
use super::{PollOutcome, Poller, SeenItem};
use crate::settings::SourceSettings;

/// How a run works.
#[derive(Debug, Clone)]
pub struct CollectOptions {
    /// Only these, by name; all that are enabled without any.
    pub sources: Vec<String>,
    /// Says what would be new, and keeps nothing.
    pub dry_run: bool,
    pub at_once: usize,
    pub most_new: usize,
    /// Of one request, and of one source with all its requests.
    pub request_limit: Duration,
    pub source_limit: Duration,
    pub retry_waits: Vec<Duration>,
}

impl Default for CollectOptions {
    fn default() -> Self {
        Self {
            sources: Vec::new(),
            dry_run: false,
            at_once: 5,
            most_new: 2000,
            request_limit: Duration::from_secs(10),
            source_limit: Duration::from_secs(120),
            retry_waits: [1, 2, 4].map(Duration::from_secs).to_vec(),
        }
    }
}

/// Why there was no run.
#[derive(Debug, Error)]
pub enum CollectError {
    #[error("a run is under way; it ends by itself, or is given up at {0}")]
    Running(Moment),
    #[error("there is no source named {0:?}; `tidings source ls` lists them")]
    NoSuchSource(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What came of a run; also what is kept of it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Collected {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<i64>,
    pub dry_run: bool,
    pub attempted: usize,
    pub succeeded: usize,
    pub items_seen: usize,
    /// Taken, or with a dry run: what would be.
    pub items_new: usize,
    /// New as well, and left for the next run.
    pub items_left: usize,
    pub elapsed_ms: u64,
    pub sources: Vec<CollectedSource>,
}

/// What came of one source.
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

/// What a source has to give.
struct Offer {
    source: Source,
    elapsed: Duration,
    found: Result<Found, String>,
}

struct Found {
    seen: usize,
    /// Nobody knows these yet.
    new: Vec<Submission>,
    /// Of a service: the lease on it, and its cursor.
    pulled: Option<(FeedClaim, Pull)>,
}

/// The mark that says until when a run is under way.
const MARK: &str = "collect";
/// A run that does not renew its mark for so long has died.
const RUN_LEASE: Duration = Duration::from_secs(120);

impl Poller {
    /// One pass. `asked` hears of each source as soon as it has answered.
    pub async fn collect(
        self: &std::sync::Arc<Self>,
        options: &CollectOptions,
        mut asked: impl FnMut(&CollectedSource),
    ) -> Result<Collected, CollectError> {
        let store = &self.outside.store;
        let sources = wanted(store, &options.sources).await?;
        if options.dry_run {
            return self.pass(sources, options, &mut asked).await;
        }
        let mut mark = begin(store).await?;
        let run_id = store.start_run().await?;
        let mut pass = std::pin::pin!(self.pass(sources, options, &mut asked));
        let passed = loop {
            tokio::select! {
                passed = &mut pass => break passed,
                () = tokio::time::sleep(RUN_LEASE / 4) => mark = renew(store, mark, RUN_LEASE).await?,
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
        renew(store, mark, Duration::ZERO).await?;
        passed
    }

    async fn pass(
        self: &std::sync::Arc<Self>,
        sources: Vec<Source>,
        options: &CollectOptions,
        asked: &mut impl FnMut(&CollectedSource),
    ) -> Result<Collected, CollectError> {
        let start = Instant::now();
        let mut offers = Vec::new();
        let mut asking: JoinSet<Offer> = JoinSet::new();
        let mut waiting = sources.into_iter();
        loop {
            while asking.len() < options.at_once.max(1)
                && let Some(source) = waiting.next()
            {
                let (poller, options) = (std::sync::Arc::clone(self), options.clone());
                asking.spawn(async move { poller.offer(source, &options).await });
            }
            match asking.join_next().await {
                Some(Ok(offer)) => {
                    asked(&told(&offer, 0));
                    offers.push(offer);
                }
                Some(Err(error)) => tracing::error!(%error, "a source broke a part of the run"),
                None => break,
            }
        }
        // The order in which they answered must not decide anything.
        offers.sort_by(|a, b| a.source.name.cmp(&b.source.name));
        let demands: Vec<usize> = offers.iter().map(Offer::demand).collect();
        let shares = shares(&demands, options.most_new);
        let mut collected = Collected {
            dry_run: options.dry_run,
            ..Collected::default()
        };
        for (offer, share) in offers.into_iter().zip(shares) {
            let mut line = told(&offer, share);
            if !options.dry_run
                && let Err(error) = self.take_share(offer, share).await
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

    /// Asks one source, for as long as it may take.
    async fn offer(&self, source: Source, options: &CollectOptions) -> Offer {
        let start = Instant::now();
        let limit = options.source_limit;
        let found = match tokio::time::timeout(limit, self.find(&source, options)).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no end within {} s", limit.as_secs_f32())),
        };
        Offer {
            source,
            elapsed: start.elapsed(),
            found,
        }
    }

    async fn find(
        &self,
        source: &Source,
        options: &CollectOptions,
    ) -> tidings_store::Result<Result<Found, String>> {
        let settings = match SourceSettings::of(source) {
            Ok(settings) => settings,
            Err(error) => return Ok(Err(error.to_string())),
        };
        if settings.adapter().is_some() {
            return self.find_pulled(source, settings, options).await;
        }
        let listed = match self.listed_now(source, Some(options.request_limit)).await? {
            Ok(offered) => offered,
            Err(why) => return Ok(Err(why)),
        };
        let listed: Vec<Submission> = listed.into_iter().map(|item| item.submission).collect();
        Ok(Ok(Found {
            seen: listed.len(),
            new: self.unknown(listed).await?,
            pulled: None,
        }))
    }

    async fn find_pulled(
        &self,
        source: &Source,
        settings: SourceSettings,
        options: &CollectOptions,
    ) -> tidings_store::Result<Result<Found, String>> {
        let store = &self.outside.store;
        let feeds = store.feeds_of_source(source.source_id).await?;
        let Some(feed) = feeds.into_iter().find(|feed| feed.kind == settings.kind) else {
            return Ok(Err("it has not been set up; add it again".to_owned()));
        };
        let claim = match options.dry_run {
            // Nobody is kept from anything.
            true => Some(FeedClaim { feed, attempt: 0 }),
            false => store.claim_feed(feed.feed_id, self.options.lease).await?,
        };
        let Some(claim) = claim else {
            return Ok(Err("it is being asked right now".to_owned()));
        };
        let Some(adapter) = adapter(&settings.kind) else {
            return Ok(Err(format!("there is no adapter {:?}", settings.kind)));
        };
        let now = store.now().await?;
        let polling = Polling::new(&claim, source.clone(), settings, now);
        let bounds = Bounds {
            max_items: options.most_new,
            time_limit: options.request_limit,
            retry_waits: &options.retry_waits,
        };
        let limit = options.source_limit;
        let pulling = self.pull_once(&polling, adapter, &bounds);
        let pull = match tokio::time::timeout(limit, pulling).await {
            Ok(Ok(pull)) => pull,
            Ok(Err(error)) => {
                let why = error.message.clone();
                match error.kind {
                    _ if options.dry_run => {}
                    AdapterErrorKind::Busy { after } => store.defer_feed(&claim, after).await?,
                    _ => drop(polling.end(self, Read::Failed(trouble(error))).await?),
                }
                return Ok(Err(why));
            }
            Err(_) => {
                if !options.dry_run {
                    store.defer_feed(&claim, limit).await?;
                }
                return Ok(Err(format!("no end within {} s", limit.as_secs_f32())));
            }
        };
        let listed = listed(&pull, source, &polling.settings, &self.outside.proxies);
        Ok(Ok(Found {
            seen: pull.items.len(),
            new: self.unknown(listed.submissions).await?,
            pulled: Some((claim, pull)),
        }))
    }

    /// What a service has now, and which of it is new. Writes nothing.
    pub(super) async fn dry_pull(
        &self,
        source: &Source,
        settings: SourceSettings,
    ) -> tidings_store::Result<Result<Vec<SeenItem>, String>> {
        let options = CollectOptions {
            dry_run: true,
            ..CollectOptions::default()
        };
        let found = match self.find_pulled(source, settings, &options).await? {
            Ok(found) => found,
            Err(why) => return Ok(Err(why)),
        };
        let items = found.pulled.map_or_else(Vec::new, |(_, pull)| pull.items);
        let seen = items.into_iter().map(|item| SeenItem {
            is_new: found
                .new
                .iter()
                .any(|new| new.target.url.as_str() == item.url),
            title: Some(item.title),
            published: item.published,
            url: item.url,
        });
        Ok(Ok(seen.collect()))
    }

    async fn unknown(&self, listed: Vec<Submission>) -> tidings_store::Result<Vec<Submission>> {
        let mut new = Vec::new();
        for submission in listed {
            let known = self.outside.store.url(submission.target.id()).await?;
            if known.is_none() {
                new.push(submission);
            }
        }
        Ok(new)
    }

    /// Keeps the share of a source. A service whose share was cut is asked for
    /// the same again: its cursor stays.
    async fn take_share(&self, offer: Offer, share: usize) -> Result<(), CollectError> {
        let store = &self.outside.store;
        let Ok(found) = offer.found else {
            return Ok(());
        };
        let is_whole = share >= found.new.len();
        store
            .submit(&found.new[..share.min(found.new.len())])
            .await?;
        let Some((claim, pull)) = found.pulled else {
            return Ok(());
        };
        if !is_whole {
            store.defer_feed(&claim, Duration::ZERO).await?;
            return Ok(());
        }
        let settings = SourceSettings::of(&offer.source);
        let Ok(settings) = settings else {
            return Ok(());
        };
        let now = store.now().await?;
        let mut polling = Polling::new(&claim, offer.source, settings, now);
        let read = polling.pulled(pull);
        let ended = polling.end(self, read).await?;
        debug_assert_ne!(ended.outcome, PollOutcome::Failed);
        Ok(())
    }
}

impl Offer {
    fn demand(&self) -> usize {
        self.found.as_ref().map_or(0, |found| found.new.len())
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

fn told(offer: &Offer, share: usize) -> CollectedSource {
    let (seen, error) = match &offer.found {
        Ok(found) => (found.seen, None),
        Err(why) => (0, Some(why.clone())),
    };
    CollectedSource {
        name: offer.source.name.clone(),
        kind: offer.source.kind.clone(),
        items_seen: seen,
        items_new: share,
        items_left: offer.demand() - share,
        elapsed_ms: offer.elapsed.as_millis() as u64,
        error,
    }
}

/// The sources to ask; a name that is not there is an error.
async fn wanted(store: &Store, names: &[String]) -> Result<Vec<Source>, CollectError> {
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

/// Marks that a run is under way, unless one is.
async fn begin(store: &Store) -> Result<SharedValue, CollectError> {
    let (now, seen) = (store.now().await?, store.mark(MARK).await?);
    if let Some(mark) = &seen
        && mark.at > now
    {
        return Err(CollectError::Running(mark.at));
    }
    let mark = SharedValue {
        value: String::new(),
        n: seen.as_ref().map_or(0, |mark| mark.n) + 1,
        at: now.plus(RUN_LEASE),
    };
    match store
        .replace_shared_value(MARK, seen.as_ref(), &mark)
        .await?
    {
        true => Ok(mark),
        false => Err(CollectError::Running(mark.at)),
    }
}

async fn renew(
    store: &Store,
    mark: SharedValue,
    lease: Duration,
) -> Result<SharedValue, StoreError> {
    let next = SharedValue {
        n: mark.n + 1,
        at: store.now().await?.plus(lease),
        ..mark.clone()
    };
    store.replace_shared_value(MARK, Some(&mark), &next).await?;
    Ok(next)
}

/// Room shared fairly: nobody gets more than asked for, and nobody gets less
/// than another unless that is all that was asked for.
fn shares(demands: &[usize], room: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by_key(|at| demands[*at]);
    let mut shares = vec![0; demands.len()];
    let mut left = room;
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
    fn room_is_shared_fairly() {
        let rows: [(&[usize], usize, &[usize]); 6] = [
            (&[10, 20], 100, &[10, 20]),
            (&[5000, 5000], 2000, &[1000, 1000]),
            (&[5000, 10, 5000], 2000, &[995, 10, 995]),
            (&[0, 3, 0], 2, &[0, 2, 0]),
            (&[7, 7, 7], 10, &[3, 3, 4]),
            (&[], 10, &[]),
        ];
        for (demands, room, expected) in rows {
            assert_eq!(shares(demands, room), expected, "{demands:?} of {room}");
        }
    }
}
