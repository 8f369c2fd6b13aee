//! Gorse as its REST API shows it: what was delivered is read back over HTTP, from
//! the fake, or from the real server that `TIDINGS_TEST_GORSE` names, whose key is
//! the one that `scripts/gorse/run` sets.

use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use serde_json::{Value, json};
use tidings_document::Document;
use tidings_net::http::{HeaderName, HeaderValue, Method, header};
use tidings_net::{Purpose, Redirects, Request};
use tidings_sim::FakeGorse;
use tidings_sinks::{Sink, Verdict};
use tidings_url::FetchUrl;
use tidings_url::legacy::flattened_url_id;

use crate::fixture::{client, deliver, document, is_retry, now, sink, title};

const KEY: &str = "a-very-secret-key";

struct Server {
    url: String,
    fake: Option<FakeGorse>,
    /// The number of its first document: no two tests of one server share an item.
    first: usize,
}

impl Server {
    async fn start() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let first = std::process::id() as usize * 1_000_000 + number * 10_000;
        if let Ok(url) = std::env::var("TIDINGS_TEST_GORSE") {
            let url = url.trim_end_matches('/').to_owned();
            return Self {
                url,
                fake: None,
                first,
            };
        }
        let fake = FakeGorse::start().await.unwrap();
        fake.require_key(KEY);
        Self {
            url: fake.url(),
            fake: Some(fake),
            first,
        }
    }

    fn sink(&self) -> Box<dyn Sink> {
        let url = &self.url;
        sink(&format!(
            "kind = \"gorse\"\nurl = \"{url}\"\napi_key_env = \"KEY\""
        ))
    }

    /// The n-th document of this test.
    fn document(&self, n: usize, revision: i64) -> Document {
        document(self.first + n, revision)
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
                HeaderName::from_static("x-api-key"),
                HeaderValue::from_static(KEY),
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

    /// The item of a document, or null.
    async fn item(&self, document: &Document) -> Value {
        let path = format!("/api/item/{}", id_of(document));
        let (status, item) = self.request(Method::GET, &path, &Value::Null).await;
        match status {
            200 => item,
            404 => Value::Null,
            _ => panic!("{path} returned {status}: {item}"),
        }
    }

    async fn clean_up(&self, documents: &[Document]) {
        for document in documents {
            let path = format!("/api/item/{}", id_of(document));
            let (status, _) = self.request(Method::DELETE, &path, &Value::Null).await;
            assert_eq!(status, 200);
        }
    }
}

fn id_of(document: &Document) -> String {
    flattened_url_id(document.address())
}

#[tokio::test]
async fn every_field_is_read_back() {
    let server = Server::start().await;
    let mut batch: Vec<_> = (0..3).map(|n| server.document(n, 1)).collect();
    batch[0].important = true;
    batch[1].published_at = None;
    batch[2].tags.clear();
    let verdicts = deliver(&*server.sink(), &batch).await;
    assert_eq!(verdicts, vec![Verdict::Accepted; 3]);
    let item = server.item(&batch[0]).await;
    assert_eq!(
        item,
        json!({
            "ItemId": id_of(&batch[0]), "IsHidden": false, "Categories": ["local-news", "rivers"],
            "Timestamp": "2026-11-14T08:00:00Z", "Labels": ["important"], "Comment": title(server.first, 1),
        })
    );
    let unpublished = server.item(&batch[1]).await;
    assert_eq!(unpublished["Timestamp"], "2026-11-15T09:00:00Z");
    assert_eq!(unpublished["Labels"], json!([]));
    assert_eq!(server.item(&batch[2]).await["Categories"], json!([]));
    server.clean_up(&batch).await;
}

