//! The spider on sites without feeds, over simulated days: what is published is
//! found by a few visits, nothing else is fetched, and traps are reported by name.

#![allow(clippy::unwrap_used)]

mod crawl;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tidings_engine::{
    FetchOptions, IngestionMode, PollOptions, PollReport, Poller, SourceDraft, SourceSettings,
    Worker, add_source, change_source,
};
use tidings_sim::{
    Entry, RequestRecord, SimClock, SimServer, Site, SiteTrap, WorldConfig, politeness_violations,
    postgres_database,
};
use tidings_store::{Feed, Filter, Order, Origin, Source, UrlRow};
use world::{Days, HOUR, MINUTE, World};

const DAY: Duration = Duration::from_secs(86_400);

fn spider() -> SourceSettings {
    SourceSettings {
        ingestion_mode: Some(IngestionMode::Spider),
        ..SourceSettings::default()
    }
}

async fn add(world: &World, site: &Site, settings: SourceSettings) -> Source {
    let draft = SourceDraft {
        name: site.host.clone(),
        url: site.home().parse().unwrap(),
        priority: 5,
        settings,
    };
    add_source(&world.store, &draft).await.unwrap().0
}

async fn live(world: &World, poller: &Arc<Poller>, time: Duration, step: Duration) {
    for _ in 0..time.as_secs() / step.as_secs() {
        poller.poll_due(|_| {}).await.unwrap();
        world.advance(step);
    }
}

async fn rows(world: &World) -> Vec<UrlRow> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = world
            .store
            .list(&Filter::default(), Order::Id, after, 5000)
            .await
            .unwrap();
        rows.extend(page.rows);
        match page.next {
            Some(next) => after = Some(next),
            None => return rows,
        }
    }
}

/// The paths requested from a site, without its robots.txt.
fn requested<'a>(records: &'a [RequestRecord], site: &Site) -> Vec<&'a str> {
    let of_site = records
        .iter()
        .filter(|record| record.host == site.host && record.path != "/robots.txt");
    of_site.map(|record| record.path.as_str()).collect()
}

fn is_list(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path == "/" || path.starts_with("/page/") || path.starts_with("/section/")
}

fn share(found: usize, of: usize) -> f64 {
    found as f64 / of.max(1) as f64
}

