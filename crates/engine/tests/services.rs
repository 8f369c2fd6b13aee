//! Services with an adapter, from the source to the frontier and to documents,
//! and collection runs over them.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tidings_adapters::ServiceOptions;
use tidings_engine::{
    CollectError, CollectOptions, FetchContext, FetchOptions, PollOptions, PollOutcome, Poller,
    SourceDraft, SourceSettings, Worker, add_source, stored_document,
};
use tidings_net::{Client, Egress, NetOptions};
use tidings_sim::{ApiFault, FakeApi, Story};
use tidings_store::{Filter, Order, Store, StoreOptions};

const KEY: &str = "the-key-of-the-test";

struct Rig {
    store: Store,
    address: String,
    ports: Vec<u16>,
    /// Where the services are that sources were added for.
    services: Mutex<BTreeMap<String, ServiceOptions>>,
    _folder: tempfile::TempDir,
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

impl Rig {
    async fn start(fakes: &[&FakeApi]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
        Self {
            store: open(&address).await,
            address,
            ports: fakes.iter().map(|fake| fake.port()).collect(),
            services: Mutex::default(),
            _folder: folder,
        }
    }

    fn context(&self, store: &Store) -> FetchContext {
        let client = Client::new(NetOptions {
            egress: Egress {
                allow: vec!["127.0.0.0/8".parse().unwrap()],
                ports: self.ports.iter().map(|port| *port..=*port).collect(),
            },
            ..NetOptions::default()
        });
        FetchContext::new(client.unwrap(), store.clone())
    }

    fn poller(&self) -> Arc<Poller> {
        Arc::new(self.poller_with_key(|_| Some(KEY.to_owned())))
    }

    fn poller_with_key(&self, secrets: fn(&str) -> Option<String>) -> Poller {
        let options = PollOptions {
            secrets,
            services: self.services.lock().unwrap().clone(),
            ..PollOptions::default()
        };
        Poller::new(self.context(&self.store), options)
    }

    async fn add(&self, name: &str, kind: &str, fake: &FakeApi, config: serde_json::Value) {
        self.add_with(name, kind, fake, config, |_| {}).await;
    }

    async fn add_with(
        &self,
        name: &str,
        kind: &str,
        fake: &FakeApi,
        config: serde_json::Value,
        change: impl FnOnce(&mut SourceSettings),
    ) {
        let service = ServiceOptions {
            base_url: Some(fake.url()),
            ..ServiceOptions::default()
        };
        let before = self
            .services
            .lock()
            .unwrap()
            .insert(kind.to_owned(), service);
        assert!(before.is_none(), "a service of this kind was added before");
        let mut settings = SourceSettings {
            kind: kind.to_owned(),
            config,
            ..SourceSettings::default()
        };
        change(&mut settings);
        let draft = SourceDraft {
            name: name.to_owned(),
            url: format!("https://{name}.example/").parse().unwrap(),
            priority: 5,
            settings,
        };
        add_source(&self.store, &draft).await.unwrap();
    }

    async fn urls(&self) -> usize {
        let filter = Filter::default();
        let page = self.store.list(&filter, Order::Id, None, 10_000).await;
        page.unwrap().rows.len()
    }

    async fn feed(&self, name: &str) -> tidings_store::Feed {
        let source = self.store.source_named(name).await.unwrap().unwrap();
        let feeds = self.store.feeds_of_source(source.source_id).await;
        feeds.unwrap().remove(0)
    }