#[tokio::test]
async fn a_later_revision_replaces_every_field() {
    let server = Server::start().await;
    let sink = server.sink();
    let mut first = server.document(0, 1);
    first.important = true;
    let mut second = server.document(0, 2);
    second.tags = vec!["lakes".into()];
    second.published_at = Some("2026-11-14T10:30:00.25Z".parse().unwrap());
    for revision in [first, second.clone(), second.clone()] {
        assert_eq!(deliver(&*sink, &[revision]).await, [Verdict::Accepted]);
    }
    assert_eq!(
        server.item(&second).await,
        json!({
            "ItemId": id_of(&second), "IsHidden": false, "Categories": ["lakes"],
            "Timestamp": "2026-11-14T10:30:00Z", "Labels": [], "Comment": title(server.first, 2),
        })
    );
    server.clean_up(&[second]).await;
}

#[tokio::test]
async fn of_two_revisions_in_one_batch_the_newer_is_read_back() {
    let server = Server::start().await;
    for (n, revisions) in [[1, 2], [2, 1]].into_iter().enumerate() {
        let batch = revisions.map(|revision| server.document(n, revision));
        let verdicts = deliver(&*server.sink(), &batch).await;
        assert_eq!(verdicts, vec![Verdict::Accepted; 2]);
        let item = server.item(&batch[0]).await;
        assert_eq!(item["Comment"], title(server.first + n, 2));
        server.clean_up(&batch[..1]).await;
    }
}

/// Gorse has no revisions: what someone changed there lasts until the next delivery.
#[tokio::test]
async fn an_item_that_was_hidden_or_deleted_there_comes_back_with_the_next_delivery() {
    let server = Server::start().await;
    let sink = server.sink();
    let document = server.document(0, 1);
    deliver(&*sink, std::slice::from_ref(&document)).await;
    let path = format!("/api/item/{}", id_of(&document));
    let hide = json!({ "IsHidden": true });
    let (status, _) = server.request(Method::PATCH, &path, &hide).await;
    assert_eq!(status, 200);
    assert_eq!(server.item(&document).await["IsHidden"], true);
    let revised = server.document(0, 2);
    assert_eq!(
        deliver(&*sink, std::slice::from_ref(&revised)).await,
        [Verdict::Accepted]
    );
    assert_eq!(server.item(&revised).await["IsHidden"], false);
    server.clean_up(std::slice::from_ref(&revised)).await;
    assert_eq!(server.item(&revised).await, Value::Null);
    deliver(&*sink, std::slice::from_ref(&revised)).await;
    assert_eq!(
        server.item(&revised).await["Comment"],
        title(server.first, 2)
    );
    server.clean_up(&[revised]).await;
}

#[tokio::test]
async fn any_text_and_any_moment_are_accepted() {
    let server = Server::start().await;
    let mut batch = Vec::new();
    let titles = [
        String::new(),
        "Ein „Zitat“, 'one' \"two\" \\ `three`; DROP TABLE items; --".to_owned(),
        "日本語 — emoji 🦀 and a line\nbreak\ttab".to_owned(),
        "a NUL \0 inside".to_owned(),
        "long ".repeat(20_000),
    ];
    for text in titles {
        let mut odd = server.document(batch.len(), 1);
        odd.tags = vec![format!("tag/{}", text.chars().take(40).collect::<String>())];
        odd.title = text;
        batch.push(odd);
    }
    let moments = [
        "0001-01-01T00:00:00Z",
        "0999-12-31T23:59:59Z",
        "1582-10-15T00:00:00Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00Z",
        "2026-02-28T23:59:59Z",
        "2262-04-12T00:00:00Z",
        "9999-12-30T00:00:00Z",
    ];
    for moment in moments {
        let mut old = server.document(batch.len(), 1);
        old.published_at = Some(moment.parse().unwrap());
        batch.push(old);
    }
    let verdicts = deliver(&*server.sink(), &batch).await;
    for (document, verdict) in batch.iter().zip(verdicts) {
        let what = (&document.published_at, document.title.get(..40));
        assert_eq!(verdict, Verdict::Accepted, "{what:?}");
        let item = server.item(document).await;
        assert_eq!(item["Comment"], document.title, "{what:?}");
        assert_eq!(item["Categories"], json!(document.tags), "{what:?}");
        let moment: Timestamp = item["Timestamp"].as_str().unwrap().parse().unwrap();
        assert_eq!(Some(moment), document.published_at, "{what:?}");
    }
    server.clean_up(&batch).await;
}

