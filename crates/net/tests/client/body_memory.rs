//! Bodies share one budget: they wait for room, and are not blamed for waiting.

use std::time::Duration;

use tidings_net::{
    BodyMemory, Class, Client, Limits, NetOptions, Purpose, Redirects, Request, Response,
};
use tidings_sim::{Act, RawServer};

use crate::{home, limits, options, path, raw, url};

const PAGE_BYTES: usize = 250 * 1024;

async fn pages() -> RawServer {
    raw(|head| {
        let kind = match path(head) {
            "/feed" => "application/rss+xml",
            _ => "text/html",
        };
        let head = format!("200 OK\r\nContent-Type: {kind}");
        Act::answer(&head, &vec![b'x'; PAGE_BYTES])
    })
    .await
}

/// Room for four pages of the full size.
fn client(max_wait: Duration) -> Client {
    Client::new(NetOptions {
        memory: BodyMemory::new(4 << 20, max_wait),
        limits: Limits {
            total: Duration::from_secs(2),
            ..limits()
        },
        ..options()
    })
    .unwrap()
}

async fn get(client: Client, address: String) -> Result<Response, tidings_net::Failure> {
    let request = Request::get(url(&address), Purpose::Page);
    client.fetch(request, Redirects::Report).await
}

#[tokio::test]
async fn many_bodies_in_little_memory_all_arrive() {
    let server = pages().await;
    let client = client(Duration::from_secs(60));
    let mut fetches = tokio::task::JoinSet::new();
    for _ in 0..30 {
        fetches.spawn(get(client.clone(), home(server.address())));
    }
    while let Some(response) = fetches.join_next().await {
        let response = response.unwrap().unwrap();
        let usage = client.memory().usage();
        assert!(usage.used >= PAGE_BYTES as u64 && usage.used <= usage.limit);
        assert_eq!(response.body.len(), PAGE_BYTES);
    }
    let usage = client.memory().usage();
    assert_eq!((usage.used, usage.waiting), (0, 0));
}

#[tokio::test]
async fn a_body_that_waits_for_memory_is_not_too_slow() {
    let server = pages().await;
    let client = client(Duration::from_secs(60));
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(get(client.clone(), home(server.address())).await.unwrap());
    }
    let waiting = tokio::spawn(get(client.clone(), home(server.address())));
    while client.memory().usage().waiting == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Longer than the window of the slowest rate and than the whole response may take.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    held.clear();
    assert_eq!(waiting.await.unwrap().unwrap().body.len(), PAGE_BYTES);
}

#[tokio::test]
async fn a_body_without_room_fails_for_a_reason_of_our_own() {
    let server = pages().await;
    let client = client(Duration::from_millis(50));
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(get(client.clone(), home(server.address())).await.unwrap());
    }
    let failure = get(client.clone(), home(server.address())).await;
    let failure = failure.unwrap_err();
    assert_eq!(
        (failure.code(), failure.class()),
        ("no_memory", Class::Internal)
    );
    assert_eq!(client.memory().usage().waiting, 0);
}

#[tokio::test]
async fn of_a_feed_that_is_too_large_the_start_is_read() {
    let server = pages().await;
    let client = Client::new(NetOptions {
        limits: Limits {
            feed_bytes: 100_000,
            ..limits()
        },
        ..options()
    })
    .unwrap();
    let feed = url(&format!("{}feed", home(server.address())));
    let request = Request::get(feed, Purpose::Feed);
    let response = client.fetch(request, Redirects::Report).await.unwrap();
    assert_eq!((response.body.len(), response.is_cut), (100_000, true));
}
