//! Elasticsearch: the faults of rows S01 to S08, on the fake; what a healthy
//! server does, also on the one that `TIDINGS_TEST_ELASTICSEARCH` names.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tidings_document::Document;
use tidings_net::http::{HeaderValue, Method, header};
use tidings_net::{Purpose, Redirects, Request};
use tidings_sim::ElasticsearchFault as Fault;
use tidings_sim::FakeElasticsearch;
use tidings_sinks::{Page, PageSource, Verdict};
use tidings_url::FetchUrl;

use crate::fixture::{
    client, context, deliver, document, documents, error_of, is_dead, is_retry, now, sink, title,
    try_sink, until_done,
};

async fn fake() -> FakeElasticsearch {
    FakeElasticsearch::start().await.unwrap()
}

fn config(url: &str) -> String {
    format!("kind = \"elasticsearch\"\nurl = \"{url}\"\n")
}

fn ids(fake: &FakeElasticsearch) -> usize {
    fake.documents("raw_content").len()
}

/// A server that is queried over HTTP: the fake, or a real one.
struct Server {
    url: String,
    index: String,
    _fake: Option<FakeElasticsearch>,
}

impl Server {
    async fn start() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let index = format!("tidings-test-{}-{number}", std::process::id());
        match std::env::var("TIDINGS_TEST_ELASTICSEARCH") {
            Ok(url) => Self {
                url,
                index,
                _fake: None,
            },
            Err(_) => {
                let fake = fake().await;
                Self {
                    url: fake.url(),
                    index,
                    _fake: Some(fake),
                }
            }
        }
    }

    fn config(&self) -> String {
        format!("{}index = \"{}\"\n", config(&self.url), self.index)
    }

    async fn request(&self, method: Method, path: &str) -> Value {
        self.request_with_body(method, path, "").await
    }

    async fn request_with_body(&self, method: Method, path: &str, body: &'static str) -> Value {
        let url = format!("{}/{path}", self.url.trim_end_matches('/'));
        let mut request = Request::get(FetchUrl::parse(&url).unwrap(), Purpose::Api);
        request.method = method;
        request.body = body.into();
        let json = HeaderValue::from_static("application/json");
        request.headers.push((header::CONTENT_TYPE, json));
        let response = client().fetch(request, Redirects::Report).await.unwrap();
        serde_json::from_slice(&response.body).unwrap()
    }

    async fn get(&self, document: &Document) -> Value {
        self.request(Method::GET, &format!("{}/_doc/{}", self.index, document.id))
            .await
    }

    async fn count(&self) -> u64 {
        self.request(Method::POST, &format!("{}/_refresh", self.index))
            .await;
        let reply = self
            .request(Method::GET, &format!("{}/_count", self.index))
            .await;
        reply["count"].as_u64().unwrap()
    }

    async fn clean_up(&self) {
        let index = format!("{}-000001", self.index);
        self.request(Method::DELETE, &index).await;
        let template = format!("_index_template/tidings-{}", self.index);
        self.request(Method::DELETE, &template).await;
    }
}

/// A document with every field that the index has.
fn full_document() -> Document {
    let raw = json!({
        "og_type": "article", "og_title": "Og", "og_description": "Described",
        "og_image": "https://news.example/i.jpg", "og_url": "https://news.example/1",
        "meta_description": "Meta", "meta_keywords": "a, b",
        "json_ld_data": {
            "jsonld_headline": "Head", "jsonld_description": "Desc", "jsonld_article_section": "Local",
            "jsonld_author": "A", "jsonld_publisher_name": "P", "jsonld_url": "https://news.example/1",
            "jsonld_image_url": "https://news.example/i.jpg", "jsonld_date_published": "2026-11-14",
            "jsonld_date_created": "2026-11-14T08:00:00Z", "jsonld_date_modified": "2026-11-14T08:00:00+02:00",
            "jsonld_word_count": 12, "jsonld_keywords": ["a", "b"], "jsonld_schema_type": "NewsArticle",
            "jsonld_location": "Here", "jsonld_raw": { "@type": "NewsArticle", "n": 1 },
        },
        "meta": {
            "twitter_card": "summary", "twitter_site": "@x", "og_image_width": 10, "og_image_height": 20,
            "og_site_name": "News", "created_at": "2026-11-14T08:00:00Z", "updated_at": "2026-11-14T08:00:00Z",
            "article_opinion": "false", "article_content_tier": "free", "detected_content_type": "article",
            "page_type": "article", "indigenous_region": "none",
        },
    });
    Document {
        canonical_url: Some("https://news.example/canonical".into()),
        section: Some("Local".into()),
        raw_content: raw.as_object().unwrap().clone(),
        ..document(1, 3)
    }
}

