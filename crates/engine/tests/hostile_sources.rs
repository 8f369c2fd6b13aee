//! Sources that are legal and hostile: indexes without end, feeds with more than
//! anybody reads, robots.txt files that all lead to one host.

#![allow(clippy::unwrap_used)]

mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidings_engine::{
    FetchContext, LIMITED, PollOptions, PollOutcome, PollReport, Poller, SourceSettings,
};
use tidings_net::{Client, Egress, NetOptions};
use tidings_sim::{Act, RawServer, SimClock, SimServer, WorldConfig};
use tidings_store::{Feed, Filter, Store, StoreOptions};
use world::{HOUR, TestStore};

async fn serve(script: impl Fn(&str, &str) -> Vec<Act> + Send + Sync + 'static) -> RawServer {
    RawServer::start("127.0.0.1:0".parse().unwrap(), move |head| {
        let lower = head.to_lowercase();
        let host = lower
            .split("host: ")
            .nth(1)
            .and_then(|rest| rest.lines().next());
        script(
            host.unwrap_or_default(),
            head.split(' ').nth(1).unwrap_or_default(),
        )
    })
    .await
    .unwrap()
}

fn xml(body: &str) -> Vec<Act> {
    Act::answer("200 OK\r\nContent-Type: application/xml", body.as_bytes())
}

fn not_found() -> Vec<Act> {
    Act::answer("404 Not Found", b"")
}

/// An index of so many sitemaps that were never listed before, each of which is such
/// an index, and of one at another site.
fn endless_index(host: &str, count: usize, next: &AtomicUsize) -> String {
    let mut body = String::from("<sitemapindex>");
    for _ in 0..count {
        let n = next.fetch_add(1, Ordering::SeqCst);
        write!(body, "<sitemap><loc>http://{host}/{n}.xml</loc></sitemap>").unwrap();
    }
    body.push_str("<sitemap><loc>http://stranger.example/a.xml</loc></sitemap></sitemapindex>");
    body
}

fn sitemap_settings(url: &str) -> SourceSettings {
    SourceSettings {
        sitemap_url: Some(url.parse().unwrap()),
        feed_ignores_robots: true,
        ..SourceSettings::default()
    }
}

async fn feeds(store: &Store) -> Vec<Feed> {
    store.feeds_after(i64::MIN, 100_000).await.unwrap()
}

async fn feed(store: &Store, end: &str) -> Feed {
    let all = feeds(store).await;
    all.into_iter()
        .find(|feed| feed.url.ends_with(end))
        .unwrap()
}

#[tokio::test]
async fn an_index_without_end_has_so_many_sitemaps_and_the_rest_is_counted() {
    let next = AtomicUsize::new(0);
    let server = serve(move |host, _| xml(&endless_index(host, 1200, &next))).await;
    let url = format!("http://{}/index.xml", server.address());
    let test_store = TestStore::start(StoreOptions::default()).await;
    let store = &test_store.store;
    world::add(store, "endless", "sitemap", &url, sitemap_settings(&url)).await;
    let poller = test_store.poller(server.address().port(), PollOptions::default());
    poller.poll_due(|_| {}).await.unwrap();
    assert_eq!(feeds(store).await.len(), 1001);
    for _ in 0..8 {
        test_store.advance(Duration::from_secs(70));
        poller.poll_due(|_| {}).await.unwrap();
    }
    let all = feeds(store).await;
    assert_eq!(all.len(), 5001);
    assert!(all.iter().all(|feed| !feed.url.contains("stranger")));
    let root = feed(store, "/index.xml").await;
    assert_eq!(root.error_class.as_deref(), Some(LIMITED));
    assert_eq!(
        root.last_error.as_deref().unwrap(),
        "of 1201 sitemaps in the index, 1 belong to another site, \
         200 are beyond the 1000 newest of one index; they are left out"
    );
    let log = store.fetch_log(root.feed_id, 1).await.unwrap();
    assert_eq!(log[0].error_message, root.last_error);
    assert_eq!(root.consecutive_errors, 0);
}

