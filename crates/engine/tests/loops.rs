//! Loops outlive what goes wrong inside them: errors of the store, defects of a
//! sink, and people who edit what is being polled.

#![allow(clippy::unwrap_used)]

mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tidings_document::Document;
use tidings_engine::{DeliverOptions, Deliverer, PollOptions, PollOutcome, SourceSettings};
use tidings_sim::{Act, RawServer};
use tidings_sinks::{BatchLimits, Report, Sink, Verdict};
use tidings_store::{NewSource, Source, Store, StoreOptions};
use world::{MINUTE, TestStore};

const FEED: &str = "<rss version='2.0'><channel><title>News</title>
<item><title>One</title><link>http://a.example/1</link></item></channel></rss>";

async fn test_store() -> TestStore {
    let mut options = StoreOptions::default();
    options.host_delay = Duration::ZERO;
    TestStore::start(options).await
}

/// Makes every claim of a feed fail; completions still succeed.
fn break_claims(store: &Store) {
    let path = store.location().strip_prefix("sqlite:").unwrap();
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.busy_timeout(MINUTE).unwrap();
    connection
        .execute_batch(
            "CREATE TRIGGER no_claims BEFORE UPDATE OF lease_until ON feeds WHEN NEW.lease_until > 0
             BEGIN SELECT RAISE(ABORT, 'claims are broken'); END",
        )
        .unwrap();
}

/// A server that responds to all but robots.txt by a script.
async fn serve(bind: &str, script: impl Fn(&str) -> Vec<Act> + Send + Sync + 'static) -> RawServer {
    let script = move |head: &str| match head.starts_with("GET /robots.txt") {
        true => Act::answer("404 Not Found", b""),
        false => script(head),
    };
    RawServer::start(bind.parse().unwrap(), script)
        .await
        .unwrap()
}

fn feed_at(server: &RawServer) -> String {
    format!("http://{}/feed", server.address())
}

