//! GDELT: plain-text errors with 200, bad escapes, files with gaps.

use std::time::Duration;

use serde_json::json;
use tidings_adapters::{AdapterErrorKind, adapter};
use tidings_sim::{ApiFault, FakeApi};

use crate::rig::{NOW, Rig};

const SLOT: i64 = 900;

async fn rig() -> Rig {
    let fake = FakeApi::gdelt().await.unwrap();
    Rig::new("gdelt", fake, json!({ "query": "harbour" }))
}

#[tokio::test]
async fn pulls_over_restarts_bring_each_article_once() {
    let mut rig = rig().await;
    assert!(rig.pull().await.is_empty());
    rig.fake.publish_many(700, NOW - 80_000, 100);
    assert_eq!(rig.pull_all().await, 1);
    rig.assert_complete();
    rig.now += 900;
    rig.fake.publish_many(5, NOW - 12_000, 60);
    assert_eq!(rig.pull().await.len(), 5);
    rig.assert_complete();
    assert!(rig.min_gap() >= Duration::from_secs(5));
}

#[tokio::test]
async fn caps_and_faults_in_the_middle_lose_nothing() {
    let mut rig = rig().await;
    rig.config["overlap_minutes"] = json!(5);
    rig.config["max_pages"] = json!(2);
    rig.fake.publish_many(900, NOW - 80_000, 80);
    rig.fake.fail_next([
        ApiFault::None,
        ApiFault::Body("Timespan too long.".to_owned()),
    ]);
    assert_eq!(rig.pull().await.len(), 250);
    rig.max_items = 120;
    rig.pull_all().await;
    rig.assert_complete();
}

#[tokio::test]
async fn a_text_with_200_is_an_error() {
    let mut rig = rig().await;
    rig.config["query"] = json!("x");
    let error = rig.try_pull().await.unwrap_err();
    assert_eq!(error.kind, AdapterErrorKind::Malformed);
    assert!(error.message.contains("too short"), "{error}");
    let text = "Please limit requests to one every 5 seconds.".to_owned();
    rig.fake.fail_next([ApiFault::Body(text)]);
    let after = Some(Duration::from_secs(5));
    assert_eq!(
        rig.error_kind().await,
        AdapterErrorKind::RateLimited { after }
    );
    let error = adapter("gdelt").unwrap().validate(&json!({})).unwrap_err();
    assert_eq!(error.field, "query");
}

#[tokio::test]
async fn a_service_that_fails() {
    let mut rig = rig().await;
    rig.fake.publish_many(150, NOW - 20_000, 60);
    rig.assert_survives_faults().await;
}

async fn files() -> Rig {
    let fake = FakeApi::gdelt().await.unwrap();
    let rig = Rig::new("gdelt", fake, json!({ "mode": "files" }));
    rig.fake.set_now(NOW);
    rig
}

#[tokio::test]
async fn each_file_is_read_once_and_gaps_are_filled() {
    let mut rig = files().await;
    let slot = NOW / SLOT * SLOT;
    rig.fake.publish_many(30, slot, 10);
    assert_eq!(rig.pull().await.len(), 30);
    // Two hours later: eight files, one of which is not there yet.
    rig.fake.publish_many(80, slot + SLOT, 90);
    rig.fake.set_now(slot + 8 * SLOT + 10);
    let late = jiff::Timestamp::from_second(slot + 3 * SLOT).unwrap();
    let late = format!("{}.export.CSV.zip", late.strftime("%Y%m%d%H%M%S"));
    rig.fake.set_missing(&late, true);
    assert_eq!(rig.pull().await.len(), 70);
    assert!(rig.pull().await.is_empty());
    rig.fake.set_missing(&late, false);
    assert_eq!(rig.pull().await.len(), 10);
    rig.assert_complete();
}

#[tokio::test]
async fn caps_on_files_lose_nothing() {
    let mut rig = files().await;
    let slot = NOW / SLOT * SLOT;
    rig.pull().await;
    rig.fake.publish_many(200, slot + SLOT, 45);
    rig.fake.set_now(slot + 11 * SLOT);
    rig.config["max_slots"] = json!(3);
    rig.max_items = 7;
    rig.pull_all().await;
    rig.assert_complete();
}

#[tokio::test]
async fn a_file_that_is_not_the_one_of_the_list_is_refused() {
    let mut rig = files().await;
    rig.fake.publish_many(3, NOW / SLOT * SLOT, 1);
    rig.fake.require_key("00000000000000000000000000000000");
    assert_eq!(rig.error_kind().await, AdapterErrorKind::Malformed);
    rig.fake
        .fail_next([ApiFault::None, ApiFault::Body("PK\u{3}\u{4} no".to_owned())]);
    assert_eq!(rig.error_kind().await, AdapterErrorKind::Malformed);
    rig.fake.fail_next([ApiFault::Body("<html>".to_owned())]);
    assert_eq!(rig.error_kind().await, AdapterErrorKind::Malformed);
}
