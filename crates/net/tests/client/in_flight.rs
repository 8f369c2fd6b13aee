//! How many requests are in flight to one owner, whatever the names of the hosts are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidings_net::{Client, Egress, Failure, NetOptions, Redirects};
use tidings_sim::{Act, RawServer};

use super::page;

#[tokio::test]
async fn one_domain_has_so_many_requests_in_flight_and_the_others_are_put_back() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&seen);
    // It never answers, so nothing that was sent ever ends.
    let server = RawServer::start("127.0.0.1:0".parse().unwrap(), move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        vec![Act::Wait(Duration::from_secs(3600))]
    })
    .await
    .unwrap();
    let port = server.address().port();
    let client = Client::new(NetOptions {
        egress: Egress {
            allow: vec!["127.0.0.1/32".parse().unwrap(), "::1/128".parse().unwrap()],
            ports: vec![port..=port],
        },
        max_per_domain: Some(4),
        ..NetOptions::default()
    })
    .unwrap();
    let fetch = |host: String| {
        let client = client.clone();
        let mut request = page(&format!("http://{host}:{port}/"));
        request.time_limit = Some(Duration::from_secs(60));
        tokio::spawn(async move { client.fetch(request, Redirects::Report).await })
    };
    let mut fetches: tokio::task::JoinSet<Result<(), Failure>> = tokio::task::JoinSet::new();
    for n in 0..10 {
        let fetch = fetch(format!("s{n}.large.localhost"));
        fetches.spawn(async move { fetch.await.unwrap().map(drop) });
    }
    for _ in 0..6 {
        let ended = fetches.join_next().await.unwrap().unwrap();
        let is_busy =
            matches!(&ended, Err(Failure::HostBusy { host, .. }) if host == "large.localhost");
        assert!(is_busy, "{ended:?}");
    }
    assert_eq!(seen.load(Ordering::SeqCst), 4);
    // Another owner is not affected.
    let _other = fetch("s1.small.localhost".to_owned());
    while seen.load(Ordering::SeqCst) < 5 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
