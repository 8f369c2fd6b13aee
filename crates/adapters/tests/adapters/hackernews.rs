//! Hacker News: slices of a thousand, lists with ids, posts that are null.

use std::time::Duration;

use serde_json::json;
use tidings_adapters::{AdapterErrorKind, Text};
use tidings_sim::{ApiFault, FakeApi, Story};

use crate::rig::{NOW, Rig};

async fn rig() -> Rig {
    let fake = FakeApi::hackernews().await.unwrap();
    Rig::new("hackernews", fake, json!({}))
}

#[tokio::test]
async fn pulls_over_restarts_bring_each_story_once() {
    let mut rig = rig().await;
    rig.fake.publish_many(2500, NOW - 80_000, 30);
    assert_eq!(rig.pull_all().await, 1);
    rig.assert_complete();
    rig.now += 600;
    rig.fake.publish_many(40, NOW - 100, 10);
    assert_eq!(rig.pull().await.len(), 40);
    rig.assert_complete();
}

#[tokio::test]
async fn caps_deliver_what_they_have() {
    let mut rig = rig().await;
    rig.config["max_pages"] = json!(1);
    rig.fake.publish_many(2500, NOW - 80_000, 30);
    rig.pull_all().await;
    rig.assert_complete();
    rig.fake.publish_many(700, NOW - 4000, 5);
    rig.max_items = 100;
    rig.now += 600;
    rig.pull_all().await;
    rig.assert_complete();
}

#[tokio::test]
async fn a_limit_in_the_middle_of_a_backfill_loses_nothing() {
    let mut rig = rig().await;
    rig.fake.publish_many(2500, NOW - 80_000, 30);
    rig.fake.fail_next([ApiFault::None, ApiFault::Silence]);
    rig.time_limit = Duration::from_secs(2);
    let items = rig.pull().await;
    assert_eq!(items.len(), 1000);
    rig.time_limit = Duration::from_secs(10);
    rig.pull_all().await;
    rig.assert_complete();
}

#[tokio::test]
async fn a_post_without_a_link_is_its_own_page() {
    let mut rig = rig().await;
    rig.fake.publish(Story {
        text: "<p>Who has tried it?".to_owned(),
        at: NOW - 50,
        ..Story::default()
    });
    rig.fake.publish_many(1, NOW - 40, 1);
    let items = rig.pull().await;
    assert_eq!(items[1].url, "https://news.ycombinator.com/item?id=1");
    assert_eq!(
        items[1].text,
        Some(Text::Html("<p>Who has tried it?".to_owned()))
    );
    assert_eq!(items[1].authors, ["A. Writer"]);
    assert!(items[0].authors.is_empty() && items[0].comments.is_some());
}

#[tokio::test]
async fn only_new_items_of_a_list_are_requested() {
    let mut rig = rig().await;
    rig.config["list"] = json!("top");
    rig.config["max_list_items"] = json!(30);
    rig.fake.publish_many(80, NOW - 8000, 100);
    assert_eq!(rig.pull_all().await, 3);
    rig.assert_complete();
    let requests = rig.fake.asked().len();
    assert!(rig.pull().await.is_empty());
    assert_eq!(rig.fake.asked().len(), requests + 1);
    for subject in ["dead", "null"] {
        rig.fake.publish(Story {
            subject: subject.to_owned(),
            at: NOW,
            ..Story::default()
        });
    }
    assert!(rig.pull().await.is_empty());
    // An item whose request fails is requested again.
    rig.fake.publish_many(1, NOW, 1);
    rig.fake.fail_next([ApiFault::None, ApiFault::Status(500)]);
    assert_eq!(rig.error_kind().await, AdapterErrorKind::Network);
    assert_eq!(rig.pull().await.len(), 1);
}

#[tokio::test]
async fn a_service_that_fails() {
    let mut rig = rig().await;
    rig.fake.publish_many(150, NOW - 20_000, 60);
    rig.assert_survives_faults().await;
    assert!(rig.min_gap() >= std::time::Duration::from_millis(100));
}
