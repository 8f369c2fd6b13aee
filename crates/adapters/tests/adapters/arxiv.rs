//! arXiv: Atom, versions, abstracts, three seconds between requests.

use std::time::Duration;

use serde_json::json;
use tidings_adapters::{AdapterErrorKind, Text};
use tidings_sim::{ApiFault, FakeApi};

use crate::rig::{NOW, Rig};

async fn rig() -> Rig {
    let fake = FakeApi::arxiv().await.unwrap();
    Rig::new("arxiv", fake, json!({ "query": "cat:cs.CL" }))
}

#[tokio::test]
async fn pulls_over_restarts_bring_each_paper_once() {
    let mut rig = rig().await;
    rig.fake.publish_many(450, NOW - 400_000, 600);
    assert_eq!(rig.pull_all().await, 1);
    rig.assert_complete();
    rig.fake.publish_many(3, NOW - 200_000, 60);
    rig.now += 86_400;
    assert_eq!(rig.pull().await.len(), 3);
    rig.assert_complete();
    assert!(rig.min_gap() >= Duration::from_secs(3));
}

#[tokio::test]
async fn caps_and_faults_in_the_middle_lose_nothing() {
    let mut rig = rig().await;
    rig.config["overlap_minutes"] = json!(60);
    rig.config["max_pages"] = json!(2);
    rig.fake.publish_many(1300, NOW - 500_000, 300);
    rig.fake.fail_next([ApiFault::None, ApiFault::Status(503)]);
    assert_eq!(rig.pull().await.len(), 200);
    rig.max_items = 250;
    rig.pull_all().await;
    rig.assert_complete();
}

#[tokio::test]
async fn a_paper_is_one_whatever_its_version() {
    let mut rig = rig().await;
    rig.fake.publish_many(1, NOW - 1000, 1);
    let item = rig.pull().await.remove(0);
    assert_eq!(item.url, "https://arxiv.org/abs/2611.00001");
    let text = "The whole text of story 1.".to_owned();
    assert_eq!(item.text, Some(Text::Plain(text)));
    assert_eq!(item.content_type.as_deref(), Some("abstract"));
    assert_eq!(
        (item.tags, item.authors),
        (vec!["cs.CL".to_owned()], vec!["A. Writer".to_owned()])
    );
}

#[tokio::test]
async fn an_error_that_looks_like_a_paper_is_none() {
    let mut rig = rig().await;
    rig.config["query"] = json!("bad:field");
    assert_eq!(rig.error_kind().await, AdapterErrorKind::Config);
    let error = rig.try_pull().await.unwrap_err().to_string();
    assert!(error.contains("incorrect field"), "{error}");
}

#[tokio::test]
async fn a_service_that_fails() {
    let mut rig = rig().await;
    rig.fake.publish_many(50, NOW - 20_000, 60);
    rig.assert_survives_faults().await;
}
