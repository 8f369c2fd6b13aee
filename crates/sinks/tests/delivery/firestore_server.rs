//! Firestore as its REST API shows it: what was delivered is read back with
//! `batchGet`, from the fake, or from the server that `TIDINGS_TEST_FIRESTORE` names
//! (`scripts/firestore/run`), which parses requests with Google's definitions and
//! shows what Google's client reads.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use tidings_document::{Document, License};
use tidings_net::http::{HeaderValue, Method, header};
use tidings_net::{Purpose, Redirects, Request};
use tidings_sim::FakeFirestore;
use tidings_sinks::{Context, Sink, Verdict};
use tidings_url::FetchUrl;
use tidings_url::legacy::flattened_url_id;

use crate::fixture::{
    client, deliver, document, documents, is_dead, now, title, try_sink, until_done,
};

const ROOT: &str = "projects/demo/databases/(default)/documents";

struct Server {
    url: String,
    fake: Option<FakeFirestore>,
    /// One for each test.
    collection: String,
}

impl Server {
    async fn start() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let collection = format!("tidings-test-{}-{number}", std::process::id());
        if let Ok(url) = std::env::var("TIDINGS_TEST_FIRESTORE") {
            let url = url.trim_end_matches('/').to_owned();
            return Self {
                url,
                fake: None,
                collection,
            };
        }
        let fake = FakeFirestore::start().await.unwrap();
        Self {
            url: fake.url(),
            fake: Some(fake),
            collection,
        }
    }

    /// The real one, for what the fake cannot show.
    async fn start_real() -> Option<Self> {
        let server = Self::start().await;
        if server.fake.is_some() {
            eprintln!("skipped: the fake has no definitions; set TIDINGS_TEST_FIRESTORE");
            return None;
        }
        Some(server)
    }

    fn sink(&self) -> Box<dyn Sink> {
        let host = self.url.replace("http://", "");
        let context = Context {
            environment: Box::new(move |name| {
                (name == "FIRESTORE_EMULATOR_HOST").then(|| host.clone())
            }),
            ..Context::new(client(), Path::new("."))
        };
        let collection = &self.collection;
        let toml =
            format!("kind = \"firestore\"\nproject = \"demo\"\ncollection = \"{collection}\"");
        try_sink(&toml, &context).unwrap()
    }

    async fn request(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let url = FetchUrl::parse(&format!("{}{path}", self.url)).unwrap();
        let mut request = Request::get(url, Purpose::Api);
        request.method = method;
        if !body.is_null() {
            request.body = body.to_string().into();
        }
        request.headers = vec![
            (
                header::AUTHORIZATION,
                HeaderValue::from_static("Bearer owner"),
            ),
            (
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            ),
        ];
        let response = client().fetch(request, Redirects::Report).await.unwrap();
        let json = serde_json::from_slice(&response.body).unwrap_or_default();
        (response.status, json)
    }

    fn name_of(&self, document: &Document) -> String {
        format!("{ROOT}/{}/{}", self.collection, id_of(document))
    }

    /// The fields of these documents, by name; nothing of those that are missing.
    async fn read(&self, documents: &[Document]) -> BTreeMap<String, Map<String, Value>> {
        let names: Vec<_> = documents.iter().map(|one| self.name_of(one)).collect();
        let path = format!("/v1/{ROOT}:batchGet");
        let (status, found) = self
            .request(Method::POST, &path, &json!({ "documents": names }))
            .await;
        assert_eq!(status, 200, "{found}");
        let found = found.as_array().unwrap();
        assert_eq!(found.len(), documents.len());
        let found = found.iter().filter_map(|one| {
            let name = one["found"]["name"].as_str()?;
            Some((name.to_owned(), one["found"]["fields"].as_object()?.clone()))
        });
        found.collect()
    }

    async fn fields(&self, document: &Document) -> Map<String, Value> {
        let mut found = self.read(std::slice::from_ref(document)).await;
        found.remove(&self.name_of(document)).unwrap()
    }
}

fn id_of(document: &Document) -> String {
    flattened_url_id(document.address())
}

