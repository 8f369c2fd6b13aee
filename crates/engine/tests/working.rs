//! From simulated feeds to stored documents: every published article becomes
//! exactly one document, politely, judged by the ledger and the request log.

#![allow(clippy::unwrap_used)]

mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidings_engine::{Outside, PollOptions, Poller, SourceSettings, WorkOptions, Worker};
use tidings_net::{Client, Egress, NetOptions};
use tidings_sim::{Expected, SimClock, SimServer, WorldConfig, politeness_violations};
use tidings_store::{Store, StoreOptions};

const GAP: Duration = Duration::from_millis(20);

async fn sim(config: WorldConfig) -> SimServer {
    let clock = SimClock::manual(config.start);
    SimServer::start(config, clock, "127.0.0.1:0")
        .await
        .unwrap()
}

fn outside(store: &Store, port: u16) -> Outside {
    let client = Client::new(NetOptions {
        egress: Egress {
            allow: vec!["127.0.0.0/8".parse().unwrap()],
            ports: vec![port..=port],
        },
        ..NetOptions::default()
    })
    .unwrap();
    Outside::new(client, store.clone())
}

async fn add_all_feeds(store: &Store, sim: &SimServer) {
    for site in sim.world().sites() {
        for feed in &site.feeds {
            let url = site.absolute(&feed.path);
            world::add(store, &url, "feed", &url, SourceSettings::default()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_article_becomes_one_document() {
    let sim = sim(WorldConfig {
        sites: 200,
        articles_per_site: 100,
        feed_window: Some(1000),
        crawl_delay: GAP * 2,
        ..WorldConfig::new(5)
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let mut options = StoreOptions::default();
    options.host_delay = GAP;
    let store = Store::open(&address, &options).await.unwrap();
    add_all_feeds(&store, &sim).await;
    let port = sim.address().port();
    let start = std::time::Instant::now();
    let poller = Arc::new(Poller::new(
        outside(&store, port),
        PollOptions {
            at_once: 50,
            ..PollOptions::default()
        },
    ));
    poller.poll_due(|_| {}).await.unwrap();
    eprintln!("polled {:?}", start.elapsed());
    let worker = Arc::new(Worker::new(
        outside(&store, port),
        WorkOptions {
            ends_when_idle: true,
            ..WorkOptions::default()
        },
    ));
    worker.run(std::future::pending()).await.unwrap();
    eprintln!("worked {:?} {:?}", start.elapsed(), worker.tally());
    judge(&store, &sim).await;
}

async fn judge(store: &Store, sim: &SimServer) {
    let mut documents: BTreeMap<String, u32> = BTreeMap::new();
    let mut after = None;
    loop {
        let page = store.documents_after(after, 1000).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.frontier_id);
        for document in &page {
            *documents.entry(document.id.to_string()).or_default() += 1;
        }
    }
    let mut wrong = Vec::new();
    let mut expected = 0;
    for entry in sim.ledger().entries() {
        let found = documents.remove(&entry.key.to_string()).unwrap_or(0);
        let wanted = u32::from(entry.expected == Expected::Document);
        expected += wanted;
        if found != wanted {
            wrong.push((found, entry));
        }
    }
    eprintln!(
        "expected {expected}, wrong {}, extra {}",
        wrong.len(),
        documents.len()
    );
    assert!(wrong.is_empty(), "{:?}", &wrong[..wrong.len().min(5)]);
    assert!(documents.is_empty(), "{:?}", documents.iter().next());
    let violations =
        politeness_violations(&sim.log().snapshot(), GAP - Duration::from_millis(1), 1);
    assert!(
        violations.is_empty(),
        "{} {:?}",
        violations.len(),
        &violations[..violations.len().min(5)]
    );
}
