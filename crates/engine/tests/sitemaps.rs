//! Sitemaps of the simulated web, and one of the largest that there may be.

#![allow(clippy::unwrap_used)]

mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use jiff::SignedDuration;
use tidings_engine::{PollOptions, SourceSettings};
use tidings_sim::{Act, RawServer, SitemapKind, postgres_database};
use tidings_store::{Filter, Origin, StoreOptions};
use world::{Days, HOUR, MINUTE, TestStore, World};

fn path(kind: SitemapKind) -> Option<&'static str> {
    match kind {
        SitemapKind::None => None,
        SitemapKind::Single => Some("/sitemap.xml"),
        SitemapKind::Index | SitemapKind::GzipIndex => Some("/sitemap_index.xml"),
        SitemapKind::Text => Some("/sitemap.txt"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recent_sitemap_entries_are_submitted() {
    let world = World::start(Days {
        sites: 60,
        ..Days::default()
    })
    .await;
    let mut kinds = BTreeSet::new();
    for site in world.sim.world().sites() {
        let Some(path) = path(site.sitemap) else {
            continue;
        };
        kinds.insert(format!("{:?}", site.sitemap));
        let url = site.absolute(path);
        let settings = SourceSettings {
            sitemap_url: Some(url.parse().unwrap()),
            ..SourceSettings::default()
        };
        world.add_sitemap(&url, settings).await;
    }
    assert_eq!(kinds.len(), 4, "{kinds:?}");
    let poller = world.poller();
    // Indexes first, then their sitemaps, each at its host's delay.
    for _ in 0..40 {
        poller.poll_due(|_| {}).await.unwrap();
        world.advance_store(MINUTE);
    }
    let found = world.found_keys().await;
    for site in world.sim.world().sites() {
        let is_undated = site.sitemap == SitemapKind::Text;
        for entry in world.sim.ledger().entries_of(&site) {
            let age = world.start.duration_since(entry.published);
            let is_young = age < SignedDuration::from_hours(47);
            let is_old = age > SignedDuration::from_hours(72);
            let is_found = found.contains(&world::key_of(&entry.url))
                || found.contains(&world::key_of(&entry.announced_url));
            let is_wanted = site.sitemap != SitemapKind::None && (is_young || is_undated);
            if is_wanted || (is_old && !is_undated) {
                assert_eq!(
                    is_found, is_wanted,
                    "{} {:?} {age:?}",
                    entry.url, site.sitemap
                );
            }
        }
    }

    // Nothing changes, so only the indexes are polled again.
    let before = world.sim.log().total();
    world.advance_store(8 * HOUR);
    poller
        .poll_due(|poll| assert_eq!(poll.items_new, 0))
        .await
        .unwrap();
    let requests = world.sim.log().total() - before;
    assert!(requests < 120, "{requests} requests for nothing");
}

/// Most indexes never change and have no dates; their sitemaps do change.
#[tokio::test]
async fn sitemaps_of_an_undated_index_are_polled_on_their_own() {
    let stories = Arc::new(AtomicUsize::new(1));
    let published = Arc::clone(&stories);
    let server = RawServer::start("127.0.0.1:0".parse().unwrap(), move |head| {
        let host = head.to_lowercase();
        let host = host.split("host: ").nth(1).unwrap().lines().next().unwrap();
        let body = match head.split(' ').nth(1) {
            Some("/index.xml") => format!(
                "<sitemapindex><sitemap><loc>http://{host}/posts.xml</loc></sitemap></sitemapindex>"
            ),
            Some("/posts.xml") => {
                let urls = 0..published.load(Ordering::SeqCst);
                let url = |n| format!("<url><loc>http://a.example/{n}</loc></url>");
                format!("<urlset>{}</urlset>", urls.map(url).collect::<String>())
            }
            _ => return Act::answer("404 Not Found", b""),
        };
        Act::answer("200 OK", body.as_bytes())
    })
    .await
    .unwrap();
    let url = format!("http://{}/index.xml", server.address());
    let test_store = TestStore::start(StoreOptions::default()).await;
    let settings = SourceSettings {
        sitemap_url: Some(url.parse().unwrap()),
        feed_ignores_robots: true,
        ..SourceSettings::default()
    };
    world::add(&test_store.store, "blog", "sitemap", &url, settings).await;
    let poller = test_store.poller(server.address().port(), PollOptions::default());
    let mut counts = Vec::new();
    for published in [1, 3] {
        stories.store(published, Ordering::SeqCst);
        for _ in 0..8 {
            poller.poll_due(|_| {}).await.unwrap();
            test_store.advance(HOUR);
        }
        counts.push(test_store.store.count(&Filter::default()).await.unwrap());
    }
    assert_eq!(counts, [1, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_sitemap_arrives_whole_on_both_stores() {
    let mut file = String::from("<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>");
    for n in 0..50_000 {
        write!(
            file,
            "<url><loc>http://site{}.example/story/{n}</loc></url>",
            n % 500
        )
        .unwrap();
    }
    file.push_str("</urlset>");
    let server = RawServer::start("127.0.0.1:0".parse().unwrap(), move |head| {
        match head.starts_with("GET /sitemap.xml") {
            true => Act::answer("200 OK\r\nContent-Type: application/xml", file.as_bytes()),
            false => Act::answer("404 Not Found", b""),
        }
    })
    .await
    .unwrap();
    let url = format!("http://{}/sitemap.xml", server.address());
    let test_stores = [
        ("SQLite", TestStore::start(StoreOptions::default()).await),
        (
            "PostgreSQL",
            TestStore::at(&postgres_database().unwrap(), StoreOptions::default()).await,
        ),
    ];
    for (name, test_store) in test_stores {
        let settings = SourceSettings {
            sitemap_url: Some(url.parse().unwrap()),
            feed_ignores_robots: true,
            ..SourceSettings::default()
        };
        world::add(&test_store.store, "large", "sitemap", &url, settings).await;
        let poller = test_store.poller(server.address().port(), PollOptions::default());
        let start = std::time::Instant::now();
        let mut new = 0;
        poller.poll_due(|poll| new += poll.items_new).await.unwrap();
        println!(
            "{name}: 50,000 URLs in {:.1} s",
            start.elapsed().as_secs_f64()
        );
        assert_eq!(new, 50_000, "{name}");
        let sitemap = Filter {
            origin: Some(Origin::Sitemap),
            ..Filter::default()
        };
        assert_eq!(
            test_store.store.count(&sitemap).await.unwrap(),
            50_000,
            "{name}"
        );
    }
}

/// A server whose response follows from the path, and the number of requests by path.
async fn counting(
    respond: impl Fn(&str, &str) -> Option<String> + Send + Sync + 'static,
) -> (RawServer, Arc<Mutex<BTreeMap<String, usize>>>) {
    let counts = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
    let counted = Arc::clone(&counts);
    let server = RawServer::start("127.0.0.1:0".parse().unwrap(), move |head| {
        let lower = head.to_lowercase();
        let host = lower
            .split("host: ")
            .nth(1)
            .unwrap()
            .lines()
            .next()
            .unwrap();
        let path = head.split(' ').nth(1).unwrap();
        *counted.lock().unwrap().entry(path.to_owned()).or_default() += 1;
        match respond(host, path) {
            Some(body) => Act::answer("200 OK\r\nContent-Type: application/xml", body.as_bytes()),
            None => Act::answer("404 Not Found", b""),
        }
    });
    (server.await.unwrap(), counts)
}

fn sitemap_settings(url: &str) -> SourceSettings {
    SourceSettings {
        sitemap_url: Some(url.parse().unwrap()),
        feed_ignores_robots: true,
        ..SourceSettings::default()
    }
}

#[tokio::test]
async fn an_index_costs_requests_for_changed_sitemaps_only() {
    let changed_at = Arc::new(Mutex::new(world::start_time() - HOUR * 24 * 90));
    let date = Arc::clone(&changed_at);
    let (server, requests) = counting(move |host, path| {
        let old = world::start_time() - HOUR * 24 * 90;
        let lastmod = |n: usize| match n {
            7 | 77 | 377 => *date.lock().unwrap(),
            // Not all the same, or nobody would believe them.
            _ => old - MINUTE * u32::try_from(n).unwrap(),
        };
        if path == "/index.xml" {
            let child = |n| {
                let lastmod = lastmod(n);
                format!(
                    "<sitemap><loc>http://{host}/{n}.xml</loc><lastmod>{lastmod}</lastmod></sitemap>"
                )
            };
            let children: String = (0..500).map(child).collect();
            return Some(format!("<sitemapindex>{children}</sitemapindex>"));
        }
        let n: usize = path.strip_prefix('/')?.strip_suffix(".xml")?.parse().ok()?;
        let lastmod = lastmod(n);
        Some(format!(
            "<urlset><url><loc>http://{host}/{n}/{}</loc><lastmod>{lastmod}</lastmod></url></urlset>",
            lastmod.as_second()
        ))
    })
    .await;
    let url = format!("http://{}/index.xml", server.address());
    let test_store = TestStore::start(StoreOptions::default()).await;
    let store = &test_store.store;
    world::add(store, "paper", "sitemap", &url, sitemap_settings(&url)).await;
    let poller = test_store.poller(server.address().port(), PollOptions::default());
    // One host, one request at a time: every sitemap is read once.
    for _ in 0..3000 {
        poller.poll_due(|_| {}).await.unwrap();
        test_store.advance(MINUTE / 10);
        if requests.lock().unwrap().len() == 501 {
            break;
        }
    }
    let taken = || std::mem::take(&mut *requests.lock().unwrap());
    let first = taken();
    assert_eq!(first.len(), 501, "{first:?}");
    assert!(
        first
            .iter()
            .all(|(path, count)| *count == 1 || path == "/index.xml"),
        "{first:?}"
    );

    // All are stale, so they are retired, with the reason and the day.
    let feeds = store.feeds_of_source(store.sources_after(i64::MIN, 1).await.unwrap()[0].source_id);
    let feeds = feeds.await.unwrap();
    let child = feeds
        .iter()
        .find(|feed| feed.url.ends_with("/7.xml"))
        .unwrap();
    let reason = child.last_error.as_deref().unwrap_or_default();
    let day = world::start_time().to_string()[..10].to_owned();
    assert_eq!(child.error_class.as_deref(), Some("retired"));
    assert!(
        reason.starts_with(&format!("retired on {day}: no recent entries")),
        "{reason}"
    );

    // Three change, and nothing else is asked but the index.
    *changed_at.lock().unwrap() = test_store.now();
    for _ in 0..48 {
        test_store.advance(HOUR / 2);
        poller.poll_due(|_| {}).await.unwrap();
    }
    let mut second = taken();
    let index = second.remove("/index.xml").unwrap();
    assert!(index <= 48, "{index} requests for the index");
    let paths: Vec<_> = second.iter().map(|(path, n)| (path.as_str(), *n)).collect();
    assert_eq!(paths, [("/377.xml", 1), ("/7.xml", 1), ("/77.xml", 1)]);
    let feed = store.feed(child.feed_id).await.unwrap().unwrap();
    assert_eq!(feed.error_class, None, "it is back");
    assert_eq!(store.count(&Filter::default()).await.unwrap(), 3);
}

/// The same times in a feed and in a news sitemap, polled by one poller.
#[tokio::test]
async fn a_news_sitemap_is_as_fast_as_a_feed() {
    let test_store = TestStore::start(StoreOptions::default()).await;
    let clock = test_store.clock();
    let (server, requests) = counting(move |host, path| {
        let now = clock();
        let start = world::start_time() - HOUR * 24 * 3;
        // Four items per hour by day, at uneven minutes.
        let times = (0..24 * 14 * 4).map(|n: u32| start + MINUTE * (n * 15 + n * n * 7 % 13));
        let is_day = |at: &jiff::Timestamp| (6..18).contains(&(at.as_second() / 3600 % 24));
        let out: Vec<_> = times.filter(is_day).filter(|at| *at <= now).collect();
        match path {
            "/feed.xml" => {
                let item = |at: &jiff::Timestamp| {
                    let second = at.as_second();
                    format!("<entry><link href='http://{host}/feed/{second}'/><id>{second}</id><published>{at}</published></entry>")
                };
                let items: String = out.iter().rev().take(100).map(item).collect();
                Some(format!("<feed xmlns='http://www.w3.org/2005/Atom'>{items}</feed>"))
            }
            "/news.xml" => {
                let entry = |at: &jiff::Timestamp| {
                    let second = at.as_second();
                    format!("<url><loc>http://{host}/news/{second}</loc><news:news><news:publication_date>{at}</news:publication_date></news:news></url>")
                };
                let young = out.iter().filter(|at| now.duration_since(**at) < SignedDuration::from_hours(48));
                let entries: String = young.map(entry).collect();
                Some(format!("<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:news='http://www.google.com/schemas/sitemap-news/0.9'>{entries}</urlset>"))
            }
            _ => None,
        }
    })
    .await;
    let at = |path: &str| format!("http://{}{path}", server.address());
    let (feed_url, news_url) = (at("/feed.xml"), at("/news.xml"));
    let store = &test_store.store;
    world::add(
        store,
        "paper",
        "sitemap",
        &news_url,
        sitemap_settings(&news_url),
    )
    .await;
    let settings = SourceSettings {
        feed_url: Some(feed_url.parse().unwrap()),
        feed_ignores_robots: true,
        ..SourceSettings::default()
    };
    world::add(store, "blog", "feed", &feed_url, settings).await;
    let poller = test_store.poller(server.address().port(), PollOptions::default());
    // New items of each, and half of the interval in which they came: two days to learn,
    // eight to judge.
    let mut delays: BTreeMap<bool, (f64, f64)> = BTreeMap::new();
    let mut last: BTreeMap<bool, i64> = BTreeMap::new();
    for minute in (0..10 * 24 * 60).step_by(2) {
        let now = test_store.now().as_second();
        let judged = minute > 2 * 24 * 60;
        poller
            .poll_due(|poll| {
                let is_news = poll.url.ends_with("/news.xml");
                let since = last.insert(is_news, now).unwrap_or(now);
                if judged {
                    let (items, waited) = delays.entry(is_news).or_default();
                    *items += poll.items_new as f64;
                    *waited += poll.items_new as f64 * (now - since) as f64 / 2.0;
                }
            })
            .await
            .unwrap();
        test_store.advance(MINUTE * 2);
    }
    let mean = |is_news| delays[&is_news].1 / delays[&is_news].0;
    let ratio = mean(true) / mean(false);
    let counts = requests.lock().unwrap().clone();
    assert!(delays[&true].0 > 300.0, "{delays:?}");
    assert!(ratio <= 1.1, "{ratio:.2}: {delays:?} {counts:?}");
    // And at no more requests.
    let (news, feed) = (counts["/news.xml"] as f64, counts["/feed.xml"] as f64);
    assert!(news <= 1.1 * feed, "{counts:?}");
    let status = tidings_engine::budget_status(store).await.unwrap().unwrap();
    assert_eq!((status.feeds, status.is_configured), (2, false));
    assert!(status.mean_delay_seconds > 0.0, "{status:?}");
}

#[tokio::test]
async fn a_long_sitemap_with_one_new_entry_has_one_new_url() {
    let entries = Arc::new(AtomicUsize::new(49_999));
    let listed = Arc::clone(&entries);
    let (server, _) = counting(move |_, path| {
        let urls = 0..listed.load(Ordering::SeqCst);
        let url = |n| format!("<url><loc>http://a.example/{n}</loc></url>");
        let urls: String = urls.map(url).collect();
        (path == "/all.xml").then(|| format!("<urlset>{urls}</urlset>"))
    })
    .await;
    let url = format!("http://{}/all.xml", server.address());
    let test_store = TestStore::start(StoreOptions::default()).await;
    let store = &test_store.store;
    world::add(store, "archive", "sitemap", &url, sitemap_settings(&url)).await;
    let poller = test_store.poller(server.address().port(), PollOptions::default());
    let mut new = Vec::new();
    for _ in 0..2 {
        let polled = poller.poll_due(|poll| new.push(poll.items_new));
        polled.await.unwrap();
        entries.store(50_000, Ordering::SeqCst);
        test_store.advance(HOUR * 25);
    }
    assert_eq!(new, [49_999, 1]);
    assert_eq!(store.count(&Filter::default()).await.unwrap(), 50_000);
}
