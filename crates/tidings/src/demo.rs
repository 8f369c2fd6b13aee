//! The demo against its ledger: what the simulated web published, and what of
//! it became documents. The simulated web may be fetched, nothing else on this
//! machine.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use tidings_net::{Egress, NetOptions};
use tidings_sim::{Expected, SimServer, politeness_violations};
use tidings_store::{FrontierId, Store};

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

/// How the ledger adds up.
#[derive(Debug, Serialize)]
pub(crate) struct Judged {
    /// Articles that should be documents by now.
    pub(crate) expected: usize,
    pub(crate) documents: usize,
    /// Published before the start, and no documents (yet).
    pub(crate) missing: usize,
    /// Published since the start, and no documents yet.
    pub(crate) to_come: usize,
    /// Documents of which the ledger knows nothing.
    pub(crate) unknown: usize,
    pub(crate) requests: u64,
    /// Requests that came too soon, or while another was under way.
    pub(crate) impolite: usize,
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Of {} articles {} are documents, {} not yet, and {} of the news since the start; {} documents of nothing. {} requests, {} of them impolite.",
            self.expected,
            self.expected - self.missing - self.to_come,
            self.missing,
            self.to_come,
            self.unknown,
            self.requests,
            self.impolite
        )
    }
}

pub(crate) async fn judge(
    store: &Store,
    sim: &SimServer,
    host_delay: Duration,
) -> anyhow::Result<Judged> {
    let mut kept = documents(store).await?;
    let documents = kept.len();
    let start = sim.world().config().start;
    let (mut expected, mut missing, mut to_come) = (0, 0, 0);
    for entry in sim.ledger().entries() {
        let is_kept = kept.remove(&entry.key.to_string());
        if entry.expected == Expected::Document {
            expected += 1;
            let late = match entry.published <= start {
                true => &mut missing,
                false => &mut to_come,
            };
            *late += usize::from(!is_kept);
        }
    }
    let log = sim.log().snapshot();
    Ok(Judged {
        expected,
        documents,
        missing,
        to_come,
        unknown: kept.len(),
        requests: sim.log().total(),
        impolite: politeness_violations(&log, host_delay, 1).len(),
    })
}

/// Returns when all that was published at the beginning is a document.
pub(crate) async fn all_fetched(store: &Store, sim: &SimServer) {
    let wanted: Vec<String> = sim
        .ledger()
        .entries()
        .filter(|entry| entry.expected == Expected::Document)
        .map(|entry| entry.key.to_string())
        .collect();
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        // Counting first is cheap; looking at each document is not.
        let Ok(stats) = store.stats().await else {
            continue;
        };
        let fetched = stats.by_status.get("fetched").copied().unwrap_or(0);
        if (fetched as usize) < wanted.len() {
            continue;
        }
        if let Ok(kept) = documents(store).await
            && wanted.iter().all(|key| kept.contains(key))
        {
            return;
        }
    }
}

/// The ids of all documents.
async fn documents(store: &Store) -> anyhow::Result<HashSet<String>> {
    let mut ids = HashSet::new();
    let mut after: Option<FrontierId> = None;
    loop {
        let page = store.documents_after(after, 1000).await?;
        let Some(last) = page.last() else {
            return Ok(ids);
        };
        after = Some(last.frontier_id);
        ids.extend(page.iter().map(|document| document.id.to_string()));
    }
}
