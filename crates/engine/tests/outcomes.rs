//! The outcome of one poll by the response of the server: five outcomes, and feeds
//! that move, vanish, or are reconfigured meanwhile.

#![allow(clippy::unwrap_used)]

mod world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidings_engine::{
    PollOptions, PollOutcome, PollPolicy, PollReport, Poller, SourceDraft, SourceSettings,
    add_source, change_source,
};
use tidings_sim::{Act, RawServer};
use tidings_store::{Feed, Source, StoreOptions};
use world::{HOUR, MINUTE, TestStore};

const FEED: &str = "<rss version='2.0'><channel><title>News</title>
<item><title>One</title><link>http://a.example/1</link></item>
<item><title>Two</title><link>http://a.example/2?utm_source=rss</link></item></channel></rss>";

/// A server whose response a test can change, and the heads of its requests.
struct Server {
    raw: RawServer,
    response: Arc<Mutex<Vec<Act>>>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start() -> Self {
        let response = Arc::new(Mutex::new(Vec::new()));
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (script, seen) = (Arc::clone(&response), Arc::clone(&heads));
        let raw = RawServer::start("127.0.0.1:0".parse().unwrap(), move |head| {
            if head.starts_with("GET /robots.txt") {
                return Act::answer("404 Not Found", b"");
            }
            seen.lock().unwrap().push(head.to_lowercase());
            script.lock().unwrap().clone()
        })
        .await
        .unwrap();
        Self {
            raw,
            response,
            heads,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.raw.address())
    }

    fn set_response(&self, head: &str, body: &str) {
        *self.response.lock().unwrap() = Act::answer(head, body.as_bytes());
    }

    fn last_head(&self) -> String {
        self.heads.lock().unwrap().last().unwrap().clone()
    }
}

/// One source on one server.
struct Fixture {
    server: Server,
    test_store: TestStore,
    poller: Arc<Poller>,
    source: Source,
    feed: Feed,
}

impl Fixture {
    async fn start(settings: SourceSettings) -> Self {
        let server = Server::start().await;
        let mut options = StoreOptions::default();
        // Real pauses after robots.txt, short enough for a test.
        options.host_delay = Duration::from_millis(10);
        let test_store = TestStore::start(options).await;
        let settings = SourceSettings {
            feed_url: Some(server.url("/feed").parse().unwrap()),
            ..settings
        };
        let (source, feed) = add_source(&test_store.store, &draft(settings))
            .await
            .unwrap();
        let poller = test_store.poller(server.raw.address().port(), PollOptions::default());
        Self {
            feed: feed.unwrap(),
            server,
            test_store,
            poller,
            source,
        }
    }

    async fn poll(&self) -> PollReport {
        let now = self.test_store.store.now().await.unwrap();
        self.test_store
            .store
            .resume_feed(self.feed.feed_id, now)
            .await
            .unwrap();
        let mut polls = Vec::new();
        self.poller
            .poll_due(|ended| polls.push(ended.clone()))
            .await
            .unwrap();
        self.test_store.advance(MINUTE);
        assert_eq!(polls.len(), 1);
        polls.remove(0)
    }

    async fn stored_feed(&self) -> Feed {
        self.test_store
            .store
            .feed(self.feed.feed_id)
            .await
            .unwrap()
            .unwrap()
    }
}

fn draft(settings: SourceSettings) -> SourceDraft {
    SourceDraft {
        name: "paper".to_owned(),
        url: "http://a.example/".parse().unwrap(),
        priority: 5,
        settings,
    }
}

