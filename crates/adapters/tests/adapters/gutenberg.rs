//! Project Gutenberg: a daily catalogue, texts two seconds apart.

use std::time::Duration;

use serde_json::json;
use tidings_adapters::Text;
use tidings_document::License;
use tidings_sim::{ApiFault, FakeApi, Story};

use crate::rig::{NOW, Rig};

const DAY: i64 = 86_400;

async fn rig() -> Rig {
    let fake = FakeApi::gutenberg().await.unwrap();
    Rig::new("gutenberg", fake, json!({ "language": "en" }))
}

#[tokio::test]
async fn pulls_over_restarts_bring_each_book_once() {
    let mut rig = rig().await;
    rig.fake.publish_many(60, NOW - 20 * DAY, DAY / 4);
    assert_eq!(rig.pull_all().await, 1);
    rig.assert_complete();
    rig.now += DAY;
    rig.fake.publish_many(4, NOW, 60);
    // Into the catalogue days late.
    rig.fake.publish_many(1, NOW - 6 * DAY, 60);
    assert_eq!(rig.pull().await.len(), 5);
    rig.assert_complete();
}

#[tokio::test]
async fn a_catalogue_with_a_content_encoding_is_read() {
    let mut rig = rig().await;
    rig.fake.encode_files();
    rig.fake.publish_many(3, NOW - DAY, 1);
    assert_eq!(rig.pull().await.len(), 3);
    rig.assert_complete();
}

#[tokio::test]
async fn texts_come_without_the_licence() {
    let mut rig = rig().await;
    rig.wants_text = true;
    rig.fake.publish(Story {
        title: "Harbour Songs".to_owned(),
        author: "Writer, Ann".to_owned(),
        subject: "English poetry".to_owned(),
        text: "The boats are in.\r\nThe harbour sleeps.".to_owned(),
        at: NOW - DAY,
        ..Story::default()
    });
    let item = rig.pull().await.remove(0);
    let text = "The boats are in.\r\nThe harbour sleeps.".to_owned();
    assert_eq!(item.text, Some(Text::Plain(text)));
    assert_eq!(item.authors, ["Ann Writer"]);
    assert_eq!(item.content_type.as_deref(), Some("poem"));
    assert_eq!(item.license, Some(License::PublicDomain));
    assert!(rig.min_gap() >= Duration::from_secs(2));
}

#[tokio::test]
async fn caps_and_faults_in_the_middle_lose_nothing() {
    let mut rig = rig().await;
    rig.wants_text = true;
    rig.config["max_texts"] = json!(20);
    rig.fake.publish_many(70, NOW - 20 * DAY, DAY / 4);
    // The catalogue, two texts, and then no more.
    rig.fake.fail_next([
        ApiFault::None,
        ApiFault::None,
        ApiFault::None,
        ApiFault::Status(503),
    ]);
    assert_eq!(rig.pull().await.len(), 2);
    rig.max_items = 15;
    rig.pull_all().await;
    rig.assert_complete();
}

#[tokio::test]
async fn a_book_without_a_text_stops_nobody() {
    let mut rig = rig().await;
    rig.wants_text = true;
    rig.fake.publish(Story {
        at: NOW - 2 * DAY,
        ..Story::default()
    });
    rig.fake.publish_many(2, NOW - DAY, 1);
    assert_eq!(rig.pull().await.len(), 2);
    assert!(rig.pull().await.is_empty());
}

#[tokio::test]
async fn only_what_is_wanted() {
    let mut rig = rig().await;
    rig.config["subject"] = json!("Poetry");
    rig.fake.publish_many(3, NOW - DAY, 1);
    assert!(rig.pull().await.is_empty());
}

#[tokio::test]
async fn a_service_that_fails() {
    let mut rig = rig().await;
    rig.fake.publish_many(20, NOW - 9 * DAY, DAY / 4);
    rig.assert_survives_faults().await;
}
