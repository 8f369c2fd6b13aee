//! Fetch workers: URLs are claimed in batches, fetched politely and concurrently,
//! read on a few threads, and committed in batches. Any number of workers on any
//! number of machines share the frontier; none holds anything longer than a lease.

mod build_document;
mod canonical;
mod commit;
mod crash_journal;
mod extraction_threads;
mod feed_hints;
mod fetch_url;
mod in_flight;
mod inline_document;
mod job;
mod outcome;
mod page_archive;
mod page_version;
mod read_page;
mod retry;
mod site_cache;
mod source_cache;
mod tally;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use tidings_extract::{Article, Options, Page};
use tidings_store::{ClaimRequest, Result};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};

pub use page_archive::PageArchive;
pub use retry::RetryPolicy;
pub use tally::{StageTimes, Tally};

use crate::politeness::{FetchContext, safe_lease_window};
use canonical::CanonicalChecks;
use commit::Committer;
use crash_journal::CrashJournal;
use extraction_threads::ExtractionThreads;
use in_flight::{ClaimInFlight, FinishedClaim, InFlight};
use job::Job;
use site_cache::SiteCache;
use source_cache::SourceCache;
use tally::{SharedTally, StageClocks, add_elapsed};

/// Extracts the article of a page; [`tidings_extract::extract`] but for tests.
pub(crate) type Extractor = fn(&Page<'_>, &Options<'_>) -> Article;

/// Options of a worker.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// Pages in flight, from the claim to the commit.
    pub concurrency: usize,
    /// URLs per host in one claim; only hosts without a delay yield more than one.
    pub per_host: u16,
    /// Threads that extract articles.
    pub threads: usize,
    pub lease: Duration,
    /// How long pages in flight may take to finish after a stop.
    pub drain_timeout: Duration,
    /// No page is fetched while a sink has more pending deliveries than this.
    pub outbox_max_pending: u64,
    /// The delays before retries, and how many there are.
    pub retries: Arc<RetryPolicy>,
    /// The longest sleep between two claims.
    pub check_interval: Duration,
    /// Ends when nothing is due, instead of waiting.
    pub ends_when_idle: bool,
    /// Where raw pages are archived, if they are.
    pub page_archive: Option<PageArchive>,
    /// Folder of the crash journal, if one is written.
    pub crash_journal: Option<PathBuf>,
    pub extractor: fn(&Page<'_>, &Options<'_>) -> Article,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            concurrency: 256,
            per_host: 1,
            threads: std::thread::available_parallelism().map_or(2, usize::from),
            lease: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(30),
            outbox_max_pending: 1_000_000,
            retries: Arc::default(),
            check_interval: Duration::from_secs(1),
            ends_when_idle: false,
            page_archive: None,
            crash_journal: None,
            extractor: tidings_extract::extract,
        }
    }
}

/// The shortest pause after a claim that was not filled, whatever is committed
/// meanwhile: claims of one URL each cost more than they bring.
const MIN_CLAIM_INTERVAL: Duration = Duration::from_millis(10);
/// Crash weight at which a URL is quarantined. A lease that expired weighs 1, for
/// hundreds are in flight when a process dies; being read at that moment weighs
/// [`CRASH_WEIGHT_READING`] more. Three such crashes are enough.
const QUARANTINE_AFTER: u16 = 30;
const CRASH_WEIGHT_READING: u16 = 9;
/// How often the outbox is checked.
const OUTBOX_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// How long to wait before the store is queried again after an error.
const OUTAGE_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long the last commits may take after the drain.
const LAST_COMMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Fetches the URLs that are due.
#[derive(Debug)]
pub struct Worker {
    context: FetchContext,
    options: FetchOptions,
    sources: SourceCache,
    sites: SiteCache,
    canonical_checks: CanonicalChecks,
    threads: ExtractionThreads,
    in_flight: InFlight,
    tally: SharedTally,
    clocks: StageClocks,
    crash_journal: OnceLock<CrashJournal>,
    /// When the outbox was last checked, and whether it was full.
    outbox: tokio::sync::Mutex<Option<(std::time::Instant, bool)>>,
    owner: i64,
}

impl Worker {
    pub fn new(context: FetchContext, options: FetchOptions) -> Self {
        Self {
            threads: ExtractionThreads::start(options.threads),
            context,
            options,
            sources: SourceCache::default(),
            sites: SiteCache::default(),
            canonical_checks: CanonicalChecks::default(),
            in_flight: InFlight::default(),
            tally: SharedTally::default(),
            clocks: StageClocks::default(),
            crash_journal: OnceLock::new(),
            outbox: tokio::sync::Mutex::default(),
            // Only for operators who look at leases; two with the same do no harm.
            owner: getrandom::u64().map_or(1, |number| (number >> 1) as i64),
        }
    }

