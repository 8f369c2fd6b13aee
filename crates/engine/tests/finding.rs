//! Sources that only name a site, and feeds that have become pages: the feed is
//! found and followed, or it is visible that there is none.

#![allow(clippy::unwrap_used)]

mod world;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidings_engine::{PollOutcome, PollReport, Poller, SourceDraft, SourceSettings, add_source};
use tidings_sim::{Act, RawServer};
use tidings_store::{Feed, Source, StoreOptions};
use world::{HOUR, Table};

const FEED: &str = "<rss version='2.0'><channel><title>News</title>
<item><title>One</title><link>http://a.example/1</link></item></channel></rss>";
const SITEMAP: &str = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>http://a.example/2</loc></url></urlset>";
const PAGE: &str = "<html><head><title>Home</title></head><body><p>Welcome.</p></body></html>";

struct Desk {
    server: RawServer,
    answers: Arc<Mutex<HashMap<String, Vec<Act>>>>,
    table: Table,
    poller: Arc<Poller>,
}

impl Desk {
    async fn start() -> Self {
        let answers: Arc<Mutex<HashMap<String, Vec<Act>>>> = Arc::default();
        let script = Arc::clone(&answers);
        let server = RawServer::start("127.0.0.1:0".parse().unwrap(), move |head| {
            let path = head.split(' ').nth(1).unwrap_or_default();
            let answer = script.lock().unwrap().get(path).cloned();
            answer.unwrap_or_else(|| Act::answer("404 Not Found", b""))
        })
        .await
        .unwrap();
        let mut options = StoreOptions::default();
        // The clock stands still while a site is searched.
        options.host_delay = Duration::ZERO;
        let table = Table::start(options).await;
        let poller = table.poller_for(&[server.address().port()]);
        Self {
            server,
            answers,
            table,
            poller,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address())
    }

    fn says(&self, path: &str, kind: &str, body: &str) {
        let head = format!("200 OK\r\nContent-Type: {kind}");
        let acts = Act::answer(&head, body.as_bytes());
        self.answers.lock().unwrap().insert(path.to_owned(), acts);
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
        add_source(&self.table.store, &draft).await.unwrap().0
    }

    async fn poll(&self) -> Vec<PollReport> {
        let mut polls = Vec::new();
        let mut ended = |poll: &PollReport| polls.push(poll.clone());
        self.poller.poll_due(&mut ended).await.unwrap();
        polls
    }

    async fn feeds(&self, source: &Source) -> Vec<Feed> {
        let store = &self.table.store;
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
    let desk = Desk::start().await;
    let home = PAGE.replace(
        "</head>",
        "<link rel=alternate type=application/rss+xml href=/news.xml></head>",
    );
    desk.says("/", "text/html", &home);
    desk.says("/news.xml", "application/rss+xml", FEED);
    let source = desk.add(None).await;
    assert_eq!(
        outcomes(&desk.poll().await),
        [(PollOutcome::Found, 0), (PollOutcome::Ok, 1)]
    );
    let feeds = desk.feeds(&source).await;
    assert_eq!(feeds.len(), 1);
    assert_eq!(
        (feeds[0].kind.as_str(), feeds[0].url.clone()),
        ("feed", desk.url("/news.xml"))
    );
    let source = desk
        .table
        .store
        .source(source.source_id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(source.config["feed_url"], desk.url("/news.xml"));
}

#[tokio::test]
async fn a_site_with_a_sitemap_only_is_followed_by_it() {
    let desk = Desk::start().await;
    desk.says("/", "text/html", PAGE);
    desk.says("/sitemap.xml", "application/xml", SITEMAP);
    let source = desk.add(None).await;
    assert_eq!(
        outcomes(&desk.poll().await),
        [(PollOutcome::Found, 0), (PollOutcome::Ok, 1)]
    );
    assert_eq!(desk.feeds(&source).await[0].kind, "sitemap");
}

#[tokio::test]
async fn a_site_with_nothing_says_so_and_is_searched_again_in_a_week() {
    let desk = Desk::start().await;
    desk.says("/", "text/html", PAGE);
    let source = desk.add(None).await;
    // Nothing to follow, so its page is read; and there is nothing on it.
    let polls = desk.poll().await;
    assert_eq!(
        outcomes(&polls),
        [(PollOutcome::Found, 0), (PollOutcome::Failed, 0)]
    );
    assert_eq!(polls[1].next_poll_in, HOUR * 24 * 7);
    let feed = &desk.feeds(&source).await[0];
    let error = feed.last_error.as_ref().unwrap();
    assert!(error.contains("links to no articles"), "{error}");
    assert!(error.contains("no feed and no sitemap"), "{error}");
    desk.table.pass(HOUR * 24 * 6);
    assert!(desk.poll().await.is_empty());
    desk.says("/feed", "application/rss+xml", FEED);
    desk.table.pass(HOUR * 24);
    assert_eq!(
        outcomes(&desk.poll().await),
        [(PollOutcome::Found, 0), (PollOutcome::Ok, 1)]
    );
    assert_eq!(desk.feeds(&source).await[0].consecutive_errors, 0);
}

#[tokio::test]
async fn a_feed_that_became_a_page_is_found_again() {
    let desk = Desk::start().await;
    let page = PAGE.replace(
        "</head>",
        "<link rel=alternate type=application/atom+xml href=/new.xml></head>",
    );
    desk.says("/old.xml", "text/html", &page);
    desk.says("/new.xml", "application/rss+xml", FEED);
    let source = desk.add(Some("/old.xml")).await;
    let polls = desk.poll().await;
    assert_eq!(
        outcomes(&polls),
        [(PollOutcome::Failed, 0), (PollOutcome::Ok, 1)]
    );
    assert!(
        polls[0]
            .error
            .as_ref()
            .unwrap()
            .contains("is followed from now on")
    );
    assert_eq!(desk.feeds(&source).await[0].url, desk.url("/new.xml"));
}

#[tokio::test]
async fn a_page_without_a_feed_stays_a_failure_and_is_searched_once() {
    let desk = Desk::start().await;
    desk.says("/old.xml", "text/html", PAGE);
    desk.add(Some("/old.xml")).await;
    assert_eq!(outcomes(&desk.poll().await), [(PollOutcome::Failed, 0)]);
    let connections = desk.server.connections();
    desk.table.pass(HOUR * 24);
    assert_eq!(outcomes(&desk.poll().await), [(PollOutcome::Failed, 0)]);
    // One question for the feed, and perhaps one for robots.txt.
    assert!(desk.server.connections() - connections <= 2);
}