/// A timestamp may be written with or without zeros at its end.
fn moment_of(value: &Value) -> Timestamp {
    value["timestampValue"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn every_field_is_read_back_in_its_type() {
    let server = Server::start().await;
    let mut batch = documents(0..3);
    batch[0].important = true;
    batch[1].license = License::PublicDomain;
    batch[1].published_at = None;
    batch[1].tags.clear();
    batch[2].published_at = Some(Timestamp::MIN);
    let verdicts = deliver(&*server.sink(), &batch).await;
    assert_eq!(verdicts, vec![Verdict::Accepted; 3]);
    let mut first = server.fields(&batch[0]).await;
    let published = moment_of(&first.remove("publishedAt").unwrap());
    assert_eq!(Some(published), batch[0].published_at);
    let created = moment_of(&first.remove("createdAt").unwrap());
    assert_eq!(created, batch[0].fetched_at);
    assert_eq!(
        Value::Object(first),
        json!({
            "title": { "stringValue": title(0, 1) },
            "excerpt": { "stringValue": batch[0].excerpt },
            "plain_text": { "stringValue": batch[0].excerpt },
            "tags": { "arrayValue": { "values": [{ "stringValue": "local-news" }, { "stringValue": "rivers" }] } },
            "source": { "stringValue": "News Example" },
            "url": { "stringValue": batch[0].url },
            "license": { "stringValue": "rss" },
            "contentType": { "stringValue": "article" },
            "important": { "booleanValue": true },
            "key": { "stringValue": batch[0].id },
            "revision": { "integerValue": "1" },
        })
    );
    let free = server.fields(&batch[1]).await;
    assert_eq!(free["plain_text"]["stringValue"], batch[1].body_text);
    assert_eq!(moment_of(&free["publishedAt"]), batch[1].fetched_at);
    let tags = free["tags"]["arrayValue"]["values"].as_array();
    assert!(tags.is_none_or(Vec::is_empty), "{tags:?}");
    let odd = server.fields(&batch[2]).await;
    assert_eq!(odd["publishedAt"], json!({ "nullValue": null }));
}

#[tokio::test]
async fn the_newest_revision_is_read_back_with_its_first_creation_time() {
    let server = Server::start().await;
    let sink = server.sink();
    for revision in [2, 1, 3, 3, 2] {
        let mut document = document(1, revision);
        document.fetched_at += SignedDuration::from_hours(revision);
        assert_eq!(deliver(&*sink, &[document]).await, [Verdict::Accepted]);
    }
    let fields = server.fields(&document(1, 1)).await;
    assert_eq!(fields["title"]["stringValue"], title(1, 3));
    assert_eq!(fields["revision"]["integerValue"], "3");
    let first = now() + SignedDuration::from_hours(2);
    assert_eq!(moment_of(&fields["createdAt"]), first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_newest_revision_of_concurrent_writers_is_read_back() {
    let server = Arc::new(Server::start().await);
    let mut writers = tokio::task::JoinSet::new();
    for revision in 1..=12 {
        let server = Arc::clone(&server);
        writers.spawn(async move {
            let batch = (0..5).map(|n| document(n, revision)).collect();
            assert_eq!(until_done(&*server.sink(), batch).await.0, []);
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    for n in 0..5 {
        let fields = server.fields(&document(n, 1)).await;
        assert_eq!(fields["title"]["stringValue"], title(n, 12));
    }
}

#[tokio::test]
async fn more_documents_than_a_request_may_have_arrive_complete() {
    let server = Server::start().await;
    let sink = server.sink();
    let batch = documents(0..501);
    let verdicts = deliver(&*sink, &batch).await;
    assert!(verdicts.iter().all(|one| *one == Verdict::Accepted));
    let stored = server.read(&batch).await;
    assert_eq!(stored.len(), 501);
    for (n, document) in batch.iter().enumerate() {
        let fields = &stored[&server.name_of(document)];
        assert_eq!(fields["title"]["stringValue"], title(n, 1));
    }
    let report = sink.check(now()).await.to_string();
    assert!(report.contains("has 501 documents"), "{report}");
}

#[tokio::test]
async fn a_long_text_is_cut_and_an_odd_one_stays_as_it_is() {
    let server = Server::start().await;
    let mut batch = documents(0..4);
    for document in &mut batch {
        document.license = License::PublicDomain;
    }
    batch[0].body_text = "ä".repeat(1_000_000);
    batch[1].title = "日本語 🦀 „Zitat“ \"two\" \\ \0 and a line\nbreak".into();
    batch[2].title = String::new();
    batch[3].tags = vec![String::new(), "a.b/c".into(), "__reserved__".into()];
    let verdicts = deliver(&*server.sink(), &batch).await;
    assert_eq!(verdicts, vec![Verdict::Accepted; 4]);
    let cut = server.fields(&batch[0]).await;
    let text = cut["plain_text"]["stringValue"].as_str().unwrap();
    assert_eq!(text, "ä".repeat(450_000));
    for (document, n) in batch[1..].iter().zip(1..) {
        let fields = server.fields(document).await;
        assert_eq!(fields["title"]["stringValue"], document.title, "{n}");
    }
    let tags = server.fields(&batch[3]).await;
    let tags = tags["tags"]["arrayValue"]["values"].as_array().unwrap();
    assert_eq!(tags.len(), 3);
}

/// Not only the text may be too long for a document.
#[tokio::test]
async fn a_document_that_is_too_large_is_dead_and_its_neighbours_arrive() {
    let Some(server) = Server::start_real().await else {
        return;
    };
    let mut batch = documents(0..3);
    batch[1].title = "long ".repeat(300_000);
    let verdicts = deliver(&*server.sink(), &batch).await;
    assert_eq!(verdicts[0], Verdict::Accepted);
    assert!(is_dead(&verdicts[1]), "{:?}", verdicts[1]);
    assert_eq!(verdicts[2], Verdict::Accepted);
    assert_eq!(server.read(&batch).await.len(), 2);
}

#[tokio::test]
async fn googles_client_reads_the_types_and_finds_documents_by_tag() {
    let Some(server) = Server::start_real().await else {
        return;
    };
    let sink = server.sink();
    let mut batch = documents(0..4);
    for (document, hour) in batch.iter_mut().zip([7, 9, 8, 10]) {
        let moment = format!("2026-11-14T{hour:02}:00:00Z");
        document.published_at = Some(moment.parse().unwrap());
    }
    batch[3].tags = vec!["lakes".into()];
    assert_eq!(deliver(&*sink, &batch).await, vec![Verdict::Accepted; 4]);
    let revised = document(0, 2);
    assert_eq!(
        deliver(&*sink, std::slice::from_ref(&revised)).await,
        [Verdict::Accepted]
    );
    let collection = &server.collection;
    let path = format!("/client/demo/{collection}/{}", id_of(&revised));
    let (_, seen) = server.request(Method::GET, &path, &Value::Null).await;
    assert_eq!(
        seen,
        json!({
            "title": title(0, 2),
            "excerpt": revised.excerpt,
            "plain_text": revised.excerpt,
            "tags": ["local-news", "rivers"],
            "publishedAt": { "Timestamp": "2026-11-14T08:00:00.000Z" },
            "source": "News Example",
            "url": revised.url,
            "license": "rss",
            "contentType": "article",
            "createdAt": { "Timestamp": "2026-11-15T09:00:00.000Z" },
            "important": false,
            "key": revised.id,
            "revision": 2,
        })
    );
    let path = format!("/client/demo/{collection}?tag=rivers");
    let (_, ids) = server.request(Method::GET, &path, &Value::Null).await;
    let ids = ids.as_array().unwrap();
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert_eq!(ids[0], id_of(&batch[1]), "the newest is first");
}

/// Else the tests above would prove little.
#[tokio::test]
async fn requests_that_googles_definitions_do_not_have_are_refused() {
    let Some(server) = Server::start_real().await else {
        return;
    };
    let name = server.name_of(&document(0, 1));
    let field = |value: Value| json!({ "writes": [{ "update": { "name": name, "fields": { "a": value } } }] });
    let rows = [
        ("batchWrite", json!({ "write": [] })),
        ("batchWrite", json!({ "writes": {} })),
        ("batchWrite", field(json!("text"))),
        ("batchWrite", field(json!({ "textValue": "text" }))),
        ("batchWrite", field(json!({ "stringValue": 1 }))),
        ("batchWrite", field(json!({ "integerValue": "one" }))),
        ("batchWrite", field(json!({ "booleanValue": "true" }))),
        (
            "batchWrite",
            field(json!({ "timestampValue": "14 Nov 2026" })),
        ),
        (
            "batchWrite",
            field(json!({ "stringValue": "a", "integerValue": "1" })),
        ),
        ("batchGet", json!({ "documents": [name], "mask": ["key"] })),
        ("batchget", json!({ "documents": [name] })),
    ];
    for (verb, body) in rows {
        let path = format!("/v1/{ROOT}:{verb}");
        let (status, reply) = server.request(Method::POST, &path, &body).await;
        let expected = if verb == "batchget" { 404 } else { 400 };
        assert_eq!(status, expected, "{verb} {body}: {reply}");
    }
    assert!(server.read(&[document(0, 1)]).await.is_empty());
}
