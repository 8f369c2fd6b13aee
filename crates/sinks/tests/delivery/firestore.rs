//! Firestore: typed values, verdicts on single writes, revisions, tokens, and
//! licences.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::SignedDuration;
use proptest::prelude::*;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};
use tidings_document::{Document, License};
use tidings_sim::FakeFirestore;
use tidings_sim::FirestoreFault as Fault;
use tidings_sinks::{Context, RunReport, Sink, SourceReport, Verdict};
use tidings_url::legacy::flattened_url_id;

use crate::fixture::{
    client, deliver, document, documents, error_of, is_dead, is_retry, now, title, try_sink,
    until_done,
};

/// A key that was generated for this test and protects nothing.
const KEY: &str = include_str!("../data/throwaway-key.pem");

async fn fake() -> FakeFirestore {
    FakeFirestore::start().await.unwrap()
}

fn context(variables: &[(&'static str, String)]) -> Context {
    let variables: BTreeMap<_, _> = variables.iter().cloned().collect();
    Context {
        environment: Box::new(move |name| variables.get(name).cloned()),
        ..Context::new(client(), Path::new("."))
    }
}

fn emulated(fake: &FakeFirestore) -> Context {
    context(&[("FIRESTORE_EMULATOR_HOST", fake.host())])
}

fn to(fake: &FakeFirestore) -> Box<dyn Sink> {
    try_sink("kind = \"firestore\"\nproject = \"demo\"", &emulated(fake)).unwrap()
}

fn id_of(document: &Document) -> String {
    flattened_url_id(document.address())
}

#[tokio::test]
async fn documents_are_typed_and_respect_their_licence() {
    let fake = fake().await;
    let mut batch = documents(0..2);
    batch[1].license = License::PublicDomain;
    batch[1].published_at = None;
    assert_eq!(
        deliver(&*to(&fake), &batch).await,
        vec![Verdict::Accepted; 2]
    );
    let stored = fake.documents("content");
    let first = &stored[&id_of(&batch[0])];
    assert_eq!(
        Value::Object(first.clone()),
        json!({
            "title": { "stringValue": title(0, 1) },
            "excerpt": { "stringValue": batch[0].excerpt },
            "plain_text": { "stringValue": batch[0].excerpt },
            "tags": { "arrayValue": { "values": [{ "stringValue": "local-news" }, { "stringValue": "rivers" }] } },
            "publishedAt": { "timestampValue": "2026-11-14T08:00:00.000000Z" },
            "source": { "stringValue": "News Example" },
            "url": { "stringValue": batch[0].url },
            "license": { "stringValue": "rss" },
            "contentType": { "stringValue": "article" },
            "createdAt": { "timestampValue": "2026-11-15T09:00:00.000000Z" },
            "important": { "booleanValue": false },
            "key": { "stringValue": batch[0].id },
            "revision": { "integerValue": "1" },
        })
    );
    let free = &stored[&id_of(&batch[1])];
    assert_eq!(
        free["plain_text"]["stringValue"],
        batch[1].body_text.as_str()
    );
    assert_eq!(free["publishedAt"], free["createdAt"]);
}

#[tokio::test]
async fn the_newest_revision_wins_and_the_creation_time_stays() {
    let fake = fake().await;
    let sink = to(&fake);
    for revision in [2, 1, 3, 3, 2] {
        let mut document = document(1, revision);
        document.fetched_at += SignedDuration::from_hours(revision);
        assert_eq!(deliver(&*sink, &[document]).await, [Verdict::Accepted]);
    }
    let stored = fake.documents("content");
    let fields = &stored[&id_of(&document(1, 1))];
    assert_eq!(fields["title"]["stringValue"], title(1, 3));
    assert_eq!(
        fields["createdAt"]["timestampValue"],
        "2026-11-15T11:00:00.000000Z"
    );
    assert_eq!(
        fake.batch_sizes(),
        [1, 1],
        "an equal revision is not written again"
    );
}

/// The document that was read may be stale when it is written.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_newest_revision_wins_among_concurrent_writers() {
    let fake = Arc::new(fake().await);
    let mut writers = tokio::task::JoinSet::new();
    for revision in 1..=12 {
        let fake = Arc::clone(&fake);
        writers.spawn(async move {
            let sink = to(&fake);
            let batch = (0..5).map(|n| document(n, revision)).collect();
            assert_eq!(until_done(&*sink, batch).await.0, []);
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    let stored = fake.documents("content");
    for n in 0..5 {
        let fields = &stored[&id_of(&document(n, 1))];
        assert_eq!(fields["title"]["stringValue"], title(n, 12));
    }
}

#[tokio::test]
async fn a_stale_write_is_not_applied() {
    for existed_before in [false, true] {
        let fake = fake().await;
        let sink = to(&fake);
        if existed_before {
            deliver(&*sink, &[document(1, 1)]).await;
        }
        fake.fail_next([Fault::Overtaken(3)]);
        let verdicts = deliver(&*sink, &[document(1, 2)]).await;
        assert!(is_retry(&verdicts[0]), "{verdicts:?}");
        assert_eq!(until_done(&*sink, vec![document(1, 2)]).await, (vec![], 1));
        let stored_title = |fake: &FakeFirestore| {
            let stored = fake.documents("content");
            stored[&id_of(&document(1, 1))]["title"]["stringValue"].clone()
        };
        assert_eq!(stored_title(&fake), "theirs");
        deliver(&*sink, &[document(1, 4)]).await;
        assert_eq!(stored_title(&fake), title(1, 4));
    }
}

#[tokio::test]
async fn one_request_never_writes_a_document_twice() {
    let fake = fake().await;
    // Two revisions, and another URL that has the same legacy id.
    let mut duplicate = document(1, 1);
    duplicate.id = "f".repeat(64);
    duplicate.url = duplicate.url.replace("http:", "https:");
    let batch = vec![document(1, 2), document(1, 1), duplicate, document(2, 1)];
    assert_eq!(
        deliver(&*to(&fake), &batch).await,
        vec![Verdict::Accepted; 4]
    );
    assert_eq!(fake.documents("content").len(), 2);
}

#[tokio::test]
async fn large_batches_respect_the_limits_and_long_texts_are_truncated() {
    let fake = fake().await;
    let mut batch = documents(0..1100);
    batch[7].license = License::PublicDomain;
    batch[7].body_text = "ü".repeat(800_000);
    let verdicts = deliver(&*to(&fake), &batch).await;
    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Accepted));
    assert!(fake.batch_sizes().iter().all(|size| *size <= 500));
    let stored = fake.documents("content");
    assert_eq!(stored.len(), 1100);
    let text = stored[&id_of(&batch[7])]["plain_text"]["stringValue"]
        .as_str()
        .unwrap();
    assert_eq!(text.len(), 900_000);
}

#[tokio::test]
async fn single_writes_have_their_own_verdicts() {
    let fake = fake().await;
    let sink = to(&fake);
    fake.poison(&title(3, 1));
    fake.fail_next([Fault::SomeWritesAborted(4)]);
    let verdicts = deliver(&*sink, &documents(0..8)).await;
    for (at, verdict) in verdicts.iter().enumerate() {
        match at {
            0 | 4 => assert!(is_retry(verdict), "{at}: {verdict:?}"),
            3 => assert!(is_dead(verdict), "{verdict:?}"),
            _ => assert_eq!(*verdict, Verdict::Accepted),
        }
    }
}

#[tokio::test]
async fn request_faults_kill_no_document() {
    let rows = [
        (Fault::TooManyRequests(Some(3)), Some(3)),
        (Fault::TooManyRequests(None), None),
        (Fault::Unavailable, None),
        (Fault::Unauthenticated, None),
        (Fault::Garbage, None),
    ];
    for (fault, wait) in rows {
        let fake = fake().await;
        let sink = to(&fake);
        fake.fail_next([fault.clone()]);
        for verdict in deliver(&*sink, &documents(0..5)).await {
            let Verdict::Retry { after, .. } = verdict else {
                panic!("{fault:?}: {verdict:?}");
            };
            assert_eq!(after, wait.map(Duration::from_secs), "{fault:?}");
        }
        assert_eq!(until_done(&*sink, documents(0..5)).await, (vec![], 1));
        assert_eq!(fake.documents("content").len(), 5);
        fake.set_down(true);
        assert!(deliver(&*sink, &documents(0..5)).await.iter().all(is_retry));
    }
}

fn account(fake: &FakeFirestore) -> String {
    json!({
        "type": "service_account", "project_id": "demo", "private_key": KEY,
        "client_email": "tidings@demo.example", "token_uri": fake.token_uri(),
    })
    .to_string()
}

#[tokio::test]
async fn a_service_account_signs_for_a_token_and_caches_it() {
    let fake = fake().await;
    let context = context(&[("FIREBASE_SERVICE_ACCOUNT_JSON", account(&fake))]);
    let toml = format!("kind = \"firestore\"\nurl = \"{}\"", fake.url());
    let sink = try_sink(&toml, &context).unwrap();
    for n in 0..3 {
        assert_eq!(
            deliver(&*sink, &documents(n..n + 1)).await,
            [Verdict::Accepted]
        );
    }
    assert_eq!(fake.assertions().len(), 1, "the token is cached");
    let assertion = fake.assertions().remove(0);
    let (message, signature) = assertion.rsplit_once('.').unwrap();
    let der: String = KEY
        .lines()
        .filter(|line| !line.starts_with("---"))
        .collect();
    let key = RsaKeyPair::from_pkcs8(&STANDARD.decode(der).unwrap()).unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public())
        .verify(message.as_bytes(), &signature)
        .expect("the signature is that of the key");
    let claims = URL_SAFE_NO_PAD
        .decode(message.split_once('.').unwrap().1)
        .unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(claims["iss"], "tidings@demo.example");
    assert_eq!(claims["aud"], fake.token_uri());
    assert_eq!(claims["iat"], now().as_second());
    assert_eq!(claims["scope"], "https://www.googleapis.com/auth/datastore");
    // Another one is requested shortly before it expires, and after a 401.
    let almost = now() + SignedDuration::from_secs(3541);
    sink.deliver(&documents(3..4), almost).await;
    assert_eq!(fake.assertions().len(), 2);
    fake.fail_next([Fault::Unauthenticated]);
    let verdict = &sink.deliver(&documents(4..5), almost).await[0];
    assert!(is_retry(verdict));
    assert_eq!(
        sink.deliver(&documents(4..5), almost).await,
        [Verdict::Accepted]
    );
    assert_eq!(fake.assertions().len(), 3);
    for text in [format!("{sink:?}"), error_of(verdict).to_owned()] {
        assert!(
            !text.contains("PRIVATE") && !text.contains("token-number"),
            "{text}"
        );
    }
    assert!(sink.check(almost).await.is_ok());
}

#[test]
fn invalid_accounts_are_rejected_without_being_shown() {
    let rows = [
        (None, "which is not set"),
        (Some("very-secret, not JSON"), "is not JSON with project_id"),
        (
            Some(r#"{"project_id":"p","client_email":"e","private_key":"very-secret"}"#),
            "is not PEM",
        ),
        (
            Some(r#"{"project_id":"p","client_email":"e","private_key":"dmVyeS1zZWNyZXQ="}"#),
            "not an RSA key",
        ),
    ];
    for (json, why) in rows {
        let variables: Vec<_> = json
            .map(|json| ("FIREBASE_SERVICE_ACCOUNT_JSON", json.to_owned()))
            .into_iter()
            .collect();
        let error = try_sink("kind = \"firestore\"", &context(&variables))
            .err()
            .unwrap();
        assert!(error.to_string().contains(why), "{error}");
        assert!(!error.to_string().contains("very-secret"), "{error}");
    }
}

#[tokio::test]
async fn the_id_can_be_the_url_key() {
    let fake = fake().await;
    let settings = "kind = \"firestore\"\nproject = \"demo\"\nids = \"url-key\"";
    let sink = try_sink(settings, &emulated(&fake)).unwrap();
    deliver(&*sink, &documents(0..2)).await;
    let ids: Vec<_> = fake.documents("content").into_keys().collect();
    assert_eq!(ids, [document(0, 1).id, document(1, 1).id]);
}

#[tokio::test]
async fn the_last_run_is_reported() {
    let fake = fake().await;
    let sink = to(&fake);
    deliver(&*sink, &documents(0..3)).await;
    let source = |name: &str, items_new, error: Option<&str>| SourceReport {
        name: name.to_owned(),
        items_new,
        error: error.map(str::to_owned),
    };
    let run = RunReport {
        duration: Duration::from_millis(55_500),
        sources: vec![
            source("bbc", 2, None),
            source("reuters", 0, Some("406")),
            source("nature", 1, None),
        ],
    };
    for _ in 0..2 {
        sink.record_run(&run, now()).await.unwrap();
    }
    let latest = &fake.documents("collection_metrics")["latest"];
    for (name, number) in [
        ("feedsAttempted", "3"),
        ("feedsSucceeded", "2"),
        ("newItemsAdded", "3"),
        ("totalItemsInFirestore", "3"),
        ("duration", "55500"),
    ] {
        assert_eq!(latest[name]["integerValue"], number, "{name}");
    }
    let errors = latest["errors"]["arrayValue"]["values"].as_array().unwrap();
    assert_eq!(errors.len(), 1);
    let error = &errors[0]["mapValue"]["fields"];
    assert_eq!(error["source"]["stringValue"], "reuters");
    assert_eq!(error["error"]["stringValue"], "406");
    let state = &fake.documents("last_collection_run")["state"];
    assert_eq!(state["totalItems"]["integerValue"], "3");
    let stats = &state["perSourceStats"]["mapValue"]["fields"];
    for (name, attempted, succeeded, items) in [
        ("bbc", "1", "1", "2"),
        ("reuters", "1", "0", "0"),
        ("nature", "1", "1", "1"),
    ] {
        let of_it = &stats[name]["mapValue"]["fields"];
        assert_eq!(of_it["attempted"]["integerValue"], attempted, "{name}");
        assert_eq!(of_it["succeeded"]["integerValue"], succeeded, "{name}");
        assert_eq!(of_it["items"]["integerValue"], items, "{name}");
    }
    fake.set_down(true);
    assert!(sink.record_run(&run, now()).await.is_err());
}

fn any_fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::TooManyRequests(None)),
        Just(Fault::Unavailable),
        (1_usize..4).prop_map(Fault::SomeWritesAborted),
        Just(Fault::ReplyLost),
        Just(Fault::RequestLost),
        Just(Fault::Garbage),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]

    #[test]
    fn any_faults_and_any_order_end_with_the_newest_once(
        faults in prop::collection::vec(any_fault(), 0..10),
        deliveries in prop::collection::vec((0_usize..10, 1_i64..6), 1..40),
    ) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let fake = fake().await;
            fake.fail_next(faults);
            let batch = deliveries.iter().map(|(n, revision)| document(*n, *revision)).collect();
            assert_eq!(until_done(&*to(&fake), batch).await.0, []);
            let mut newest: BTreeMap<String, String> = BTreeMap::new();
            let mut in_order = deliveries;
            in_order.sort();
            for (n, revision) in in_order {
                newest.insert(id_of(&document(n, 1)), title(n, revision));
            }
            let stored: BTreeMap<String, String> = fake
                .documents("content")
                .into_iter()
                .map(|(id, fields)| (id, fields["title"]["stringValue"].as_str().unwrap().to_owned()))
                .collect();
            assert_eq!(stored, newest);
        });
    }
}
