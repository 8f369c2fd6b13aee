//! Workers that die, workers that share, store outages, and servers that never
//! respond: every article becomes one document all the same.

#![allow(clippy::unwrap_used)]

mod crawl;
mod world;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crawl::{Crawl, GAP, check_ledger};
use tidings_engine::{FetchOptions, PollOptions, Poller, Worker};
use tidings_sim::{Act, PostgresServer, RawServer, WorldConfig, postgres_database};
use tidings_store::{Filter, Order, Origin, Status, Store, Submission, Target};
use tidings_url::{FetchUrl, ProxyHosts, Rules};

const LEASE: Duration = Duration::from_secs(2);

/// Fifteen hundred articles; with `TIDINGS_TEST_FULL` twenty thousand.
fn small_web() -> WorldConfig {
    let (sites, articles_per_site) = match std::env::var_os("TIDINGS_TEST_FULL") {
        Some(_) => (200, 100),
        None => (40, 40),
    };
    WorldConfig {
        sites,
        articles_per_site,
        feed_window: Some(1000),
        crawl_delay: GAP * 2,
        ..WorldConfig::new(8)
    }
}

/// Polls and fetches at the same time, as `tidings run` does.
async fn work(address: &str, port: u16, options: FetchOptions) {
    let store = crawl::open(address).await;
    let mut context = crawl::context(&store, &[port]);
    context.lease = LEASE;
    let polls = PollOptions {
        lease: LEASE,
        check_interval: Duration::from_millis(200),
        ..PollOptions::default()
    };
    let poller = Arc::new(Poller::new(context, polls));
    let worker = Arc::new(Worker::new(crawl::context(&store, &[port]), options));
    let polling = poller.run(std::future::pending(), |_| {});
    tokio::select! {
        ended = worker.run(std::future::pending()) => ended.unwrap(),
        ended = polling => ended.unwrap(),
    }
}

fn with_short_leases() -> FetchOptions {
    FetchOptions {
        lease: LEASE,
        check_interval: Duration::from_millis(200),
        ..FetchOptions::default()
    }
}

/// The body of the processes that the tests below kill; by itself it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fetching_process() {
    if let Ok(address) = std::env::var("TIDINGS_TEST_STORE") {
        let port = std::env::var("TIDINGS_TEST_PORT").unwrap().parse().unwrap();
        let options = FetchOptions {
            crash_journal: std::env::var_os("TIDINGS_TEST_CRASH_JOURNAL").map(Into::into),
            extractor: |page, options| match page.url.ends_with("/poison") {
                true => std::process::abort(),
                false => tidings_extract::extract(page, options),
            },
            ..with_short_leases()
        };
        work(&address, port, options).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_kills_its_reader_three_times_is_put_aside_and_nothing_else() {
    let server = RawServer::start("127.0.0.1:0".parse().unwrap(), |_| {
        let page = "<title>Bread</title><article><p>Bread has been baked for some fourteen thousand years, and every year in new ways.</p></article>";
        Act::answer("200 OK\r\nContent-Type: text/html", page.as_bytes())
    })
    .await
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let store = crawl::open(&address).await;
    let paths = ["poison", "1", "2", "3", "4", "5"];
    let targets = paths.map(|path| target(&format!("http://{}/{path}", server.address())));
    let submissions = targets
        .clone()
        .map(|target| Submission::new(target, Origin::Manual));
    store.submit(&submissions).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut deaths = 0;
    let mut child = process(&address, server.address().port(), Some(folder.path()));
    loop {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(100)).await;
        let row = store.url(targets[0].id()).await.unwrap().unwrap();
        if row.status == Status::Dead {
            assert_eq!(row.reason.as_deref(), Some("quarantined"));
            break;
        }
        if child.try_wait().unwrap().is_some() {
            deaths += 1;
            child = process(&address, server.address().port(), Some(folder.path()));
        }
    }
    all_done(&store).await;
    kill(child);
    assert_eq!(deaths, 3);
    for target in &targets[1..] {
        let row = store.url(target.id()).await.unwrap().unwrap();
        assert_eq!(row.status, Status::Fetched, "{}", row.url);
    }
}

fn process(address: &str, port: u16, crash_journal: Option<&Path>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "fetching_process"])
        .env("TIDINGS_TEST_STORE", address)
        .env("TIDINGS_TEST_PORT", port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(folder) = crash_journal {
        command.env("TIDINGS_TEST_CRASH_JOURNAL", folder.join("readings"));
    }
    command.spawn().unwrap()
}

