//! From documents to every kind of sink: each document once in each, whatever the
//! sink responds, whichever process dies, and however long a sink is down.

#![allow(clippy::unwrap_used)]

mod crawl;
mod world;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crawl::{Crawl, GAP};
use tidings_engine::{
    DeliverOptions, Deliverer, FetchOptions, PollOptions, Poller, Recrawl, SourceSettings, Worker,
};
use tidings_net::{Client, Egress, NetOptions};
use tidings_sim::{
    Act, ElasticsearchFault, FakeElasticsearch, FakeFirestore, FakeGorse, FakeWebhook, NatsServer,
    RawServer, WorldConfig, postgres_database,
};
use tidings_sinks::{Context, SearchIndex, SearchQuery, Sink, SinkConfig, build};
use tidings_store::{OutboxState, Store};

fn small_web() -> WorldConfig {
    WorldConfig {
        sites: 12,
        articles_per_site: 20,
        feed_window: Some(500),
        crawl_delay: GAP,
        ..WorldConfig::new(9)
    }
}

/// A sink from its configuration; it may connect to anything on this machine.
fn sink(name: &str, toml: &str, folder: &Path, firestore: Option<String>) -> Box<dyn Sink> {
    let client = Client::new(NetOptions {
        egress: Egress {
            allow: vec!["127.0.0.0/8".parse().unwrap()],
            ports: vec![1..=65535],
        },
        ..NetOptions::default()
    })
    .unwrap();
    let config: SinkConfig = toml::from_str(toml).unwrap();
    let context = Context {
        environment: Box::new(move |name| match name {
            "KEY" => Some("a-very-secret-key".to_owned()),
            "FIRESTORE_EMULATOR_HOST" => firestore.clone(),
            _ => None,
        }),
        ..Context::new(client, folder)
    };
    build(name, &config, &context).unwrap()
}

fn elasticsearch(name: &str, url: &str) -> Box<dyn Sink> {
    let toml = format!("kind = 'elasticsearch'\nurl = '{url}'\nmax_docs = 20");
    sink(name, &toml, Path::new("."), None)
}

fn deliverer(store: &Store, sinks: Vec<Box<dyn Sink>>) -> Arc<Deliverer> {
    let options = DeliverOptions {
        lease: Duration::from_secs(2),
        check_interval: Duration::from_millis(50),
        ..DeliverOptions::default()
    };
    Arc::new(Deliverer::new(store.clone(), sinks, options))
}

/// Everything that is announced becomes a document.
async fn fetch_all(crawl: &Crawl) -> usize {
    let context = || crawl::context(&crawl.store, &[crawl.port()]);
    let poller = Arc::new(Poller::new(context(), PollOptions::default()));
    poller.poll_due(|_| {}).await.unwrap();
    let options = FetchOptions {
        ends_when_idle: true,
        ..FetchOptions::default()
    };
    let worker = Arc::new(Worker::new(context(), options));
    worker.run(std::future::pending()).await.unwrap();
    worker.tally().documents as usize
}

async fn outbox(store: &Store) -> BTreeMap<String, OutboxState> {
    let states = store.outbox().await.unwrap();
    states
        .into_iter()
        .map(|state| (state.sink.clone(), state))
        .collect()
}