#[derive(Debug)]
struct OnePage;

#[async_trait::async_trait]
impl PageSource for OnePage {
    async fn page(&self, _: &Document) -> std::io::Result<Option<Page>> {
        Ok(Some(Page {
            body: b"<p>The page</p>".to_vec(),
            headers: Vec::new(),
        }))
    }
}

#[tokio::test]
async fn every_field_arrives_in_its_type() {
    let server = Server::start().await;
    let mut context = context(Path::new("."));
    context.pages = Some(Arc::new(OnePage));
    let sink = try_sink(&format!("{}raw_html = true", server.config()), &context).unwrap();
    let document = full_document();
    let verdicts = deliver(&*sink, std::slice::from_ref(&document)).await;
    assert_eq!(verdicts, [Verdict::Accepted]);
    let found = server.get(&document).await;
    assert_eq!(found["_version"], 3_i64 << 32);
    let source = found["_source"].as_object().unwrap();
    let fields = [
        "id",
        "url",
        "source_name",
        "title",
        "raw_html",
        "raw_text",
        "og_type",
        "og_title",
        "og_description",
        "og_image",
        "og_url",
        "meta_description",
        "meta_keywords",
        "canonical_url",
        "author",
        "crawled_at",
        "published_date",
        "classification_status",
        "word_count",
        "article_section",
        "content_quality",
        "json_ld_data",
        "meta",
    ];
    let indexed: Vec<_> = source.keys().map(String::as_str).collect();
    for field in fields {
        assert!(indexed.contains(&field), "{field} is missing");
    }
    assert_eq!(
        indexed.len(),
        fields.len(),
        "classified_at is the classifier's"
    );
    assert_eq!(source["classification_status"], "pending");
    assert_eq!(source["raw_html"], "<p>The page</p>");
    assert_eq!(source["raw_text"], document.body_text);
    assert_eq!(source["author"], "A. Writer, B. Editor");
    server.clean_up().await;
}

#[tokio::test]
async fn resending_is_harmless_and_the_newest_revision_wins_in_any_order() {
    let server = Server::start().await;
    let sink = sink(&server.config());
    for revisions in [[1, 2, 3], [3, 2, 1], [2, 3, 1], [2, 2, 3], [3, 1, 3]] {
        for revision in revisions {
            let verdicts = deliver(&*sink, &[document(7, revision)]).await;
            assert_eq!(verdicts, [Verdict::Accepted]);
        }
        let found = server.get(&document(7, 3)).await;
        assert_eq!(found["_version"], 3_i64 << 32);
        assert_eq!(found["_source"]["title"], title(7, 3));
    }
    assert_eq!(server.count().await, 1);
    server.clean_up().await;
}

