//! Collection runs over sources of all kinds on the simulated web: feeds, sitemaps
//! and listings; scheduled runs; checks of one source.

#![allow(clippy::unwrap_used)]

mod crawl;
mod world;

use std::sync::Arc;
use std::time::Duration;

use tidings_engine::{
    CollectError, CollectOptions, IngestionMode, PollOptions, Poller, SourceDraft, SourceSettings,
    add_source,
};
use tidings_sim::{SimClock, SimServer, Site, SitemapKind, WorldConfig};
use tidings_store::{Filter, Store};

struct Fixture {
    sim: SimServer,
    store: Store,
    poller: Arc<Poller>,
    _folder: tempfile::TempDir,
}

impl Fixture {
    async fn start() -> Self {
        let config = WorldConfig {
            sites: 12,
            articles_per_site: 40,
            plain_fates: true,
            crawl_delay: crawl::GAP,
            ..WorldConfig::new(11)
        };
        let clock = SimClock::manual(config.start);
        let sim = SimServer::start(config, clock, "127.0.0.1:0")
            .await
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
        let store = crawl::open(&address).await;
        let context = crawl::context(&store, &[sim.address().port()]);
        Self {
            sim,
            store,
            poller: Arc::new(Poller::new(context, PollOptions::default())),
            _folder: folder,
        }
    }

    async fn add(&self, name: &str, site: &Site, settings: SourceSettings) {
        let draft = SourceDraft {
            name: name.to_owned(),
            url: site.home().parse().unwrap(),
            priority: 5,
            settings,
        };
        add_source(&self.store, &draft).await.unwrap();
    }

    fn site_with(&self, sitemap: SitemapKind) -> Site {
        let sites = self.sim.world().sites();
        let mut with = sites.filter(|site| site.sitemap == sitemap);
        with.next().unwrap()
    }

    async fn count(&self) -> u64 {
        self.store.count(&Filter::default()).await.unwrap()
    }

    /// A feed, a sitemap, an index of sitemaps, and pages.
    async fn add_one_of_each(&self) {
        let site = self.site_with(SitemapKind::None);
        let feed_url = Some(site.absolute(&site.feeds[0].path).parse().unwrap());
        let feed = SourceSettings {
            feed_url,
            ..SourceSettings::default()
        };
        self.add("feed", &site, feed).await;
        for (name, kind, path) in [
            ("sitemap", SitemapKind::Single, "/sitemap.xml"),
            ("index", SitemapKind::Index, "/sitemap_index.xml"),
        ] {
            let site = self.site_with(kind);
            let settings = SourceSettings {
                sitemap_url: Some(site.absolute(path).parse().unwrap()),
                sitemap_within_hours: 24 * 365,
                ..SourceSettings::default()
            };
            self.add(name, &site, settings).await;
        }
        let pages = SourceSettings {
            ingestion_mode: Some(IngestionMode::Spider),
            ..SourceSettings::default()
        };
        self.add("pages", &self.site_with(SitemapKind::Text), pages)
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_of_all_kinds_take_part() {
    let fixture = Fixture::start().await;
    fixture.add_one_of_each().await;
    let dry = CollectOptions {
        dry_run: true,
        ..CollectOptions::default()
    };
    let seen = fixture.poller.collect(&dry, |_| {}).await.unwrap();
    assert_eq!(fixture.count().await, 0);
    let collected = fixture
        .poller
        .collect(&CollectOptions::default(), |_| {})
        .await
        .unwrap();
    for (dry, real) in seen.sources.iter().zip(&collected.sources) {
        assert_eq!(real.error, None, "{}", real.name);
        assert!(real.items_new > 5, "{real:?}");
        assert_eq!(dry.items_new, real.items_new, "{}", real.name);
    }
    assert_eq!((collected.attempted, collected.succeeded), (4, 4));
    assert_eq!(fixture.count().await, collected.items_new as u64);
    let again = fixture
        .poller
        .collect(&CollectOptions::default(), |_| {})
        .await
        .unwrap();
    assert_eq!((again.succeeded, again.items_new), (4, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_runs_start_once_for_all_machines() {
    let fixture = Fixture::start().await;
    fixture.add_one_of_each().await;
    let interval = Duration::from_secs(3600);
    let other = crawl::context(&fixture.store, &[fixture.sim.address().port()]);
    let other = Arc::new(Poller::new(other, PollOptions::default()));
    let (one, two) = tokio::join!(
        fixture.poller.collect_if_due(interval),
        other.collect_if_due(interval)
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(
        one.max(two),
        interval,
        "one of them ran, and waits the whole time"
    );
    assert!(fixture.count().await > 20);
    let wait = other.collect_if_due(interval).await.unwrap();
    assert!(wait <= interval && wait > interval / 2, "{wait:?}");
    assert_eq!(fixture.store.runs(None, 10).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poller_that_ends_does_not_wait_for_the_next_run() {
    let fixture = Fixture::start().await;
    let context = crawl::context(&fixture.store, &[fixture.sim.address().port()]);
    let options = PollOptions {
        collect_interval: Some(Duration::from_secs(86_400)),
        ..PollOptions::default()
    };
    let poller = Arc::new(Poller::new(context, options));
    let store = fixture.store.clone();
    let ran = async {
        while store.runs(None, 10).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    poller.run(ran, |_| {}).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_checked_without_side_effects() {
    let fixture = Fixture::start().await;
    fixture.add_one_of_each().await;
    for name in ["feed", "sitemap", "index", "pages"] {
        let checked = fixture.poller.check_source(name).await.unwrap();
        assert_eq!(checked.error, None, "{name}");
        assert_eq!(
            (checked.items_seen, checked.items_new),
            (checked.items.len(), checked.items.len())
        );
        assert!(checked.items_new > 5, "{name}");
    }
    assert_eq!(fixture.count().await, 0);
    let nobody = fixture.poller.check_source("nobody").await;
    assert!(matches!(nobody, Err(CollectError::NoSuchSource(_))));
    let gone = SourceSettings {
        feed_url: Some(
            fixture
                .sim
                .world()
                .site(0)
                .absolute("/nothing")
                .parse()
                .unwrap(),
        ),
        ..SourceSettings::default()
    };
    fixture
        .add("gone", &fixture.sim.world().site(0), gone)
        .await;
    let checked = fixture.poller.check_source("gone").await.unwrap();
    assert_eq!(checked.error.as_deref(), Some("status 404"));
}