    /// Claims by outcome so far.
    pub fn tally(&self) -> Tally {
        self.tally.get()
    }

    /// Time by stage so far.
    pub fn stages(&self) -> StageTimes {
        self.clocks.get()
    }

    /// Number of pages in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Claims, fetches and commits until `stop` is done; then finishes the pages in
    /// flight, releases those that do not finish in time, and leaves no lease.
    pub async fn run(self: &Arc<Self>, stop: impl Future<Output = ()>) -> Result<()> {
        self.blame_crashes().await?;
        let (finished, completions) = mpsc::channel(self.options.concurrency.max(1));
        let (cancel, cancelled) = watch::channel(false);
        let committing = tokio::spawn(Committer::new(Arc::clone(self), completions).run());
        let extending = tokio::spawn(Arc::clone(self).extend_leases());
        {
            // A claim is never cancelled: its leases would belong to nobody.
            let (end, ending) = watch::channel(false);
            let mut claiming = std::pin::pin!(self.claim_loop(finished, &cancelled, ending));
            tokio::select! {
                () = &mut claiming => {}
                () = stop => {
                    // Its receiver lives as long as the claiming does.
                    let _ = end.send(true);
                    claiming.await;
                    self.drain(&cancel).await;
                }
            }
        }
        // Only jobs hold senders now: when all have ended, so does the committer.
        let limit = self.options.drain_timeout + LAST_COMMIT_TIMEOUT;
        if timeout(limit, committing).await.is_err() {
            warn!("last commit timed out; leases will expire");
        }
        extending.abort();
        Ok(())
    }

    /// Blames the pages that crashed processes on this machine were reading, and
    /// opens a journal for this one.
    async fn blame_crashes(&self) -> Result<()> {
        let Some(folder) = &self.options.crash_journal else {
            return Ok(());
        };
        match CrashJournal::open(folder) {
            Ok((journal, blamed)) => {
                for lease_token in &blamed {
                    warn!(id = %lease_token.id, "page blamed for crash");
                }
                let store = &self.context.store;
                store.blame_for_crash(&blamed, CRASH_WEIGHT_READING).await?;
                // A second run of the same worker keeps the first journal.
                let _ = self.crash_journal.set(journal);
            }
            // Without it a page that crashes its reader is quarantined later.
            Err(error) => {
                warn!(%error, folder = %folder.display(), "cannot open crash journal");
            }
        }
        Ok(())
    }

    /// Waits for the pages in flight, then cancels the rest.
    async fn drain(&self, cancel: &watch::Sender<bool>) {
        info!(in_flight = self.in_flight.len(), "draining");
        let deadline = Instant::now() + self.options.drain_timeout;
        while self.in_flight.len() > 0 && Instant::now() < deadline {
            let _ = timeout(Duration::from_millis(100), self.in_flight.claim_committed()).await;
        }
        // Nobody listens when nothing is in flight.
        let _ = cancel.send(true);
    }

    /// Claims while there is room and something is due.
    async fn claim_loop(
        self: &Arc<Self>,
        finished: mpsc::Sender<FinishedClaim>,
        cancelled: &watch::Receiver<bool>,
        mut ending: watch::Receiver<bool>,
    ) {
        let min_room = (self.options.concurrency / 8).max(1);
        while !*ending.borrow() {
            let room = self
                .options
                .concurrency
                .saturating_sub(self.in_flight.len());
            if room < min_room {
                tokio::select! {
                    () = self.in_flight.claim_committed() => {}
                    _ = ending.changed() => {}
                }
                continue;
            }
            if self.is_outbox_full().await {
                tokio::select! {
                    () = sleep(OUTAGE_RETRY_DELAY) => {}
                    _ = ending.changed() => {}
                }
                continue;
            }
            // Before the claim too: a page that is committed after it frees its host,
            // and the claim did not see that.
            let was_idle = self.in_flight.len() == 0;
            let wait = match self.claim(room, &finished, cancelled).await {
                Ok(wait) => wait,
                Err(error) => {
                    warn!(%error, retry_in = ?OUTAGE_RETRY_DELAY, "store unavailable; cannot claim URLs");
                    sleep(OUTAGE_RETRY_DELAY).await;
                    continue;
                }
            };
            let Some(wait) = wait else {
                continue;
            };
            let is_idle = was_idle && self.in_flight.len() == 0;
            if self.options.ends_when_idle && is_idle && wait >= self.options.check_interval {
                return;
            }
            // A page that is committed may free its host.
            let pause = wait
                .min(self.options.check_interval)
                .max(MIN_CLAIM_INTERVAL);
            sleep(MIN_CLAIM_INTERVAL).await;
            tokio::select! {
                _ = timeout(pause - MIN_CLAIM_INTERVAL, self.in_flight.claim_committed()) => {}
                _ = ending.changed() => {}
            }
        }
    }

