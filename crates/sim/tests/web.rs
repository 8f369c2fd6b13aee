//! The simulated web as a client sees it: real HTTP over loopback, and the
//! ledger and the log that judge what the client did.

#![allow(clippy::unwrap_used)]

mod client;

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use client::get;
use jiff::Timestamp;
use tidings_sim::{
    Expected, Fault, FaultRule, RobotsKind, SimClock, SimServer, SitemapKind, Target, When,
    WorldConfig, politeness_violations,
};

fn noon() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

async fn start(config: WorldConfig) -> SimServer {
    let clock = SimClock::manual(config.start);
    SimServer::start(config, clock, "127.0.0.1:0")
        .await
        .unwrap()
}

fn config(seed: u64, sites: u32) -> WorldConfig {
    WorldConfig {
        sites,
        start: noon(),
        ..WorldConfig::new(seed)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_hosts_respond_and_the_ledger_is_consistent() {
    let sim = start(WorldConfig {
        articles_per_site: 5,
        ..config(7, 1000)
    })
    .await;
    let mut hosts = tokio::task::JoinSet::new();
    for site in sim.world().sites() {
        let address = sim.address();
        hosts.spawn(async move {
            let home = get(address, &site.authority, "/").await;
            assert_eq!(home.status, 200, "{}", site.host);
            let feed = get(address, &site.authority, &site.feeds[0].path).await;
            assert_eq!(feed.status, 200, "{}", site.host);
            (site.index, home.text())
        });
    }
    let mut homes = BTreeMap::new();
    while let Some(home) = hosts.join_next().await {
        let (index, text) = home.unwrap();
        homes.insert(index, text);
    }

    // Everything in the ledger is on the home page of its site, and no more.
    let entries: Vec<_> = sim.ledger().entries().collect();
    assert!(entries.len() > 3000, "{} entries", entries.len());
    assert_eq!(
        entries.len(),
        entries.iter().map(|e| e.key).collect::<HashSet<_>>().len()
    );
    let cards: usize = homes
        .values()
        .map(|home| home.matches("class=\"card\"").count())
        .sum();
    assert_eq!(cards, entries.len());
    for entry in &entries {
        let path = entry.announced_url.split(".localhost:").nth(1).unwrap();
        let path = &path[path.find('/').unwrap()..];
        assert!(
            homes[&entry.site].contains(&format!("href=\"{path}\"")),
            "{entry:?}"
        );
    }

    // Each request of each host is in the log, with its times.
    let log = sim.log().snapshot();
    assert_eq!(log.len(), 2000);
    assert_eq!(
        log.iter().map(|r| &r.host).collect::<HashSet<_>>().len(),
        1000
    );
    assert!(
        log.iter()
            .all(|r| r.start <= r.end && r.status == 200 && r.bytes > 0)
    );
}

#[tokio::test]
async fn every_page_of_the_ledger_is_as_it_says() {
    let sim = start(WorldConfig {
        articles_per_site: 8,
        ..config(3, 30)
    })
    .await;
    let mut seen = BTreeMap::new();
    for entry in sim.ledger().entries() {
        let site = sim.world().site(entry.site);
        let path =
            |url: &str| url[url.find(&site.authority).unwrap() + site.authority.len()..].to_owned();
        let mut page = get(sim.address(), &site.authority, &path(&entry.announced_url)).await;
        if page.status == 301 {
            assert_eq!(page.header("location"), Some(entry.url.as_str()));
            page = get(sim.address(), &site.authority, &path(&entry.url)).await;
        }
        match entry.expected {
            Expected::NotFound => assert_eq!(page.status, 404, "{entry:?}"),
            Expected::Document | Expected::RobotsBlocked => {
                assert_eq!(page.status, 200, "{entry:?}");
                let article = site.article(entry.number);
                for paragraph in article.paragraphs(&site, sim.clock().now()) {
                    assert!(page.text().contains(&paragraph), "{entry:?}");
                }
            }
        }
        *seen.entry(format!("{:?}", entry.expected)).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
}

#[tokio::test]
async fn sitemaps_and_robots_lead_to_every_article() {
    let sim = start(WorldConfig {
        articles_per_site: 30,
        ..config(5, 40)
    })
    .await;
    let ledger = sim.ledger();
    let mut kinds = HashSet::new();
    for site in sim.world().sites() {
        let robots = get(sim.address(), &site.authority, "/robots.txt").await;
        assert_eq!(robots.status == 404, site.robots == RobotsKind::Absent);
        let first = match site.sitemap {
            SitemapKind::None => continue,
            SitemapKind::Single => "/sitemap.xml",
            SitemapKind::Text => "/sitemap.txt",
            SitemapKind::Index | SitemapKind::GzipIndex => "/sitemap_index.xml",
        };
        if robots.status == 200 {
            assert!(
                robots
                    .text()
                    .contains(&format!("Sitemap: {}", site.absolute(first)))
            );
        }
        let mut listed = get(sim.address(), &site.authority, first).await.text();
        if matches!(site.sitemap, SitemapKind::Index | SitemapKind::GzipIndex) {
            let file = listed
                .split("<loc>")
                .find(|part| part.contains("/sitemap-0."))
                .unwrap();
            let file = file
                .split("</loc>")
                .next()
                .unwrap()
                .split(&site.authority)
                .nth(1)
                .unwrap();
            listed = get(sim.address(), &site.authority, file).await.text();
        }
        for entry in ledger.entries_of(&site) {
            let escaped = entry.announced_url.replace('&', "&amp;");
            assert!(
                listed.contains(&escaped),
                "{:?} misses {escaped}",
                site.sitemap
            );
        }
        kinds.insert(format!("{:?}", site.sitemap));
    }
    assert_eq!(kinds.len(), 4, "{kinds:?}");
}

#[tokio::test]
async fn the_web_goes_on_publishing_and_says_what_has_not_changed() {
    let sim = start(config(9, 30)).await;
    let site = sim
        .world()
        .sites()
        .find(|site| site.has_validators && site.published_by(noon()) > 20)
        .unwrap();
    let path = site.feeds[0].path.clone();
    let first = get(sim.address(), &site.authority, &path).await;
    let etag = first.header("etag").unwrap().to_owned();
    let again = client::get_with(
        sim.address(),
        &site.authority,
        &path,
        &[("If-None-Match", &etag)],
    )
    .await;
    assert_eq!((again.status, again.body.len()), (304, 0));

    let before = sim.ledger().published();
    sim.clock().advance(Duration::from_secs(7 * 86_400));
    assert!(sim.ledger().published() > before);
    let later = client::get_with(
        sim.address(),
        &site.authority,
        &path,
        &[("If-None-Match", &etag)],
    )
    .await;
    assert_eq!(later.status, 200);
    assert_ne!(later.header("etag"), Some(etag.as_str()));
}

#[tokio::test]
async fn scripted_faults_happen_when_and_where_they_should() {
    let busy = Fault::Status {
        code: 503,
        retry_after: Some("7".to_owned()),
    };
    let path = |path: &str| Target::Path(path.to_owned());
    let script = vec![
        FaultRule::new(path("/"), When::First(2), busy),
        FaultRule::new(path("/page/1"), When::Always, Fault::Truncated),
        FaultRule::new(path("/page/2"), When::Always, Fault::LyingLength),
        FaultRule::new(path("/page/3"), When::Always, Fault::Closed),
        FaultRule::new(path("/a"), When::Always, Fault::RedirectLoop),
        FaultRule::new(path("/b"), When::Always, Fault::SoftNotFound),
        FaultRule::new(path("/c"), When::Always, Fault::HugeHead),
        FaultRule::new(path("/d"), When::Always, Fault::HugeLocation),
    ];
    let config = WorldConfig {
        scripts: BTreeMap::from([(0, script)]),
        ..config(7, 2)
    };
    let sim = start(config).await;
    let site = sim.world().site(0);
    let fetch = |path: &'static str| get(sim.address(), &site.authority, path);

    let first = fetch("/").await;
    assert_eq!(
        (first.status, first.header("retry-after")),
        (503, Some("7"))
    );
    assert_eq!(fetch("/").await.status, 503);
    assert_eq!(fetch("/").await.status, 200);
    for path in ["/page/1", "/page/2"] {
        let page = fetch(path).await;
        assert!(
            page.body.len() < page.header("content-length").unwrap().parse().unwrap(),
            "{path}"
        );
    }
    assert_eq!(fetch("/page/3").await.status, 0);
    assert_eq!(fetch("/a").await.header("location"), Some("/a"));
    assert_eq!(fetch("/b").await.status, 200);
    assert!(fetch("/c").await.head.len() > 64 * 1024);
    assert!(fetch("/d").await.header("location").unwrap().len() > 90_000);

    let quiet = sim.world().site(1);
    assert_eq!(get(sim.address(), &quiet.authority, "/").await.status, 200);
    assert_eq!(
        sim.log()
            .snapshot()
            .iter()
            .filter(|r| r.fault.is_some())
            .count(),
        9
    );
}

#[tokio::test]
async fn connections_that_never_end_are_closed_by_the_client() {
    let path = |path: &str| Target::Path(path.to_owned());
    let script = vec![
        FaultRule::new(path("/hang"), When::Always, Fault::Hang),
        FaultRule::new(path("/slow-head"), When::Always, Fault::SlowHead),
        FaultRule::new(path("/"), When::Always, Fault::SlowBody),
        FaultRule::new(path("/page/1"), When::Always, Fault::Endless),
    ];
    let config = WorldConfig {
        scripts: BTreeMap::from([(0, script)]),
        ..config(7, 1)
    };
    let sim = start(config).await;
    let site = sim.world().site(0);
    for endless in ["/hang", "/slow-head", "/", "/page/1"] {
        let response = get(sim.address(), &site.authority, endless);
        let ended = tokio::time::timeout(Duration::from_millis(300), response).await;
        assert!(ended.is_err(), "{endless} should not end");
    }
}

#[tokio::test]
async fn a_reset_breaks_the_connection() {
    let script = vec![FaultRule::new(Target::Anything, When::Always, Fault::Reset)];
    let config = WorldConfig {
        scripts: BTreeMap::from([(0, script)]),
        ..config(7, 1)
    };
    let sim = start(config).await;
    let page = get(sim.address(), &sim.world().site(0).authority, "/").await;
    assert!(page.was_reset, "{page:?}");
}

#[tokio::test]
async fn the_index_page_serves_browsers_and_programs() {
    let sim = start(config(7, 250)).await;
    let bare = sim.address().to_string();
    let index = get(sim.address(), &bare, "/").await.text();
    assert!(index.contains(&sim.world().site(199).home()));
    assert!(!index.contains(&sim.world().site(200).home()));
    let more = get(sim.address(), &bare, "/?page=2").await.text();
    assert!(more.contains(&sim.world().site(200).home()));

    get(sim.address(), &sim.world().site(0).authority, "/").await;
    let ledger = get(sim.address(), &bare, "/ledger.jsonl").await.text();
    assert_eq!(ledger.lines().count() as u64, sim.ledger().published());
    let requests = get(sim.address(), &bare, "/requests.jsonl").await.text();
    assert_eq!(requests.lines().count(), 1);
    assert!(requests.contains("\"start_us\":"));
    assert_eq!(
        get(sim.address(), "nobody-7.localhost", "/").await.status,
        404
    );
}

#[tokio::test]
async fn a_politeness_violation_is_detected() {
    let sim = start(config(7, 2)).await;
    let site = sim.world().site(0);
    for _ in 0..3 {
        get(sim.address(), &site.authority, "/").await;
    }
    get(sim.address(), &sim.world().site(1).authority, "/").await;
    let violations = politeness_violations(&sim.log().snapshot(), Duration::from_secs(1), 1);
    assert_eq!(violations.len(), 2);
    assert!(
        violations
            .iter()
            .all(|v| v.host == site.host && v.in_flight == 1)
    );
}

#[tokio::test]
async fn only_loopback_is_served() {
    let refused = SimServer::start(config(7, 1), SimClock::real(), "0.0.0.0:0").await;
    assert!(refused.unwrap_err().to_string().contains("loopback"));
}
