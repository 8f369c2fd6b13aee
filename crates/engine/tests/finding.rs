//! Sources that only name a site, and feeds that have become pages: the feed is
//! found and polled, or the source shows that there is none.

#![allow(clippy::unwrap_used)]

mod world;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidings_engine::{PollOutcome, PollReport, Poller, SourceDraft, SourceSettings, add_source};
use tidings_sim::{Act, RawServer};
use tidings_store::{Feed, Source, StoreOptions};
use world::{HOUR, TestStore};

const FEED: &str = "<rss version='2.0'><channel><title>News</title>
<item><title>One</title><link>http://a.example/1</link></item></channel></rss>";
const SITEMAP: &str = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>http://a.example/2</loc></url></urlset>";
const PAGE: &str = "<html><head><title>Home</title></head><body><p>Welcome.</p></body></html>";

struct Fixture {
    server: RawServer,
    responses: Arc<Mutex<HashMap<String, Vec<Act>>>>,
    test_store: TestStore,
    poller: Arc<Poller>,
}

impl Fixture {
    async fn start() -> Self {
        let responses: Arc<Mutex<HashMap<String, Vec<Act>>>> = Arc::default();
        let script = Arc::clone(&responses);
        let server = RawServer::start("127.0.0.1:0".parse().unwrap(), move |head| {
            let path = head.split(' ').nth(1).unwrap_or_default();
            let response = script.lock().unwrap().get(path).cloned();
            response.unwrap_or_else(|| Act::answer("404 Not Found", b""))
        })
        .await
        .unwrap();
        let mut options = StoreOptions::default();
        // The clock stands still while a site is searched.
        options.host_delay = Duration::ZERO;
        let test_store = TestStore::start(options).await;
        let poller = test_store.poller_for(&[server.address().port()]);
        Self {
            server,
            responses,
            test_store,
            poller,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address())
    }

    fn set_response(&self, path: &str, kind: &str, body: &str) {
        let head = format!("200 OK\r\nContent-Type: {kind}");
        let acts = Act::answer(&head, body.as_bytes());
        self.responses.lock().unwrap().insert(path.to_owned(), acts);
    }

    async fn add(&self, feed: Option<&str>) -> Source {
        let draft = SourceDraft {
            name: "site".to_owned(),
            url: self.url("/").parse().unwrap(),
            priority: 5,
            settings: SourceSettings {
                feed_url: feed.map(|path| self.url(path).parse().unwrap()),
                ..SourceSettings::default()
            },
        };
        add_source(&self.test_store.store, &draft).await.unwrap().0
    }

    async fn poll(&self) -> Vec<PollReport> {
        let mut polls = Vec::new();
        let mut ended = |poll: &PollReport| polls.push(poll.clone());
        self.poller.poll_due(&mut ended).await.unwrap();
        polls
    }

    async fn feeds(&self, source: &Source) -> Vec<Feed> {
        let store = &self.test_store.store;
        store.feeds_of_source(source.source_id).await.unwrap()
    }
}

fn outcomes(polls: &[PollReport]) -> Vec<(PollOutcome, usize)> {
    polls
        .iter()
        .map(|poll| (poll.outcome, poll.items_new))
        .collect()
}

#[tokio::test]
async fn a_site_without_a_feed_url_gets_one() {
    let fixture = Fixture::start().await;
    let home = PAGE.replace(
        "</head>",
        "<link rel=alternate type=application/rss+xml href=/news.xml></head>",
    );
    fixture.set_response("/", "text/html", &home);
    fixture.set_response("/news.xml", "application/rss+xml", FEED);
    let source = fixture.add(None).await;
    assert_eq!(
        outcomes(&fixture.poll().await),
        [(PollOutcome::Found, 0), (PollOutcome::Ok, 1)]
    );
    let feeds = fixture.feeds(&source).await;
    assert_eq!(feeds.len(), 1);
    assert_eq!(
        (feeds[0].kind.as_str(), feeds[0].url.clone()),
        ("feed", fixture.url("/news.xml"))
    );
    let source = fixture
        .test_store
        .store
        .source(source.source_id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(source.config["feed_url"], fixture.url("/news.xml"));
}

#[tokio::test]
async fn a_site_with_a_sitemap_only_is_followed_by_it() {
    let fixture = Fixture::start().await;
    fixture.set_response("/", "text/html", PAGE);
    fixture.set_response("/sitemap.xml", "application/xml", SITEMAP);
    let source = fixture.add(None).await;
    assert_eq!(
        outcomes(&fixture.poll().await),
        [(PollOutcome::Found, 0), (PollOutcome::Ok, 1)]
    );
    assert_eq!(fixture.feeds(&source).await[0].kind, "sitemap");
}

#[tokio::test]
async fn a_site_with_nothing_says_so_and_is_searched_again_in_a_week() {
    let fixture = Fixture::start().await;
    fixture.set_response("/", "text/html", PAGE);
    let source = fixture.add(None).await;
    // No feed, so its page is read; and it lists nothing.
    let polls = fixture.poll().await;
    assert_eq!(
        outcomes(&polls),
        [(PollOutcome::Found, 0), (PollOutcome::Failed, 0)]
    );
    assert_eq!(polls[1].next_poll_in, HOUR * 24 * 7);
    let feed = &fixture.feeds(&source).await[0];
    let error = feed.last_error.as_ref().unwrap();
    assert!(
        error.contains("links to no recognizable articles"),
        "{error}"
    );
    assert!(error.contains("no feed and no sitemap"), "{error}");
    fixture.test_store.advance(HOUR * 24 * 6);
    assert!(fixture.poll().await.is_empty());
    fixture.set_response("/feed", "application/rss+xml", FEED);
    fixture.test_store.advance(HOUR * 24);
    assert_eq!(
        outcomes(&fixture.poll().await),
        [(PollOutcome::Found, 0), (PollOutcome::Ok, 1)]
    );
    assert_eq!(fixture.feeds(&source).await[0].consecutive_errors, 0);
}

#[tokio::test]
async fn a_feed_that_became_a_page_is_found_again() {
    let fixture = Fixture::start().await;
    let page = PAGE.replace(
        "</head>",
        "<link rel=alternate type=application/atom+xml href=/new.xml></head>",
    );
    fixture.set_response("/old.xml", "text/html", &page);
    fixture.set_response("/new.xml", "application/rss+xml", FEED);
    let source = fixture.add(Some("/old.xml")).await;
    let polls = fixture.poll().await;
    assert_eq!(
        outcomes(&polls),
        [(PollOutcome::Failed, 0), (PollOutcome::Ok, 1)]
    );
    assert!(
        polls[0]
            .error
            .as_ref()
            .unwrap()
            .contains("is polled from now on")
    );
    assert_eq!(fixture.feeds(&source).await[0].url, fixture.url("/new.xml"));
}

#[tokio::test]
async fn a_page_without_a_feed_stays_a_failure_and_is_searched_once() {
    let fixture = Fixture::start().await;
    fixture.set_response("/old.xml", "text/html", PAGE);
    fixture.add(Some("/old.xml")).await;
    assert_eq!(outcomes(&fixture.poll().await), [(PollOutcome::Failed, 0)]);
    let connections = fixture.server.connections();
    fixture.test_store.advance(HOUR * 24);
    assert_eq!(outcomes(&fixture.poll().await), [(PollOutcome::Failed, 0)]);
    // One request for the feed, and perhaps one for robots.txt.
    assert!(fixture.server.connections() - connections <= 2);
}
