//! From simulated feeds to stored documents, checked by the ledger and the request
//! log: sixty sites and three thousand articles; with `TIDINGS_TEST_FULL` two
//! hundred and twenty thousand.

#![allow(clippy::unwrap_used)]

mod crawl;
mod world;

use std::sync::Arc;

use crawl::{Crawl, GAP, check_ledger};
use tidings_engine::{FetchOptions, PollOptions, Poller, Worker};
use tidings_sim::WorldConfig;

#[tokio::test(flavor = "multi_thread")]
async fn every_article_becomes_one_document() {
    let (sites, articles_per_site) = match std::env::var_os("TIDINGS_TEST_FULL") {
        Some(_) => (200, 100),
        None => (60, 50),
    };
    let config = WorldConfig {
        sites,
        articles_per_site,
        feed_window: Some(1000),
        crawl_delay: GAP * 2,
        ..WorldConfig::new(5)
    };
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let crawl = Crawl::start(&address, config).await;
    let context = || crawl::context(&crawl.store, &[crawl.port()]);
    let polls = PollOptions {
        concurrency: 50,
        ..PollOptions::default()
    };
    let poller = Arc::new(Poller::new(context(), polls));
    poller.poll_due(|_| {}).await.unwrap();
    let options = FetchOptions {
        ends_when_idle: true,
        ..FetchOptions::default()
    };
    let worker = Arc::new(Worker::new(context(), options));
    worker.run(std::future::pending()).await.unwrap();
    let expected = u64::from(sites * articles_per_site);
    let documents = worker.tally().documents;
    assert!(documents > expected * 3 / 4, "{:?}", worker.tally());
    check_ledger(&crawl).await;
}
