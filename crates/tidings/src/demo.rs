//! The demo against its ledger, while it runs and at the end: what the simulated
//! web published, what of it became documents and was delivered, and what it
//! thinks of our manners. The simulated web may be fetched, nothing else on
//! this machine.

mod books;

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
pub(crate) use books::Sum;

use books::Books;

/// The outside of a demo: one port of this machine.
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

/// Rows that are read at once.
const PAGE: u32 = 500;
/// So few articles that are missing are looked up one by one.
const FEW: usize = 500;
/// How often all that was given up is read at most.
const DEAD_AGAIN: Duration = Duration::from_secs(5);
/// What the frontier calls an address that is only another name of a page.
const REDIRECT: &str = "redirect";
/// How often it is looked whether everything is there.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The demo's ledger. A look reads only what is new since the last one.
#[derive(Debug)]
pub(crate) struct Demo<'a> {
    store: &'a Store,
    sim: &'a SimServer,
    host_delay: Duration,
    /// Where documents are delivered to, if they are.
    index: Option<PathBuf>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    books: Books,
    /// Articles of each site that are in the books.
    published: Vec<u64>,
    documents: Option<ChangeCursor>,
    /// When it was last looked what was given up, and how much that was.
    dead: Option<(Instant, i64)>,
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
            known: Mutex::default(),
        })
    }

    /// How everything stands.
    pub(crate) async fn look(&self) -> anyhow::Result<Sum> {
        self.look_closely(false).await
    }

    /// The same at the end: whatever is missing is looked for.
    pub(crate) async fn judge(&self) -> anyhow::Result<Sum> {
        self.look_closely(true).await
    }

    /// Returns when all that was published has been delivered, or is lost.
    pub(crate) async fn all_delivered(&self) {
        loop {
            tokio::time::sleep(LOOK_AGAIN).await;
            // A store that is away is told of by the loops.
            if self.look().await.is_ok_and(|sum| sum.is_complete()) {
                return;
            }
        }
    }

    async fn look_closely(&self, is_last: bool) -> anyhow::Result<Sum> {
        let mut known = self.known.lock().await;
        // In this order: what is delivered is stored, what is given up has left its
        // document before, and what is stored is published.
        let delivered = self.delivered().await?;
        let outbox = self.store.outbox().await?;
        let buried: u64 = outbox.iter().map(|sink| sink.dead.unsigned_abs()).sum();
        self.find_dead(&mut known, is_last).await?;
        let stored = self.new_documents(&mut known.documents).await?;
        self.publish(&mut known);
        stored.into_iter().for_each(|key| known.books.keep(key));
        self.find_lost(&mut known, is_last).await?;
        Ok(self.with_manners(known.books.sum(delivered, buried)))
    }

    /// What the embedded search holds.
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
        Ok(Some(counted.context("the count broke off")??))
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

    fn publish(&self, known: &mut Known) {
        let world = self.sim.world();
        let ledger = self.sim.ledger();
        known.published.resize(world.len() as usize, 0);
        for (site, count) in world.sites().zip(&mut known.published) {
            for entry in ledger.entries_from(&site, *count) {
                *count = entry.number + 1;
                known.books.publish(&entry);
            }
        }
    }

    /// What was given up, if that has changed: all of it is read, so not each time.
    async fn find_dead(&self, known: &mut Known, is_last: bool) -> anyhow::Result<()> {
        let stats = self.store.stats().await?;
        let dead = stats.by_status.get("dead").copied().unwrap_or(0);
        let is_known = match known.dead {
            Some((at, before)) => before == dead || at.elapsed() < DEAD_AGAIN,
            None => dead == 0,
        };
        if is_last || !is_known {
            known.books.bury(&self.dead().await?);
            known.dead = Some((Instant::now(), dead));
        }
        Ok(())
    }

    /// What is done without being a document, once so few are missing.
    async fn find_lost(&self, known: &mut Known, is_last: bool) -> anyhow::Result<()> {
        let few = if is_last { usize::MAX } else { FEW };
        let missing: Vec<_> = known
            .books
            .missing()
            .take(few.saturating_add(1))
            .map(|(number, ids)| (number, ids.to_vec()))
            .collect();
        if missing.len() > few {
            return Ok(());
        }
        for (number, ids) in missing {
            if self.is_over(&ids).await? {
                known.books.lose(number);
            }
        }
        Ok(())
    }

    /// Whether an article is known, nothing more will be tried, and there is no
    /// document of it, not even one that came after this look had begun.
    async fn is_over(&self, ids: &[FrontierId]) -> anyhow::Result<bool> {
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

    /// All addresses that were given up.
    async fn dead(&self) -> anyhow::Result<Vec<UrlKey>> {
        let filter = Filter {
            status: Some(Status::Dead),
            ..Filter::default()
        };
        let (mut keys, mut after): (Vec<UrlKey>, Option<Cursor>) = (Vec::new(), None);
        loop {
            let page = self.store.list(&filter, Order::Id, after, PAGE).await?;
            // An address that leads elsewhere is over; what it led to is not.
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

    fn with_manners(&self, sum: Sum) -> Sum {
        let log = self.sim.log();
        let (impolite, faults) = log.read(|records| {
            let impolite = politeness_violations(records, self.host_delay, 1).len();
            let faults = records.iter().filter(|record| record.fault.is_some());
            (impolite, faults.count())
        });
        Sum {
            requests: log.total(),
            impolite: impolite as u64,
            faults: faults as u64,
            ..sum
        }
    }
}
