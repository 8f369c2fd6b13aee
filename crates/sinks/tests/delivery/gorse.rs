//! Gorse: items, keys, requests that one invalid item fails, and lost responses.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use tidings_document::Document;
use tidings_sim::FakeGorse;
use tidings_sim::GorseFault as Fault;
use tidings_sinks::{Sink, Verdict};
use tidings_url::legacy::flattened_url_id;

use crate::fixture::{
    deliver, document, documents, error_of, is_dead, is_retry, now, sink, title, until_done,
};

async fn fake() -> FakeGorse {
    FakeGorse::start().await.unwrap()
}

fn to(fake: &FakeGorse, settings: &str) -> Box<dyn Sink> {
    sink(&format!(
        "kind = \"gorse\"\nurl = \"{}\"\n{settings}",
        fake.url()
    ))
}

/// As Firestore has it.
fn id_of(document: &Document) -> String {
    flattened_url_id(document.address())
}

#[tokio::test]
async fn documents_become_items() {
    let fake = fake().await;
    let mut batch = documents(0..2);
    batch[0].important = true;
    batch[1].published_at = None;
    assert_eq!(
        deliver(&*to(&fake, ""), &batch).await,
        vec![Verdict::Accepted; 2]
    );
    let items = fake.items();
    assert_eq!(
        items[&id_of(&batch[0])],
        json!({
            "ItemId": id_of(&batch[0]), "IsHidden": false, "Categories": ["local-news", "rivers"],
            "Timestamp": "2026-11-14T08:00:00Z", "Labels": ["important"], "Comment": title(0, 1),
        })
    );
    assert_eq!(
        items[&id_of(&batch[1])]["Timestamp"],
        "2026-11-15T09:00:00Z"
    );
    assert_eq!(items[&id_of(&batch[1])]["Labels"], json!([]));
}

#[tokio::test]
async fn one_invalid_item_is_isolated_and_the_others_are_stored() {
    let fake = fake().await;
    let sink = to(&fake, "ids = \"url-key\"");
    let mut batch = documents(0..100);
    batch[9].id = "not/safe".into();
    fake.poison(&batch[37].id);
    fake.poison(&batch[90].id);
    let verdicts = deliver(&*sink, &batch).await;
    for (at, verdict) in verdicts.iter().enumerate() {
        assert_eq!(
            is_dead(verdict),
            [9, 37, 90].contains(&at),
            "{at}: {verdict:?}"
        );
    }
    assert_eq!(fake.items().len(), 97);
    assert!(fake.requests() < 40, "{} requests", fake.requests());
}

#[tokio::test]
async fn years_that_gorse_cannot_parse_are_left_out() {
    let fake = fake().await;
    let mut odd = document(1, 1);
    odd.published_at = Some(jiff::Timestamp::MIN);
    assert_eq!(deliver(&*to(&fake, ""), &[odd]).await, [Verdict::Accepted]);
    assert_eq!(fake.items().values().next().unwrap()["Timestamp"], "");
}

#[tokio::test]
async fn of_two_revisions_in_one_batch_the_newer_is_stored() {
    for revisions in [[1, 2], [2, 1]] {
        let fake = fake().await;
        let batch = revisions.map(|revision| document(5, revision));
        assert_eq!(
            deliver(&*to(&fake, ""), &batch).await,
            vec![Verdict::Accepted; 2]
        );
        assert_eq!(fake.items()[&id_of(&batch[0])]["Comment"], title(5, 2));
    }
}

#[tokio::test]
async fn of_two_documents_with_one_legacy_id_the_later_is_stored() {
    let fake = fake().await;
    let mut batch = documents(0..2);
    batch[0].url = "http://news.example/a-b".into();
    batch[1].url = "http://news.example/a_b".into();
    assert_eq!(
        deliver(&*to(&fake, ""), &batch).await,
        vec![Verdict::Accepted; 2]
    );
    let items = fake.items();
    assert_eq!(items.len(), 1);
    assert_eq!(items[&id_of(&batch[1])]["Comment"], title(1, 1));
}

#[tokio::test]
async fn request_faults_kill_no_document() {
    let rows = [
        (Fault::TooManyRequests(Some(5)), Some(5)),
        (Fault::TooManyRequests(None), None),
        (Fault::Failed, None),
        (Fault::Garbage, None),
    ];
    for (fault, wait) in rows {
        let fake = fake().await;
        let sink = to(&fake, "max_docs = 4");
        fake.fail_next([fault.clone()]);
        for verdict in deliver(&*sink, &documents(0..10)).await {
            let Verdict::Retry { after, .. } = verdict else {
                panic!("{fault:?}: {verdict:?}");
            };
            assert_eq!(after, wait.map(Duration::from_secs), "{fault:?}");
        }
        assert_eq!(fake.requests(), 1, "no further request is sent");
        assert_eq!(until_done(&*sink, documents(0..10)).await, (vec![], 1));
        assert_eq!(fake.items().len(), 10);
    }
}

#[tokio::test]
async fn the_key_is_sent_and_never_shown() {
    let fake = fake().await;
    fake.require_key("a-very-secret-key");
    let right = to(&fake, "api_key_env = \"KEY\"");
    assert_eq!(
        deliver(&*right, &documents(0..1)).await,
        [Verdict::Accepted]
    );
    assert!(right.check(now()).await.is_ok());
    fake.require_key("another");
    let verdict = &deliver(&*right, &documents(0..1)).await[0];
    assert!(is_retry(verdict));
    let report = right.check(now()).await;
    assert!(!report.is_ok());
    for text in [
        format!("{right:?}"),
        report.to_string(),
        error_of(verdict).to_owned(),
    ] {
        assert!(!text.contains("very-secret"), "{text}");
    }
    assert!(
        report
            .to_string()
            .contains("check the user and password or the key"),
        "{report}"
    );
    fake.set_down(true);
    assert!(is_retry(&deliver(&*right, &documents(0..1)).await[0]));
}

fn any_fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::TooManyRequests(None)),
        Just(Fault::Failed),
        Just(Fault::ReplyLost),
        Just(Fault::RequestLost),
        Just(Fault::Garbage),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// Revisions in order: in Gorse the last write wins.
    #[test]
    fn any_faults_lose_nothing(
        faults in prop::collection::vec(any_fault(), 0..10),
        max_docs in 1_usize..12,
    ) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let fake = fake().await;
            let sink = to(&fake, &format!("max_docs = {max_docs}"));
            fake.fail_next(faults);
            for revision in 1..=3 {
                let batch = (0..20).map(|n| document(n, revision)).collect();
                assert_eq!(until_done(&*sink, batch).await.0, []);
            }
            let items = fake.items();
            assert_eq!(items.len(), 20);
            for n in 0..20 {
                assert_eq!(items[&id_of(&document(n, 1))]["Comment"], title(n, 3));
            }
        });
    }
}
