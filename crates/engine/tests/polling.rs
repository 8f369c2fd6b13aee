//! The poller on the simulated web, over simulated days: what is published is
//! found, once, politely, whatever fails meanwhile.

#![allow(clippy::unwrap_used)]

mod world;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tidings_engine::{FetchContext, SourceSettings};
use tidings_engine::{PollOptions, PollOutcome, Poller};
use tidings_net::{Client, Egress, Limits, NetOptions};
use tidings_sim::{Act, RawServer, politeness_violations};
use tidings_store::StoreOptions;
use world::{Days, HOUR, MINUTE, TestStore, World};

/// The keys of what was announced since the start, and of what may have been
/// listed at the start as well.
fn announced(world: &World) -> (BTreeSet<String>, BTreeSet<String>) {
    let entries: Vec<_> = world.sim.ledger().entries().collect();
    let keys = |since: Timestamp| {
        let young = entries.iter().filter(|entry| entry.published > since);
        young
            .map(|entry| world::key_of(&entry.announced_url))
            .collect()
    };
    (keys(world.start), keys(Timestamp::MIN))
}

/// Polls whatever is due for a while, in steps; how many polls, and how many new.
async fn live(
    world: &World,
    poller: &Arc<Poller>,
    time: Duration,
    step: Duration,
) -> (usize, usize) {
    let (mut polls, mut new) = (0, 0);
    for _ in 0..time.as_secs() / step.as_secs() {
        polls += poller.poll_due(|poll| new += poll.items_new).await.unwrap();
        world.advance(step);
    }
    (polls, new)
}

/// Polls everything until nothing fails any more: what was announced and is not
/// found now was lost.
async fn catch_up(world: &World, poller: &Arc<Poller>) -> usize {
    let mut new = 0;
    for _ in 0..6 {
        world.resume_all_feeds().await;
        let mut failed = 0;
        let polled = poller.poll_due(|poll| {
            new += poll.items_new;
            failed += usize::from(poll.outcome == PollOutcome::Failed);
        });
        polled.await.unwrap();
        world.advance_store(HOUR);
        if failed == 0 {
            break;
        }
    }
    new
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_published_is_found_once_over_simulated_days() {
    let sites = match std::env::var_os("TIDINGS_TEST_FULL") {
        Some(_) => 500,
        None => 150,
    };
    let world = World::start(Days {
        sites,
        defect_percent: 30,
        fault_percent: 20,
        ..Days::default()
    })
    .await;
    world.add_all_feeds().await;
    let poller = world.poller_with(PollOptions {
        requests_per_day: Some(f64::from(sites) * 6.0),
        ..PollOptions::default()
    });
    let (polls, mut new) = live(&world, &poller, 24 * HOUR, 30 * MINUTE).await;
    let (announced, listed) = announced(&world);
    new += catch_up(&world, &poller).await;
    let found = world.found_keys().await;
    let missed = announced.difference(&found).count();
    assert_eq!(
        missed,
        0,
        "of {} announced, by {polls} polls",
        announced.len()
    );
    assert_eq!(
        found.difference(&listed).count(),
        0,
        "found what nobody published"
    );
    assert_eq!(new, found.len(), "new means new, once");
    for feed in world.feeds().await {
        let has_reason = feed.last_error.is_some() || feed.last_polled_at.is_some();
        assert!(
            has_reason && feed.paused_reason.is_none(),
            "{feed:?} stopped"
        );
    }
    let records = world.sim.log().snapshot();
    let violations = politeness_violations(&records, Duration::from_millis(15), 1);
    assert_eq!(violations, [], "of {} requests", records.len());
}

#[tokio::test]
async fn a_feed_that_is_broken_or_too_large_yields_its_start_and_says_so() {
    let server = RawServer::start("127.0.0.1:0".parse().unwrap(), |head| {
        let item = r#"{"id":"1","url":"https://a.example/1","title":"One"}"#;
        let entry = "<item><link>https://a.example/2</link></item>";
        match head.split(' ').nth(1).unwrap_or_default() {
            "/broken.json" => {
                let body = format!(
                    r#"{{"version":"https://jsonfeed.org/version/1.1","items":[{item},{{"id":"#
                );
                Act::answer(
                    "200 OK\r\nContent-Type: application/feed+json",
                    body.as_bytes(),
                )
            }
            "/large.xml" => {
                let body = format!("<rss><channel>{}", entry.repeat(1000));
                Act::answer(
                    "200 OK\r\nContent-Type: application/rss+xml",
                    body.as_bytes(),
                )
            }
            _ => Act::answer("404 Not Found", b""),
        }
    })
    .await
    .unwrap();
    let mut options = StoreOptions::default();
    options.host_delay = Duration::ZERO;
    let store = TestStore::start(options).await;
    let client = Client::new(NetOptions {
        limits: Limits {
            feed_bytes: 10_000,
            ..Limits::default()
        },
        egress: Egress {
            allow: vec!["127.0.0.0/8".parse().unwrap()],
            ports: vec![server.address().port()..=server.address().port()],
        },
        ..NetOptions::default()
    })
    .unwrap();
    let context = FetchContext::new(client, store.store.clone());
    let poller = Arc::new(Poller::new(context, PollOptions::default()));
    for (path, seen, message) in [
        ("/broken.json", 1, "truncated at line 1"),
        ("/large.xml", 222, "larger than 10000 bytes"),
    ] {
        let url = format!("http://{}{path}", server.address());
        world::add(&store.store, path, "feed", &url, SourceSettings::default()).await;
        let mut reports = Vec::new();
        poller
            .poll_due(|poll| reports.push((poll.outcome, poll.items_seen, poll.error.clone())))
            .await
            .unwrap();
        let (outcome, items_seen, error) = reports.remove(0);
        assert_eq!((outcome, items_seen), (PollOutcome::Ok, seen), "{path}");
        let error = error.unwrap_or_default();
        assert!(error.contains(message), "{path}: {error}");
    }
}
