//! From simulated feeds to stored documents: two hundred sites and twenty
//! thousand articles, judged by the ledger and the request log.

#![allow(clippy::unwrap_used)]

mod crawl;
mod world;

use std::sync::Arc;

use crawl::{Crawl, GAP, judge};
use tidings_engine::{PollOptions, Poller, WorkOptions, Worker};
use tidings_sim::WorldConfig;

#[tokio::test(flavor = "multi_thread")]
async fn every_article_becomes_one_document() {
    let config = WorldConfig {
        sites: 200,
        articles_per_site: 100,
        feed_window: Some(1000),
        crawl_delay: GAP * 2,
        ..WorldConfig::new(5)
    };
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let crawl = Crawl::start(&address, config).await;
    let outside = || crawl::outside(&crawl.store, &[crawl.port()]);
    let polls = PollOptions {
        at_once: 50,
        ..PollOptions::default()
    };
    let poller = Arc::new(Poller::new(outside(), polls));
    poller.poll_due(|_| {}).await.unwrap();
    let options = WorkOptions {
        ends_when_idle: true,
        ..WorkOptions::default()
    };
    let worker = Arc::new(Worker::new(outside(), options));
    worker.run(std::future::pending()).await.unwrap();
    assert!(worker.tally().documents > 15_000, "{:?}", worker.tally());
    judge(&crawl).await;
}
