//! What one poll makes of what a server says: five ends that are told apart,
//! feeds that move, vanish, or are set otherwise meanwhile.

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
use world::{HOUR, MINUTE, Table};

const FEED: &str = "<rss version='2.0'><channel><title>News</title>
<item><title>One</title><link>http://a.example/1</link></item>
<item><title>Two</title><link>http://a.example/2?utm_source=rss</link></item></channel></rss>";

/// A server whose answer a test can change, and the heads of its requests.
struct Server {
    raw: RawServer,
    answer: Arc<Mutex<Vec<Act>>>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start() -> Self {
        let answer = Arc::new(Mutex::new(Vec::new()));
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (script, seen) = (Arc::clone(&answer), Arc::clone(&heads));
        let raw = RawServer::start("127.0.0.1:0".parse().unwrap(), move |head| {
            if head.starts_with("GET /robots.txt") {
                return Act::answer("404 Not Found", b"");
            }
            seen.lock().unwrap().push(head.to_lowercase());
            script.lock().unwrap().clone()
        })
        .await
        .unwrap();
        Self { raw, answer, heads }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.raw.address())
    }

    fn says(&self, head: &str, body: &str) {
        *self.answer.lock().unwrap() = Act::answer(head, body.as_bytes());
    }

    fn last_head(&self) -> String {
        self.heads.lock().unwrap().last().unwrap().clone()
    }
}

/// One source on one server.
struct One {
    server: Server,
    table: Table,
    poller: Arc<Poller>,
    source: Source,
    feed: Feed,
}

impl One {
    async fn start(settings: SourceSettings) -> Self {
        let server = Server::start().await;
        let mut options = StoreOptions::default();
        // Real pauses after robots.txt, short enough for a test.
        options.host_delay = Duration::from_millis(10);
        let table = Table::start(options).await;
        let settings = SourceSettings {
            feed_url: Some(server.url("/feed").parse().unwrap()),
            ..settings
        };
        let (source, feed) = add_source(&table.store, &draft(settings)).await.unwrap();
        let poller = table.poller(server.raw.address().port(), PollOptions::default());
        Self {
            feed: feed.unwrap(),
            server,
            table,
            poller,
            source,
        }
    }

    async fn poll(&self) -> PollReport {
        let now = self.table.store.now().await.unwrap();
        self.table
            .store
            .resume_feed(self.feed.feed_id, now)
            .await
            .unwrap();
        let mut polls = Vec::new();
        self.poller
            .poll_due(|ended| polls.push(ended.clone()))
            .await
            .unwrap();
        self.table.pass(MINUTE);
        assert_eq!(polls.len(), 1);
        polls.remove(0)
    }

