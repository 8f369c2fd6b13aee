//! Compares a demo with its ledger, while it runs and at the end: what the
//! simulated web published, what was fetched and delivered, and the politeness
//! violations it recorded. Nothing but the simulated web may be fetched.

mod ledger;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tidings_net::{Egress, NetOptions};
use tidings_sim::{SimServer, politeness_violations};
use tidings_sinks::{SearchError, SearchIndex, SinkConfig};
use tidings_store::{ChangeCursor, Cursor, Filter, FrontierId, Order, Status, Store};
use tidings_url::UrlKey;
use tokio::sync::Mutex;

use crate::config::Config;
use crate::failure::Failure;
use crate::sinks;
use ledger::Ledger;
pub(crate) use ledger::LedgerTotals;

/// The egress of a demo: one port of this machine.
pub(crate) fn allowed(net: NetOptions, sim: &SimServer) -> NetOptions {
    let address = sim.address();
    NetOptions {
        egress: Egress {
            allow: vec![address.ip().into()],
            ports: vec![address.port()..=address.port()],
        },
        ..net
    }
}

/// Rows per query.
const PAGE: u32 = 500;
/// Missing articles are looked up one by one when there are no more than this.
const MAX_LOOKUPS: usize = 500;
/// All permanent failures are read at most once per interval.
const FAILURES_INTERVAL: Duration = Duration::from_secs(5);
/// The reason of a URL that redirects to another.
const REDIRECT: &str = "redirect";
/// How often completion is checked.
const COMPLETION_INTERVAL: Duration = Duration::from_secs(1);

/// The demo's ledger. Each read adds only what is new since the last one.
#[derive(Debug)]
pub(crate) struct Demo<'a> {
    store: &'a Store,
    sim: &'a SimServer,
    host_delay: Duration,
    /// The search index that documents are delivered to, if there is one.
    index: Option<PathBuf>,
    state: Mutex<LedgerState>,
}

#[derive(Debug, Default)]
struct LedgerState {
    ledger: Ledger,
    /// Articles of each site that are in the ledger.
    published: Vec<u64>,
    documents: Option<ChangeCursor>,
    /// When permanent failures were last read, and how many there were.
    failures: Option<(Instant, i64)>,
}

impl<'a> Demo<'a> {
    pub(crate) fn new(
        store: &'a Store,
        sim: &'a SimServer,
        config: &Config,
    ) -> Result<Self, Failure> {
        let context = sinks::context(config)?;
        let index = config.sinks.iter().find_map(|sink| match &sink.config {
            SinkConfig::Search(search) => Some(search.folder(&context)),
            _ => None,
        });
        Ok(Self {
            store,
            sim,
            host_delay: config.fetch.host_delay,
            index,
            state: Mutex::default(),
        })
    }

    /// The totals so far.
    pub(crate) async fn read_ledger(&self) -> anyhow::Result<LedgerTotals> {
        self.update(false).await
    }

    /// The same at the end: every missing article is looked up.
    pub(crate) async fn final_totals(&self) -> anyhow::Result<LedgerTotals> {
        self.update(true).await
    }

    /// Returns when all that was published has been delivered, or is lost.
    pub(crate) async fn all_delivered(&self) {
        loop {
            tokio::time::sleep(COMPLETION_INTERVAL).await;
            // The loops report a store that is unavailable.
            if self
                .read_ledger()
                .await
                .is_ok_and(|totals| totals.is_complete())
            {
                return;
            }
        }
    }

    async fn update(&self, is_last: bool) -> anyhow::Result<LedgerTotals> {
        let mut state = self.state.lock().await;
        // In this order: what is delivered is stored, a URL that failed permanently has
        // stored its document before, and what is stored is published.
        let delivered = self.delivered().await?;
        let outbox = self.store.outbox().await?;
        let dead_letters: u64 = outbox.iter().map(|sink| sink.dead.unsigned_abs()).sum();
        self.read_failures(&mut state, is_last).await?;
        let stored = self.new_documents(&mut state.documents).await?;
        self.add_published(&mut state);
        stored
            .into_iter()
            .for_each(|key| state.ledger.add_document(key));
        self.find_lost(&mut state, is_last).await?;
        Ok(self.with_request_log(state.ledger.totals(delivered, dead_letters)))
    }

