//! The Guardian: pages from the oldest on, bodies, keys in addresses.

use serde_json::json;
use tidings_adapters::{AdapterErrorKind, Text};
use tidings_sim::{ApiFault, FakeApi};

use crate::rig::{KEY, NOW, Rig};

async fn rig() -> Rig {
    let fake = FakeApi::guardian().await.unwrap();
    fake.require_key(KEY);
    Rig::new("guardian", fake, json!({ "section": "world" }))
}

#[tokio::test]
async fn pulls_over_restarts_bring_each_story_once() {
    let mut rig = rig().await;
    assert!(rig.pull().await.is_empty());
    rig.fake.publish_many(450, NOW - 40_000, 60);
    assert_eq!(rig.pull_all().await, 1);
    rig.assert_complete();
    rig.fake.publish_many(5, NOW - 13_100, 60);
    rig.pull_all().await;
    rig.assert_complete();
}

#[tokio::test]
async fn caps_deliver_what_they_have() {
    let mut rig = rig().await;
    rig.config["max_pages"] = json!(1);
    rig.fake.publish_many(900, NOW - 60_000, 60);
    assert!(rig.pull_all().await > 4);
    rig.assert_complete();
    rig.max_items = 70;
    rig.fake.publish_many(200, NOW - 5000, 20);
    rig.pull_all().await;
    rig.assert_complete();
}

#[tokio::test]
async fn a_limit_in_the_middle_loses_nothing() {
    let mut rig = rig().await;
    rig.fake.publish_many(900, NOW - 60_000, 60);
    rig.fake
        .fail_next([ApiFault::None, ApiFault::TooManyRequests(None)]);
    assert_eq!(rig.pull().await.len(), 200);
    rig.pull_all().await;
    rig.assert_complete();
}

#[tokio::test]
async fn bodies_come_when_they_are_wanted() {
    let mut rig = rig().await;
    rig.fake.set_left(77);
    rig.fake.publish_many(1, NOW - 100, 60);
    let pull = rig.try_pull().await.unwrap();
    assert_eq!(pull.items[0].text, None);
    assert_eq!(pull.quota.unwrap().left, 77);
    rig.wants_text = true;
    let item = rig.pull().await.remove(0);
    let body = "<p>The whole text of story 1.</p>".to_owned();
    assert_eq!(item.text, Some(Text::Html(body)));
    assert_eq!(item.tags, ["World", "Harbours"]);
}

#[tokio::test]
async fn an_invalid_key_is_reported_and_not_shown() {
    let mut rig = rig().await;
    rig.key = "an-old-key-of-ours";
    assert_eq!(rig.error_kind().await, AdapterErrorKind::Auth);
    rig.key = "";
    assert_eq!(rig.error_kind().await, AdapterErrorKind::Auth);
}

#[tokio::test]
async fn a_service_that_fails() {
    let mut rig = rig().await;
    rig.fake.publish_many(150, NOW - 20_000, 60);
    rig.assert_survives_faults().await;
}