    async fn kept(&self) -> Feed {
        self.table
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
    let one = One::start(SourceSettings::default()).await;
    let ended = |poll: &PollReport| (poll.outcome, poll.items_seen, poll.items_new);

    one.server.says("200 OK\r\nETag: \"1\"", FEED);
    assert_eq!(ended(&one.poll().await), (PollOutcome::Ok, 2, 2));
    assert!(!one.server.last_head().contains("if-none-match"));

    one.server.says("304 Not Modified", "");
    assert_eq!(ended(&one.poll().await), (PollOutcome::NotModified, 0, 0));
    assert!(one.server.last_head().contains("if-none-match: \"1\""));

    one.server.says("200 OK\r\nETag: \"2\"", FEED);
    assert_eq!(ended(&one.poll().await), (PollOutcome::SameBody, 0, 0));

    let reworded = FEED
        .replace("Two", "Two, corrected")
        .replace("?utm_source=rss", "?utm_source=feed");
    one.server.says("200 OK", &reworded);
    assert_eq!(ended(&one.poll().await), (PollOutcome::Redundant, 2, 0));

    let shorter = FEED.replace("<link>http://a.example/2?utm_source=rss</link>", "");
    one.server.says("200 OK", &shorter);
    assert_eq!(ended(&one.poll().await), (PollOutcome::Ok, 2, 0));

    one.server.says("500 Trouble", "");
    let failed = one.poll().await;
    assert_eq!(
        (failed.outcome, failed.error.as_deref()),
        (PollOutcome::Failed, Some("status 500"))
    );
    assert_eq!(
        (
            one.kept().await.consecutive_errors,
            one.kept().await.error_class.as_deref()
        ),
        (1, Some("http_transient"))
    );

    one.server.says("200 OK", FEED);
    one.poll().await;
    assert_eq!(
        (
            one.kept().await.consecutive_errors,
            one.kept().await.last_error
        ),
        (0, None)
    );

    let log = one
        .table
        .store
        .fetch_log(one.feed.feed_id, 10)
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
async fn once_a_day_the_whole_feed_is_asked_for() {
    let one = One::start(SourceSettings::default()).await;
    one.server.says("200 OK\r\nETag: \"1\"", FEED);
    one.poll().await;
    one.server.says("304 Not Modified", "");
    one.poll().await;
    one.table.pass(24 * HOUR);
    one.server.says(
        "200 OK\r\nETag: \"1\"",
        &FEED.replace("a.example/1", "a.example/new"),
    );
    let poll = one.poll().await;
    assert!(!one.server.last_head().contains("if-none-match"));
    assert_eq!(
        (poll.outcome, poll.items_new),
        (PollOutcome::Ok, 1),
        "a stale ETag hides nothing for long"
    );
}

#[tokio::test]
async fn settings_count_from_the_next_poll_on() {
    let one = One::start(SourceSettings::default()).await;
    one.server.says("200 OK\r\nETag: \"1\"", FEED);
    one.poll().await;
    let settings = SourceSettings {
        feed_url: Some(one.server.url("/other").parse().unwrap()),
        poll_policy: PollPolicy::Fixed,
        feed_poll_interval_minutes: 30,
        ..SourceSettings::default()
    };
    change_source(&one.table.store, &one.source, &draft(settings))
        .await
        .unwrap();
    let due = one.table.store.next_feed_due().await.unwrap().unwrap();
    assert!(
        due <= one.table.store.now().await.unwrap(),
        "a new address is asked at once"
    );
    let poll = one.poll().await;
    let head = one.server.last_head();
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
    assert_eq!(one.kept().await.url, one.server.url("/other"));
}

#[tokio::test]
async fn a_feed_that_is_gone_is_paused_with_its_reason() {
    let one = One::start(SourceSettings::default()).await;
    one.server.says("410 Gone", "");
    one.poll().await;
    assert_eq!(
        one.kept().await.paused_reason.as_deref(),
        Some("status 410")
    );
    one.table.pass(HOUR * 24 * 30);
    assert_eq!(one.poller.poll_due(|_| {}).await.unwrap(), 0);
    one.server.says("200 OK", FEED);
    assert_eq!(one.poll().await.items_new, 2, "a person can wake it");
}

#[tokio::test]
async fn a_feed_that_moved_for_good_is_followed_when_seen_twice() {
    let one = One::start(SourceSettings::default()).await;
    let new_home = Server::start().await;
    new_home.says("200 OK", FEED);
    let poller = one.table.poller_for(&[
        one.server.raw.address().port(),
        new_home.raw.address().port(),
    ]);
    let one = One { poller, ..one };
    one.server.says(
        &format!("301 Moved\r\nLocation: {}", new_home.url("/feed")),
        "",
    );
    one.poll().await;
    assert_eq!(
        one.kept().await.url,
        one.server.url("/feed"),
        "once may be a mistake"
    );
    new_home.says("200 OK", &FEED.replace("One", "One more"));
    one.poll().await;
    assert_eq!(one.kept().await.url, new_home.url("/feed"));
    let source = one
        .table
        .store
        .source(one.source.source_id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        SourceSettings::of(&source).unwrap().feed_url,
        Some(new_home.url("/feed").parse().unwrap())
    );
}

#[tokio::test]
async fn a_server_that_wants_peace_gets_it() {
    let one = One::start(SourceSettings::default()).await;
    one.server.says("429 Slower\r\nRetry-After: 7200", "");
    let poll = one.poll().await;
    assert!(poll.next_poll_in >= 2 * HOUR, "{:?}", poll.next_poll_in);
    let host = one
        .table
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
    let one = One::start(SourceSettings {
        poll_policy: PollPolicy::Fixed,
        ..SourceSettings::default()
    })
    .await;
    one.server.says("500 Trouble", "");
    let mut waits = Vec::new();
    for _ in 0..12 {
        waits.push(one.poll().await.next_poll_in);
        one.table.pass(24 * HOUR);
    }
    assert!(waits[1] > waits[0] && waits[4] > waits[1], "{waits:?}");
    assert!(waits.iter().all(|wait| *wait <= 26 * HOUR), "{waits:?}");
    let kept = one.kept().await;
    assert_eq!((kept.consecutive_errors, kept.paused_reason), (12, None));
}

#[tokio::test]
async fn an_aggregator_tells_a_story_once_a_week() {
    let one = One::start(SourceSettings {
        title_week: true,
        ..SourceSettings::default()
    })
    .await;
    one.server.says("200 OK", FEED);
    assert_eq!(one.poll().await.items_new, 2);
    one.server
        .says("200 OK", &FEED.replace("a.example/1", "b.example/one"));
    assert_eq!(
        one.poll().await.items_new,
        0,
        "the same title at another address"
    );
    one.table.pass(HOUR * 24 * 7);
    one.server
        .says("200 OK", &FEED.replace("a.example/1", "c.example/one"));
    assert_eq!(
        one.poll().await.items_new,
        1,
        "in another week it is another story"
    );
}
