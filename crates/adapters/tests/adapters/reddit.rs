//! Reddit: backfills by the name of a post, tokens, limits in headers, the feed.

use std::time::Duration;

use serde_json::json;
use tidings_adapters::{AdapterErrorKind, Text};
use tidings_sim::{ApiFault, FakeApi, Story};

use crate::rig::{KEY, NOW, Rig};

/// `KEY:KEY` as the service wants it.
const PAIR: &str = "czNjcmV0LWtleS1vZi10aGUtdGVzdDpzM2NyZXQta2V5LW9mLXRoZS10ZXN0";

async fn rig() -> Rig {
    let fake = FakeApi::reddit().await.unwrap();
    let mut rig = Rig::new("reddit", fake, json!({ "subreddit": "x" }));
    rig.key = "";
    rig
}

#[tokio::test]
async fn pulls_over_restarts_bring_each_post_once() {
    let mut rig = rig().await;
    rig.fake.publish_many(350, NOW - 40_000, 100);
    rig.fake.set_left(9);
    assert_eq!(rig.try_pull().await.unwrap().quota.unwrap().left, 9);
    assert_eq!(rig.pull_all().await, 1);
    rig.assert_complete();
    rig.now += 600;
    rig.fake.publish_many(7, NOW, 60);
    assert_eq!(rig.pull().await.len(), 7);
    rig.assert_complete();
    assert!(rig.min_gap() >= Duration::from_secs(6));
}

#[tokio::test]
async fn caps_and_limits_in_the_middle_lose_nothing() {
    let mut rig = rig().await;
    rig.fake.publish_many(800, NOW - 80_000, 100);
    rig.config["max_pages"] = json!(3);
    rig.fake
        .fail_next([ApiFault::None, ApiFault::TooManyRequests(Some(60))]);
    assert_eq!(rig.pull().await.len(), 100);
    rig.max_items = 130;
    rig.pull_all().await;
    rig.assert_complete();
}

#[tokio::test]
async fn with_keys_a_token_is_requested_and_never_shown() {
    let mut rig = rig().await;
    rig.fake.require_key(PAIR);
    rig.fake.publish_many(3, NOW - 500, 1);
    let error = rig.try_pull().await.unwrap_err();
    assert_eq!(error.kind, AdapterErrorKind::Auth);
    assert!(error.message.contains("REDDIT_CLIENT_ID"), "{error}");
    rig.key = "an-old-key-of-ours";
    assert_eq!(rig.error_kind().await, AdapterErrorKind::Auth);
    rig.key = KEY;
    rig.pull_all().await;
    rig.assert_complete();
}

#[tokio::test]
async fn posts_for_adults_and_posts_without_links() {
    let mut rig = rig().await;
    for subject in ["over_18", ""] {
        rig.fake.publish(Story {
            subject: subject.to_owned(),
            text: "What do you think?".to_owned(),
            at: NOW - 50,
            ..Story::default()
        });
    }
    let items = rig.pull().await;
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].url, "https://www.reddit.com/r/x/comments/2/");
    assert_eq!(
        items[0].text,
        Some(Text::Plain("What do you think?".to_owned()))
    );
}

#[tokio::test]
async fn the_feed_needs_no_key() {
    let mut rig = rig().await;
    rig.fake.require_key(PAIR);
    rig.config["format"] = json!("rss");
    rig.fake.publish_many(60, NOW - 6000, 60);
    assert_eq!(rig.pull().await.len(), 60);
    rig.fake.publish_many(5, NOW - 100, 10);
    assert_eq!(rig.pull().await.len(), 5);
    rig.assert_complete();
}

#[tokio::test]
async fn a_service_that_fails() {
    let mut rig = rig().await;
    rig.fake.publish_many(150, NOW - 20_000, 60);
    rig.assert_survives_faults().await;
}
