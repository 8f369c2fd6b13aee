//! Host permits: feeds and pages share the limits of a host.

use std::time::Duration;

use tidings_store::{AcquiredHost, HostChange, HostPermit, Outcome};
use tidings_url::HostKey;

use crate::fixture::{Fixture, MINUTE, SECOND, fetched, target};

on_both_engines!(
    a_permit_and_a_claim_exclude_each_other,
    permits_respect_the_delay,
    a_lost_permit_changes_nothing,
    a_poll_updates_the_limits_of_its_host,
);

const PAGE: &str = "https://a.example/story";

fn host() -> HostKey {
    target(PAGE).host
}

async fn acquire(t: &Fixture) -> Result<HostPermit, Duration> {
    match t.store.acquire_host(&host(), MINUTE).await.unwrap() {
        AcquiredHost::Now(permit) => Ok(permit),
        AcquiredHost::Later(wait) => Err(wait),
    }
}

async fn a_permit_and_a_claim_exclude_each_other(t: Fixture) {
    t.submit(&[PAGE]).await;
    let permit = acquire(&t).await.unwrap();
    assert_eq!(
        t.claim(1).await.len(),
        0,
        "the host has a request in flight"
    );
    assert_eq!(acquire(&t).await, Err(MINUTE));
    t.store
        .release_host(&permit, &HostChange::default())
        .await
        .unwrap();
    assert_eq!(t.claim(1).await.len(), 0, "its delay is not over");
    t.advance(SECOND);
    let claim = t.claim_one().await;
    assert!(acquire(&t).await.is_err());
    t.complete(&claim, fetched()).await;
    t.advance(SECOND);
    assert!(acquire(&t).await.is_ok());
}

async fn permits_respect_the_delay(t: Fixture) {
    let permit = acquire(&t).await.unwrap();
    assert_eq!(permit.delay, SECOND);
    t.advance(Duration::from_millis(300));
    t.store
        .release_host(&permit, &HostChange::default())
        .await
        .unwrap();
    assert_eq!(acquire(&t).await, Err(Duration::from_millis(700)));
    t.advance(Duration::from_millis(700));
    assert!(acquire(&t).await.is_ok());
}

async fn a_lost_permit_changes_nothing(t: Fixture) {
    let lost = acquire(&t).await.unwrap();
    t.advance(MINUTE);
    let held = acquire(&t).await.unwrap();
    t.store
        .release_host(&lost, &HostChange::default())
        .await
        .unwrap();
    t.advance(SECOND * 2);
    assert!(
        acquire(&t).await.is_err(),
        "the second holder still has the host"
    );
    t.store.extend_host_permit(&held, MINUTE * 2).await.unwrap();
    t.advance(MINUTE);
    assert!(acquire(&t).await.is_err(), "its lease was extended");
}

async fn a_poll_updates_the_limits_of_its_host(t: Fixture) {
    t.submit(&[PAGE]).await;
    let permit = acquire(&t).await.unwrap();
    let change = HostChange {
        delay: Some(SECOND * 5),
        block_for: Some(MINUTE),
        is_error: true,
        ..HostChange::default()
    };
    t.store.release_host(&permit, &change).await.unwrap();
    let host = t.store.host(permit.host).await.unwrap().unwrap();
    assert_eq!((host.delay_ms, host.errors, host.in_flight), (5000, 1, 0));
    assert_eq!(acquire(&t).await, Err(MINUTE));
    t.advance(SECOND * 30);
    assert_eq!(
        t.claim(1).await.len(),
        0,
        "it is blocked for the workers too"
    );
    t.advance(SECOND * 30);
    let claim = t.claim_one().await;
    t.complete(&claim, Outcome::Released).await;
}
