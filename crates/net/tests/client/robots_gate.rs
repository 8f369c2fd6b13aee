//! robots.txt is fetched once, first, and cached; a host that fails is "not now".

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tidings_net::{
    Client, Failure, Redirects, RobotsCache, RobotsCacheError, RobotsGate, RobotsRecord,
};
use tidings_sim::{Act, RawServer};
use tidings_url::HostKey;

use crate::{OTHER_PEER, client, home, page, path, raw, url};

const HOUR: i64 = 3_600_000;

/// A cache that several gates share, as processes share a store.
#[derive(Default)]
struct MemoryCache(Mutex<HashMap<HostKey, RobotsRecord>>);

#[async_trait]
impl RobotsCache for MemoryCache {
    async fn get(&self, host: &HostKey) -> Result<Option<RobotsRecord>, RobotsCacheError> {
        Ok(self.0.lock().unwrap().get(host).cloned())
    }

    async fn put(&self, host: &HostKey, record: &RobotsRecord) -> Result<(), RobotsCacheError> {
        self.0.lock().unwrap().insert(host.clone(), record.clone());
        Ok(())
    }
}

/// A cache whose database is down.
struct FailingCache;

#[async_trait]
impl RobotsCache for FailingCache {
    async fn get(&self, _: &HostKey) -> Result<Option<RobotsRecord>, RobotsCacheError> {
        Err("connection refused".into())
    }

    async fn put(&self, _: &HostKey, _: &RobotsRecord) -> Result<(), RobotsCacheError> {
        Err("connection refused".into())
    }
}

fn gate(
    client: &Client,
    cache: Option<Arc<dyn RobotsCache>>,
    clock: &Arc<AtomicI64>,
) -> RobotsGate {
    let clock = Arc::clone(clock);
    RobotsGate::new(client.clone(), cache)
        .with_clock(move || Timestamp::from_millisecond(clock.load(Ordering::SeqCst)).unwrap())
}

fn clock() -> Arc<AtomicI64> {
    Arc::new(AtomicI64::new(1_800_000_000_000))
}

#[tokio::test]
async fn a_hundred_urls_fetch_the_file_once() {
    let server = raw(|_| {
        vec![
            Act::Wait(Duration::from_millis(50)),
            Act::Send(
                b"HTTP/1.1 200 OK\r\nContent-Length: 27\r\n\r\nUser-agent: *\nDisallow: /no\n"
                    .to_vec(),
            ),
        ]
    })
    .await;
    let client = client();
    let gate = Arc::new(gate(&client, None, &clock()));
    let mut permits = tokio::task::JoinSet::new();
    for n in 0..100 {
        let (gate, base) = (Arc::clone(&gate), home(server.address()));
        permits.spawn(async move {
            let kind = if n % 2 == 0 { "yes" } else { "no" };
            (n, gate.permit(&url(&format!("{base}{kind}/{n}"))).await)
        });
    }
    let mut fetched = 0;
    while let Some(done) = permits.join_next().await {
        let (n, permission) = done.unwrap();
        assert_eq!(permission.is_ok(), n % 2 == 0, "{n}");
        fetched += usize::from(permission.is_ok_and(|permission| permission.was_fetched));
    }
    assert_eq!(server.connections(), 1);
    assert!(fetched <= 1, "only the one that fetched it says so");
}

#[tokio::test]
async fn the_file_is_cached_for_a_day_and_shared() {
    let server = raw(|_| Act::answer("200 OK", b"User-agent: *\nCrawl-delay: 3\n")).await;
    let address = url(&home(server.address()));
    let cache = Arc::new(MemoryCache::default());
    let (client, clock) = (client(), clock());
    let first = gate(&client, Some(cache.clone()), &clock);
    let permission = first.permit(&address).await.unwrap();
    assert_eq!(permission.crawl_delay, Some(Duration::from_secs(3)));
    assert!(permission.was_fetched);
    assert!(!first.permit(&address).await.unwrap().was_fetched);

    // Another process finds it in the cache.
    let second = gate(&client, Some(cache), &clock);
    assert!(!second.permit(&address).await.unwrap().was_fetched);
    assert_eq!(server.connections(), 1);

    clock.fetch_add(24 * HOUR + 1, Ordering::SeqCst);
    assert!(second.permit(&address).await.unwrap().was_fetched);
    assert_eq!(server.connections(), 2);
}