#[tokio::test]
async fn five_ends_are_told_apart() {
    let fixture = Fixture::start(SourceSettings::default()).await;
    let ended = |poll: &PollReport| (poll.outcome, poll.items_seen, poll.items_new);

    fixture.server.set_response("200 OK\r\nETag: \"1\"", FEED);
    assert_eq!(ended(&fixture.poll().await), (PollOutcome::Ok, 2, 2));
    assert!(!fixture.server.last_head().contains("if-none-match"));

    fixture.server.set_response("304 Not Modified", "");
    assert_eq!(
        ended(&fixture.poll().await),
        (PollOutcome::NotModified, 0, 0)
    );
    assert!(fixture.server.last_head().contains("if-none-match: \"1\""));

    fixture.server.set_response("200 OK\r\nETag: \"2\"", FEED);
    assert_eq!(ended(&fixture.poll().await), (PollOutcome::SameBody, 0, 0));

    let reworded = FEED
        .replace("Two", "Two, corrected")
        .replace("?utm_source=rss", "?utm_source=feed");
    fixture.server.set_response("200 OK", &reworded);
    assert_eq!(ended(&fixture.poll().await), (PollOutcome::Redundant, 2, 0));

    let shorter = FEED.replace("<link>http://a.example/2?utm_source=rss</link>", "");
    fixture.server.set_response("200 OK", &shorter);
    assert_eq!(ended(&fixture.poll().await), (PollOutcome::Ok, 2, 0));

    fixture.server.set_response("500 Error", "");
    let failed = fixture.poll().await;
    assert_eq!(
        (failed.outcome, failed.error.as_deref()),
        (PollOutcome::Failed, Some("status 500"))
    );
    assert_eq!(
        (
            fixture.stored_feed().await.consecutive_errors,
            fixture.stored_feed().await.error_class.as_deref()
        ),
        (1, Some("http_transient"))
    );

    fixture.server.set_response("200 OK", FEED);
    fixture.poll().await;
    assert_eq!(
        (
            fixture.stored_feed().await.consecutive_errors,
            fixture.stored_feed().await.last_error
        ),
        (0, None)
    );

    let log = fixture
        .test_store
        .store
        .fetch_log(fixture.feed.feed_id, 10)
        .await
        .unwrap();
    let outcomes: Vec<_> = log.iter().rev().map(|line| line.outcome.as_str()).collect();
    assert_eq!(
        outcomes,
        [
            "ok",
            "not_modified",
            "same_body",
            "redundant",
            "ok",
            "failed",
            "ok"
        ]
    );
}

#[tokio::test]
async fn once_per_day_the_feed_is_fetched_unconditionally() {
    let fixture = Fixture::start(SourceSettings::default()).await;
    fixture.server.set_response("200 OK\r\nETag: \"1\"", FEED);
    fixture.poll().await;
    fixture.server.set_response("304 Not Modified", "");
    fixture.poll().await;
    fixture.test_store.advance(24 * HOUR);
    fixture.server.set_response(
        "200 OK\r\nETag: \"1\"",
        &FEED.replace("a.example/1", "a.example/new"),
    );
    let poll = fixture.poll().await;
    assert!(!fixture.server.last_head().contains("if-none-match"));
    assert_eq!(
        (poll.outcome, poll.items_new),
        (PollOutcome::Ok, 1),
        "a stale ETag hides nothing for long"
    );
}

#[tokio::test]
async fn settings_count_from_the_next_poll_on() {
    let fixture = Fixture::start(SourceSettings::default()).await;
    fixture.server.set_response("200 OK\r\nETag: \"1\"", FEED);
    fixture.poll().await;
    let settings = SourceSettings {
        feed_url: Some(fixture.server.url("/other").parse().unwrap()),
        poll_policy: PollPolicy::Fixed,
        feed_poll_interval_minutes: 30,
        ..SourceSettings::default()
    };
    change_source(&fixture.test_store.store, &fixture.source, &draft(settings))
        .await
        .unwrap();
    let due = fixture
        .test_store
        .store
        .next_feed_due()
        .await
        .unwrap()
        .unwrap();
    assert!(
        due <= fixture.test_store.store.now().await.unwrap(),
        "a new URL is due immediately"
    );
    let poll = fixture.poll().await;
    let head = fixture.server.last_head();
    assert!(
        head.starts_with("get /other ") && !head.contains("if-none-match"),
        "{head}"
    );
    // Half an hour on the grid, and its jitter.
    assert!(
        poll.next_poll_in <= Duration::from_secs(31 * 60),
        "{:?}",
        poll.next_poll_in
    );
    assert_eq!(
        fixture.stored_feed().await.url,
        fixture.server.url("/other")
    );
}

