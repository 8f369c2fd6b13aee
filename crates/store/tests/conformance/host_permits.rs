//! Turns at a host: feeds and pages wait for the same gate.

use std::time::Duration;

use tidings_store::{AcquiredHost, HostChange, HostPermit, Outcome};
use tidings_url::HostKey;

use crate::fixture::{Fixture, MINUTE, SECOND, fetched, target};

on_both_engines!(
    a_slot_and_a_claim_exclude_each_other,
    slots_keep_the_delay,
    a_slot_that_was_lost_changes_nothing,
    what_a_poll_learns_of_a_host_is_kept,
);

const PAGE: &str = "https://a.example/story";

fn host() -> HostKey {
    target(PAGE).host
}

async fn take(t: &Fixture) -> Result<HostPermit, Duration> {
    match t.store.acquire_host(&host(), MINUTE).await.unwrap() {
        AcquiredHost::Now(slot) => Ok(slot),
        AcquiredHost::Later(wait) => Err(wait),
    }
}

async fn a_slot_and_a_claim_exclude_each_other(t: Fixture) {
    t.submit(&[PAGE]).await;
    let slot = take(&t).await.unwrap();
    assert_eq!(t.claim(1).await.len(), 0, "the host is being asked");
    assert_eq!(take(&t).await, Err(MINUTE));
    t.store
        .release_host(&slot, &HostChange::default())
        .await
        .unwrap();
    assert_eq!(t.claim(1).await.len(), 0, "its delay is not over");
    t.pass(SECOND);
    let claim = t.claim_one().await;
    assert!(take(&t).await.is_err());
    t.complete(&claim, fetched()).await;
    t.pass(SECOND);
    assert!(take(&t).await.is_ok());
}

async fn slots_keep_the_delay(t: Fixture) {
    let slot = take(&t).await.unwrap();
    assert_eq!(slot.delay, SECOND);
    t.pass(Duration::from_millis(300));
    t.store
        .release_host(&slot, &HostChange::default())
        .await
        .unwrap();
    assert_eq!(take(&t).await, Err(Duration::from_millis(700)));
    t.pass(Duration::from_millis(700));
    assert!(take(&t).await.is_ok());
}

async fn a_slot_that_was_lost_changes_nothing(t: Fixture) {
    let lost = take(&t).await.unwrap();
    t.pass(MINUTE);
    let held = take(&t).await.unwrap();
    t.store
        .release_host(&lost, &HostChange::default())
        .await
        .unwrap();
    t.pass(SECOND * 2);
    assert!(take(&t).await.is_err(), "the second holder is still at it");
    t.store.extend_host_permit(&held, MINUTE * 2).await.unwrap();
    t.pass(MINUTE);
    assert!(take(&t).await.is_err(), "its lease was extended");
}

async fn what_a_poll_learns_of_a_host_is_kept(t: Fixture) {
    t.submit(&[PAGE]).await;
    let slot = take(&t).await.unwrap();
    let change = HostChange {
        delay: Some(SECOND * 5),
        block_for: Some(MINUTE),
        is_error: true,
        ..HostChange::default()
    };
    t.store.release_host(&slot, &change).await.unwrap();
    let kept = t.store.host(slot.host).await.unwrap().unwrap();
    assert_eq!((kept.delay_ms, kept.errors, kept.in_flight), (5000, 1, 0));
    assert_eq!(take(&t).await, Err(MINUTE));
    t.pass(SECOND * 30);
    assert_eq!(
        t.claim(1).await.len(),
        0,
        "it is blocked for the workers too"
    );
    t.pass(SECOND * 30);
    let claim = t.claim_one().await;
    t.complete(&claim, Outcome::Released).await;
}
