//! Fetch workers: URLs are claimed in batches, asked politely and concurrently,
//! read on a few cores, and committed in batches. Any number of workers on any
//! number of machines share the frontier; none holds anything that another
//! could need for longer than a lease.

mod commit;
mod flight;
mod given;
mod kept_pages;
mod make;
mod page;
mod read;
mod recorder;
mod retry;
mod sites;
mod sources;
mod tally;
mod verdict;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use tidings_extract::{Article, Options, Page};
use tidings_store::{ClaimRequest, Result};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};

pub use kept_pages::PageArchive;
pub use make::stored_document;
pub use tally::{StageTimes, Tally};

use crate::outside::FetchContext;
use commit::Committer;
use flight::Flights;
use page::Job;
use recorder::Recorder;
use sites::Sites;
use sources::Sources;
use tally::{SharedTally, StageClocks, note_time};

/// What makes an article of a page; [`tidings_extract::extract`] but for tests.
pub(crate) type Extractor = fn(&Page<'_>, &Options<'_>) -> Article;

/// How a worker works.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// Pages that are asked for or waiting to be committed at once.
    pub at_once: usize,
    /// URLs of one host in one claim; only hosts without a delay give more than one.
    pub per_host: u16,
    /// Threads that read pages.
    pub cores: usize,
    pub lease: Duration,
    /// How long to go on after being asked to end.
    pub drain: Duration,
    /// No page is fetched while some sink has more orders than this.
    pub outbox_bound: u64,
    /// The longest sleep between two looks for work.
    pub every: Duration,
    /// Ends when there is nothing left that is due now, instead of waiting.
    pub ends_when_idle: bool,
    /// Where pages are kept as they came, if they are.
    pub pages: Option<PageArchive>,
    /// Folder where it is written down what is being read, for the case that it
    /// kills the process.
    pub recorder: Option<PathBuf>,
    pub extractor: fn(&Page<'_>, &Options<'_>) -> Article,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            at_once: 256,
            per_host: 1,
            cores: std::thread::available_parallelism().map_or(2, usize::from),
            lease: Duration::from_secs(60),
            drain: Duration::from_secs(30),
            outbox_bound: 1_000_000,
            every: Duration::from_secs(1),
            ends_when_idle: false,
            pages: None,
            recorder: None,
            extractor: tidings_extract::extract,
        }
    }
}

/// After an empty look nothing is looked for sooner than this, whatever ends
/// meanwhile: claims that bring one URL each cost more than they bring.
const BREATH: Duration = Duration::from_millis(10);
/// A URL is put aside when so much speaks against it: that its lease ended
/// without a word speaks little, for hundreds are under way when a process dies;
/// that it was being read at that moment speaks much. Three such ends are enough.
const QUARANTINE_AFTER: u16 = 30;
const READ_WHEN_IT_ENDED: u16 = 9;
/// How often the outbox is looked at.
const OUTBOX_LOOK: Duration = Duration::from_secs(10);
/// How long our own store may be away before it is asked again.
const AFTER_OUTAGE: Duration = Duration::from_secs(1);

/// How long a lease is certainly ours: a question that is broken off may still
/// be worked on by the host that heard it, and whoever comes next must not meet it.
pub(crate) fn safe_lease_window(lease: Duration) -> Duration {
    lease * 9 / 10
}

/// Fetches whatever is due.
#[derive(Debug)]
pub struct Worker {
    outside: FetchContext,
    options: FetchOptions,
    sources: Sources,
    sites: Sites,
    cores: Arc<Semaphore>,
    flights: Flights,
    tally: SharedTally,
    clocks: StageClocks,
    recorder: OnceLock<Recorder>,
    /// When the outbox was last looked at, and whether it was full.
    outbox: tokio::sync::Mutex<Option<(std::time::Instant, bool)>>,
    owner: i64,
}

