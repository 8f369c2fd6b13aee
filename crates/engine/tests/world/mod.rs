//! A simulated web, a store and a poller on one clock that the test moves.

#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tidings_engine::{FetchContext, PollOptions, Poller, SourceSettings};
use tidings_net::{Client, Egress, NetOptions};
use tidings_sim::{SimClock, SimServer, SiteTrap, WorldConfig};
use tidings_store::{Feed, Filter, NewSource, Order, Store, StoreOptions};
use tidings_url::{FetchUrl, Rules};

pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// The parameters of the simulated days.
pub(crate) struct Days {
    pub(crate) sites: u32,
    pub(crate) defect_percent: u8,
    pub(crate) fault_percent: u8,
    pub(crate) pace: f64,
    /// Sites without feeds, all of whose articles exist.
    pub(crate) without_feeds: bool,
    pub(crate) traps: BTreeMap<u32, SiteTrap>,
}

impl Default for Days {
    fn default() -> Self {
        Self {
            sites: 10,
            defect_percent: 0,
            fault_percent: 0,
            pace: 1.0,
            without_feeds: false,
            traps: BTreeMap::new(),
        }
    }
}

/// A store on a clock that the test moves.
pub(crate) struct TestStore {
    pub(crate) store: Store,
    clock: Arc<AtomicI64>,
    _folder: Option<tempfile::TempDir>,
}

pub(crate) fn start_time() -> Timestamp {
    "2026-11-02T06:00:00Z".parse().unwrap()
}

impl TestStore {
    pub(crate) async fn start(options: StoreOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
        Self {
            _folder: Some(folder),
            ..Self::at(&address, options).await
        }
    }

    pub(crate) async fn at(address: &str, options: StoreOptions) -> Self {
        let clock = Arc::new(AtomicI64::new(start_time().as_millisecond()));
        let options = options.with_manual_clock(Arc::clone(&clock));
        Self {
            store: Store::open(address, &options).await.unwrap(),
            clock,
            _folder: None,
        }
    }

    pub(crate) fn advance(&self, time: Duration) {
        self.clock
            .fetch_add(time.as_millis() as i64, Ordering::SeqCst);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock()()
    }

    /// The clock, for a server.
    pub(crate) fn clock(&self) -> impl Fn() -> Timestamp + Send + Sync + use<> {
        let clock = Arc::clone(&self.clock);
        move || Timestamp::from_millisecond(clock.load(Ordering::SeqCst)).unwrap()
    }

    pub(crate) fn context(&self, ports: &[u16]) -> FetchContext {
        let client = Client::new(NetOptions {
            egress: Egress {
                allow: vec!["127.0.0.0/8".parse().unwrap()],
                ports: ports.iter().map(|port| *port..=*port).collect(),
            },
            ..NetOptions::default()
        })
        .unwrap();
        let mut context = FetchContext::new(client.clone(), self.store.clone());
        // Permits depend on the clock of the test: waiting for one is no use.
        context.permit_timeout = Duration::ZERO;
        let clock = Arc::clone(&self.clock);
        context.robots = context.robots.with_clock(move || {
            jiff::Timestamp::from_millisecond(clock.load(Ordering::SeqCst)).unwrap()
        });
        context
    }

    pub(crate) fn poller(&self, port: u16, options: PollOptions) -> Arc<Poller> {
        Arc::new(Poller::new(self.context(&[port]), options))
    }

    pub(crate) fn poller_for(&self, ports: &[u16]) -> Arc<Poller> {
        Arc::new(Poller::new(self.context(ports), PollOptions::default()))
    }
}

/// A simulated web on the clock of a test store.
pub(crate) struct World {
    pub(crate) sim: SimServer,
    pub(crate) store: Store,
    pub(crate) start: Timestamp,
    test_store: TestStore,
}

pub(crate) fn key_of(url: &str) -> String {
    let url = FetchUrl::parse(url).unwrap();
    url.canonical(&Rules::default()).key().to_string()
}

impl World {
    pub(crate) async fn start(days: Days) -> Self {
        let start = start_time();
        let config = WorldConfig {
            sites: days.sites,
            articles_per_site: 60,
            start,
            pace: days.pace,
            defect_percent: days.defect_percent,
            fault_percent: days.fault_percent,
            without_feeds: days.without_feeds,
            plain_fates: days.without_feeds,
            traps: days.traps,
            // Slept in real time after robots.txt.
            crawl_delay: Duration::from_millis(40),
            // No item leaves a feed unseen: what is missed, the poller missed.
            feed_window: Some(100),
            ..WorldConfig::new(11)
        };
        let sim = SimServer::start(config, SimClock::manual(start), "127.0.0.1:0")
            .await
            .unwrap();
        let mut options = StoreOptions::default();
        // Real pauses after robots.txt, short enough for a test.
        options.host_delay = Duration::from_millis(20);
        let test_store = TestStore::start(options).await;
        Self {
            sim,
            store: test_store.store.clone(),
            start,
            test_store,
        }
    }

    /// Advances the clocks of the web and the store.
    pub(crate) fn advance(&self, time: Duration) {
        self.sim.clock().advance(time);
        self.advance_store(time);
    }

    /// Advances the store only: nothing is published meanwhile.
    pub(crate) fn advance_store(&self, time: Duration) {
        self.test_store.advance(time);
    }

    pub(crate) fn poller(&self) -> Arc<Poller> {
        self.poller_with(PollOptions::default())
    }

    pub(crate) fn poller_with(&self, options: PollOptions) -> Arc<Poller> {
        self.test_store.poller(self.sim.address().port(), options)
    }

    pub(crate) async fn feeds(&self) -> Vec<Feed> {
        self.store.feeds_after(i64::MIN, 100_000).await.unwrap()
    }

    pub(crate) async fn resume_all_feeds(&self) {
        let now = self.store.now().await.unwrap();
        for feed in self.feeds().await {
            self.store.resume_feed(feed.feed_id, now).await.unwrap();
        }
    }

    pub(crate) async fn add_sitemap(&self, url: &str, settings: SourceSettings) {
        add(&self.store, url, "sitemap", url, settings).await;
    }

    pub(crate) async fn found_keys(&self) -> BTreeSet<String> {
        keys_in(&self.store).await
    }

    /// Every feed of every site, each as a source.
    pub(crate) async fn add_all_feeds(&self) {
        for site in self.sim.world().sites() {
            for feed in &site.feeds {
                let url = site.absolute(&feed.path);
                add(&self.store, &url, "feed", &url, SourceSettings::default()).await;
            }
        }
    }
}

/// A source with one feed or sitemap.
pub(crate) async fn add(
    store: &Store,
    name: &str,
    kind: &str,
    url: &str,
    settings: SourceSettings,
) {
    let source = NewSource {
        name: name.to_owned(),
        url: url.to_owned(),
        kind: "feed".to_owned(),
        priority: 5,
        config: settings.to_json(),
    };
    let source = store.add_source(&source).await.unwrap();
    store.add_feed(source.source_id, kind, url).await.unwrap();
}

/// The keys of everything in a frontier.
pub(crate) async fn keys_in(store: &Store) -> BTreeSet<String> {
    let (mut keys, mut after) = (BTreeSet::new(), None);
    loop {
        let page = store
            .list(&Filter::default(), Order::Id, after, 5000)
            .await
            .unwrap();
        keys.extend(page.rows.iter().map(|row| row.url_key.to_string()));
        match page.next {
            Some(next) => after = Some(next),
            None => return keys,
        }
    }
}