    /// Documents in the embedded search.
    async fn delivered(&self) -> anyhow::Result<Option<u64>> {
        let Some(folder) = self.index.clone() else {
            return Ok(None);
        };
        let count = move || match SearchIndex::open(folder) {
            Ok(index) => index.count(),
            Err(SearchError::None(_)) => Ok(0),
            Err(error) => Err(error),
        };
        let counted = tokio::task::spawn_blocking(count).await;
        Ok(Some(counted.context("the count of documents panicked")??))
    }

    async fn new_documents(&self, after: &mut Option<ChangeCursor>) -> anyhow::Result<Vec<UrlKey>> {
        let mut keys = Vec::new();
        loop {
            let page = self.store.document_changes(*after, PAGE).await?;
            let Some((last, _)) = page.last() else {
                return Ok(keys);
            };
            *after = Some(*last);
            keys.extend(page.iter().map(|(_, document)| document.id));
        }
    }

    fn add_published(&self, state: &mut LedgerState) {
        let world = self.sim.world();
        let ledger = self.sim.ledger();
        state.published.resize(world.len() as usize, 0);
        for (site, count) in world.sites().zip(&mut state.published) {
            for entry in ledger.entries_from(&site, *count) {
                *count = entry.number + 1;
                state.ledger.add_published(&entry);
            }
        }
    }

    /// Permanent failures, if their number has changed: all are read, so not each time.
    async fn read_failures(&self, state: &mut LedgerState, is_last: bool) -> anyhow::Result<()> {
        let stats = self.store.stats().await?;
        let dead = stats.by_status.get("dead").copied().unwrap_or(0);
        let is_current = match state.failures {
            Some((at, before)) => before == dead || at.elapsed() < FAILURES_INTERVAL,
            None => dead == 0,
        };
        if is_last || !is_current {
            state.ledger.set_failed(&self.permanent_failures().await?);
            state.failures = Some((Instant::now(), dead));
        }
        Ok(())
    }

    /// Articles that are done without a document, once few are missing.
    async fn find_lost(&self, state: &mut LedgerState, is_last: bool) -> anyhow::Result<()> {
        let max_lookups = if is_last { usize::MAX } else { MAX_LOOKUPS };
        let missing: Vec<_> = state
            .ledger
            .missing()
            .take(max_lookups.saturating_add(1))
            .map(|(number, ids)| (number, ids.to_vec()))
            .collect();
        if missing.len() > max_lookups {
            return Ok(());
        }
        for (number, ids) in missing {
            if self.is_finished_without_document(&ids).await? {
                state.ledger.mark_lost(number);
            }
        }
        Ok(())
    }

    /// Whether an article is in the frontier, no attempt will follow, and there is no
    /// document of it, not even one that was stored after this read began.
    async fn is_finished_without_document(&self, ids: &[FrontierId]) -> anyhow::Result<bool> {
        let mut is_known = false;
        for id in ids {
            match self.store.url(*id).await?.map(|row| row.status) {
                None => {}
                Some(Status::Fetched | Status::Dead) => is_known = true,
                Some(_) => return Ok(false),
            }
        }
        let has_document = is_known && !self.store.documents(ids).await?.is_empty();
        Ok(is_known && !has_document)
    }

    /// All URLs that failed permanently.
    async fn permanent_failures(&self) -> anyhow::Result<Vec<UrlKey>> {
        let filter = Filter {
            status: Some(Status::Dead),
            ..Filter::default()
        };
        let (mut keys, mut after): (Vec<UrlKey>, Option<Cursor>) = (Vec::new(), None);
        loop {
            let page = self.store.list(&filter, Order::Id, after, PAGE).await?;
            // A redirect is not a failure; its target counts.
            let permanent_failures = page
                .rows
                .iter()
                .filter(|row| row.reason.as_deref() != Some(REDIRECT));
            keys.extend(permanent_failures.map(|row| row.url_key));
            after = page.next;
            if after.is_none() {
                return Ok(keys);
            }
        }
    }

    fn with_request_log(&self, totals: LedgerTotals) -> LedgerTotals {
        let log = self.sim.log();
        let (violations, faults) = log.read(|records| {
            let violations = politeness_violations(records, self.host_delay, 1).len();
            let faults = records.iter().filter(|record| record.fault.is_some());
            (violations, faults.count())
        });
        LedgerTotals {
            requests: log.total(),
            politeness_violations: violations as u64,
            faults_injected: faults as u64,
            ..totals
        }
    }
}