impl Worker {
    pub fn new(outside: FetchContext, options: FetchOptions) -> Self {
        Self {
            cores: Arc::new(Semaphore::new(options.cores.max(1))),
            outside,
            options,
            sources: Sources::default(),
            sites: Sites::default(),
            flights: Flights::default(),
            tally: SharedTally::default(),
            clocks: StageClocks::default(),
            recorder: OnceLock::new(),
            outbox: tokio::sync::Mutex::default(),
            // Only for people who look at leases; two with the same do no harm.
            owner: getrandom::u64().map_or(1, |number| (number >> 1) as i64),
        }
    }

    /// What was done so far.
    pub fn tally(&self) -> Tally {
        self.tally.get()
    }

    /// Where the time went so far.
    pub fn stages(&self) -> StageTimes {
        self.clocks.get()
    }

    /// Pages that are under way now.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Works until `stop` is done; then ends what is under way, gives back what
    /// does not end in time, and leaves no lease.
    pub async fn run(self: &Arc<Self>, stop: impl Future<Output = ()>) -> Result<()> {
        self.accuse_the_last().await?;
        let (finished, completions) = mpsc::channel(self.options.at_once.max(1));
        let (halt, halted) = watch::channel(false);
        let committer = Committer::new(Arc::clone(self), completions);
        let committing = tokio::spawn(committer.run());
        let beating = tokio::spawn(Arc::clone(self).beat());
        {
            // A claim is never broken off: its leases would be nobody's.
            let (end, ending) = watch::channel(false);
            let mut claiming = std::pin::pin!(self.claim_on(finished, &halted, ending));
            tokio::select! {
                () = &mut claiming => {}
                () = stop => {
                    // Its receiver lives as long as the claiming does.
                    let _ = end.send(true);
                    claiming.await;
                    self.drain(&halt).await;
                }
            }
        }
        // Only jobs hold senders now: when all have ended, so does the committer.
        let limit = self.options.drain + Duration::from_secs(10);
        if timeout(limit, committing).await.is_err() {
            warn!("the store did not take the last pages; their leases will end");
        }
        beating.abort();
        Ok(())
    }

    /// What processes that died here were reading speaks against those pages.
    async fn accuse_the_last(&self) -> Result<()> {
        let Some(folder) = &self.options.recorder else {
            return Ok(());
        };
        match Recorder::open(folder) {
            Ok((recorder, accused)) => {
                for ticket in &accused {
                    warn!(id = %ticket.id, "a process died while it read this page");
                }
                self.outside
                    .store
                    .blame_for_crash(&accused, READ_WHEN_IT_ENDED)
                    .await?;
                // A second run of the same worker keeps the first one's.
                let _ = self.recorder.set(recorder);
            }
            // Without it pages that kill are found later, that is all.
            Err(error) => warn!(%error, folder = %folder.display(), "nothing can be recorded"),
        }
        Ok(())
    }

    /// Waits for what is under way, then has it given back.
    async fn drain(&self, halt: &watch::Sender<bool>) {
        info!(in_flight = self.flights.len(), "ending");
        let deadline = Instant::now() + self.options.drain;
        while self.flights.len() > 0 && Instant::now() < deadline {
            let _ = timeout(Duration::from_millis(100), self.flights.landed()).await;
        }
        // Nobody listens when nothing is under way.
        let _ = halt.send(true);
    }

    /// Claims as long as there is room and something is due.
    async fn claim_on(
        self: &Arc<Self>,
        finished: mpsc::Sender<flight::Landed>,
        halted: &watch::Receiver<bool>,
        mut ending: watch::Receiver<bool>,
    ) {
        let enough = (self.options.at_once / 8).max(1);
        while !*ending.borrow() {
            let room = self.options.at_once.saturating_sub(self.flights.len());
            if room < enough {
                tokio::select! {
                    () = self.flights.landed() => {}
                    _ = ending.changed() => {}
                }
                continue;
            }
            if self.is_held_up().await {
                tokio::select! {
                    () = sleep(AFTER_OUTAGE) => {}
                    _ = ending.changed() => {}
                }
                continue;
            }
            // Before the claim too: a page that lands after it frees its host, and the
            // claim did not see that.
            let was_idle = self.flights.len() == 0;
            let wait = match self.claim(room, &finished, halted).await {
                Ok(wait) => wait,
                Err(error) => {
                    warn!(%error, "nothing can be claimed now");
                    sleep(AFTER_OUTAGE).await;
                    continue;
                }
            };
            let Some(wait) = wait else {
                continue;
            };
            let is_idle = was_idle && self.flights.len() == 0;
            if self.options.ends_when_idle && is_idle && wait >= self.options.every {
                return;
            }
            // A page that ends may free its host.
            let pause = wait.min(self.options.every).max(BREATH);
            sleep(BREATH).await;
            tokio::select! {
                _ = timeout(pause - BREATH, self.flights.landed()) => {}
                _ = ending.changed() => {}
            }
        }
    }

