//! What kind of web is simulated: its size, its faults and its habits. Plain values
//! that every site is computed from.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::fault::FaultRule;
use crate::trap::SiteTrap;

/// What kind of web to simulate.
#[derive(Debug, Clone)]
pub struct WorldConfig {
    pub seed: u64,
    pub sites: u32,
    /// How many articles each site has published, on average, at `start`.
    pub articles_per_site: u32,
    /// When the simulation begins; articles go on appearing after it.
    pub start: Timestamp,
    /// Multiplies the rate at which every site publishes.
    pub pace: f64,
    /// How many of a hundred feeds have a defect.
    pub defect_percent: u8,
    /// How many of a hundred sites have passing faults (see [`FaultRule`]).
    pub fault_percent: u8,
    /// Whether responses take time.
    pub latency: bool,
    /// All articles are simply there: no redirects, members' or missing pages.
    pub plain_fates: bool,
    /// The same window for all feeds, instead of the sites' own.
    pub feed_window: Option<u64>,
    /// The Crawl-delay of sites that have one.
    pub crawl_delay: Duration,
    /// Pads article pages with scripts to at least this many bytes.
    pub page_bytes: usize,
    /// Sites are for readers only: no feeds and no sitemaps, but sections, some
    /// articles that are nowhere else, and links to all that is no article.
    pub without_feeds: bool,
    /// Traps of single sites, by index; of sites without feeds.
    pub traps: BTreeMap<u32, SiteTrap>,
    /// Faults of single sites, by index, which take precedence.
    pub scripts: BTreeMap<u32, Vec<FaultRule>>,
}

impl WorldConfig {
    /// Ten quiet sites of a hundred articles, starting now.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            sites: 10,
            articles_per_site: 100,
            start: Timestamp::now(),
            pace: 1.0,
            defect_percent: 0,
            fault_percent: 0,
            latency: false,
            plain_fates: false,
            feed_window: None,
            crawl_delay: Duration::from_secs(2),
            page_bytes: 0,
            without_feeds: false,
            traps: BTreeMap::new(),
            scripts: BTreeMap::new(),
        }
    }
}
