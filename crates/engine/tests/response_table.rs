//! The outcome of a URL by the kind of response: every row of the table, over real
//! connections, with a clock that the test moves.

#![allow(clippy::unwrap_used)]

mod world;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidings_engine::{FetchOptions, Recrawl, SourceSettings, Worker};
use tidings_sim::{Act, RawServer};
use tidings_store::{
    ClaimRequest, Completion, Host, NewSource, Origin, Outcome, Status, StoreOptions,
    StoredDocument, Submission, Target, UrlRow, Verdict,
};
use tidings_url::{FetchUrl, ProxyHosts, Rules};
use world::{HOUR, MINUTE, TestStore};

const DAY: Duration = Duration::from_secs(24 * 3600);
const TITLE: &str = "Harbour plan passes";

fn story(words: &str) -> String {
    let paragraph = format!(
        "<p>The council of the harbour town voted on Monday for {words}, after a debate of many hours in which the fishers and the builders spoke.</p>"
    );
    format!(
        "<html><head><title>{TITLE}</title></head><body><article><h1>{TITLE}</h1>{}</article></body></html>",
        paragraph.repeat(8)
    )
}

/// A site whose responses a test sets by path, and the requests that it received.
struct Site {
    raw: RawServer,
    responses: Arc<Mutex<HashMap<String, Vec<Act>>>>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Site {
    async fn start() -> Self {
        let responses: Arc<Mutex<HashMap<String, Vec<Act>>>> = Arc::default();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (script, seen) = (Arc::clone(&responses), Arc::clone(&heads));
        let raw = RawServer::start("127.0.0.1:0".parse().unwrap(), move |head| {
            seen.lock().unwrap().push(head.to_owned());
            let path = head.split(' ').nth(1).unwrap_or_default();
            let response = script.lock().unwrap().get(path).cloned();
            response.unwrap_or_else(|| Act::answer("404 Not Found", b""))
        })
        .await
        .unwrap();
        Self {
            raw,
            responses,
            heads,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.raw.address())
    }

    fn set_response(&self, path: &str, head: &str, body: impl AsRef<[u8]>) {
        let acts = Act::answer(head, body.as_ref());
        self.set_acts(path, acts);
    }

    fn set_acts(&self, path: &str, acts: Vec<Act>) {
        self.responses.lock().unwrap().insert(path.to_owned(), acts);
    }

    /// Requests for one path so far.
    fn requests(&self, path: &str) -> usize {
        let start = format!("GET {path} ");
        let heads = self.heads.lock().unwrap();
        heads.iter().filter(|head| head.starts_with(&start)).count()
    }

    fn last_head(&self) -> String {
        self.heads.lock().unwrap().last().unwrap().to_lowercase()
    }
}

/// One site, one store, one worker.
struct Fixture {
    site: Site,
    test_store: TestStore,
    worker: FetchOptions,
    source_id: i64,
}

impl Fixture {
    async fn start() -> Self {
        Self::with(SourceSettings::default()).await
    }

    async fn with(settings: SourceSettings) -> Self {
        let mut options = StoreOptions::default();
        // The clock stands still while a worker runs: a delay would never end.
        options.host_delay = Duration::ZERO;
        let test_store = TestStore::start(options).await;
        let source = NewSource {
            name: "harbour".to_owned(),
            url: "http://a.example/".to_owned(),
            kind: "feed".to_owned(),
            priority: 5,
            config: settings.to_json(),
        };
        let source_id = test_store
            .store
            .add_source(&source)
            .await
            .unwrap()
            .source_id;
        Self {
            site: Site::start().await,
            test_store,
            worker: FetchOptions {
                ends_when_idle: true,
                check_interval: Duration::from_millis(20),
                ..FetchOptions::default()
            },
            source_id,
        }
    }

    fn target(&self, path: &str) -> Target {
        let url = FetchUrl::parse(&self.site.url(path)).unwrap();
        Target {
            key: url.canonical(&Rules::default()).key(),
            host: url.host_key(&ProxyHosts::default()),
            url,
        }
    }

    async fn submit(&self, path: &str) -> Verdict {
        let submission = Submission {
            source_id: self.source_id,
            ..Submission::new(self.target(path), Origin::Feed)
        };
        self.test_store.store.submit(&[submission]).await.unwrap()[0]
    }

    /// Fetches all that is due now.
    async fn work(&self) {
        let context = self.test_store.context(&[self.site.raw.address().port()]);
        let worker = Arc::new(Worker::new(context, self.worker.clone()));
        worker.run(std::future::pending()).await.unwrap();
        assert_eq!(worker.in_flight(), 0);
    }