#[tokio::test]
async fn sitemaps_that_fail_or_have_nothing_recent_are_retired() {
    let polls = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
    let counts = Arc::clone(&polls);
    let server = serve(move |host, path| {
        *counts.lock().unwrap().entry(path.to_owned()).or_default() += 1;
        let entry = |date: &str| {
            xml(&format!(
                "<urlset><url><loc>http://{host}/a</loc><lastmod>{date}</lastmod></url></urlset>"
            ))
        };
        match path {
            "/index.xml" => {
                let child = |name| format!("<sitemap><loc>http://{host}/{name}</loc></sitemap>");
                let children = ["gone.xml", "old.xml", "recent.xml", "undated.xml"].map(child);
                xml(&format!(
                    "<sitemapindex>{}</sitemapindex>",
                    children.concat()
                ))
            }
            "/old.xml" => entry("2020-01-01T00:00:00Z"),
            "/recent.xml" => entry("2026-11-01T00:00:00Z"),
            "/undated.xml" => xml(&format!(
                "<urlset><url><loc>http://{host}/b</loc></url></urlset>"
            )),
            _ => not_found(),
        }
    })
    .await;
    let url = format!("http://{}/index.xml", server.address());
    let test_store = TestStore::start(StoreOptions::default()).await;
    let store = &test_store.store;
    world::add(store, "paper", "sitemap", &url, sitemap_settings(&url)).await;
    let poller = test_store.poller(server.address().port(), PollOptions::default());
    for _ in 0..14 * 24 {
        poller.poll_due(|_| {}).await.unwrap();
        test_store.advance(HOUR);
    }
    let class = async |end| feed(store, end).await.error_class;
    assert_eq!(class("/gone.xml").await.as_deref(), Some("retired"));
    assert_eq!(class("/old.xml").await.as_deref(), Some("retired"));
    assert_eq!(class("/recent.xml").await, None);
    assert_eq!(class("/undated.xml").await, None);
    let reason = feed(store, "/gone.xml").await.last_error.unwrap();
    assert!(
        reason.contains("once per week") && reason.contains("404"),
        "{reason}"
    );
    // The others four times per day.
    let polls = polls.lock().unwrap().clone();
    assert!(polls["/old.xml"] <= 3, "{polls:?}");
    assert!(polls["/gone.xml"] <= 6, "{polls:?}");
    assert!(polls["/undated.xml"] > 30, "{polls:?}");
}

#[tokio::test]
async fn what_exceeds_the_daily_quota_comes_on_the_next_days() {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let server = RawServer::start("127.0.0.1:0".parse().unwrap(), move |head| {
        count.fetch_add(1, Ordering::SeqCst);
        if head.to_lowercase().contains("if-none-match: \"same\"") {
            return vec![Act::Send(b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec())];
        }
        let item = |n| format!("<item><link>http://a.example/{n}</link></item>");
        let items: String = (0..30).map(item).collect();
        let body = format!("<rss version='2.0'><channel>{items}</channel></rss>");
        Act::answer("200 OK\r\nETag: \"same\"", body.as_bytes())
    })
    .await
    .unwrap();
    let url = format!("http://{}/feed", server.address());
    let test_store = TestStore::start(StoreOptions::default()).await;
    let store = &test_store.store;
    let settings = SourceSettings {
        feed_url: Some(url.parse().unwrap()),
        feed_ignores_robots: true,
        max_new_urls_per_day: Some(12),
        ..SourceSettings::default()
    };
    world::add(store, "flood", "feed", &url, settings).await;
    let mut found = Vec::new();
    for day in 0..4 {
        // A poller of its own each day: the count is the store's.
        let poller = test_store.poller(server.address().port(), PollOptions::default());
        for _ in 0..24 {
            poller.poll_due(|_| {}).await.unwrap();
            // The first of these days has 18 hours.
            if day > 0 || test_store.store.now().await.unwrap().0 % 86_400_000 < 82_800_000 {
                test_store.advance(HOUR);
            }
        }
        if day == 0 {
            let limited = feed(store, "/feed").await;
            assert_eq!(limited.error_class.as_deref(), Some(LIMITED));
            let reason = limited.last_error.unwrap();
            assert!(
                reason.contains("max_new_urls_per_day (12) is reached"),
                "{reason}"
            );
            // It is not asked again before tomorrow.
            assert_eq!(requests.load(Ordering::SeqCst), 1);
            test_store.advance(HOUR);
        }
        found.push(store.count(&Filter::default()).await.unwrap());
    }
    assert_eq!(found, [12, 24, 30, 30]);
    assert_eq!(feed(store, "/feed").await.error_class, None);
}