#[tokio::test]
async fn an_update_by_a_reader_holds_back_no_later_revision() {
    let server = Server::start().await;
    let sink = sink(&server.config());
    let deliver_revision = async |revision| deliver(&*sink, &[document(7, revision)]).await;
    let classified = r#"{ "doc": { "classification_status": "classified" } }"#;
    let update = format!("{}/_update/{}", server.index, document(7, 1).id);
    for revision in [1, 2, 3] {
        assert_eq!(deliver_revision(revision).await, [Verdict::Accepted]);
        let found = server.get(&document(7, 3)).await;
        assert_eq!(found["_source"]["title"], title(7, revision));
        assert_eq!(found["_source"]["classification_status"], "pending");
        for _ in 0..5 {
            server
                .request_with_body(Method::POST, &update, classified)
                .await;
        }
    }
    // What the reader added to this revision stays.
    for revision in [3, 1] {
        assert_eq!(deliver_revision(revision).await, [Verdict::Accepted]);
        let found = server.get(&document(7, 3)).await;
        assert_eq!(found["_source"]["title"], title(7, 3));
        assert_eq!(found["_source"]["classification_status"], "classified");
    }
    server.clean_up().await;
}

/// As a pipeline behind the index does it: it updates every document that it finds,
/// while the sink writes the next revisions.
#[tokio::test]
async fn a_classifier_beside_the_sink_hides_no_revision() {
    let server = Arc::new(Server::start().await);
    let sink = sink(&server.config());
    let all = |revision| (1..=20).map(|n| document(n, revision)).collect::<Vec<_>>();
    until_done(&*sink, all(1)).await;
    let classifier = tokio::spawn({
        let server = Arc::clone(&server);
        let paths: Vec<_> = all(1)
            .iter()
            .map(|document| format!("{}/_update/{}", server.index, document.id))
            .collect();
        async move {
            let classified = r#"{ "doc": { "classification_status": "classified" } }"#;
            for path in paths.iter().cycle() {
                let request = server.request_with_body(Method::POST, path, classified);
                request.await;
            }
        }
    });
    for revision in 2..=8 {
        until_done(&*sink, all(revision)).await;
    }
    classifier.abort();
    for document in all(8) {
        let found = server.get(&document).await;
        assert_eq!(found["_source"]["title"], document.title);
    }
    assert_eq!(server.count().await, 20);
    server.clean_up().await;
}