async fn add_feed(store: &Store, name: &str, url: &str) -> Source {
    let settings = SourceSettings {
        feed_url: Some(url.parse().unwrap()),
        ..SourceSettings::default()
    };
    world::add(store, name, "feed", url, settings).await;
    store.source_named(name).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_claim_lets_polls_in_flight_finish() {
    let test_store = test_store().await;
    let store = &test_store.store;
    let quick = serve("127.0.0.1:0", |_| Act::answer("200 OK", FEED.as_bytes())).await;
    let slow = serve("127.0.0.2:0", |_| {
        let mut acts = vec![Act::Wait(Duration::from_secs(1))];
        acts.extend(Act::answer("200 OK", FEED.as_bytes()));
        acts
    })
    .await;
    for (name, url) in [
        ("slow", feed_at(&slow)),
        ("quick", feed_at(&quick)),
        ("later", format!("{}/later", feed_at(&quick))),
    ] {
        add_feed(store, name, &url).await;
    }
    let options = PollOptions {
        concurrency: 2,
        ..PollOptions::default()
    };
    let ports = [quick.address().port(), slow.address().port()];
    let context = test_store.context(&ports);
    let poller = Arc::new(tidings_engine::Poller::new(context, options));
    let mut polled = Vec::new();
    let ended = poller
        .poll_due(|poll| {
            if polled.is_empty() {
                break_claims(store);
            }
            polled.push((poll.url.clone(), poll.outcome));
        })
        .await;
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("claims are broken"), "{error}");
    let expected = [feed_at(&quick), feed_at(&slow)].map(|url| (url, PollOutcome::Ok));
    assert_eq!(polled, expected, "the slow poll was not aborted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_whose_poll_failed_in_the_store_is_an_error() {
    let test_store = test_store().await;
    let store = &test_store.store;
    let source = add_feed(store, "paper", "http://127.0.0.1:9/feed").await;
    let poller = test_store.poller(9, PollOptions::default());
    break_claims(store);
    poller.poll_source(&source).await.unwrap_err();
    let task = store.tasks(None, 1).await.unwrap().remove(0);
    assert_eq!(task.status, "failed");
    assert!(task.detail.contains("claims are broken"), "{task:?}");
    assert!(task.finished_at.is_some());
}

/// Runs a future to its end inside a synchronous script.
fn wait_for<T>(future: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(future))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_poll_that_lost_its_lease_reports_nothing() {
    let test_store = test_store().await;
    let store = test_store.store.clone();
    let (other, claims) = (store.clone(), Arc::new(AtomicUsize::new(0)));
    let claimed = Arc::clone(&claims);
    let server = serve("127.0.0.1:0", move |_| {
        wait_for(async {
            let feed = other.feeds_after(i64::MIN, 1).await.unwrap().remove(0);
            let claim = other.claim_feed(feed.feed_id, MINUTE).await.unwrap();
            claimed.fetch_add(usize::from(claim.is_some()), Ordering::SeqCst);
        });
        Act::answer("200 OK", FEED.as_bytes())
    })
    .await;
    add_feed(&store, "paper", &feed_at(&server)).await;
    let options = PollOptions {
        // Over at once.
        lease: Duration::ZERO,
        ..PollOptions::default()
    };
    let poller = test_store.poller(server.address().port(), options);
    let mut reports = Vec::new();
    let count = poller.poll_due(|poll| reports.push(poll.clone())).await;
    assert_eq!(claims.load(Ordering::SeqCst), 1, "another poller has it");
    assert_eq!(count.unwrap(), 0, "{reports:?}");
    assert!(reports.is_empty());
}

/// Polls a source whose feed has moved, while a person edits the source; the
/// source afterwards.
async fn moved_while_edited(edit: fn(&mut NewSource)) -> (Source, String) {
    let test_store = test_store().await;
    let store = test_store.store.clone();
    let (other, requests) = (store.clone(), AtomicUsize::new(0));
    let server = serve("127.0.0.1:0", move |head| {
        if head.starts_with("GET /feed ") {
            return Act::answer("301 Moved\r\nLocation: /moved", b"");
        }
        // A move is followed when it is seen for the second time.
        let nth = requests.fetch_add(1, Ordering::SeqCst);
        if nth == 1 {
            wait_for(async {
                let source = other.source_named("paper").await.unwrap().unwrap();
                let mut edited = NewSource {
                    name: source.name,
                    url: source.url,
                    kind: source.kind,
                    priority: source.priority,
                    config: source.config,
                };
                edit(&mut edited);
                let id = source.source_id;
                other.update_source(id, &edited).await.unwrap();
            });
        }
        let body = FEED.replace("One", &format!("Story {nth}"));
        Act::answer("200 OK", body.as_bytes())
    })
    .await;
    let source = add_feed(&store, "paper", &feed_at(&server)).await;
    let poller = test_store.poller(server.address().port(), PollOptions::default());
    for _ in 0..2 {
        let now = store.now().await.unwrap();
        let feed = store.feeds_after(i64::MIN, 1).await.unwrap().remove(0);
        store.resume_feed(feed.feed_id, now).await.unwrap();
        assert_eq!(poller.poll_due(|_| {}).await.unwrap(), 1);
        test_store.advance(MINUTE);
    }
    let source = store.source(source.source_id).await.unwrap().unwrap();
    (source, format!("http://{}/moved", server.address()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_edit_of_a_source_survives_a_poll_that_follows_a_move() {
    let (source, moved) = moved_while_edited(|source| {
        source.name = "gazette".to_owned();
        source.priority = 9;
        source.config["tags"] = serde_json::json!(["mine"]);
    })
    .await;
    assert_eq!((source.name.as_str(), source.priority), ("gazette", 9));
    let settings = SourceSettings::of(&source).unwrap();
    assert_eq!(settings.tags, ["mine"]);
    assert_eq!(settings.feed_url.unwrap().as_str(), moved, "both are kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_feed_url_that_a_person_sets_during_a_poll_wins() {
    let (source, _) = moved_while_edited(|source| {
        source.config["feed_url"] = serde_json::json!("http://a.example/mine");
    })
    .await;
    let feed_url = SourceSettings::of(&source).unwrap().feed_url.unwrap();
    assert_eq!(feed_url.as_str(), "http://a.example/mine");
}

/// A sink with a defect, and how often it was called.
#[derive(Debug)]
struct Defective {
    panics_in_flush: bool,
    limits: Arc<AtomicUsize>,
    flushes: Arc<AtomicUsize>,
}

#[async_trait]
impl Sink for Defective {
    fn name(&self) -> &'static str {
        "defective"
    }

    fn limits(&self) -> BatchLimits {
        let calls = self.limits.fetch_add(1, Ordering::SeqCst);
        assert!(calls > 0 || self.panics_in_flush, "a defect in the limits");
        BatchLimits {
            max_docs: 10,
            max_bytes: 1 << 20,
        }
    }

    async fn deliver(&self, batch: &[Document], _: Timestamp) -> Vec<Verdict> {
        if batch.is_empty() {
            self.flushes.fetch_add(1, Ordering::SeqCst);
            assert!(!self.panics_in_flush, "a defect in the flush");
        }
        vec![Verdict::Accepted; batch.len()]
    }

    async fn check(&self, _: Timestamp) -> Report {
        Report::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loop_of_a_sink_outlives_its_panics() {
    for panics_in_flush in [true, false] {
        let test_store = test_store().await;
        let (limits, flushes) = (Arc::default(), Arc::new(AtomicUsize::new(0)));
        let sink = Defective {
            panics_in_flush,
            limits,
            flushes: Arc::clone(&flushes),
        };
        let options = DeliverOptions {
            check_interval: Duration::from_millis(20),
            flush_interval: Duration::from_millis(1),
            ..DeliverOptions::default()
        };
        let store = test_store.store.clone();
        let deliverer = Arc::new(Deliverer::new(store, vec![Box::new(sink)], options));
        deliverer.register(|_| false).await.unwrap();
        let flushed_again = async {
            while flushes.load(Ordering::SeqCst) < 3 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let run = deliverer.run(flushed_again);
        let ended = tokio::time::timeout(MINUTE, run).await;
        assert!(ended.is_ok(), "in flush: {panics_in_flush}; the loop ended");
    }
}