    async fn resume(&self, name: &str) {
        let (feed, now) = (self.feed(name).await, self.store.now().await.unwrap());
        self.store.resume_feed(feed.feed_id, now).await.unwrap();
    }
}

async fn open(address: &str) -> Store {
    let mut options = StoreOptions::default();
    options.host_delay = Duration::from_millis(1);
    Store::open(address, &options).await.unwrap()
}

fn quick() -> CollectOptions {
    CollectOptions {
        request_timeout: Duration::from_secs(2),
        source_timeout: Duration::from_secs(20),
        retry_delays: vec![Duration::from_millis(5)],
        ..CollectOptions::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_over_restarts_bring_each_story_once() {
    let fake = FakeApi::hackernews().await.unwrap();
    let mut rig = Rig::start(&[&fake]).await;
    rig.add("hn", "hackernews", &fake, json!({})).await;
    fake.publish_many(1500, now() - 80_000, 40);
    let mut ended = Vec::new();
    let polls = rig.poller().poll_due(|poll| ended.push(poll.clone())).await;
    assert_eq!(polls.unwrap(), 1, "{ended:?}");
    assert_eq!(
        (ended[0].outcome, ended[0].items_new),
        (PollOutcome::Ok, 1500)
    );
    assert_eq!(rig.urls().await, 1500);
    // Another process resumes at the cursor.
    rig.store = open(&rig.address).await;
    fake.publish_many(20, now() - 60, 1);
    rig.resume("hn").await;
    rig.poller()
        .poll_due(|poll| ended.push(poll.clone()))
        .await
        .unwrap();
    assert_eq!((ended[1].items_seen, ended[1].items_new), (20, 20));
    assert_eq!(rig.urls().await, 1520);
    let log = rig
        .store
        .fetch_log(rig.feed("hn").await.feed_id, 10)
        .await
        .unwrap();
    assert_eq!(log.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_was_not_kept_repeats_and_skips_nothing() {
    let fake = FakeApi::hackernews().await.unwrap();
    let rig = Rig::start(&[&fake]).await;
    rig.add("hn", "hackernews", &fake, json!({})).await;
    fake.publish_many(30, now() - 3000, 40);
    // The lease is lost while the poll is in flight, as when a process is killed
    // after it submitted: nothing of the poll is stored but the URLs.
    let feed = rig.feed("hn").await;
    let lost = rig
        .store
        .claim_feed(feed.feed_id, Duration::ZERO)
        .await
        .unwrap()
        .unwrap();
    rig.poller().poll_due(|_| {}).await.unwrap();
    assert_eq!(rig.urls().await, 30);
    assert!(lost.feed.policy == "{}");
    // Lost cursor: everything is pulled again, and everything is known.
    let claim = rig
        .store
        .claim_feed(feed.feed_id, Duration::from_secs(9))
        .await
        .unwrap()
        .unwrap();
    let result = tidings_store::PollResult {
        feed: lost.feed,
        next_poll_in: Duration::ZERO,
        log: rig
            .store
            .fetch_log(feed.feed_id, 1)
            .await
            .unwrap()
            .remove(0),
    };
    rig.store.complete_poll(&claim, &result).await.unwrap();
    let mut ended = Vec::new();
    rig.poller()
        .poll_due(|poll| ended.push(poll.clone()))
        .await
        .unwrap();
    assert_eq!((ended[0].items_seen, ended[0].items_new), (30, 0));
    assert_eq!(rig.urls().await, 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_key_is_an_error_of_its_source_alone() {
    let (paper, hn) = (
        FakeApi::newsapi().await.unwrap(),
        FakeApi::hackernews().await.unwrap(),
    );
    let rig = Rig::start(&[&paper, &hn]).await;
    paper.require_key("another key by now");
    rig.add("paper", "newsapi", &paper, json!({ "q": "x" }))
        .await;
    rig.add("hn", "hackernews", &hn, json!({})).await;
    hn.publish_many(5, now() - 100, 1);
    paper.publish_many(5, now() - 100, 1);
    rig.poller().poll_due(|_| {}).await.unwrap();
    let feed = rig.feed("paper").await;
    assert_eq!(feed.error_class.as_deref(), Some("auth"));
    let error = feed.last_error.unwrap();
    assert!(
        error.contains("apiKeyInvalid") && !error.contains(KEY),
        "{error}"
    );
    assert_eq!(rig.feed("hn").await.last_error, None);
    assert_eq!(rig.urls().await, 5);
    paper.require_key(KEY);
    rig.resume("paper").await;
    rig.poller().poll_due(|_| {}).await.unwrap();
    let feed = rig.feed("paper").await;
    assert_eq!(feed.last_error, None);
    // 100 requests per day, one per pull.
    let wait = feed.next_poll_at.since(rig.store.now().await.unwrap());
    assert!(
        wait > Duration::from_secs(850) && wait <= Duration::from_secs(900),
        "{wait:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_become_documents_without_a_request() {
    let fake = FakeApi::hackernews().await.unwrap();
    let rig = Rig::start(&[&fake]).await;
    rig.add_with("hn", "hackernews", &fake, json!({}), |settings| {
        settings.as_documents = true;
    })
    .await;
    let text = "<p>The council voted on the harbour plan after nine hours of debate.".repeat(9);
    fake.publish(Story {
        title: "Ask: who has a boat?".to_owned(),
        text,
        at: now() - 60,
        ..Story::default()
    });
    rig.poller().poll_due(|_| {}).await.unwrap();
    let requests = fake.asked().len();
    let worker = Arc::new(Worker::new(
        rig.context(&rig.store),
        FetchOptions::default(),
    ));
    let made = async {
        while rig.store.documents_after(None, 1).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    worker.run(made).await.unwrap();
    let stored = rig.store.documents_after(None, 10).await.unwrap();
    let document = stored_document(&stored[0]).unwrap();
    assert_eq!(document.title, "Ask: who has a boat?");
    assert!(document.body_text.contains("after nine hours of debate"));
    assert_eq!(
        (document.origin.as_str(), document.license.as_str()),
        ("api", "api")
    );
    assert_eq!(document.feed.guid.as_deref(), Some("1"));
    assert_eq!(fake.asked().len(), requests);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_finishes_whatever_single_sources_do() {
    let fakes = [
        FakeApi::hackernews().await.unwrap(),
        FakeApi::guardian().await.unwrap(),
        FakeApi::newsapi().await.unwrap(),
    ];
    let [good, hanging, failing] = &fakes;
    let rig = Rig::start(&[good, hanging, failing]).await;
    rig.add("good", "hackernews", good, json!({})).await;
    rig.add("hanging", "guardian", hanging, json!({})).await;
    rig.add("failing", "newsapi", failing, json!({ "q": "x" }))
        .await;
    good.publish_many(12, now() - 100, 1);
    hanging.fail_next([ApiFault::Silence, ApiFault::Silence, ApiFault::Silence]);
    failing.require_key("another");
    let poller = rig.poller();

    let dry = CollectOptions {
        dry_run: true,
        sources: vec!["good".to_owned()],
        ..quick()
    };
    let seen = poller.collect(&dry, |_| {}).await.unwrap();
    assert_eq!((seen.items_new, seen.run_id), (12, None));
    assert_eq!(rig.urls().await, 0);
    assert!(rig.store.runs(None, 10).await.unwrap().is_empty());
    assert_eq!(rig.feed("good").await.last_polled_at, None);

    let mut reported = 0;
    let run = poller.collect(&quick(), |_| reported += 1).await.unwrap();
    assert_eq!(
        (reported, run.attempted, run.succeeded, run.items_new),
        (3, 3, 1, 12)
    );
    let of = |name: &str| {
        run.sources
            .iter()
            .find(|source| source.name == name)
            .unwrap()
    };
    assert!(
        of("hanging")
            .error
            .as_ref()
            .unwrap()
            .contains("no response"),
        "{run:?}"
    );
    assert!(
        of("failing")
            .error
            .as_ref()
            .unwrap()
            .contains("apiKeyInvalid"),
        "{run:?}"
    );
    assert_eq!(rig.urls().await, 12);
    let runs = rig.store.runs(None, 10).await.unwrap();
    assert_eq!(runs.len(), 1);
    let metrics: serde_json::Value = serde_json::from_str(&runs[0].metrics).unwrap();
    assert_eq!(metrics["items_new"], 12);
    assert!(runs[0].finished_at.is_some());

    let unknown = CollectOptions {
        sources: vec!["nobody".to_owned()],
        ..quick()
    };
    let error = poller.collect(&unknown, |_| {}).await.unwrap_err();
    assert!(matches!(error, CollectError::NoSuchSource(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_is_shared_and_the_rest_comes_with_the_next_run() {
    let fakes = [
        FakeApi::hackernews().await.unwrap(),
        FakeApi::guardian().await.unwrap(),
    ];
    let [large, small] = &fakes;
    let rig = Rig::start(&[large, small]).await;
    rig.add("large", "hackernews", large, json!({})).await;
    rig.add("small", "guardian", small, json!({})).await;
    large.publish_many(300, now() - 4000, 1);
    // Other addresses than those of the first.
    for n in 0..20 {
        small.publish(Story {
            url: format!("https://small.example/{n}"),
            at: now() - 50,
            ..Story::default()
        });
    }
    let options = CollectOptions {
        max_new: 100,
        ..quick()
    };
    let poller = rig.poller();
    let mut counts = Vec::new();
    for _ in 0..4 {
        let run = poller.collect(&options, |_| {}).await.unwrap();
        counts.push(run.items_new);
        assert!(run.items_new <= 100);
        if counts.len() == 1 {
            let of = |name: &str| run.sources.iter().find(|line| line.name == name).unwrap();
            assert_eq!((of("small").items_new, of("large").items_new), (20, 80));
        }
    }
    assert_eq!(counts.iter().sum::<usize>(), 320, "{counts:?}");
    assert_eq!(rig.urls().await, 320);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runs_never_run_concurrently() {
    let fake = FakeApi::hackernews().await.unwrap();
    let rig = Rig::start(&[&fake]).await;
    rig.add("hn", "hackernews", &fake, json!({})).await;
    fake.fail_next([ApiFault::Silence]);
    let (first, second) = (rig.poller(), rig.poller());
    let (first_options, second_options) = (quick(), quick());
    let (a, b) = tokio::join!(
        first.collect(&first_options, |_| {}),
        second.collect(&second_options, |_| {})
    );
    let refused = [a.is_err(), b.is_err()].iter().filter(|err| **err).count();
    assert_eq!(refused, 1);
    let error = a.err().or(b.err()).unwrap();
    assert!(matches!(error, CollectError::Running(_)), "{error}");
    assert!(first.collect(&quick(), |_| {}).await.is_ok());
}

fn leasing(store: &Store, port: u16, lease: Duration) -> Arc<Poller> {
    let client = Client::new(NetOptions {
        egress: Egress {
            allow: vec!["127.0.0.0/8".parse().unwrap()],
            ports: vec![port..=port],
        },
        ..NetOptions::default()
    });
    let service = ServiceOptions {
        base_url: Some(format!("http://127.0.0.1:{port}")),
        ..ServiceOptions::default()
    };
    let options = PollOptions {
        lease,
        services: BTreeMap::from([("hackernews".to_owned(), service)]),
        ..PollOptions::default()
    };
    let mut context = FetchContext::new(client.unwrap(), store.clone());
    context.lease = lease;
    Arc::new(Poller::new(context, options))
}

async fn resume_and_poll(store: &Store, poller: &Arc<Poller>) -> usize {
    let now = store.now().await.unwrap();
    for feed in store.feeds_after(i64::MIN, 10).await.unwrap() {
        store.resume_feed(feed.feed_id, now).await.unwrap();
    }
    poller.poll_due(|_| {}).await.unwrap()
}

/// The body of the processes that the test below kills; by itself it does nothing.
#[tokio::test]
async fn pulling_process() {
    if let Ok(address) = std::env::var("TIDINGS_TEST_STORE") {
        let port = std::env::var("TIDINGS_TEST_PORT").unwrap().parse().unwrap();
        let store = open(&address).await;
        let poller = leasing(&store, port, Duration::from_millis(700));
        loop {
            resume_and_poll(&store, &poller).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_pullers_lose_nothing() {
    let fake = FakeApi::hackernews().await.unwrap();
    let rig = Rig::start(&[&fake]).await;
    // Several pulls per walk, so that one is always in flight.
    rig.add("hn", "hackernews", &fake, json!({ "max_pages": 1 }))
        .await;
    for life in 0..8_u64 {
        fake.publish_many(1200, now() - 80_000 + 9000 * life as i64, 7);
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "pulling_process"])
            .env("TIDINGS_TEST_STORE", &rig.address)
            .env("TIDINGS_TEST_PORT", fake.port().to_string())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(Duration::from_millis(130 + 70 * life)).await;
        // SIGKILL: it cannot clean up.
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let poller = leasing(&rig.store, fake.port(), Duration::from_secs(5));
    let published: std::collections::BTreeSet<String> =
        fake.stories().into_iter().map(|story| story.url).collect();
    let all_found = async {
        loop {
            resume_and_poll(&rig.store, &poller).await;
            let filter = Filter::default();
            let page = rig.store.list(&filter, Order::Id, None, 20_000).await;
            if page.unwrap().rows.len() == published.len() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(180), all_found)
        .await
        .expect("every story is found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_checked_without_side_effects() {
    let fake = FakeApi::newsapi().await.unwrap();
    fake.require_key(KEY);
    let rig = Rig::start(&[&fake]).await;
    rig.add("api", "newsapi", &fake, json!({ "q": "harbour" }))
        .await;
    fake.publish_many(5, now() - 600, 10);
    let checked = rig.poller().check_source("api").await.unwrap();
    assert_eq!((checked.error, checked.items_new), (None, 5));
    assert!(checked.service.is_some());
    assert_eq!(rig.urls().await, 0);
    let other = rig.poller_with_key(|_| Some("another-key".to_owned()));
    let refused = other.check_source("api").await.unwrap();
    let error = refused.error.unwrap();
    assert!(
        refused.items.is_empty() && !error.contains("another-key"),
        "{error}"
    );
}