/// Runs until these sinks have no pending deliveries.
async fn deliver_all(deliverer: &Arc<Deliverer>, store: &Store, sinks: &[&str]) {
    let done = async {
        loop {
            let states = outbox(store).await;
            if sinks.iter().all(|sink| states[*sink].waiting == 0) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let run = deliverer.run(done);
    tokio::time::timeout(Duration::from_secs(120), run)
        .await
        .expect("it ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sink_gets_every_document_once() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let crawl = Crawl::start(&address, small_web()).await;
    let (index, hook, gorse, firestore) = (
        FakeElasticsearch::start().await.unwrap(),
        FakeWebhook::start().await.unwrap(),
        FakeGorse::start().await.unwrap(),
        FakeFirestore::start().await.unwrap(),
    );
    let nats = NatsServer::start(&[]).unwrap();
    let make = |name: &str, toml: String| sink(name, &toml, folder.path(), Some(firestore.host()));
    let sinks = vec![
        make(
            "index",
            format!("kind = 'elasticsearch'\nurl = '{}'", index.url()),
        ),
        make(
            "hook",
            format!(
                "kind = 'webhook'\nurl = '{}'\nsecret_env = 'KEY'",
                hook.url()
            ),
        ),
        make(
            "gorse",
            format!(
                "kind = 'gorse'\nurl = '{}'\napi_key_env = 'KEY'",
                gorse.url()
            ),
        ),
        make("fire", "kind = 'firestore'\nproject = 'p'".to_owned()),
        make(
            "stream",
            format!("kind = 'nats'\nurl = 'nats://127.0.0.1:{}'", nats.port()),
        ),
        make("lines", "kind = 'jsonl'\npath = 'lines'".to_owned()),
        make("archive", "kind = 'warc'\npath = 'archive'".to_owned()),
        make("search", "kind = 'search'".to_owned()),
    ];
    let deliverer = deliverer(&crawl.store, sinks);
    // The archive accepts duplicates; the others do not.
    deliverer.register(|name| name == "archive").await.unwrap();
    let documents = fetch_all(&crawl).await;
    assert!(documents > 150, "{documents}");
    let names = [
        "index", "hook", "gorse", "fire", "stream", "lines", "archive", "search",
    ];
    deliver_all(&deliverer, &crawl.store, &names).await;

    for state in crawl.store.outbox().await.unwrap() {
        assert_eq!((state.waiting, state.dead), (0, 0), "{}", state.sink);
        assert_eq!(state.delivered as usize, documents, "{}", state.sink);
    }
    assert_eq!(index.documents("raw_content").len(), documents);
    let hooked: std::collections::BTreeSet<_> =
        hook.calls().iter().map(|call| call.id.clone()).collect();
    assert_eq!(hooked.len(), documents);
    assert_eq!(gorse.items().len(), documents);
    assert_eq!(firestore.documents("content").len(), documents);
    let found = SearchIndex::open(folder.path().join("search")).unwrap();
    assert_eq!(found.count().unwrap() as usize, documents);
    let lines: usize = std::fs::read_dir(folder.path().join("lines"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default())
        .map(|text| text.lines().count())
        .sum();
    assert_eq!(lines, documents);
    // Delivered documents can be searched.
    let story = crawl
        .store
        .documents_after(None, 1)
        .await
        .unwrap()
        .remove(0);
    let hits = found
        .search(&SearchQuery::new(format!("\"{}\"", story.title)))
        .unwrap();
    assert!(hits.total >= 1, "{}", story.title);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_an_index_lose_and_double_nothing() {
    use ElasticsearchFault::{
        Garbage, OneItemShort, ReplyLost, RequestLost, SomeItemsOverrun, SomeItemsUnavailable,
        TooManyRequests, Unavailable,
    };
    let folder = tempfile::tempdir().unwrap();
    let embedded = format!("sqlite:{}", folder.path().join("tidings.db").display());
    for address in [embedded, postgres_database().unwrap()] {
        let crawl = Crawl::start(&address, small_web()).await;
        let index = FakeElasticsearch::start().await.unwrap();
        let deliverer = deliverer(&crawl.store, vec![elasticsearch("index", &index.url())]);
        deliverer.register(|_| false).await.unwrap();
        let documents = fetch_all(&crawl).await;
        index.fail_next([
            TooManyRequests(None),
            SomeItemsOverrun(3),
            ReplyLost,
            SomeItemsUnavailable(2),
            RequestLost,
            Garbage,
            OneItemShort,
            Unavailable,
            ReplyLost,
        ]);
        index.set_max_bytes(60_000);
        deliver_all(&deliverer, &crawl.store, &["index"]).await;
        assert_eq!(index.documents("raw_content").len(), documents);
        let state = &outbox(&crawl.store).await["index"];
        assert_eq!(state.delivered + state.dead, documents as i64, "{state:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sink_that_is_down_delays_no_other_and_catches_up() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let crawl = Crawl::start(&address, small_web()).await;
    let (up, down) = (
        FakeElasticsearch::start().await.unwrap(),
        FakeElasticsearch::start().await.unwrap(),
    );
    down.set_down(true);
    let sinks = vec![
        elasticsearch("up", &up.url()),
        elasticsearch("down", &down.url()),
    ];
    let deliverer = deliverer(&crawl.store, sinks);
    deliverer.register(|_| false).await.unwrap();
    let documents = fetch_all(&crawl).await;
    let start = Instant::now();
    deliver_all(&deliverer, &crawl.store, &["up"]).await;
    assert!(
        start.elapsed() < Duration::from_secs(60),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(
        outbox(&crawl.store).await["down"].waiting as usize,
        documents
    );
    // Read-only first, then up again.
    down.set_down(false);
    down.set_read_only(true);
    let soon = async { tokio::time::sleep(Duration::from_secs(1)).await };
    deliverer.run(soon).await;
    assert_eq!(
        outbox(&crawl.store).await["down"].waiting as usize,
        documents
    );
    down.set_read_only(false);
    deliver_all(&deliverer, &crawl.store, &["down"]).await;
    assert_eq!(down.documents("raw_content").len(), documents);
}

/// The body of the processes that the test below kills; by itself it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delivering_process() {
    if let Ok(address) = std::env::var("TIDINGS_TEST_STORE") {
        let url = std::env::var("TIDINGS_TEST_SINK").unwrap();
        let store = crawl::open(&address).await;
        let deliverer = deliverer(&store, vec![elasticsearch("index", &url)]);
        deliverer.run(std::future::pending()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deliverer_that_is_killed_loses_and_doubles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let embedded = format!("sqlite:{}", folder.path().join("tidings.db").display());
    for address in [embedded, postgres_database().unwrap()] {
        let crawl = Crawl::start(&address, small_web()).await;
        let index = FakeElasticsearch::start().await.unwrap();
        let last = deliverer(&crawl.store, vec![elasticsearch("index", &index.url())]);
        last.register(|_| false).await.unwrap();
        let documents = fetch_all(&crawl).await;
        for life in 0..12_u64 {
            // Now and then the reply is lost, as if the kill had come between the
            // acknowledgement and the commit.
            if life % 3 == 0 {
                index.fail_next([ElasticsearchFault::ReplyLost]);
            }
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "delivering_process"])
                .env("TIDINGS_TEST_STORE", &address)
                .env("TIDINGS_TEST_SINK", index.url())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            tokio::time::sleep(Duration::from_millis(40 + life * life * 31 % 160)).await;
            child.kill().unwrap();
            child.wait().unwrap();
        }
        deliver_all(&last, &crawl.store, &["index"]).await;
        assert_eq!(index.documents("raw_content").len(), documents);
        let state = &outbox(&crawl.store).await["index"];
        assert_eq!((state.delivered, state.dead), (documents as i64, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edited_article_arrives_as_a_new_revision_and_never_an_older_one() {
    let text = |words: &str| {
        format!("<title>Pier</title><article><h1>Pier</h1>{}</article>", format!("<p>The council of the harbour town voted for {words} after a debate of many hours.</p>").repeat(6))
    };
    let page = Arc::new(std::sync::Mutex::new(text("the pier")));
    let served = Arc::clone(&page);
    let server = RawServer::start("127.0.0.1:0".parse().unwrap(), move |head| {
        match head.starts_with("GET /robots.txt") {
            true => Act::answer("404 Not Found", b""),
            false => Act::answer(
                "200 OK\r\nContent-Type: text/html",
                served.lock().unwrap().as_bytes(),
            ),
        }
    })
    .await
    .unwrap();
    let test_store = world::TestStore::start(tidings_store::StoreOptions::default()).await;
    let settings = SourceSettings {
        recrawl: Some(Recrawl {
            min_hours: 1.0,
            max_hours: 1.0,
        }),
        ..SourceSettings::default()
    };
    world::add(
        &test_store.store,
        "pier",
        "feed",
        "http://none.example/",
        settings,
    )
    .await;
    let source = test_store
        .store
        .source_named("pier")
        .await
        .unwrap()
        .unwrap();
    let url = tidings_url::FetchUrl::parse(&format!("http://{}/story", server.address())).unwrap();
    let target = tidings_store::Target {
        key: url.canonical(&tidings_url::Rules::default()).key(),
        host: url.host_key(&tidings_url::ProxyHosts::default()),
        url,
    };
    let submission = tidings_store::Submission {
        source_id: source.source_id,
        ..tidings_store::Submission::new(target, tidings_store::Origin::Feed)
    };
    test_store.store.submit(&[submission]).await.unwrap();
    let index = FakeElasticsearch::start().await.unwrap();
    let deliverer = deliverer(
        &test_store.store,
        vec![elasticsearch("index", &index.url())],
    );
    deliverer.register(|_| false).await.unwrap();
    for (revision, words) in (1..).zip(["the pier", "no pier", "two piers"]) {
        *page.lock().unwrap() = text(words);
        let options = FetchOptions {
            ends_when_idle: true,
            check_interval: Duration::from_millis(20),
            ..FetchOptions::default()
        };
        let worker = Worker::new(test_store.context(&[server.address().port()]), options);
        Arc::new(worker).run(std::future::pending()).await.unwrap();
        deliver_all(&deliverer, &test_store.store, &["index"]).await;
        let documents = index.documents("raw_content");
        assert_eq!(documents.len(), 1);
        let (version, body) = documents.values().next().unwrap();
        assert_eq!(*version >> 32, revision);
        assert!(body["raw_text"].as_str().unwrap().contains(words));
        assert_eq!(body["classification_status"], "pending");
        // As every reader's `_update`, it counts up the version.
        let classified = serde_json::json!({ "classification_status": "classified" });
        for _ in 0..3 {
            index.update_all("raw_content", &classified);
        }
        test_store.advance(world::HOUR);
    }
}

#[tokio::test]
async fn a_sink_that_is_down_for_hours_gets_everything_when_it_is_up_again() {
    let test_store = world::TestStore::start(tidings_store::StoreOptions::default()).await;
    let index = FakeElasticsearch::start().await.unwrap();
    let deliverer = deliverer(
        &test_store.store,
        vec![elasticsearch("index", &index.url())],
    );
    deliverer.register(|_| false).await.unwrap();
    let pages = pages();
    store_all(&test_store.store, &pages).await;
    index.set_down(true);
    for _ in 0..6 {
        let soon = async { tokio::time::sleep(Duration::from_millis(300)).await };
        deliverer.run(soon).await;
        assert_eq!(
            outbox(&test_store.store).await["index"].waiting as usize,
            pages.len()
        );
        test_store.advance(world::HOUR);
    }
    index.set_down(false);
    deliver_all(&deliverer, &test_store.store, &["index"]).await;
    assert_eq!(index.documents("raw_content").len(), pages.len());
}

#[tokio::test]
async fn deliverers_of_different_configuration_keep_the_sinks_of_each_other() {
    let test_store = world::TestStore::start(tidings_store::StoreOptions::default()).await;
    let store = &test_store.store;
    let (first, second) = (
        FakeElasticsearch::start().await.unwrap(),
        FakeElasticsearch::start().await.unwrap(),
    );
    let of_first = deliverer(store, vec![elasticsearch("first", &first.url())]);
    let of_second = deliverer(store, vec![elasticsearch("second", &second.url())]);
    let pages = pages();
    let (early, late) = pages.split_at(2);
    of_first.register(|_| false).await.unwrap();
    of_second.register(|_| false).await.unwrap();
    store_all(store, early).await;
    deliver_all(&of_second, store, &["second"]).await;
    assert_eq!(outbox(store).await["first"].waiting as usize, early.len());
    store_all(store, late).await;
    deliver_all(&of_first, store, &["first"]).await;
    deliver_all(&of_second, store, &["second"]).await;
    for index in [first, second] {
        assert_eq!(index.documents("raw_content").len(), pages.len());
    }
}

#[tokio::test]
async fn a_disabled_sink_gets_nothing_until_it_is_enabled() {
    let test_store = world::TestStore::start(tidings_store::StoreOptions::default()).await;
    let store = &test_store.store;
    let index = FakeElasticsearch::start().await.unwrap();
    let deliverer = deliverer(store, vec![elasticsearch("index", &index.url())]);
    deliverer.register(|_| false).await.unwrap();
    let pages = pages();
    let (early, late) = pages.split_at(2);
    store_all(store, early).await;
    store.disable_sink("index").await.unwrap();
    test_store.advance(world::HOUR);
    store_all(store, late).await;
    // As after a restart with the same configuration.
    deliverer.register(|_| false).await.unwrap();
    let soon = async { tokio::time::sleep(Duration::from_millis(300)).await };
    deliverer.run(soon).await;
    assert!(index.documents("raw_content").is_empty());
    assert_eq!(outbox(store).await["index"].waiting as usize, early.len());
    let missed = store.enable_sink("index").await.unwrap();
    assert_eq!(missed, Some(late.len() as u64));
    deliver_all(&deliverer, store, &["index"]).await;
    assert_eq!(index.documents("raw_content").len(), pages.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_index_of_one_node_has_all_documents() {
    let test_store = world::TestStore::start(tidings_store::StoreOptions::default()).await;
    let store = &test_store.store;
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let nodes: Vec<_> = folders
        .iter()
        .zip(["alpha", "beta"])
        .map(|(folder, node)| {
            let search = sink("search", "kind = 'search'", folder.path(), None);
            let options = DeliverOptions {
                check_interval: Duration::from_millis(50),
                ..DeliverOptions::default()
            };
            let deliverer = Deliverer::new(store.clone(), vec![search], options);
            Arc::new(deliverer.on_node(node.to_owned()))
        })
        .collect();
    for node in &nodes {
        node.register(|_| false).await.unwrap();
    }
    let pages = pages();
    let (stop, _) = tokio::sync::watch::channel(false);
    let running: Vec<_> = nodes
        .iter()
        .map(|node| {
            let (node, mut stopped) = (Arc::clone(node), stop.subscribe());
            tokio::spawn(async move {
                let stopped = async { drop(stopped.wait_for(|stop| *stop).await) };
                node.run(stopped).await;
            })
        })
        .collect();
    // One by one, so that both could claim some.
    for page in &pages {
        store_all(store, std::slice::from_ref(page)).await;
        while outbox(store).await["search"].waiting > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    stop.send_replace(true);
    for running in running {
        running.await.unwrap();
    }
    let in_index = |folder: &tempfile::TempDir| {
        SearchIndex::open(folder.path().join("search")).map_or(0, |index| index.count().unwrap())
    };
    let mut counts: Vec<_> = folders.iter().map(in_index).collect();
    counts.sort_unstable();
    assert_eq!(counts, [0, pages.len() as u64]);
}

/// Pages of a folder (`TIDINGS_TEST_CORPUS`, `*.html.gz`), or a few of our own.
fn pages() -> Vec<(String, Vec<u8>)> {
    let Ok(folder) = std::env::var("TIDINGS_TEST_CORPUS") else {
        let page = |n: usize| {
            let text = format!("<p>The council of harbour town number {n} voted for the pier after a debate of many hours.</p>").repeat(5);
            let json = format!(
                "{{\"@type\":\"NewsArticle\",\"headline\":\"Pier {n}\",\"datePublished\":\"2026-11-0{n}T10:00:00+01:00\",\"wordCount\":\"120\",\"image\":{{\"url\":\"http://a.example/{n}.jpg\"}},\"weird\":[1,{{\"a\":2}}]}}"
            );
            format!(
                "<html><head><title>Pier {n}</title><meta property=og:image:width content=640px><script type=application/ld+json>{json}</script></head><article><h1>Pier {n}</h1>{text}</article>"
            )
        };
        return (1..6)
            .map(|n| (format!("http://a.example/{n}"), page(n).into_bytes()))
            .collect();
    };
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Some(id) = name.strip_suffix(".html.gz") {
            let packed = Command::new("gzip").arg("-dc").arg(&path).output().unwrap();
            pages.push((format!("http://corpus.example/{id}"), packed.stdout));
        }
    }
    pages
}

/// Documents as the workers would build them, without fetching.
async fn store_all(store: &Store, pages: &[(String, Vec<u8>)]) {
    for (url, html) in pages {
        let url = tidings_url::FetchUrl::parse(url).unwrap();
        let key = url.canonical(&tidings_url::Rules::default()).key();
        let page = tidings_extract::Page {
            html,
            url: url.as_str(),
            charset: None,
            selectors: None,
            feed: None,
            now: "2026-11-15T00:00:00Z".parse().unwrap(),
        };
        let article = tidings_extract::extract(&page, &tidings_extract::Options::default());
        let serde_json::Value::Object(raw_content) =
            serde_json::to_value(&article.raw_content).unwrap()
        else {
            panic!("fields are an object");
        };
        let document = tidings_document::Document {
            id: key.to_string(),
            url: url.as_str().to_owned(),
            title: article.title.map(|title| title.value).unwrap_or_default(),
            body_text: article.text,
            raw_content,
            ..tidings_document::Document::default()
        };
        let target = tidings_store::Target {
            key,
            host: url.host_key(&tidings_url::ProxyHosts::default()),
            url,
        };
        let submission =
            tidings_store::Submission::new(target.clone(), tidings_store::Origin::Manual);
        store.submit(&[submission]).await.unwrap();
        let mut request = tidings_store::ClaimRequest::new(1, 1);
        request.lease = Duration::from_secs(3600);
        let outcome = tidings_store::Outcome::Fetched {
            etag: None,
            last_modified: None,
            content_hash: None,
            document: Some(Box::new(tidings_store::NewDocument {
                key,
                source_id: 0,
                title: document.title.clone(),
                content_hash: None,
                sketch: None,
                body: serde_json::to_string(&document).unwrap(),
            })),
            again_in: None,
        };
        store
            .set_host_limits(target.id().host, Duration::ZERO, 1)
            .await
            .unwrap();
        let claim = store.claim(&request).await.unwrap().claims.remove(0);
        let completion = tidings_store::Completion::new(claim.lease_token, outcome);
        assert_eq!(store.complete(&[completion]).await.unwrap(), [true]);
    }
}

#[tokio::test]
async fn the_strict_index_accepts_every_document() {
    let test_store = world::TestStore::start(tidings_store::StoreOptions::default()).await;
    let index = FakeElasticsearch::start().await.unwrap();
    let deliverer = deliverer(
        &test_store.store,
        vec![elasticsearch("index", &index.url())],
    );
    deliverer.register(|_| true).await.unwrap();
    let pages = pages();
    store_all(&test_store.store, &pages).await;
    deliver_all(&deliverer, &test_store.store, &["index"]).await;
    let dead = test_store
        .store
        .dead_letters("index", None, 5)
        .await
        .unwrap();
    assert!(dead.is_empty(), "{dead:?}");
    assert_eq!(index.documents("raw_content").len(), pages.len());
}