    /// Whether the outbox is full. Checked at an interval: the bound is for days of
    /// outage, not for seconds.
    async fn is_outbox_full(&self) -> bool {
        let now = std::time::Instant::now();
        if let Some((at, is_full)) = *self.outbox.lock().await
            && now.duration_since(at) < OUTBOX_CHECK_INTERVAL
        {
            return is_full;
        }
        let store = &self.context.store;
        // An unavailable store is reported by the claim.
        let is_full = store.outbox_exceeds(self.options.outbox_max_pending).await;
        let is_full = is_full.unwrap_or(false);
        if is_full {
            let max_pending = self.options.outbox_max_pending;
            warn!(max_pending, "outbox full; fetching paused");
        }
        *self.outbox.lock().await = Some((now, is_full));
        is_full
    }

    /// Claims once; how long to wait when fewer URLs than requested were due.
    async fn claim(
        self: &Arc<Self>,
        room: usize,
        finished: &mpsc::Sender<FinishedClaim>,
        cancelled: &watch::Receiver<bool>,
    ) -> Result<Option<Duration>> {
        let request = ClaimRequest {
            per_host: self.options.per_host,
            lease: self.options.lease,
            quarantine_after: QUARANTINE_AFTER,
            ..ClaimRequest::new(self.owner, u16::try_from(room).unwrap_or(u16::MAX))
        };
        let start = std::time::Instant::now();
        let until = Instant::now() + safe_lease_window(self.options.lease);
        let claimed = self.context.store.claim(&request).await?;
        add_elapsed(&self.clocks.claiming, start);
        let count = claimed.claims.len();
        self.tally.update(|tally| {
            tally.claimed += count as u64;
            tally.quarantined += u64::from(claimed.quarantined);
        });
        let now = Timestamp::from_millisecond(claimed.at.0).unwrap_or_default();
        for claim in claimed.claims {
            let in_flight = self.in_flight.start(claim.lease_token, until);
            let job = Job { claim, now };
            self.spawn(job, in_flight, finished.clone(), cancelled.clone());
        }
        debug!(count, "claimed URLs");
        let is_short = count < room;
        Ok(is_short.then(|| claimed.next_ready.unwrap_or(self.options.check_interval)))
    }

    /// Starts the fetch of one URL.
    fn spawn(
        self: &Arc<Self>,
        job: Job,
        in_flight: ClaimInFlight,
        finished: mpsc::Sender<FinishedClaim>,
        mut cancelled: watch::Receiver<bool>,
    ) {
        let worker = Arc::clone(self);
        tokio::spawn(async move {
            let cancelled = async {
                tokio::select! {
                    _ = cancelled.wait_for(|cancelled| *cancelled) => {}
                    () = in_flight.lease_lost() => {}
                }
            };
            let completion = worker.fetch(&job, cancelled).await;
            // The committer outlives all senders.
            let _ = finished.send(in_flight.finish(completion)).await;
        });
    }

    /// Extends the leases of the claims in flight; a claim whose lease is lost, or
    /// cannot be extended in time, is cancelled.
    async fn extend_leases(self: Arc<Self>) {
        loop {
            sleep(self.options.lease / 3).await;
            let tokens = self.in_flight.lease_tokens();
            if tokens.is_empty() {
                continue;
            }
            let until = Instant::now() + safe_lease_window(self.options.lease);
            let store = &self.context.store;
            match store.extend_leases(&tokens, self.options.lease).await {
                Ok(held) => {
                    for (token, held) in tokens.into_iter().zip(held) {
                        match held {
                            true => self.in_flight.extend(token, until),
                            false => self.in_flight.lose(token),
                        }
                    }
                }
                // The next extension may come in time.
                Err(error) => warn!(%error, "store unavailable; cannot extend leases"),
            }
        }
    }
}
