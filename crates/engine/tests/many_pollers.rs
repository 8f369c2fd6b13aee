//! Several pollers, and pollers that die: each feed is polled by one at a time,
//! and nothing is lost.

#![allow(clippy::unwrap_used)]

mod world;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tidings_engine::{FetchContext, PollOptions, Poller};
use tidings_net::{Client, Egress, NetOptions};
use tidings_sim::postgres_database;
use tidings_store::{Store, StoreOptions};
use world::{Days, World};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_pollers_never_poll_one_feed_twice_in_a_slot() {
    let world = World::start(Days {
        sites: 60,
        ..Days::default()
    })
    .await;
    world.add_all_feeds().await;
    let pollers = [world.poller(), world.poller(), world.poller()];
    let polls =
        pollers.map(|poller| tokio::spawn(async move { poller.poll_due(|_| {}).await.unwrap() }));
    let mut polled = 0;
    for poll in polls {
        polled += poll.await.unwrap();
    }
    let mut requests: BTreeMap<String, usize> = BTreeMap::new();
    for record in world.sim.log().snapshot() {
        if record.path != "/robots.txt" {
            *requests
                .entry(format!("{}{}", record.host, record.path))
                .or_default() += 1;
        }
    }
    assert_eq!(requests.values().max(), Some(&1), "{requests:?}");
    assert_eq!(requests.len(), polled);
    assert!(polled >= 60);
}

fn client(port: u16) -> Client {
    Client::new(NetOptions {
        egress: Egress {
            allow: vec!["127.0.0.0/8".parse().unwrap()],
            ports: vec![port..=port],
        },
        ..NetOptions::default()
    })
    .unwrap()
}

fn options() -> StoreOptions {
    let mut options = StoreOptions::default();
    options.host_delay = Duration::from_millis(10);
    options
}

/// A poller with leases that are over soon, on the clock of the database.
async fn poller(address: &str, port: u16) -> Arc<Poller> {
    let store = Store::open(address, &options()).await.unwrap();
    let options = PollOptions {
        lease: Duration::from_secs(2),
        ..PollOptions::default()
    };
    let mut context = FetchContext::new(client(port), store);
    context.lease = Duration::from_secs(2);
    Arc::new(Poller::new(context, options))
}

/// The body of the processes that the test below kills; by itself it does nothing.
#[tokio::test]
async fn polling_process() {
    if let Ok(address) = std::env::var("TIDINGS_TEST_STORE") {
        let port = std::env::var("TIDINGS_TEST_PORT").unwrap().parse().unwrap();
        poller(&address, port).await.poll_due(|_| {}).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_pollers_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let embedded = format!("sqlite:{}", folder.path().join("tidings.db").display());
    for address in [embedded, postgres_database().unwrap()] {
        let world = World::start(Days {
            sites: 80,
            ..Days::default()
        })
        .await;
        let store = Store::open(&address, &options()).await.unwrap();
        let mut feeds = 0;
        for site in world.sim.world().sites() {
            for feed in &site.feeds {
                let url = site.absolute(&feed.path);
                world::add(&store, &url, "feed", &url, Default::default()).await;
                feeds += 1;
            }
        }
        let port = world.sim.address().port();
        for life in 0..6_u64 {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "polling_process"])
                .env("TIDINGS_TEST_STORE", &address)
                .env("TIDINGS_TEST_PORT", port.to_string())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            tokio::time::sleep(Duration::from_millis(150 + 130 * life)).await;
            // SIGKILL: it cannot clean up.
            child.kill().unwrap();
            child.wait().unwrap();
        }
        // Feeds of killed processes are due again when their leases expire.
        let last = poller(&address, port).await;
        let all_polled = async {
            loop {
                last.poll_due(|_| {}).await.unwrap();
                let polled = store.feeds_after(i64::MIN, 10_000).await.unwrap();
                if polled
                    .iter()
                    .filter(|feed| feed.last_polled_at.is_some())
                    .count()
                    == feeds
                {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), all_polled)
            .await
            .expect("leases end");
        let found = world::keys_in(&store).await;
        for site in world.sim.world().sites() {
            for article in site.latest(world.start, 50) {
                let key = world::key_of(&site.absolute(article.announced_path()));
                assert!(found.contains(&key), "{} of {}", article.path, site.host);
            }
        }
    }
}
