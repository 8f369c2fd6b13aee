//! Collection runs over sources of all kinds on the simulated web: feeds,
//! sitemaps and pages; runs that begin by themselves; one source asked in vain.

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

struct Desk {
    sim: SimServer,
    store: Store,
    poller: Arc<Poller>,
    _folder: tempfile::TempDir,
}

impl Desk {
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
        let outside = crawl::outside(&store, &[sim.address().port()]);
        Self {
            sim,
            store,
            poller: Arc::new(Poller::new(outside, PollOptions::default())),
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
    let desk = Desk::start().await;
    desk.add_one_of_each().await;
    let dry = CollectOptions {
        dry_run: true,
        ..CollectOptions::default()
    };
    let seen = desk.poller.collect(&dry, |_| {}).await.unwrap();
    assert_eq!(desk.count().await, 0);
    let taken = desk
        .poller
        .collect(&CollectOptions::default(), |_| {})
        .await
        .unwrap();
    for (dry, real) in seen.sources.iter().zip(&taken.sources) {
        assert_eq!(real.error, None, "{}", real.name);
        assert!(real.items_new > 5, "{real:?}");
        assert_eq!(dry.items_new, real.items_new, "{}", real.name);
    }
    assert_eq!((taken.attempted, taken.succeeded), (4, 4));
    assert_eq!(desk.count().await, taken.items_new as u64);
    let again = desk
        .poller
        .collect(&CollectOptions::default(), |_| {})
        .await
        .unwrap();
    assert_eq!((again.succeeded, again.items_new), (4, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_begin_by_themselves_once_for_all_machines() {
    let desk = Desk::start().await;
    desk.add_one_of_each().await;
    let every = Duration::from_secs(3600);
    let other = crawl::outside(&desk.store, &[desk.sim.address().port()]);
    let other = Arc::new(Poller::new(other, PollOptions::default()));
    let (one, two) = tokio::join!(
        desk.poller.collect_if_due(every),
        other.collect_if_due(every)
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(
        one.max(two),
        every,
        "one of them ran, and waits the whole time"
    );
    assert!(desk.count().await > 20);
    let wait = other.collect_if_due(every).await.unwrap();
    assert!(wait <= every && wait > every / 2, "{wait:?}");
    assert_eq!(desk.store.runs(None, 10).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poller_that_ends_does_not_wait_for_the_next_run() {
    let desk = Desk::start().await;
    let outside = crawl::outside(&desk.store, &[desk.sim.address().port()]);
    let options = PollOptions {
        collect_every: Some(Duration::from_secs(86_400)),
        ..PollOptions::default()
    };
    let poller = Arc::new(Poller::new(outside, options));
    let store = desk.store.clone();
    let ran = async {
        while store.runs(None, 10).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    poller.run(ran, |_| {}).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_asked_without_consequences() {
    let desk = Desk::start().await;
    desk.add_one_of_each().await;
    for name in ["feed", "sitemap", "index", "pages"] {
        let checked = desk.poller.check_source(name).await.unwrap();
        assert_eq!(checked.error, None, "{name}");
        assert_eq!(
            (checked.items_seen, checked.items_new),
            (checked.items.len(), checked.items.len())
        );
        assert!(checked.items_new > 5, "{name}");
    }
    assert_eq!(desk.count().await, 0);
    let nobody = desk.poller.check_source("nobody").await;
    assert!(matches!(nobody, Err(CollectError::NoSuchSource(_))));
    let gone = SourceSettings {
        feed_url: Some(
            desk.sim
                .world()
                .site(0)
                .absolute("/nothing")
                .parse()
                .unwrap(),
        ),
        ..SourceSettings::default()
    };
    desk.add("gone", &desk.sim.world().site(0), gone).await;
    let checked = desk.poller.check_source("gone").await.unwrap();
    assert_eq!(checked.error.as_deref(), Some("status 404"));
}
