//! NewsAPI: keys, plans that show only the start, stories that are listed late.

use serde_json::json;
use tidings_adapters::{AdapterErrorKind, adapter};
use tidings_sim::{ApiFault, FakeApi, Story};

use crate::rig::{KEY, NOW, Rig};

async fn rig() -> Rig {
    let fake = FakeApi::newsapi().await.unwrap();
    fake.require_key(KEY);
    Rig::new("newsapi", fake, json!({ "q": "harbour" }))
}

#[tokio::test]
async fn pulls_over_restarts_bring_each_story_once() {
    let mut rig = rig().await;
    rig.fake.publish_many(250, NOW - 30_000, 60);
    rig.pull_all().await;
    rig.assert_complete();
    assert!(rig.pull().await.is_empty());
    // Listed an hour late, with the time when it was written.
    rig.now += 3600;
    rig.fake.publish(Story {
        url: "https://paper.example/late".to_owned(),
        at: NOW - 16_000,
        ..Story::default()
    });
    rig.fake.publish_many(5, NOW, 10);
    assert_eq!(rig.pull().await.len(), 6);
    rig.assert_complete();
}

#[tokio::test]
async fn an_item_has_the_fields_of_the_service() {
    let mut rig = rig().await;
    rig.fake.publish_many(1, NOW - 100, 1);
    let item = rig.pull().await.remove(0);
    assert_eq!(item.url, "https://paper.example/story/1");
    assert_eq!(
        (item.title.as_str(), item.authors),
        ("Story 1", vec!["A. Writer".to_owned()])
    );
    assert_eq!(item.summary.as_deref(), Some("About Story 1"));
    assert_eq!(item.published.unwrap().as_second(), NOW - 100);
    assert_eq!(item.text, None, "what the service cuts is no text");
}

#[tokio::test]
async fn what_a_plan_hides_comes_with_the_next_pulls() {
    let mut rig = rig().await;
    rig.fake.set_cap(100);
    rig.fake.publish_many(730, NOW - 80_000, 100);
    let pulls = rig.pull_all().await;
    assert!(pulls >= 8, "{pulls}");
    rig.assert_complete();
    // Stories published meanwhile are not lost behind the backfill.
    rig.fake.publish_many(30, NOW - 50, 1);
    rig.pull_all().await;
    rig.assert_complete();
}

#[tokio::test]
async fn a_cap_on_items_delivers_what_it_has() {
    let mut rig = rig().await;
    rig.fake.publish_many(90, NOW - 20_000, 60);
    rig.max_items = 40;
    assert_eq!(rig.pull_all().await, 3);
    rig.assert_complete();
}

#[tokio::test]
async fn a_limit_in_the_middle_of_a_backfill_loses_nothing() {
    let mut rig = rig().await;
    rig.fake.publish_many(350, NOW - 40_000, 100);
    rig.fake.fail_next([
        ApiFault::None,
        ApiFault::None,
        ApiFault::TooManyRequests(Some(9)),
    ]);
    let pull = rig.try_pull().await.unwrap();
    assert_eq!((pull.items.len(), pull.has_more), (200, true));
    assert!(pull.note.unwrap().contains("429"));
    rig.pull_all().await;
    rig.assert_complete();
}

#[tokio::test]
async fn an_invalid_key_is_reported_and_not_shown() {
    let mut rig = rig().await;
    rig.fake.publish_many(3, NOW - 100, 1);
    rig.key = "an-old-key-of-ours";
    assert_eq!(rig.error_kind().await, AdapterErrorKind::Auth);
    let error = rig.try_pull().await.unwrap_err().to_string();
    assert!(
        error.contains("apiKeyInvalid") && error.contains("[hidden]"),
        "{error}"
    );
    rig.key = "";
    let error = rig.try_pull().await.unwrap_err().to_string();
    assert!(error.contains("NEWSAPI_KEY"), "{error}");
    rig.key = KEY;
    rig.pull_all().await;
    rig.assert_complete();
}

#[tokio::test]
async fn headlines_are_delivered_once() {
    let mut rig = rig().await;
    rig.config["endpoint"] = json!("top-headlines");
    rig.fake.publish_many(20, NOW - 900_000, 1000);
    assert_eq!(rig.pull().await.len(), 20);
    rig.now += 86_400;
    rig.fake.publish_many(2, NOW - 900_000, 1);
    assert_eq!(rig.pull().await.len(), 2);
    rig.assert_complete();
}

#[tokio::test]
async fn a_service_that_fails() {
    let mut rig = rig().await;
    rig.fake.publish_many(150, NOW - 20_000, 60);
    rig.assert_survives_faults().await;
}

#[test]
fn a_wrong_config_is_named() {
    let adapter = adapter("newsapi").unwrap();
    let rows = [
        (json!({}), "config.q: is missing"),
        (
            json!({ "q": "x".repeat(501) }),
            "config.q: is longer than 500",
        ),
        (json!({ "q": "x", "max_pages": 0 }), "config.max_pages"),
        (
            json!({ "endpoint": "top-headlines", "sources": "a", "country": "us" }),
            "config.sources: can't be combined",
        ),
        (
            json!({ "sources": "x,".repeat(20) }),
            "config.sources: has more than 20",
        ),
    ];
    for (config, message) in rows {
        let error = adapter.validate(&config).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}