    /// Submits a path, and fetches all that is due.
    async fn fetch(&self, path: &str) -> UrlRow {
        self.submit(path).await;
        self.work().await;
        self.row(path).await
    }

    async fn row(&self, path: &str) -> UrlRow {
        let id = self.target(path).id();
        self.test_store.store.url(id).await.unwrap().unwrap()
    }

    async fn document(&self, path: &str) -> Option<StoredDocument> {
        let id = self.target(path).id();
        self.test_store.store.document(id).await.unwrap()
    }

    async fn host(&self) -> Host {
        let id = self.target("/").id().host;
        self.test_store.store.host(id).await.unwrap().unwrap()
    }

    /// Seconds until a row is due.
    async fn wait_of(&self, row: &UrlRow) -> u64 {
        let now = self.test_store.store.now().await.unwrap();
        row.next_fetch_at.unwrap().since(now).as_secs()
    }

    /// The kinds of the events of a URL.
    async fn events(&self, path: &str) -> Vec<String> {
        let id = self.target(path).id();
        let explained = self.test_store.store.explain(id).await.unwrap();
        explained
            .events
            .into_iter()
            .map(|event| event.kind)
            .collect()
    }
}

fn end(row: &UrlRow) -> (Status, Option<&str>, i64) {
    (row.status, row.reason.as_deref(), row.retry_count)
}

#[tokio::test]
async fn a_page_becomes_a_document() {
    let fixture = Fixture::start().await;
    let head = "200 OK\r\nContent-Type: text/html; charset=utf-8\r\nETag: \"1\"\r\nLast-Modified: Mon, 02 Nov 2026 05:00:00 GMT";
    fixture
        .site
        .set_response("/story", head, story("the new pier"));
    let row = fixture.fetch("/story").await;
    assert_eq!(end(&row), (Status::Fetched, None, 0));
    assert_eq!(row.etag.as_deref(), Some("\"1\""));
    assert_eq!(
        row.last_modified.as_deref(),
        Some("Mon, 02 Nov 2026 05:00:00 GMT")
    );
    let stored = fixture.document("/story").await.unwrap();
    let document = tidings_engine::stored_document(&stored).unwrap();
    assert_eq!((document.title.as_str(), document.revision), (TITLE, 1));
    assert_eq!(document.id, row.url_key.to_string());
    assert_eq!(
        (document.source_name.as_str(), document.origin.as_str()),
        ("harbour", "feed")
    );
    assert!(document.body_text.contains("the new pier"));
    assert_eq!(document.http.etag.as_deref(), Some("\"1\""));
    assert_eq!(fixture.events("/story").await, ["discovered", "fetched"]);
}

#[tokio::test]
async fn an_unchanged_page_keeps_hash_and_validators_and_makes_no_revision() {
    let fixture = Fixture::with(SourceSettings {
        recrawl: Some(Recrawl {
            min_hours: 1.0,
            max_hours: 24.0,
        }),
        ..SourceSettings::default()
    })
    .await;
    let head = "200 OK\r\nContent-Type: text/html\r\nETag: \"1\"";
    fixture
        .site
        .set_response("/story", head, story("the new pier"));
    let first = fixture.fetch("/story").await;
    assert_eq!(fixture.wait_of(&first).await, 3600);

    fixture.test_store.advance(HOUR);
    fixture.site.set_response("/story", "304 Not Modified", "");
    fixture.work().await;
    assert!(fixture.site.last_head().contains("if-none-match: \"1\""));
    let row = fixture.row("/story").await;
    assert_eq!((row.status, row.fetch_count), (Status::Fetched, 2));
    assert_eq!(row.etag, first.etag);
    assert_eq!(fixture.wait_of(&row).await, 5400);

    // The same text in other bytes, without a 304, is no revision either.
    fixture.test_store.advance(DAY);
    let body = story("the new pier").replace("<body>", "<body data-build=7>");
    fixture.site.set_response(
        "/story",
        "200 OK\r\nContent-Type: text/html\r\nETag: \"2\"",
        body,
    );
    fixture.work().await;
    assert_eq!(fixture.document("/story").await.unwrap().revision, 1);
    assert_eq!(fixture.row("/story").await.etag.as_deref(), Some("\"2\""));

    // Another text is one, and the page is recrawled more often.
    fixture.test_store.advance(DAY * 2);
    fixture
        .site
        .set_response("/story", head, story("no pier at all"));
    fixture.work().await;
    let changed = fixture.document("/story").await.unwrap();
    assert_eq!(changed.revision, 2);
    assert!(changed.body.contains("no pier at all"));
    let events = fixture.events("/story").await;
    assert_eq!(
        events,
        [
            "discovered",
            "fetched",
            "not_modified",
            "fetched",
            "fetched"
        ]
    );
}

/// A validator of a page whose text was never read must not be sent: a 304 would
/// leave it without a document for ever.
#[tokio::test]
async fn validators_of_a_page_that_was_never_read_are_not_sent() {
    let fixture = Fixture::start().await;
    let store = &fixture.test_store.store;
    fixture.submit("/story").await;
    let claimed = store.claim(&ClaimRequest::new(1, 1)).await.unwrap();
    let outcome = Outcome::Fetched {
        etag: Some("\"1\"".to_owned()),
        last_modified: Some("Mon, 02 Nov 2026 06:00:00 GMT".to_owned()),
        content_hash: None,
        document: None,
        again_in: Some(HOUR),
    };
    let completion = Completion::new(claimed.claims[0].lease_token, outcome);
    assert_eq!(store.complete(&[completion]).await.unwrap(), [true]);
    assert!(fixture.row("/story").await.etag.is_some());
    fixture.test_store.advance(HOUR);
    let head = "200 OK\r\nContent-Type: text/html";
    fixture
        .site
        .set_response("/story", head, story("the new pier"));
    fixture.work().await;
    assert_eq!(fixture.site.requests("/story"), 1);
    let sent = fixture.site.last_head();
    assert!(!sent.contains("if-none-match") && !sent.contains("if-modified-since"));
    assert!(fixture.document("/story").await.is_some());
}

#[tokio::test]
async fn redirects_lead_to_one_document_and_are_not_followed_twice() {
    let statuses = [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ];
    for status in statuses {
        let fixture = Fixture::start().await;
        fixture
            .site
            .set_response("/old", &format!("{status}\r\nLocation: /middle"), "");
        fixture
            .site
            .set_response("/middle", &format!("{status}\r\nLocation: /new"), "");
        fixture.site.set_response(
            "/new",
            "200 OK\r\nContent-Type: text/html",
            story("the new pier"),
        );
        let row = fixture.fetch("/old").await;
        assert_eq!(end(&row), (Status::Dead, Some("redirect"), 0), "{status}");
        assert_eq!(fixture.row("/new").await.status, Status::Fetched);
        assert!(fixture.document("/new").await.is_some());
        assert!(fixture.document("/old").await.is_none());
        let explained = fixture
            .test_store
            .store
            .explain(fixture.target("/old").id())
            .await
            .unwrap();
        assert_eq!(explained.alias_of, Some(fixture.target("/new").id()));
        // Neither URL is fetched again.
        assert_eq!(fixture.submit("/old").await, Verdict::Known);
        assert_eq!(fixture.submit("/new").await, Verdict::Known);
        fixture.work().await;
        assert_eq!(
            (fixture.site.requests("/old"), fixture.site.requests("/new")),
            (1, 1)
        );
    }
}

#[tokio::test]
async fn a_page_that_refreshes_itself_elsewhere_is_a_redirect() {
    let fixture = Fixture::start().await;
    let page = "<html><head><meta http-equiv=refresh content='0; url=/new'></head><body>Moved.</body></html>";
    fixture
        .site
        .set_response("/old", "200 OK\r\nContent-Type: text/html", page);
    fixture.site.set_response(
        "/new",
        "200 OK\r\nContent-Type: text/html",
        story("the new pier"),
    );
    let row = fixture.fetch("/old").await;
    assert_eq!(end(&row), (Status::Dead, Some("redirect"), 0));
    assert!(fixture.document("/new").await.is_some());
}

#[tokio::test]
async fn each_hop_checks_robots_and_the_guard() {
    let fixture = Fixture::start().await;
    let other = Site::start().await;
    other.set_response(
        "/robots.txt",
        "200 OK\r\nContent-Type: text/plain",
        "User-agent: *\nDisallow: /private",
    );
    other.set_response(
        "/private",
        "200 OK\r\nContent-Type: text/html",
        story("a secret"),
    );
    let fixture_port = fixture.site.raw.address().port();
    let other_port = other.raw.address().port();
    fixture.site.set_response(
        "/to-private",
        &format!("302 Found\r\nLocation: {}", other.url("/private")),
        "",
    );
    fixture.site.set_response(
        "/to-inside",
        "302 Found\r\nLocation: http://169.254.169.254/latest",
        "",
    );
    fixture.submit("/to-private").await;
    fixture.submit("/to-inside").await;
    let context = fixture.test_store.context(&[fixture_port, other_port]);
    let worker = Arc::new(Worker::new(context, fixture.worker.clone()));
    worker.run(std::future::pending()).await.unwrap();
    assert_eq!(
        end(&fixture.row("/to-private").await),
        (Status::Dead, Some("robots_blocked"), 0)
    );
    assert_eq!(
        end(&fixture.row("/to-inside").await),
        (Status::Dead, Some("egress"), 0)
    );
    assert_eq!(
        (other.requests("/robots.txt"), other.requests("/private")),
        (1, 0)
    );
    // The permit of the other host was released.
    let host = FetchUrl::parse(&other.url("/"))
        .unwrap()
        .host_key(&ProxyHosts::default());
    let host = tidings_store::HostId::of(&host);
    assert_eq!(
        fixture
            .test_store
            .store
            .host(host)
            .await
            .unwrap()
            .unwrap()
            .in_flight,
        0
    );
}

#[tokio::test]
async fn responses_that_end_a_url_give_the_reason() {
    let gzip = "200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip";
    let html = "200 OK\r\nContent-Type: text/html";
    let large = vec![b'a'; 11 << 20];
    let soft = "<title>Page not found</title><h1>404</h1><p>Sorry, the page you were looking for does not exist.</p>";
    let login = "<title>A story</title><div>Subscribe to continue reading. Already a subscriber? Sign in.</div>";
    let rows: &[(&str, &[u8], &str)] = &[
        ("404 Not Found", b"", "not_found"),
        ("410 Gone", b"", "gone"),
        ("418 I'm a teapot", b"", "http_418"),
        ("302 Found\r\nLocation: /page", b"", "redirect_loop"),
        (
            "302 Found\r\nLocation: ftp://a.example/",
            b"",
            "bad_redirect",
        ),
        (
            "200 OK\r\nContent-Type: application/pdf",
            b"%PDF-1.7 and more",
            "not_html",
        ),
        (
            "200 OK\r\nContent-Type: application/json",
            b"{\"a\": 1}",
            "not_html",
        ),
        (
            gzip,
            b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03garbage after a good start",
            "bad_encoding",
        ),
        (html, b"", "empty"),
        (html, b"  \n ", "empty"),
        (html, &large, "too_large"),
        (html, soft.as_bytes(), "soft_404"),
        (html, login.as_bytes(), "login_wall"),
    ];
    for (head, body, reason) in rows {
        let fixture = Fixture::start().await;
        fixture.site.set_response("/page", head, body);
        let row = fixture.fetch("/page").await;
        assert_eq!(end(&row), (Status::Dead, Some(*reason), 0), "{head}");
        assert!(fixture.document("/page").await.is_none(), "{head}");
        assert_eq!(row.next_fetch_at, None, "{head}");
    }
}

#[tokio::test]
async fn refusals_are_retried_after_hours_and_then_fail_permanently() {
    let captcha = "<title>Just a moment...</title><p>Verify you are human by completing the action below.</p>";
    let consent = "<title>The Daily</title><p>We value your privacy. We and our partners store and/or access information on a device. Accept all. Reject all.</p>";
    let rows = [
        ("401 Unauthorized", "", "forbidden"),
        ("403 Forbidden", "", "forbidden"),
        ("451 Unavailable For Legal Reasons", "", "forbidden"),
        ("200 OK\r\nContent-Type: text/html", captcha, "captcha"),
        ("200 OK\r\nContent-Type: text/html", consent, "consent_page"),
    ];
    for (head, body, reason) in rows {
        let fixture = Fixture::start().await;
        fixture.site.set_response("/page", head, body);
        let mut row = fixture.fetch("/page").await;
        let mut hours = Vec::new();
        while row.status == Status::Failed {
            hours.push(fixture.wait_of(&row).await as f64 / 3600.0);
            fixture.test_store.advance(DAY * 4);
            fixture.work().await;
            row = fixture.row("/page").await;
        }
        assert_eq!(
            (row.status, row.reason.as_deref()),
            (Status::Dead, Some(reason)),
            "{head}"
        );
        assert_eq!(hours.len(), 3, "{head}");
        for (measured, expected) in hours.iter().zip([6.0, 24.0, 72.0]) {
            assert!(
                (measured / expected - 1.0).abs() < 0.11,
                "{head}: {measured}"
            );
        }
        assert!(fixture.document("/page").await.is_none(), "{head}");
    }
}

#[tokio::test]
async fn too_many_requests_cost_the_url_nothing_and_slow_the_host() {
    let fixture = Fixture::start().await;
    fixture
        .site
        .set_response("/page", "429 Too Many Requests\r\nRetry-After: 120", "");
    let row = fixture.fetch("/page").await;
    assert_eq!((row.status, row.retry_count), (Status::Pending, 0));
    assert_eq!(fixture.wait_of(&row).await, 120);
    let host = fixture.host().await;
    assert_eq!(host.delay_ms, 1000);
    let now = fixture.test_store.store.now().await.unwrap();
    assert_eq!(host.blocked_until.unwrap().since(now), MINUTE * 2);
    fixture.test_store.advance(MINUTE * 3);
    fixture.work().await;
    assert_eq!(fixture.host().await.delay_ms, 2000);

    // A good response eases it.
    fixture.test_store.advance(MINUTE * 3);
    fixture.site.set_response(
        "/page",
        "200 OK\r\nContent-Type: text/html",
        story("the new pier"),
    );
    fixture.work().await;
    assert_eq!(fixture.row("/page").await.status, Status::Fetched);
    assert_eq!(fixture.host().await.delay_ms, 1600);
}

#[tokio::test]
async fn failures_of_the_web_are_retried_five_times() {
    let closed = vec![Act::Reset];
    let cut = vec![Act::Send(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n<p>half"
            .to_vec(),
    )];
    let rows = [
        ("500", Act::answer("500 Oops", b"")),
        ("503", Act::answer("503 Busy", b"")),
        ("408", Act::answer("408 Timeout", b"")),
        ("reset", closed),
        ("truncated", cut),
    ];
    for (name, acts) in rows {
        let fixture = Fixture::start().await;
        fixture.site.set_acts("/page", acts);
        let mut row = fixture.fetch("/page").await;
        let mut minutes = Vec::new();
        while row.status == Status::Failed {
            assert_eq!(row.retry_count as usize, minutes.len() + 1, "{name}");
            minutes.push(fixture.wait_of(&row).await as f64 / 60.0);
            fixture.test_store.advance(HOUR * 8);
            fixture.work().await;
            row = fixture.row("/page").await;
        }
        assert_eq!(row.reason.as_deref(), Some("max_retries"), "{name}");
        assert_eq!(minutes.len(), 5, "{name}");
        for (measured, expected) in minutes.iter().zip([1.0, 5.0, 30.0, 120.0, 360.0]) {
            assert!(
                (measured / expected - 1.0).abs() < 0.13,
                "{name}: {measured}"
            );
        }
        assert!(row.last_error.is_some(), "{name}");
    }
}

#[tokio::test]
async fn retry_after_of_a_server_is_honoured() {
    let fixture = Fixture::start().await;
    fixture
        .site
        .set_response("/page", "503 Busy\r\nRetry-After: 7200", "");
    let row = fixture.fetch("/page").await;
    assert_eq!((row.status, row.retry_count), (Status::Failed, 1));
    assert_eq!(fixture.wait_of(&row).await, 7200);
    assert!(fixture.host().await.blocked_until.is_some());
}

#[tokio::test]
async fn what_robots_disallow_is_not_fetched_until_they_change() {
    let fixture = Fixture::start().await;
    let robots = "200 OK\r\nContent-Type: text/plain";
    fixture
        .site
        .set_response("/robots.txt", robots, "User-agent: *\nDisallow: /story");
    fixture.site.set_response(
        "/story",
        "200 OK\r\nContent-Type: text/html",
        story("the new pier"),
    );
    fixture.site.set_response(
        "/other",
        "200 OK\r\nContent-Type: text/html",
        story("no pier"),
    );
    let row = fixture.fetch("/story").await;
    assert_eq!(end(&row), (Status::Dead, Some("robots_blocked"), 0));
    assert_eq!(fixture.site.requests("/story"), 0);

    fixture
        .site
        .set_response("/robots.txt", robots, "User-agent: *\nDisallow: /private");
    fixture.test_store.advance(DAY * 2);
    fixture.fetch("/other").await;
    assert_eq!(fixture.row("/story").await.status, Status::Fetched);
    assert_eq!(fixture.site.requests("/story"), 1);
}

#[tokio::test]
async fn without_robots_nothing_is_fetched_and_nothing_is_counted() {
    let fixture = Fixture::start().await;
    fixture.site.set_response("/robots.txt", "500 Oops", "");
    fixture.site.set_response(
        "/story",
        "200 OK\r\nContent-Type: text/html",
        story("the new pier"),
    );
    let row = fixture.fetch("/story").await;
    assert_eq!((row.status, row.retry_count), (Status::Pending, 0));
    assert!(row.reason.unwrap().contains("robots.txt"));
    assert_eq!(fixture.site.requests("/story"), 0);
    assert!(fixture.host().await.blocked_until.is_some());
}

#[tokio::test]
async fn a_broken_extractor_costs_no_url_its_retries() {
    let mut fixture = Fixture::start().await;
    fixture.site.set_response(
        "/story",
        "200 OK\r\nContent-Type: text/html",
        story("the new pier"),
    );
    let whole = fixture.worker.clone();
    fixture.worker.extractor = |_, _| panic!("out of order");
    for _ in 0..8 {
        let row = fixture.fetch("/story").await;
        assert_eq!((row.status, row.retry_count), (Status::Pending, 0));
        assert!(row.reason.unwrap().contains("extraction failed"));
        fixture.test_store.advance(HOUR);
    }
    fixture.worker = whole;
    fixture.work().await;
    assert_eq!(fixture.row("/story").await.status, Status::Fetched);
    assert!(fixture.document("/story").await.is_some());
}

#[tokio::test]
async fn the_same_text_elsewhere_is_stored_as_a_duplicate_of_the_first() {
    let fixture = Fixture::start().await;
    let page = story("the new pier");
    fixture
        .site
        .set_response("/first", "200 OK\r\nContent-Type: text/html", &page);
    fixture
        .site
        .set_response("/second", "200 OK\r\nContent-Type: text/html", &page);
    fixture.fetch("/first").await;
    fixture.test_store.advance(MINUTE);
    fixture.fetch("/second").await;
    let first = fixture.document("/first").await.unwrap();
    let second = fixture.document("/second").await.unwrap();
    assert_eq!(
        (first.duplicate_of, second.duplicate_of),
        (None, Some(first.id))
    );
}

#[tokio::test]
async fn an_edited_copy_joins_the_first_and_another_story_does_not() {
    let fixture = Fixture::start().await;
    let other = story("the new pier").replace(
        "The council of the harbour town voted on Monday for the new pier",
        "A choir of bees has learned to sing in the yard of the old school, and the neighbours, who say that they never slept better",
    );
    let other = other.replace(
        "after a debate of many hours in which the fishers and the builders spoke",
        "bring honey cake every spring when the windows are opened for the first rehearsal of the year",
    );
    let pages = [
        ("/first", story("the new pier")),
        ("/copy", story("the pier that is new")),
        ("/other", other),
    ];
    for (path, page) in &pages {
        fixture
            .site
            .set_response(path, "200 OK\r\nContent-Type: text/html", page);
        fixture.fetch(path).await;
        fixture.test_store.advance(MINUTE);
    }
    let first = fixture.document("/first").await.unwrap();
    let copy = fixture.document("/copy").await.unwrap();
    let other = fixture.document("/other").await.unwrap();
    assert_eq!(copy.duplicate_of, None, "not a word-for-word copy");
    assert_eq!(first.cluster, first.frontier_id);
    assert_eq!(copy.cluster, first.frontier_id);
    assert_eq!(other.cluster, other.frontier_id);
    let document = tidings_engine::stored_document(&copy).unwrap();
    assert_eq!(document.cluster, Some(first.frontier_id.to_string()));
    let store = &fixture.test_store.store;
    let stories = tidings_engine::near_duplicates(store, &first)
        .await
        .unwrap();
    let ids: Vec<_> = stories.iter().map(|story| story.frontier_id).collect();
    assert_eq!(ids, [copy.frontier_id]);
    let stories = tidings_engine::near_duplicates(store, &other)
        .await
        .unwrap();
    assert!(stories.is_empty(), "{stories:?}");
}

#[tokio::test]
async fn pages_are_archived_as_they_came_when_that_is_configured() {
    let mut fixture = Fixture::start().await;
    let folder = tempfile::tempdir().unwrap();
    let pages = tidings_engine::PageArchive::in_folder(folder.path().to_owned());
    fixture.worker.page_archive = Some(pages.clone());
    let page = story("the new pier");
    fixture
        .site
        .set_response("/story", "200 OK\r\nContent-Type: text/html", &page);
    fixture.fetch("/story").await;
    let stored = fixture.document("/story").await.unwrap();
    let document = tidings_engine::stored_document(&stored).unwrap();
    let archived = pages.read(&document.raw_html.unwrap()).unwrap();
    assert_eq!(archived, page.as_bytes());
}

#[tokio::test]
async fn a_source_says_how_its_pages_are_read() {
    let fixture = Fixture::with(
        serde_json::from_value(serde_json::json!({
            "tags": ["harbour"], "license": "public-domain", "content_type": "poem", "rate_limit": 0.2,
            "selectors": { "article": { "title": "h2.real", "exclude": [".note"] } }
        }))
        .unwrap(),
    )
    .await;
    let page = story("the new pier").replace("</h1>", "</h1><h2 class=real>The real title</h2><p class=note>A note that nobody wants to read in the text of the article.</p>");
    fixture
        .site
        .set_response("/story", "200 OK\r\nContent-Type: text/html", page);
    fixture.fetch("/story").await;
    let stored = fixture.document("/story").await.unwrap();
    let document = tidings_engine::stored_document(&stored).unwrap();
    assert_eq!(document.title, "The real title");
    assert!(
        !document.body_text.contains("nobody wants"),
        "{}",
        document.body_text
    );
    assert_eq!(document.tags, ["harbour"]);
    assert_eq!(
        (document.license.as_str(), document.content_type.as_str()),
        ("public-domain", "poem")
    );
    assert_eq!(fixture.host().await.delay_ms, 5000);
}

/// A page with a story of its own, which names a canonical page.
fn page_naming(title: &str, text: &str, canonical: &str) -> String {
    format!(
        "<html><head><title>{title}</title><link rel=canonical href='{canonical}'></head>\
         <body><article><h1>{title}</h1>{}</article></body></html>",
        text.split(". ")
            .map(|sentence| format!("<p>{sentence}.</p>"))
            .collect::<String>()
    )
}

const PIER: &str = "The old pier of the harbour town will be repaired before the winter storms arrive, the council decided on Monday evening. \
    Divers had found cracks in eleven of the forty wooden posts that carry the landing stage of the ferry. \
    Until the spring the ferry will go from the eastern quay, where buses will wait for every crossing. \
    The repair costs two million and is paid for by the region, because the islands have no other connection";
const BUDGET: &str = "Parliament has voted for the budget of the coming year after a debate that lasted nine hours without a break. \
    Schools and hospitals receive more than in any year before, while the army has to wait for new helicopters. \
    The opposition called the figures a fairy tale and announced that it would ask the court of auditors. \
    Economists expect that growth slows down in summer and that taxes bring in less than is planned";
const BREAD: &str = "A bakery in the mountains bakes its bread in an oven that has not been cold since the year nineteen hundred and two. \
    Every night somebody puts wood on the fire, at weddings and funerals and even during the war. \
    The dough rests for two days and has nothing in it but rye, water and salt from a mine nearby. \
    People drive for hours to buy a loaf that keeps for a month and tastes better every day";

const HTML: &str = "200 OK\r\nContent-Type: text/html; charset=utf-8";

async fn alias_of(fixture: &Fixture, path: &str) -> Option<tidings_store::FrontierId> {
    let id = fixture.target(path).id();
    let explained = fixture.test_store.store.explain(id).await.unwrap();
    explained.alias_of
}

#[tokio::test]
async fn versions_of_a_page_merge_into_the_canonical_page() {
    let fixture = Fixture::start().await;
    let site = &fixture.site;
    for (path, title) in [
        ("/pier", "The old pier"),
        ("/amp/pier", "The old pier"),
        ("/print/pier", "The Old Pier | Harbour News"),
    ] {
        site.set_response(path, HTML, page_naming(title, PIER, &site.url("/pier")));
    }
    // The canonical page is not known yet: it is fetched next, and has the document.
    let row = fixture.fetch("/amp/pier").await;
    assert_eq!(end(&row), (Status::Dead, Some("redirect"), 0));
    assert_eq!(fixture.row("/pier").await.status, Status::Fetched);
    // It is known: nothing but the version is fetched.
    let row = fixture.fetch("/print/pier").await;
    assert_eq!(end(&row), (Status::Dead, Some("canonical"), 0));
    for path in ["/amp/pier", "/print/pier"] {
        assert_eq!(
            alias_of(&fixture, path).await,
            Some(fixture.target("/pier").id()),
            "{path}"
        );
        assert!(fixture.document(path).await.is_none(), "{path}");
        assert_eq!(fixture.submit(path).await, Verdict::Known, "{path}");
        assert_eq!(site.requests(path), 1, "{path}");
    }
    assert_eq!(site.requests("/pier"), 1);
    assert_eq!(fixture.document("/pier").await.unwrap().revision, 1);
}

#[tokio::test]
async fn a_canonical_link_without_evidence_swallows_no_story() {
    let other = Site::start().await;
    let elsewhere = format!("http://localhost:{}/pier", other.raw.address().port());
    type Row<'a> = (&'a str, &'a str, Option<(&'a str, &'a str)>);
    let rows: &[Row<'_>] = &[
        ("another story", "/budget", Some((HTML, "budget"))),
        (
            "another story with the same title",
            "/pier-2",
            Some((HTML, "pier, another text")),
        ),
        (
            "the same text with another title",
            "/pier-3",
            Some((HTML, "another title")),
        ),
        (
            "a page that names a third one",
            "/pier-4",
            Some((HTML, "names a third")),
        ),
        ("a missing page", "/gone", None),
        (
            "a page that redirects back",
            "/back",
            Some(("302 Found\r\nLocation: /pier", "")),
        ),
        ("the front page", "/", Some((HTML, "pier"))),
        (
            "a page that robots.txt disallows",
            "/private/pier",
            Some((HTML, "pier")),
        ),
        (
            "a page that is no page",
            "/file.pdf",
            Some(("200 OK\r\nContent-Type: application/pdf", "%PDF-1.4")),
        ),
        ("another site", &elsewhere, None),
        ("nothing that is a URL", "http://[", None),
    ];
    for (name, named, response) in rows {
        let fixture = Fixture::start().await;
        let site = &fixture.site;
        let robots = "User-agent: *\nDisallow: /private";
        site.set_response("/robots.txt", "200 OK\r\nContent-Type: text/plain", robots);
        let named = match named.starts_with('/') {
            true => site.url(named),
            false => (*named).to_owned(),
        };
        site.set_response("/pier", HTML, page_naming("The old pier", PIER, &named));
        if let Some((head, body)) = response {
            let itself = named.as_str();
            let body = match *body {
                "budget" => page_naming("A budget", BUDGET, itself),
                "pier" => page_naming("The old pier", PIER, itself),
                "pier, another text" => page_naming("The old pier", BREAD, itself),
                "another title" => page_naming("A new ferry", PIER, itself),
                "names a third" => page_naming("The old pier", PIER, &site.url("/third")),
                other => other.to_owned(),
            };
            let path = named.strip_prefix(&site.url("")).unwrap();
            site.set_response(path, head, body);
        }
        let row = fixture.fetch("/pier").await;
        assert_eq!(end(&row), (Status::Fetched, None, 0), "{name}");
        let document = fixture.document("/pier").await;
        assert!(
            document.unwrap().body.contains("eleven of the forty"),
            "{name}"
        );
        assert_eq!(alias_of(&fixture, "/pier").await, None, "{name}");
        assert_eq!(site.requests("/private/pier"), 0, "{name}");
    }
    assert_eq!(other.requests("/pier"), 0, "another site is never asked");
}

#[tokio::test]
async fn one_page_named_by_all_stories_swallows_none_and_costs_few_requests() {
    let fixture = Fixture::start().await;
    let site = &fixture.site;
    let texts = [PIER, BUDGET, BREAD];
    let paths: Vec<String> = (0..9).map(|n| format!("/story-{n}")).collect();
    for (n, path) in paths.iter().enumerate() {
        // Every title and text is another one.
        let text = format!(
            "{} number {n}",
            texts[n % 3].replace(". ", &format!(" in part {n}. "))
        );
        let page = page_naming(&format!("Story of {n} things"), &text, &site.url("/all"));
        site.set_response(path, HTML, page);
        fixture.submit(path).await;
    }
    site.set_response(
        "/all",
        HTML,
        page_naming("All stories", BREAD, &site.url("/all")),
    );
    fixture.work().await;
    for path in &paths {
        assert_eq!(
            end(&fixture.row(path).await),
            (Status::Fetched, None, 0),
            "{path}"
        );
        assert!(fixture.document(path).await.is_some(), "{path}");
    }
    assert!(
        (1..=3).contains(&site.requests("/all")),
        "{}",
        site.requests("/all")
    );
    // Once it has a document of its own, it is compared without a request.
    fixture.fetch("/all").await;
    let before = site.requests("/all");
    let late = page_naming("A late story", PIER, &site.url("/all"));
    site.set_response("/late", HTML, late);
    let row = fixture.fetch("/late").await;
    assert_eq!(end(&row), (Status::Fetched, None, 0));
    assert_eq!(site.requests("/all"), before);
}
