//! Sitemaps of the simulated web, and one of the largest that there may be.

#![allow(clippy::unwrap_used)]

mod world;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
