//! A simulated web, its feeds as sources in a store, and the check: ledger and
//! request log against the documents of the store.

#![allow(dead_code)]

use std::collections::BTreeMap;
use std::time::Duration;

use tidings_engine::{FetchContext, SourceSettings};
use tidings_net::{Client, Egress, NetOptions};
use tidings_sim::{
    Expected, RequestRecord, RobotsKind, SimClock, SimServer, WorldConfig, politeness_violations,
};
use tidings_store::{Store, StoreOptions};

use crate::world;

/// Between two requests to one host.
pub(crate) const GAP: Duration = Duration::from_millis(20);

pub(crate) struct Crawl {
    pub(crate) sim: SimServer,
    pub(crate) store: Store,
}

impl Crawl {
    pub(crate) async fn start(address: &str, config: WorldConfig) -> Self {
        let clock = SimClock::manual(config.start);
        let sim = SimServer::start(config, clock, "127.0.0.1:0")
            .await
            .unwrap();
        let store = open(address).await;
        for site in sim.world().sites() {
            for feed in &site.feeds {
                let url = site.absolute(&feed.path);
                world::add(&store, &url, "feed", &url, SourceSettings::default()).await;
            }
        }
        Self { sim, store }
    }

    pub(crate) fn port(&self) -> u16 {
        self.sim.address().port()
    }
}

pub(crate) async fn open(address: &str) -> Store {
    let mut options = StoreOptions::default();
    options.host_delay = GAP;
    Store::open(address, &options).await.unwrap()
}

pub(crate) fn context(store: &Store, ports: &[u16]) -> FetchContext {
    let client = Client::new(NetOptions {
        egress: Egress {
            allow: vec!["127.0.0.0/8".parse().unwrap()],
            ports: ports.iter().map(|port| *port..=*port).collect(),
        },
        ..NetOptions::default()
    })
    .unwrap();
    FetchContext::new(client, store.clone())
}

/// Every article that should be a document is exactly one, nothing else is, no host
/// got a request too soon or two concurrently, and no disallowed URL was requested.
pub(crate) async fn check_ledger(crawl: &Crawl) {
    let mut documents: BTreeMap<String, u32> = BTreeMap::new();
    let mut after = None;
    loop {
        let page = crawl.store.documents_after(after, 1000).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.frontier_id);
        for document in &page {
            assert_eq!(document.revision, 1, "{}", document.title);
            *documents.entry(document.id.to_string()).or_default() += 1;
        }
    }
    let mut wrong = Vec::new();
    for entry in crawl.sim.ledger().entries() {
        let found = documents.remove(&entry.key.to_string()).unwrap_or(0);
        if found != u32::from(entry.expected == Expected::Document) {
            wrong.push((found, entry));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong: {:?}",
        wrong.len(),
        wrong.first()
    );
    assert!(documents.is_empty(), "{:?}", documents.first_key_value());

    let log = crawl.sim.log().snapshot();
    assert_eq!(log.len() as u64, crawl.sim.log().total());
    let violations = politeness_violations(&log, GAP, 1);
    assert!(
        violations.is_empty(),
        "{} {:?}",
        violations.len(),
        violations.first()
    );
    for site in crawl.sim.world().sites() {
        let of_site: Vec<_> = log
            .iter()
            .filter(|record| record.host == site.host)
            // Rules apply from the first fetch of robots.txt.
            .skip_while(|record| record.path != "/robots.txt")
            .cloned()
            .collect();
        if site.robots != RobotsKind::Absent {
            let forbidden = |record: &&RequestRecord| record.path.starts_with("/members/");
            let found = of_site.iter().find(forbidden);
            assert!(found.is_none(), "{found:?}");
        }
        if let Some(delay) = site.crawl_delay() {
            let violations = politeness_violations(&of_site, delay, 1);
            assert!(violations.is_empty(), "{:?}", violations.first());
        }
    }
}