    /// Whether the outbox is full. Looked at now and then: it is a bound against
    /// days of trouble, not against seconds.
    async fn is_held_up(&self) -> bool {
        let now = std::time::Instant::now();
        if let Some((at, is_full)) = *self.outbox.lock().await
            && now.duration_since(at) < OUTBOX_LOOK
        {
            return is_full;
        }
        let store = &self.outside.store;
        // A store that can't be asked can't be claimed from either.
        let is_full = store.outbox_exceeds(self.options.outbox_bound).await;
        let is_full = is_full.unwrap_or(false);
        if is_full {
            warn!(
                bound = self.options.outbox_bound,
                "the outbox is full; nothing is fetched"
            );
        }
        *self.outbox.lock().await = Some((now, is_full));
        is_full
    }

    /// Claims once; how long to wait when there was less than asked for.
    async fn claim(
        self: &Arc<Self>,
        room: usize,
        finished: &mpsc::Sender<flight::Landed>,
        halted: &watch::Receiver<bool>,
    ) -> Result<Option<Duration>> {
        let request = ClaimRequest {
            per_host: self.options.per_host,
            lease: self.options.lease,
            quarantine_after: QUARANTINE_AFTER,
            ..ClaimRequest::new(self.owner, u16::try_from(room).unwrap_or(u16::MAX))
        };
        let start = std::time::Instant::now();
        let until = Instant::now() + safe_lease_window(self.options.lease);
        let claimed = self.outside.store.claim(&request).await?;
        note_time(&self.clocks.claiming, start);
        let count = claimed.claims.len();
        self.tally.change(|tally| {
            tally.claimed += count as u64;
            tally.quarantined += u64::from(claimed.quarantined);
        });
        let now = Timestamp::from_millisecond(claimed.at.0).unwrap_or_default();
        for claim in claimed.claims {
            let flight = self.flights.start(claim.ticket, until);
            self.start(Job { claim, now }, flight, finished.clone(), halted.clone());
        }
        debug!(count, "claimed");
        let is_short = count < room;
        Ok(is_short.then(|| claimed.next_ready.unwrap_or(self.options.every)))
    }

    /// Starts one page.
    fn start(
        self: &Arc<Self>,
        job: Job,
        flight: flight::Flight,
        finished: mpsc::Sender<flight::Landed>,
        mut halted: watch::Receiver<bool>,
    ) {
        let worker = Arc::clone(self);
        tokio::spawn(async move {
            let cancelled = async {
                tokio::select! {
                    _ = halted.wait_for(|halted| *halted) => {}
                    () = flight.lost() => {}
                }
            };
            let completion = worker.fetch(&job, cancelled).await;
            // The committer outlives all senders.
            let _ = finished.send(flight.land(completion)).await;
        });
    }

    /// Extends the leases of what is under way; what was lost, or can't be
    /// extended in time, is cut short.
    async fn beat(self: Arc<Self>) {
        loop {
            sleep(self.options.lease / 3).await;
            let tickets = self.flights.tickets();
            if tickets.is_empty() {
                continue;
            }
            let until = Instant::now() + safe_lease_window(self.options.lease);
            let store = &self.outside.store;
            match store.extend_leases(&tickets, self.options.lease).await {
                Ok(held) => {
                    for (ticket, held) in tickets.into_iter().zip(held) {
                        match held {
                            true => self.flights.keep(ticket, until),
                            false => self.flights.lose(ticket),
                        }
                    }
                }
                // The next one may come in time.
                Err(error) => warn!(%error, "leases can't be extended now"),
            }
        }
    }
}