#[tokio::test]
async fn robots_txt_that_redirects_takes_a_permit_of_the_other_host() {
    let requests = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
    let counts = Arc::clone(&requests);
    let server = serve(move |host, path| {
        let name = host.split(':').next().unwrap_or_default();
        *counts.lock().unwrap().entry(name.to_owned()).or_default() += 1;
        let port = host.split(':').nth(1).unwrap_or_default();
        match path {
            "/robots.txt" if name == "target.localhost" => Act::answer("200 OK", b""),
            "/robots.txt" => Act::answer(
                &format!("301 Moved\r\nLocation: http://target.localhost:{port}/robots.txt"),
                b"",
            ),
            _ => xml("<rss version='2.0'><channel><item><link>http://a.example/1</link></item></channel></rss>"),
        }
    })
    .await;
    let mut options = StoreOptions::default();
    options.host_delay = Duration::from_millis(20);
    let test_store = TestStore::start(options).await;
    let store = &test_store.store;
    let port = server.address().port();
    for n in 0..8 {
        let url = format!("http://h{n}.localhost:{port}/feed");
        let settings = SourceSettings {
            feed_url: Some(url.parse().unwrap()),
            ..SourceSettings::default()
        };
        world::add(store, &url, "feed", &url, settings).await;
    }
    let poller = test_store.poller(port, PollOptions::default());
    let target = || requests.lock().unwrap().get("target.localhost").copied();
    let mut polled = 0;
    for step in 1..=60 {
        // The clock stands still meanwhile, so the host has one permit.
        let before = target().unwrap_or(0);
        poller
            .poll_due(|poll| polled += usize::from(poll.outcome == PollOutcome::Ok))
            .await
            .unwrap();
        assert!(target().unwrap_or(0) <= before + 1, "at step {step}");
        test_store.advance(Duration::from_secs(30));
    }
    assert_eq!((polled, target()), (8, Some(8)));
}