/// A server whose status and body a test can change.
async fn changing() -> (RawServer, Arc<Mutex<Vec<Act>>>) {
    let acts = Arc::new(Mutex::new(Vec::new()));
    let script = Arc::clone(&acts);
    (raw(move |_| script.lock().unwrap().clone()).await, acts)
}

#[tokio::test]
async fn an_error_means_not_now_and_never_yes() {
    let rows: Vec<(&str, Vec<Act>)> = vec![
        ("500", Act::answer("500 Trouble", b"")),
        ("503", Act::answer("503 Busy", b"")),
        ("429", Act::answer("429 Slower", b"")),
        ("no response", vec![Act::Wait(Duration::from_secs(60))]),
        ("a close", vec![]),
        (
            "half a file",
            vec![Act::Send(
                b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nUser".to_vec(),
            )],
        ),
        (
            "a bomb",
            Act::answer("200 OK\r\nContent-Encoding: gzip, gzip, gzip", b"x"),
        ),
    ];
    let client = client();
    for (name, response) in rows {
        let (server, acts) = changing().await;
        *acts.lock().unwrap() = response;
        let clock = clock();
        let gate = gate(&client, Some(Arc::new(MemoryCache::default())), &clock);
        let address = url(&home(server.address()));
        let refused = gate.permit(&address).await.unwrap_err();
        assert_eq!(refused.code(), "robots_unavailable", "{name}: {refused}");
        gate.permit(&address).await.unwrap_err();
        assert_eq!(server.connections(), 1, "{name}: retried immediately");

        clock.fetch_add(HOUR, Ordering::SeqCst);
        *acts.lock().unwrap() = Act::answer("404 Not Found", b"");
        assert!(gate.permit(&address).await.is_ok(), "{name}: it is over");
    }
}

#[tokio::test]
async fn a_host_may_say_when_to_retry_within_bounds() {
    let rows = [("1", 60), ("90", 90), ("99999", 600), ("soon", 600)];
    let client = client();
    for (header, seconds) in rows {
        let (server, acts) = changing().await;
        *acts.lock().unwrap() = Act::answer(&format!("503 Busy\r\nRetry-After: {header}"), b"");
        let clock = clock();
        let gate = gate(&client, None, &clock);
        let address = url(&home(server.address()));
        let refused = gate.permit(&address).await.unwrap_err();
        let expected = Duration::from_secs(seconds);
        assert!(
            matches!(refused, Failure::RobotsUnavailable { retry_in, .. } if retry_in == expected),
            "{header}: {refused:?}"
        );
        *acts.lock().unwrap() = Act::answer("404 Not Found", b"");
        clock.fetch_add(seconds as i64 * 1000 - 1, Ordering::SeqCst);
        gate.permit(&address).await.unwrap_err();
        assert_eq!(server.connections(), 1, "{header}: retried too soon");
        clock.fetch_add(1, Ordering::SeqCst);
        assert!(gate.permit(&address).await.is_ok(), "{header}");
    }
}

#[tokio::test]
async fn a_cache_that_fails_is_an_internal_failure_and_nothing_is_fetched() {
    let server = raw(|_| Act::answer("404 Not Found", b"")).await;
    let gate = gate(&client(), Some(Arc::new(FailingCache)), &clock());
    let failure = gate
        .permit(&url(&home(server.address())))
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "store", "{failure}");
    assert!(
        failure.to_string().contains("connection refused"),
        "{failure}"
    );
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn no_file_means_yes() {
    let client = client();
    for head in [
        "404 Not Found",
        "410 Gone",
        "401 Who",
        "403 No",
        "400 What",
        "451 Law",
        "999 Odd",
    ] {
        let server = raw(move |_| Act::answer(head, b"User-agent: *\nDisallow: /")).await;
        let gate = gate(&client, None, &clock());
        assert!(
            gate.permit(&url(&home(server.address()))).await.is_ok(),
            "{head}"
        );
    }
}