#[tokio::test]
async fn a_replay_repairs_what_was_refused_for_a_plain_version() {
    let server = Server::start().await;
    let sink = sink(&server.config());
    deliver(&*sink, &[document(1, 1)]).await;
    // As written with version = revision, then updated by a reader nine times.
    let old = format!(
        "{}/_doc/{}?version=10&version_type=external",
        server.index,
        document(7, 1).id
    );
    server
        .request_with_body(Method::PUT, &old, r#"{ "title": "old" }"#)
        .await;
    let verdicts = deliver(&*sink, &[document(7, 2)]).await;
    assert_eq!(verdicts, [Verdict::Accepted]);
    let found = server.get(&document(7, 2)).await;
    assert_eq!(found["_source"]["title"], title(7, 2));
    server.clean_up().await;
}

#[tokio::test]
async fn a_conflict_with_a_deleted_document_is_no_delivery() {
    let fake = fake().await;
    let sink = sink(&config(&fake.url()));
    deliver(&*sink, &[document(7, 1)]).await;
    let server = Server {
        url: fake.url(),
        index: "raw_content".to_owned(),
        _fake: None,
    };
    let path = format!("raw_content/_doc/{}", document(7, 1).id);
    server.request(Method::DELETE, &path).await;
    let verdicts = deliver(&*sink, &[document(7, 1), document(8, 1)]).await;
    assert!(is_retry(&verdicts[0]), "{verdicts:?}");
    assert_eq!(verdicts[1], Verdict::Accepted);
    fake.forget_deleted();
    deliver(&*sink, &[document(7, 1)]).await;
    assert_eq!(ids(&fake), 2);
}

#[tokio::test]
async fn a_mapping_error_is_permanent_for_that_document_only_and_names_the_field() {
    let server = Server::start().await;
    let sink = sink(&server.config());
    let mut batch = documents(0..10);
    let bad = json!({ "meta": { "og_image_width": "wide" } });
    batch[4].raw_content = bad.as_object().unwrap().clone();
    let verdicts = deliver(&*sink, &batch).await;
    for (at, verdict) in verdicts.iter().enumerate() {
        assert_eq!(is_dead(verdict), at == 4, "{verdict:?}");
    }
    assert!(error_of(&verdicts[4]).contains("og_image_width"));
    assert_eq!(server.count().await, 9);
    server.clean_up().await;
}

#[tokio::test]
async fn one_alias_or_an_index_for_each_source() {
    let fake = fake().await;
    deliver(&*sink(&config(&fake.url())), &documents(0..2)).await;
    assert_eq!(fake.indices(), ["raw_content-000001"]);
    assert_eq!(ids(&fake), 2);
    let per_source = sink(&format!("{}per_source = true", config(&fake.url())));
    let mut batch = documents(0..3);
    batch[0].source_name = "BBC News!".into();
    batch[1].source_name = String::new();
    deliver(&*per_source, &batch).await;
    for index in [
        "bbc_news_raw_content",
        "unknown_raw_content",
        "news_example_raw_content",
    ] {
        assert_eq!(fake.documents(index).len(), 1, "{index}");
    }
    // The mapping is strict there, too.
    let mut bad = document(9, 1);
    bad.raw_content = json!({ "meta": "text" }).as_object().unwrap().clone();
    assert!(is_dead(&deliver(&*per_source, &[bad]).await[0]));
}

#[tokio::test]
async fn request_faults_lose_nothing_and_kill_no_document() {
    let rows = [
        ("429", Fault::TooManyRequests(None), None),
        (
            "429 with Retry-After",
            Fault::TooManyRequests(Some(7)),
            Some(7),
        ),
        ("503", Fault::Unavailable, None),
        ("200 and garbage", Fault::Garbage, None),
        ("one item short", Fault::OneItemShort, None),
    ];
    for (name, fault, wait) in rows {
        let fake = fake().await;
        let sink = sink(&config(&fake.url()));
        fake.fail_next([fault]);
        for verdict in deliver(&*sink, &documents(0..20)).await {
            let Verdict::Retry { after, .. } = verdict else {
                panic!("{name}: {verdict:?}");
            };
            assert_eq!(after, wait.map(Duration::from_secs), "{name}");
        }
        let (dead, _) = until_done(&*sink, documents(0..20)).await;
        assert!(dead.is_empty(), "{name}: {dead:?}");
        assert_eq!(ids(&fake), 20, "{name}");
    }
}

#[tokio::test]
async fn a_lost_response_is_redelivered_and_stored_once() {
    let fake = fake().await;
    let sink = sink(&config(&fake.url()));
    // Twice: the HTTP client retries by itself what an idle connection lost.
    fake.fail_next([Fault::ReplyLost, Fault::ReplyLost]);
    let verdicts = deliver(&*sink, &documents(0..5)).await;
    assert!(verdicts.iter().all(is_retry), "{verdicts:?}");
    assert_eq!(ids(&fake), 5, "it was stored");
    assert_eq!(until_done(&*sink, documents(0..5)).await.0, []);
    let stored = fake.documents("raw_content");
    assert_eq!(stored.len(), 5);
    assert!(stored.values().all(|(version, _)| *version == 1 << 32));
}

#[tokio::test]
async fn items_are_judged_one_by_one() {
    let fake = fake().await;
    let sink = sink(&config(&fake.url()));
    // 409 for document 3, 400 for document 5, 429 for every fourth.
    deliver(&*sink, &[document(3, 9)]).await;
    let mut batch = documents(0..8);
    batch[5].raw_content = json!({ "meta": 5 }).as_object().unwrap().clone();
    fake.fail_next([Fault::SomeItemsOverrun(4)]);
    let verdicts = deliver(&*sink, &batch).await;
    let kinds: String = verdicts
        .iter()
        .map(|verdict| match verdict {
            Verdict::Accepted => 'a',
            Verdict::Retry { .. } => 'r',
            Verdict::Dead { .. } => 'd',
        })
        .collect();
    assert_eq!(kinds, "raaardaa");
    assert_eq!(fake.documents("raw_content")[&batch[3].id].0, 9 << 32);
}

#[tokio::test]
async fn an_overloaded_server_gets_smaller_batches_and_larger_ones_when_it_recovers() {
    let fake = fake().await;
    let sink = sink(&format!("{}max_docs = 64", config(&fake.url())));
    fake.fail_next([Fault::TooManyRequests(None), Fault::SomeItemsOverrun(2)]);
    deliver(&*sink, &documents(0..64)).await;
    assert_eq!(sink.limits().max_docs, 32);
    deliver(&*sink, &documents(0..32)).await;
    assert_eq!(sink.limits().max_docs, 16);
    until_done(&*sink, documents(0..500)).await;
    assert_eq!(sink.limits().max_docs, 64);
    assert_eq!(ids(&fake), 500);
}

#[tokio::test]
async fn too_large_requests_are_split_and_a_too_large_document_fails_permanently() {
    let fake = fake().await;
    fake.set_max_bytes(20_000);
    let sink = sink(&config(&fake.url()));
    let mut batch = documents(0..100);
    batch[42].body_text = "x".repeat(50_000);
    let verdicts = deliver(&*sink, &batch).await;
    for (at, verdict) in verdicts.iter().enumerate() {
        assert_eq!(is_dead(verdict), at == 42, "{at}: {verdict:?}");
    }
    assert!(error_of(&verdicts[42]).contains("413"));
    assert_eq!(ids(&fake), 99);
    // The raw HTML is dropped first.
    let mut context = context(Path::new("."));
    context.pages = Some(Arc::new(LargePage));
    let sink = try_sink(&format!("{}raw_html = true", config(&fake.url())), &context).unwrap();
    let verdicts = deliver(&*sink, &[document(500, 1)]).await;
    assert_eq!(verdicts, [Verdict::Accepted]);
    let stored = fake.documents("raw_content");
    assert!(stored[&document(500, 1).id].1["raw_html"].is_null());
}

#[derive(Debug)]
struct LargePage;

#[async_trait::async_trait]
impl PageSource for LargePage {
    async fn page(&self, _: &Document) -> std::io::Result<Option<Page>> {
        Ok(Some(Page {
            body: vec![b'x'; 100_000],
            headers: Vec::new(),
        }))
    }
}

#[tokio::test]
async fn deliveries_to_a_server_that_is_down_or_read_only_are_retried() {
    let fake = fake().await;
    let sink = sink(&config(&fake.url()));
    fake.set_down(true);
    assert!(deliver(&*sink, &documents(0..5)).await.iter().all(is_retry));
    fake.set_down(false);
    fake.set_read_only(true);
    let verdicts = deliver(&*sink, &documents(0..5)).await;
    assert!(verdicts.iter().all(is_retry), "{verdicts:?}");
    assert!(error_of(&verdicts[0]).contains("read-only"));
    fake.set_read_only(false);
    assert_eq!(until_done(&*sink, documents(0..5)).await, (vec![], 1));
    assert_eq!(ids(&fake), 5);
}

#[tokio::test]
async fn a_deleted_index_is_created_again_with_its_mapping() {
    let server = Server::start().await;
    let sink = sink(&server.config());
    deliver(&*sink, &documents(0..5)).await;
    server.clean_up().await;
    assert_eq!(until_done(&*sink, documents(0..5)).await.0, []);
    assert_eq!(server.count().await, 5);
    let mut bad = document(9, 1);
    bad.raw_content = json!({ "meta": 5 }).as_object().unwrap().clone();
    assert!(is_dead(&deliver(&*sink, &[bad]).await[0]));
    server.clean_up().await;
}

#[tokio::test]
async fn deliveries_to_a_full_disk_are_retried_with_batches_of_the_same_size() {
    let server = Server::start().await;
    let sink = sink(&server.config());
    deliver(&*sink, &documents(0..1)).await;
    let settings = format!("{}/_settings", server.index);
    let block = r#"{"index.blocks.read_only_allow_delete": true}"#;
    server
        .request_with_body(Method::PUT, &settings, block)
        .await;
    let limits = sink.limits();
    let verdicts = deliver(&*sink, &documents(1..9)).await;
    assert!(verdicts.iter().all(is_retry), "{verdicts:?}");
    assert!(
        error_of(&verdicts[0]).contains("flood-stage"),
        "{verdicts:?}"
    );
    assert_eq!(sink.limits(), limits);
    let free = r#"{"index.blocks.read_only_allow_delete": null}"#;
    server.request_with_body(Method::PUT, &settings, free).await;
    assert_eq!(until_done(&*sink, documents(1..9)).await, (vec![], 1));
    assert_eq!(server.count().await, 9);
    server.clean_up().await;
}

#[tokio::test]
async fn invalid_documents_fail_permanently_before_they_fail_the_others() {
    let fake = fake().await;
    let sink = sink(&config(&fake.url()));
    let mut batch = documents(0..4);
    batch[0].id = String::new();
    batch[1].id = "x".repeat(513);
    batch[2].revision = -1;
    let verdicts = deliver(&*sink, &batch).await;
    assert!(verdicts[..3].iter().all(is_dead), "{verdicts:?}");
    assert_eq!(verdicts[3], Verdict::Accepted);
    assert!(deliver(&*sink, &[]).await.is_empty());
}

#[tokio::test]
async fn secrets_are_sent_and_never_shown() {
    let rows = [
        (
            "user = \"elastic\"\npassword_env = \"PASSWORD\"",
            "Basic ZWxhc3RpYzpwYXNzLXBocmFzZQ==",
        ),
        ("api_key_env = \"KEY\"", "ApiKey a-very-secret-key"),
    ];
    for (setting, header) in rows {
        let fake = fake().await;
        fake.require(header);
        let right = sink(&format!("{}{setting}", config(&fake.url())));
        assert_eq!(
            deliver(&*right, &documents(0..1)).await,
            [Verdict::Accepted]
        );
        assert!(right.check(now()).await.is_ok());
        // This server echoes what it was sent.
        fake.require("something else");
        let verdict = &deliver(&*right, &documents(0..1)).await[0];
        assert!(is_retry(verdict), "{verdict:?}");
        let report = right.check(now()).await;
        assert!(!report.is_ok());
        for text in [
            format!("{right:?}"),
            error_of(verdict).to_owned(),
            report.to_string(),
        ] {
            for secret in ["pass-phrase", "ZWxhc3RpYzpwYXNz", "a-very-secret-key"] {
                assert!(!text.contains(secret), "{text}");
            }
        }
        assert!(
            report.to_string().contains("check the user and password"),
            "{report}"
        );
    }
}

#[tokio::test]
async fn the_check_names_the_error() {
    let server = Server::start().await;
    let report = sink(&server.config()).check(now()).await;
    assert!(report.is_ok(), "{report}");
    server.clean_up().await;
    // Another index, and no server at all.
    let fake = fake().await;
    let other = sink(&format!("{}index = \"other\"", config(&fake.url())));
    let report = other.check(now()).await;
    assert!(report.is_ok(), "{report}");
    assert!(
        report.to_string().contains("tidings sink install"),
        "{report}"
    );
    assert_eq!(fake.changes(), [""; 0], "a check changes nothing");
    let report = other.install(now()).await;
    assert!(report.is_ok(), "{report}");
    assert_eq!(
        fake.changes(),
        ["PUT /_index_template/tidings-other", "PUT /other-000001"]
    );
    let report = other.check(now()).await.to_string();
    assert!(report.contains("other → other-000001"), "{report}");
    assert_eq!(fake.changes().len(), 2);
    let nobody = sink(&config("http://127.0.0.1:1"));
    let report = nobody.check(now()).await;
    assert!(!report.is_ok());
    assert!(report.to_string().contains("no connection"), "{report}");
}

#[tokio::test]
async fn no_request_refreshes_and_licences_are_respected() {
    let fake = fake().await;
    let sink = sink(&format!("{}full_text = false", config(&fake.url())));
    let mut free = document(1, 1);
    free.license = tidings_document::License::PublicDomain;
    deliver(&*sink, &[document(0, 1), free]).await;
    assert!(fake.paths().iter().all(|path| !path.contains("refresh")));
    let texts: Vec<_> = fake
        .documents("raw_content")
        .into_values()
        .map(|(_, source)| source["raw_text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts, [document(0, 1).excerpt, document(1, 1).body_text]);
}

fn any_fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::TooManyRequests(None)),
        Just(Fault::TooManyRequests(Some(1))),
        Just(Fault::Unavailable),
        (1_usize..5).prop_map(Fault::SomeItemsOverrun),
        (1_usize..5).prop_map(Fault::SomeItemsUnavailable),
        Just(Fault::ReplyLost),
        Just(Fault::RequestLost),
        Just(Fault::Garbage),
        Just(Fault::OneItemShort),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever fails, and in whatever order revisions arrive: in the end each
    /// document is stored once, in its newest revision.
    #[test]
    fn any_faults_lose_nothing(
        faults in prop::collection::vec(any_fault(), 0..12),
        deliveries in prop::collection::vec((0_usize..12, 1_i64..6), 1..60),
        max_docs in 1_usize..20,
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let fake = fake().await;
            let sink = sink(&format!("{}max_docs = {max_docs}", config(&fake.url())));
            fake.fail_next(faults);
            let batch: Vec<_> = deliveries.iter().map(|(n, revision)| document(*n, *revision)).collect();
            let (dead, _) = until_done(&*sink, batch).await;
            assert!(dead.is_empty(), "{dead:?}");
            let mut newest: BTreeMap<String, i64> = BTreeMap::new();
            for (n, revision) in deliveries {
                let known = newest.entry(document(n, 1).id).or_default();
                *known = revision.max(*known);
            }
            let stored: BTreeMap<String, i64> = fake
                .documents("raw_content")
                .into_iter()
                .map(|(id, (version, source))| {
                    let version = version >> 32;
                    assert!(source["title"].as_str().unwrap().ends_with(&format!("revision {version}")));
                    (id, version)
                })
                .collect();
            assert_eq!(stored, newest);
        });
    }
}

#[test]
fn invalid_settings_are_rejected() {
    let context = context(Path::new("."));
    let rows = [
        ("url = \"http://u:p@127.0.0.1\"", "user name or password"),
        ("url = \"ftp://x\"", "url"),
        (
            "url = \"http://x\"\nuser = \"u\"",
            "set either user and password_env",
        ),
        (
            "url = \"http://x\"\napi_key_env = \"UNSET\"",
            "UNSET, which is not set",
        ),
        (
            "url = \"http://x\"\napi_key_env = \"KEY\"\napi_key_file = \"f\"",
            "both set",
        ),
        (
            "url = \"http://x\"\napi_key_file = \"no-such-file\"",
            "cannot read",
        ),
        (
            "url = \"http://x\"\nindex = \"Raw Content\"",
            "is not a valid name",
        ),
        (
            "url = \"http://x\"\nraw_html = true",
            "needs a page archive",
        ),
    ];
    for (setting, why) in rows {
        let toml = format!("kind = \"opensearch\"\n{setting}");
        let error = try_sink(&toml, &context).err().unwrap().to_string();
        assert!(
            error.contains(why) && error.contains("sink \"main\""),
            "{error}"
        );
    }
}