/// Feeds that never answer must not keep the poller from those that are due later.
#[tokio::test]
async fn a_feed_that_hangs_does_not_delay_others() {
    let server = serve(|_, path| match path {
        "/hang" => vec![Act::Wait(Duration::from_secs(3600))],
        _ => xml("<rss version='2.0'><channel></channel></rss>"),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let store = Store::open(&address, &StoreOptions::default())
        .await
        .unwrap();
    let port = server.address().port();
    let add = async |host: &str, path: &str| {
        let url = format!("http://{host}.localhost:{port}{path}");
        let settings = SourceSettings {
            feed_url: Some(url.parse().unwrap()),
            feed_ignores_robots: true,
            ..SourceSettings::default()
        };
        world::add(&store, host, "feed", &url, settings).await;
    };
    add("hostile", "/hang").await;
    let client = Client::new(NetOptions {
        egress: Egress {
            allow: vec!["127.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()],
            ports: vec![port..=port],
        },
        ..NetOptions::default()
    });
    let context = FetchContext::new(client.unwrap(), store.clone());
    let poller = Arc::new(Poller::new(context, PollOptions::default()));
    let reported = Arc::new(Mutex::new(Vec::new()));
    let polling = {
        let (poller, reported) = (Arc::clone(&poller), Arc::clone(&reported));
        tokio::spawn(async move {
            let report = |poll: &PollReport| reported.lock().unwrap().push(poll.url.clone());
            poller.poll_due(report).await.unwrap()
        })
    };
    while server.connections() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    add("honest", "/feed").await;
    assert_eq!(polling.await.unwrap(), 2);
    let reported = reported.lock().unwrap();
    assert!(reported[0].ends_with("/feed"), "{reported:?}");
}

/// Polls until every honest source was polled: hostile ones get few of the polls
/// meanwhile, though their feeds were due before all others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn honest_sources_lose_little_beside_hostile_ones() {
    let next = AtomicUsize::new(0);
    let endless = serve(move |host, _| xml(&endless_index(host, 1000, &next))).await;
    let items: String = (0..30_000)
        .map(|n| format!("<item><link>http://flood.example/{n}</link></item>"))
        .collect();
    let body = format!("<rss version='2.0'><channel>{items}</channel></rss>");
    let flood = serve(move |_, _| xml(&body)).await;
    let config = WorldConfig {
        sites: 200,
        articles_per_site: 5,
        defect_percent: 0,
        fault_percent: 0,
        ..WorldConfig::new(5)
    };
    let clock = SimClock::manual(config.start);
    let sim = SimServer::start(config, clock, "127.0.0.1:0")
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let mut options = StoreOptions::default();
    options.host_delay = Duration::from_millis(1);
    let store = Store::open(&address, &options).await.unwrap();
    let poller = |max_new_urls_per_day| {
        let ports = [endless.address(), flood.address(), sim.address()];
        let client = Client::new(NetOptions {
            egress: Egress {
                allow: vec!["127.0.0.0/8".parse().unwrap()],
                ports: ports.iter().map(|at| at.port()..=at.port()).collect(),
            },
            ..NetOptions::default()
        });
        let options = PollOptions {
            max_new_urls_per_day,
            ..PollOptions::default()
        };
        let context = FetchContext::new(client.unwrap(), store.clone());
        Arc::new(Poller::new(context, options))
    };
    let index = format!("http://{}/index.xml", endless.address());
    world::add(
        &store,
        "endless",
        "sitemap",
        &index,
        sitemap_settings(&index),
    )
    .await;
    let source = store.source_named("endless").await.unwrap().unwrap();
    let child = |n| {
        (
            format!("http://{}/old/{n}.xml", endless.address()),
            "{\"depth\":1}".to_owned(),
        )
    };
    let children: Vec<_> = (0..4000).map(child).collect();
    store
        .add_child_feeds(source.source_id, "sitemap", &children)
        .await
        .unwrap();
    let url = format!("http://{}/feed", flood.address());
    let settings = SourceSettings {
        feed_url: Some(url.parse().unwrap()),
        feed_ignores_robots: true,
        ..SourceSettings::default()
    };
    world::add(&store, "flood", "feed", &url, settings).await;
    let mut honest = BTreeSet::new();
    for site in sim.world().sites() {
        let Some(feed) = site.feeds.first() else {
            continue;
        };
        let url = site.absolute(&feed.path);
        world::add(&store, &url, "feed", &url, SourceSettings::default()).await;
        honest.insert(url);
    }
    assert!(honest.len() > 150, "{}", honest.len());
    let poller = poller(500);
    let (mut left, mut hostile) = (honest.clone(), 0);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let mut stop = Some(stop);
    let run = poller.run(
        async {
            let _ = stopped.await;
        },
        |poll| {
            if !left.remove(&poll.url) && !honest.contains(&poll.url) && !left.is_empty() {
                hostile += 1;
            }
            if left.is_empty() {
                stop.take();
            }
        },
    );
    tokio::time::timeout(Duration::from_secs(120), run)
        .await
        .expect("every honest source is polled")
        .unwrap();
    let total = honest.len() + hostile;
    assert!(
        hostile * 10 < total,
        "{hostile} of {total} polls were for hostile sources"
    );
    for (end, part) in [
        ("/index.xml", "belong to another site"),
        ("/feed", "max_new_urls_per_day (500) is reached"),
    ] {
        let of =
            |feed: &&Feed| feed.url.ends_with(end) && feed.error_class.as_deref() == Some(LIMITED);
        let all = feeds(&store).await;
        let found = all
            .iter()
            .find(of)
            .unwrap_or_else(|| panic!("{end} is not limited"));
        let reason = found.last_error.as_deref().unwrap();
        assert!(reason.contains(part), "{reason}");
    }
    assert_eq!(
        store.new_urls_today(source.source_id).await.unwrap().count,
        0
    );
}