#[tokio::test]
async fn a_feed_that_is_gone_is_paused_with_its_reason() {
    let fixture = Fixture::start(SourceSettings::default()).await;
    fixture.server.set_response("410 Gone", "");
    fixture.poll().await;
    assert_eq!(
        fixture.stored_feed().await.paused_reason.as_deref(),
        Some("status 410")
    );
    fixture.test_store.advance(HOUR * 24 * 30);
    assert_eq!(fixture.poller.poll_due(|_| {}).await.unwrap(), 0);
    fixture.server.set_response("200 OK", FEED);
    assert_eq!(fixture.poll().await.items_new, 2, "a user can resume it");
}

#[tokio::test]
async fn a_feed_that_moved_for_good_is_followed_when_seen_twice() {
    let fixture = Fixture::start(SourceSettings::default()).await;
    let new_home = Server::start().await;
    new_home.set_response("200 OK", FEED);
    let poller = fixture.test_store.poller_for(&[
        fixture.server.raw.address().port(),
        new_home.raw.address().port(),
    ]);
    let fixture = Fixture { poller, ..fixture };
    fixture.server.set_response(
        &format!("301 Moved\r\nLocation: {}", new_home.url("/feed")),
        "",
    );
    fixture.poll().await;
    assert_eq!(
        fixture.stored_feed().await.url,
        fixture.server.url("/feed"),
        "once may be a mistake"
    );
    new_home.set_response("200 OK", &FEED.replace("One", "One more"));
    fixture.poll().await;
    assert_eq!(fixture.stored_feed().await.url, new_home.url("/feed"));
    let source = fixture
        .test_store
        .store
        .source(fixture.source.source_id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        SourceSettings::of(&source).unwrap().feed_url,
        Some(new_home.url("/feed").parse().unwrap())
    );
}

#[tokio::test]
async fn retry_after_of_a_server_is_honoured() {
    let fixture = Fixture::start(SourceSettings::default()).await;
    fixture
        .server
        .set_response("429 Slower\r\nRetry-After: 7200", "");
    let poll = fixture.poll().await;
    assert!(poll.next_poll_in >= 2 * HOUR, "{:?}", poll.next_poll_in);
    let host = fixture
        .test_store
        .store
        .hosts_after(None, 1)
        .await
        .unwrap()
        .remove(0);
    assert!(
        host.blocked_until.is_some() && host.delay_ms == 1000,
        "{host:?}"
    );
}

#[tokio::test]
async fn errors_put_a_feed_off_and_never_drop_it() {
    let fixture = Fixture::start(SourceSettings {
        poll_policy: PollPolicy::Fixed,
        ..SourceSettings::default()
    })
    .await;
    fixture.server.set_response("500 Error", "");
    let mut waits = Vec::new();
    for _ in 0..12 {
        waits.push(fixture.poll().await.next_poll_in);
        fixture.test_store.advance(24 * HOUR);
    }
    assert!(waits[1] > waits[0] && waits[4] > waits[1], "{waits:?}");
    assert!(waits.iter().all(|wait| *wait <= 26 * HOUR), "{waits:?}");
    let feed = fixture.stored_feed().await;
    assert_eq!((feed.consecutive_errors, feed.paused_reason), (12, None));
}

#[tokio::test]
async fn an_aggregator_lists_an_article_once_per_week() {
    let fixture = Fixture::start(SourceSettings {
        title_week: true,
        ..SourceSettings::default()
    })
    .await;
    fixture.server.set_response("200 OK", FEED);
    assert_eq!(fixture.poll().await.items_new, 2);
    fixture
        .server
        .set_response("200 OK", &FEED.replace("a.example/1", "b.example/one"));
    assert_eq!(
        fixture.poll().await.items_new,
        0,
        "the same title at another URL"
    );
    fixture.test_store.advance(HOUR * 24 * 7);
    fixture
        .server
        .set_response("200 OK", &FEED.replace("a.example/1", "c.example/one"));
    assert_eq!(
        fixture.poll().await.items_new,
        1,
        "in another week it is another article"
    );
}