#[tokio::test]
async fn a_year_that_gorse_cannot_parse_is_stored_without_a_time() {
    let server = Server::start().await;
    let mut odd = server.document(0, 1);
    odd.published_at = Some(Timestamp::MIN);
    let odd = [odd];
    assert_eq!(deliver(&*server.sink(), &odd).await, [Verdict::Accepted]);
    let item = server.item(&odd[0]).await;
    // The zero value of its server.
    assert_eq!(item["Timestamp"], "0001-01-01T00:00:00Z");
    server.clean_up(&odd).await;
}

#[tokio::test]
async fn more_documents_than_a_request_may_have_arrive_complete() {
    let server = Server::start().await;
    let batch: Vec<_> = (0..600).map(|n| server.document(n, 1)).collect();
    let verdicts = deliver(&*server.sink(), &batch).await;
    assert!(verdicts.iter().all(|one| *one == Verdict::Accepted));
    for n in [0, 499, 500, 599] {
        let item = server.item(&batch[n]).await;
        assert_eq!(item["Comment"], title(server.first + n, 1));
    }
    if server.fake.is_none() {
        let mut found = 0;
        let mut cursor = String::new();
        loop {
            let path = format!("/api/items?n=500&cursor={cursor}");
            let (_, page) = server.request(Method::GET, &path, &Value::Null).await;
            let items = page["Items"].as_array().unwrap();
            found += items
                .iter()
                .filter(|item| {
                    batch
                        .iter()
                        .any(|document| item["ItemId"] == id_of(document))
                })
                .count();
            cursor = page["Cursor"].as_str().unwrap_or_default().to_owned();
            if cursor.is_empty() {
                break;
            }
        }
        assert_eq!(found, batch.len());
    }
    server.clean_up(&batch).await;
}

/// What the items are for: the newest of a category, as Gorse recommends them.
#[tokio::test]
async fn the_latest_of_a_category_are_ours_in_the_sequence_of_publication() {
    let server = Server::start().await;
    if server.fake.is_some() {
        eprintln!("skipped: the fake recommends nothing; set TIDINGS_TEST_GORSE");
        return;
    }
    let category = format!("category-{}", server.first);
    let mut batch: Vec<_> = (0..3).map(|n| server.document(n, 1)).collect();
    for (document, hour) in batch.iter_mut().zip([7, 9, 8]) {
        document.tags = vec![category.clone()];
        let moment = format!("2026-11-14T{hour:02}:00:00Z");
        document.published_at = Some(moment.parse().unwrap());
    }
    deliver(&*server.sink(), &batch).await;
    let path = format!("/api/latest/{category}?n=10");
    let (status, latest) = server.request(Method::GET, &path, &Value::Null).await;
    assert_eq!(status, 200, "{latest}");
    let ids: Vec<_> = latest
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["Id"])
        .collect();
    let expected = [1, 2, 0].map(|n| Value::from(id_of(&batch[n])));
    assert_eq!(ids, expected.iter().collect::<Vec<_>>());
    server.clean_up(&batch).await;
}

#[tokio::test]
async fn a_wrong_key_is_found_by_the_check_and_loses_nothing() {
    let server = Server::start().await;
    let document = server.document(0, 1);
    let report = server.sink().check(now()).await;
    assert!(report.is_ok(), "{report}");
    let url = &server.url;
    // The password is not the key.
    let settings = format!("kind = \"gorse\"\nurl = \"{url}\"\napi_key_env = \"PASSWORD\"");
    for wrong in [settings, format!("kind = \"gorse\"\nurl = \"{url}\"")] {
        let wrong = sink(&wrong);
        let report = wrong.check(now()).await;
        assert!(!report.is_ok(), "{report}");
        let verdicts = deliver(&*wrong, std::slice::from_ref(&document)).await;
        assert!(is_retry(&verdicts[0]), "{verdicts:?}");
    }
    assert_eq!(server.item(&document).await, Value::Null);
}