/// How many of the articles of a site published in a period were found, of how
/// many.
fn found_of(
    world: &World,
    site: &Site,
    found: &BTreeSet<String>,
    from: Timestamp,
    to: Timestamp,
) -> (usize, usize) {
    let entries: Vec<Entry> = world.sim.ledger().entries_of(site).collect();
    let young: Vec<&Entry> = entries
        .iter()
        .filter(|entry| entry.published > from && entry.published <= to)
        .collect();
    let is_found = |entry: &&&Entry| found.contains(&entry.key.to_string());
    (young.iter().filter(is_found).count(), young.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_few_visits_find_everything_at_steady_state() {
    let world = World::start(Days {
        sites: 36,
        without_feeds: true,
        ..Days::default()
    })
    .await;
    for site in world.sim.world().sites() {
        add(&world, &site, spider()).await;
    }
    let poller = world.poller();
    let (warm_up, measured) = match std::env::var_os("TIDINGS_TEST_FULL") {
        Some(_) => (10, 21),
        None => (7, 14),
    };
    live(&world, &poller, warm_up * DAY, 15 * MINUTE).await;
    let (then, known) = (world.sim.clock().now(), world.found_keys().await);
    let before = world.sim.log().snapshot().len();
    println!(
        "{before} requests in the first {warm_up} days, for {} articles",
        known.len()
    );
    live(&world, &poller, measured * DAY, 15 * MINUTE).await;

    let found = world.found_keys().await;
    let records = world.sim.log().snapshot().split_off(before);
    // Articles of the last week may still be unseen in a quiet section.
    let week_ago = world.sim.clock().now() - SignedDuration::from_hours(24 * 7);
    let mut by_rate: BTreeMap<u64, [usize; 4]> = BTreeMap::new();
    let mut other_pages = Vec::new();
    let mut articles = BTreeSet::new();
    for site in world.sim.world().sites() {
        let entries: Vec<Entry> = world.sim.ledger().entries_of(&site).collect();
        let keys: BTreeSet<String> = entries.iter().map(|entry| entry.key.to_string()).collect();
        let new = keys
            .iter()
            .filter(|key| found.contains(*key) && !known.contains(*key));
        let new = new.count();
        let visits = requested(&records, &site);
        other_pages.extend(
            visits
                .iter()
                .filter(|path| !is_list(path))
                .map(|path| (*path).to_owned()),
        );
        let (of_young, young) = found_of(&world, &site, &found, then, week_ago);
        let since_then = entries
            .iter()
            .filter(|entry| entry.published > then)
            .count() as u64;
        let sums = by_rate.entry(since_then / measured as u64).or_default();
        for (sum, number) in sums.iter_mut().zip([visits.len(), new, of_young, young]) {
            *sum += number;
        }
        articles.extend(keys);
    }
    println!("articles per day · visits · articles found · of those due · fetches per article");
    for (rate, [visits, new, of_young, young]) in &by_rate {
        let fetches = 1.0 + share(*visits, *new);
        println!("{rate:>4} · {visits:>5} · {new:>5} · {of_young:>5}/{young:<5} · {fetches:.2}");
    }
    let [visits, new, of_young, young] = by_rate.values().fold([0; 4], |sums, row| {
        std::array::from_fn(|at| sums[at] + row[at])
    });
    let (found_share, fetches) = (share(of_young, young), 1.0 + share(visits, new));
    println!(
        "all: {visits} visits, {new} articles, {:.2} % found, {fetches:.3} fetches per article",
        100.0 * found_share
    );
    assert!(found_share >= 0.98, "{of_young} of {young}");
    assert!(fetches <= 1.3, "{visits} visits for {new} articles");
    assert_eq!(other_pages, [""; 0], "pages that list nothing");
    // Everything that will be fetched is an article, and belongs to its source.
    assert_eq!(found.difference(&articles).count(), 0, "no articles");
    for row in rows(&world).await {
        let source = world.store.source(row.source_id).await.unwrap().unwrap();
        assert!(
            row.url.starts_with(&source.url),
            "{} of {}",
            row.url,
            source.url
        );
        assert_eq!((row.origin, row.depth >= 1), (Origin::Spider, true));
        assert!(
            row.parent_url
                .is_some_and(|parent| parent.starts_with(&source.url))
        );
    }
}

async fn feeds_of(world: &World, site: &Site) -> Vec<Feed> {
    let source = world.store.source_named(&site.host).await.unwrap().unwrap();
    world.store.feeds_of_source(source.source_id).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traps_end_within_the_budget_and_are_named() {
    let traps = (0..).zip(SiteTrap::ALL).collect();
    let world = World::start(Days {
        sites: 5,
        without_feeds: true,
        traps,
        pace: 2.0,
        ..Days::default()
    })
    .await;
    for site in world.sim.world().sites() {
        add(&world, &site, spider()).await;
    }
    let poller = world.poller();
    let days = 14;
    live(&world, &poller, days * DAY, 15 * MINUTE).await;
    let records = world.sim.log().snapshot();
    let found = world.found_keys().await;
    let steady_from = world.start + SignedDuration::from_hours(24 * 3);
    for site in world.sim.world().sites() {
        let trap = site.trap.unwrap();
        let name = match trap {
            SiteTrap::Calendar => "calendar",
            SiteTrap::SessionIds => "session_id",
            SiteTrap::Facets => "facets",
            SiteTrap::EndlessPath => "endless_path",
            SiteTrap::RepeatingPath => "repeating_path",
        };
        let feeds = feeds_of(&world, &site).await;
        let named = feeds.iter().filter(|feed| {
            let has_class = feed.error_class.as_deref() == Some("trap");
            has_class && feed.last_error.as_ref().unwrap().contains(name)
        });
        let (named, visits) = (named.count(), requested(&records, &site));
        let inside = visits.iter().filter(|path| !is_list(path)).count();
        let week_ago = world.sim.clock().now() - SignedDuration::from_hours(24 * 7);
        let (of_young, young) = found_of(&world, &site, &found, steady_from, week_ago);
        println!(
            "{name}: {} visits in {days} days, {inside} of them inside, {} listings, named on {named}; {of_young} of {young} articles",
            visits.len(),
            feeds.len()
        );
        assert!(
            named > 0,
            "{name}: {:?}",
            feeds
                .iter()
                .map(|feed| &feed.last_error)
                .collect::<Vec<_>>()
        );
        assert!(
            visits.len() <= 500 * days as usize && inside <= 20,
            "{name}: {inside} of {}",
            visits.len()
        );
        assert!(
            share(of_young, young) >= 0.98,
            "{name}: {of_young} of {young}"
        );
        assert!(feeds.len() <= 50);
    }
    let articles: BTreeSet<String> = world
        .sim
        .ledger()
        .entries()
        .map(|entry| entry.key.to_string())
        .collect();
    assert_eq!(
        found.difference(&articles).count(),
        0,
        "articles under several names"
    );
}

#[tokio::test]
async fn visits_per_day_are_limited() {
    let world = World::start(Days {
        sites: 2,
        without_feeds: true,
        ..Days::default()
    })
    .await;
    let site = world.sim.world().site(0);
    let settings = SourceSettings {
        pages_per_day: 5,
        ..spider()
    };
    add(&world, &site, settings).await;
    let poller = world.poller();
    let mut visits = Vec::new();
    // The first day has eighteen hours left.
    for hours in [18, 24] {
        let before = world.sim.log().snapshot().len();
        live(&world, &poller, hours * HOUR, 15 * MINUTE).await;
        let records = world.sim.log().snapshot().split_off(before);
        visits.push(requested(&records, &site).len());
        let feeds = feeds_of(&world, &site).await;
        let remarks = feeds
            .iter()
            .filter(|feed| feed.error_class.as_deref() == Some("budget"));
        assert!(remarks.count() > 0, "{feeds:?}");
    }
    // A page that robots.txt disallows was not requested, but is counted.
    assert!(
        visits.iter().all(|visits| (4..=5).contains(visits)),
        "{visits:?}"
    );
}

/// The kinds of feeds that a source has after some polls, and the kinds of pages
/// that were requested.
async fn followed(
    world: &World,
    site: &Site,
    polls: u32,
) -> (BTreeSet<String>, BTreeSet<&'static str>) {
    let before = world.sim.log().snapshot().len();
    let poller = world.poller();
    live(world, &poller, polls * MINUTE, MINUTE).await;
    let records = world.sim.log().snapshot().split_off(before);
    let kinds = feeds_of(world, site)
        .await
        .into_iter()
        .map(|feed| feed.kind);
    let kind_of = |path: &str| match path == site.feeds[0].path {
        true => "feed",
        false => "listing",
    };
    (
        kinds.collect(),
        requested(&records, site).into_iter().map(kind_of).collect(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_mode_says_how_articles_are_found() {
    let world = World::start(Days::default()).await;
    let only = |kind: &str| BTreeSet::from([kind.to_owned()]);
    let both = BTreeSet::from(["feed".to_owned(), "listing".to_owned()]);
    let modes = [
        (None, only("feed")),
        (Some(IngestionMode::Feed), only("feed")),
        (Some(IngestionMode::Spider), only("listing")),
        (Some(IngestionMode::Both), both),
    ];
    for (site, (mode, expected)) in world.sim.world().sites().zip(modes) {
        let settings = SourceSettings {
            ingestion_mode: mode,
            feed_url: Some(site.absolute(&site.feeds[0].path).parse().unwrap()),
            ..SourceSettings::default()
        };
        add(&world, &site, settings).await;
        let (kinds, requested) = followed(&world, &site, 40).await;
        let requested: BTreeSet<String> = requested.into_iter().map(str::to_owned).collect();
        assert_eq!((&kinds, &requested), (&expected, &expected), "{mode:?}");
    }
    let keys = world.found_keys().await.len();
    assert_eq!(keys, rows(&world).await.len(), "one row for each article");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_mode_applies_from_the_next_poll_on() {
    let world = World::start(Days::default()).await;
    let site = world.sim.world().site(0);
    let settings = |mode: IngestionMode| SourceSettings {
        ingestion_mode: Some(mode),
        feed_url: Some(site.absolute(&site.feeds[0].path).parse().unwrap()),
        ..SourceSettings::default()
    };
    let source = add(&world, &site, settings(IngestionMode::Spider)).await;
    followed(&world, &site, 40).await;
    for (mode, expected) in [
        (IngestionMode::Feed, "feed"),
        (IngestionMode::Spider, "listing"),
    ] {
        let draft = SourceDraft {
            name: source.name.clone(),
            url: source.url.parse().unwrap(),
            priority: 5,
            settings: settings(mode),
        };
        change_source(&world.store, &source, &draft).await.unwrap();
        world.resume_all_feeds().await;
        let (kinds, requested) = followed(&world, &site, 60).await;
        assert_eq!(kinds, BTreeSet::from([expected.to_owned()]), "{mode:?}");
        assert_eq!(requested, BTreeSet::from([expected]), "{mode:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_without_a_feed_is_read_by_its_pages() {
    let world = World::start(Days {
        sites: 2,
        without_feeds: true,
        ..Days::default()
    })
    .await;
    let site = world.sim.world().site(1);
    add(&world, &site, SourceSettings::default()).await;
    let poller = world.poller();
    let mut polls: Vec<PollReport> = Vec::new();
    for _ in 0..120 {
        poller
            .poll_due(|poll| polls.push(poll.clone()))
            .await
            .unwrap();
        world.advance(MINUTE);
    }
    let kinds: BTreeSet<String> = feeds_of(&world, &site)
        .await
        .into_iter()
        .map(|feed| feed.kind)
        .collect();
    assert_eq!(kinds, BTreeSet::from(["listing".to_owned()]), "{polls:?}");
    assert!(world.found_keys().await.len() > 50);
}

/// End to end, on both stores: from home pages to documents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_pages_list_becomes_documents_by_one_request_each() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = format!("sqlite:{}", folder.path().join("tidings.db").display());
    for address in [sqlite, postgres_database().unwrap()] {
        let config = WorldConfig {
            sites: 8,
            articles_per_site: 60,
            without_feeds: true,
            plain_fates: true,
            crawl_delay: crawl::GAP,
            ..WorldConfig::new(11)
        };
        let clock = SimClock::manual(config.start);
        let sim = SimServer::start(config, clock, "127.0.0.1:0")
            .await
            .unwrap();
        let store = crawl::open(&address).await;
        for site in sim.world().sites() {
            let draft = SourceDraft {
                name: site.host.clone(),
                url: site.home().parse().unwrap(),
                priority: 5,
                settings: spider(),
            };
            add_source(&store, &draft).await.unwrap();
        }
        let context = || crawl::context(&store, &[sim.address().port()]);
        let poller = Arc::new(Poller::new(context(), PollOptions::default()));
        poller.poll_due(|_| {}).await.unwrap();
        let options = FetchOptions {
            ends_when_idle: true,
            ..FetchOptions::default()
        };
        let worker = Arc::new(Worker::new(context(), options));
        worker.run(std::future::pending()).await.unwrap();

        let entries: Vec<Entry> = sim.ledger().entries().collect();
        let documents = worker.tally().documents as usize;
        assert!(
            share(documents, entries.len()) >= 0.98,
            "{documents} of {}",
            entries.len()
        );
        let log = sim.log().snapshot();
        let pages = log.iter().filter(|record| record.path != "/robots.txt");
        let fetched: Vec<&str> = pages
            .map(|record| &*record.path)
            .filter(|path| !is_list(path))
            .collect();
        assert_eq!(
            fetched.len(),
            documents,
            "every page is a document, and fetched once"
        );
        println!(
            "{documents} documents of {} articles, {} requests",
            entries.len(),
            log.len()
        );
        assert_eq!(politeness_violations(&log, crawl::GAP, 1), []);
    }
}