#[tokio::test]
async fn the_last_good_file_is_valid_a_day_longer() {
    let (server, acts) = changing().await;
    *acts.lock().unwrap() = Act::answer("200 OK", b"User-agent: *\nDisallow: /no\n");
    let (client, clock) = (client(), clock());
    let gate = gate(&client, Some(Arc::new(MemoryCache::default())), &clock);
    let (yes, no) = (
        url(&format!("{}yes", home(server.address()))),
        url(&format!("{}no", home(server.address()))),
    );
    gate.permit(&yes).await.unwrap();

    *acts.lock().unwrap() = Act::answer("503 Busy", b"");
    clock.fetch_add(30 * HOUR, Ordering::SeqCst);
    gate.permit(&yes).await.unwrap();
    assert_eq!(gate.permit(&no).await.unwrap_err().code(), "robots_blocked");
    assert_eq!(server.connections(), 2);

    clock.fetch_add(19 * HOUR, Ordering::SeqCst);
    assert_eq!(
        gate.permit(&yes).await.unwrap_err().code(),
        "robots_unavailable"
    );
}

#[tokio::test]
async fn redirects_of_the_file_are_followed_five_times() {
    for (hops, is_allowed) in [(5, false), (6, true)] {
        let server = raw(move |head| {
            let n: u32 = path(head).trim_start_matches("/hop").parse().unwrap_or(0);
            if n == hops {
                Act::answer("200 OK", b"User-agent: *\nDisallow: /")
            } else {
                Act::answer(&format!("302 Found\r\nLocation: /hop{}", n + 1), b"")
            }
        })
        .await;
        let gate = gate(&client(), None, &clock());
        let permission = gate.permit(&url(&home(server.address()))).await;
        assert_eq!(permission.is_ok(), is_allowed, "{hops} hops");
    }
}

#[tokio::test]
async fn the_rules_of_the_first_host_may_live_on_another() {
    let other = RawServer::start(OTHER_PEER.parse().unwrap(), |_| {
        Act::answer("200 OK", b"User-agent: *\nDisallow: /no\n")
    })
    .await
    .unwrap();
    let elsewhere = format!("302 Found\r\nLocation: {}rules.txt", home(other.address()));
    let server = raw(move |_| Act::answer(&elsewhere, b"")).await;
    let gate = gate(&client(), None, &clock());
    let refused = gate
        .permit(&url(&format!("{}no", home(server.address()))))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), "robots_blocked");
}

#[tokio::test]
async fn a_redirect_checks_the_other_host_first() {
    let visits = Arc::new(Mutex::new(Vec::<String>::new()));
    let noted = Arc::clone(&visits);
    let other = RawServer::start(OTHER_PEER.parse().unwrap(), move |head| {
        noted.lock().unwrap().push(path(head).to_owned());
        match path(head) {
            "/robots.txt" => Act::answer("200 OK", b"User-agent: *\nDisallow: /no\n"),
            _ => Act::answer("200 OK", b"the page"),
        }
    })
    .await
    .unwrap();
    let base = home(other.address());
    let server = raw(move |head| {
        let target = path(head).trim_start_matches('/').to_owned();
        Act::answer(&format!("302 Found\r\nLocation: {base}{target}"), b"")
    })
    .await;
    let client = client();
    let gate = gate(&client, None, &clock());
    let fetch = |target: &str| {
        client.fetch(
            page(&format!("{}{target}", home(server.address()))),
            Redirects::Check(&gate),
        )
    };
    let refused = fetch("no").await.unwrap_err();
    assert!(
        matches!(refused, Failure::RobotsDisallowed { .. }),
        "{refused}"
    );
    assert_eq!(*visits.lock().unwrap(), ["/robots.txt"]);
    assert_eq!(&fetch("yes").await.unwrap().body[..], b"the page");
    assert_eq!(*visits.lock().unwrap(), ["/robots.txt", "/yes"]);
}

#[tokio::test]
async fn a_huge_file_is_read_as_far_as_it_must_be() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let server = raw(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1c\r\nUser-agent: *\nDisallow: /no\n\r\n";
        let line = "# nothing to see here, go on ##".to_owned() + "\n";
        vec![
            Act::Send(head.to_vec()),
            Act::Repeat(format!("20\r\n{line}\r\n").into_bytes(), 1_000_000),
        ]
    })
    .await;
    let gate = gate(&client(), None, &clock());
    let refused = gate
        .permit(&url(&format!("{}no", home(server.address()))))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), "robots_blocked", "{refused}");
    assert_eq!(sent.load(Ordering::SeqCst), 1);
}