fn kill(mut child: Child) {
    // SIGKILL: it cannot clean up.
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Waits until nothing is pending and nothing is in flight.
async fn all_done(store: &Store) {
    let wait = async {
        loop {
            let feeds = store.feeds_after(i64::MIN, 10_000).await.unwrap();
            let are_polled = feeds.iter().all(|feed| feed.last_polled_at.is_some());
            let mut waiting = 0;
            for status in [Status::Pending, Status::Fetching, Status::Failed] {
                let filter = Filter {
                    status: Some(status),
                    ..Filter::default()
                };
                let page = store.list(&filter, Order::Id, None, 1).await.unwrap();
                waiting += page.rows.len();
            }
            if are_polled && waiting == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(240), wait)
        .await
        .expect("everything ends");
}

fn deaths() -> u64 {
    match std::env::var_os("TIDINGS_TEST_FULL") {
        Some(_) => 22,
        None => 10,
    }
}

/// Different each time, and reproducible.
fn life(number: u64) -> Duration {
    Duration::from_millis(120 + number * number * 7919 % 430)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed_again_and_again_loses_and_doubles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let crawl = Crawl::start(&address, small_web()).await;
    let mut number = 0;
    // On a slow machine some die before they have done anything; then more must.
    let documents = loop {
        let child = process(&address, crawl.port(), Some(folder.path()));
        tokio::time::sleep(life(number)).await;
        kill(child);
        number += 1;
        let documents = crawl.store.documents_after(None, 100_000).await.unwrap();
        if number >= deaths() && (documents.len() > 20 || number >= 10 * deaths()) {
            break documents;
        }
    };
    let last = process(&address, crawl.port(), Some(folder.path()));
    all_done(&crawl.store).await;
    kill(last);
    // Killed while it worked, not before and not after.
    let all = crawl.store.documents_after(None, 100_000).await.unwrap();
    assert!(
        documents.len() > 20 && documents.len() < all.len(),
        "{}",
        documents.len()
    );
    check_ledger(&crawl).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_processes_on_one_database_one_may_die_as_often_as_it_likes() {
    let address = postgres_database().unwrap();
    let crawl = Crawl::start(&address, small_web()).await;
    let steady = process(&address, crawl.port(), None);
    for number in 0..deaths() {
        let child = process(&address, crawl.port(), None);
        tokio::time::sleep(life(number)).await;
        kill(child);
    }
    all_done(&crawl.store).await;
    kill(steady);
    check_ledger(&crawl).await;
}

fn target(url: &str) -> Target {
    let url = FetchUrl::parse(url).unwrap();
    Target {
        key: url.canonical(&Rules::default()).key(),
        host: url.host_key(&ProxyHosts::default()),
        url,
    }
}

/// A server that accepts every request and responds to none but robots.txt.
async fn silent_server() -> RawServer {
    RawServer::start("127.0.0.1:0".parse().unwrap(), |head| {
        match head.starts_with("GET /robots.txt") {
            true => Act::answer("404 Not Found", b""),
            false => vec![Act::Wait(Duration::from_secs(600))],
        }
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orphan_is_back_within_its_lease() {
    let folder = tempfile::tempdir().unwrap();
    let embedded = format!("sqlite:{}", folder.path().join("tidings.db").display());
    for address in [embedded, postgres_database().unwrap()] {
        let server = silent_server().await;
        let store = crawl::open(&address).await;
        let target = target(&format!("http://{}/story", server.address()));
        let id = target.id();
        let submission = Submission::new(target, Origin::Manual);
        store.submit(&[submission]).await.unwrap();
        let child = process(&address, server.address().port(), None);
        let leased = async {
            while store.url(id).await.unwrap().unwrap().status != Status::Fetching {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, leased).await.expect("claimed");
        kill(child);
        let died = Instant::now();
        let request = tidings_store::ClaimRequest::new(1, 1);
        while store.claim(&request).await.unwrap().claims.is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert!(died.elapsed() < LEASE + Duration::from_secs(5), "{address}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_asked_to_end_leaves_no_lease() {
    let server = silent_server().await;
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let mut options = tidings_store::StoreOptions::default();
    options.host_delay = Duration::ZERO;
    options.max_per_host = 50;
    let store = Store::open(&address, &options).await.unwrap();
    let submissions: Vec<_> = (0..40)
        .map(|n| target(&format!("http://{}/{n}", server.address())))
        .map(|target| Submission::new(target, Origin::Manual))
        .collect();
    store.submit(&submissions).await.unwrap();
    let context = crawl::context(&store, &[server.address().port()]);
    let options = FetchOptions {
        per_host: 50,
        drain_timeout: Duration::from_millis(500),
        ..FetchOptions::default()
    };
    let worker = Arc::new(Worker::new(context, options));
    let watched = Arc::clone(&worker);
    let all_in_flight = async move {
        while watched.in_flight() < 40 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let run = worker.run(all_in_flight);
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, run)
        .await
        .expect("it ends")
        .unwrap();
    let page = store
        .list(&Filter::default(), Order::Id, None, 100)
        .await
        .unwrap();
    assert_eq!(page.rows.len(), 40);
    for row in &page.rows {
        assert_eq!((row.status, row.retry_count), (Status::Pending, 0));
    }
    assert_eq!(worker.tally().released, 40);
    // They can be claimed immediately: no lease is left.
    let mut request = tidings_store::ClaimRequest::new(1, 100);
    request.per_host = 50;
    assert_eq!(store.claim(&request).await.unwrap().claims.len(), 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_the_store_costs_no_url_its_retries() {
    let mut server = PostgresServer::start(&[]).unwrap();
    let address = server.create_database().unwrap();
    let crawl = Crawl::start(&address, small_web()).await;
    let port = crawl.port();
    let working = tokio::spawn({
        let address = address.clone();
        async move { work(&address, port, with_short_leases()).await }
    });
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(1200)).await;
        server.kill().unwrap();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        server.restart().unwrap();
    }
    all_done(&crawl.store).await;
    working.abort();
    check_ledger(&crawl).await;
    let page = crawl
        .store
        .list(&Filter::default(), Order::Id, None, 100_000)
        .await
        .unwrap();
    for row in &page.rows {
        assert_eq!(row.retry_count, 0, "{} {:?}", row.url, row.last_error);
        assert_ne!(row.reason.as_deref(), Some("quarantined"), "{}", row.url);
    }
}
