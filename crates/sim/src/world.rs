//! The whole simulated web: a seed, a number of sites, and nothing stored.
//! Sites are computed on demand, so a million cost no more than one.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::fault::FaultRule;
use crate::site::{Site, host_name, index_in};
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

/// The sites that exist, and where they are served.
#[derive(Debug, Clone)]
pub struct World {
    config: WorldConfig,
    port: u16,
}

impl World {
    pub fn new(config: WorldConfig, port: u16) -> Self {
        Self { config, port }
    }

    pub fn config(&self) -> &WorldConfig {
        &self.config
    }

    pub fn len(&self) -> u32 {
        self.config.sites
    }

    pub fn is_empty(&self) -> bool {
        self.config.sites == 0
    }

    /// A site by its index.
    pub fn site(&self, index: u32) -> Site {
        Site::of(&self.config, index, self.port)
    }

    pub fn sites(&self) -> impl Iterator<Item = Site> + '_ {
        (0..self.config.sites).map(|index| self.site(index))
    }

    /// The site that a `Host` header names, with or without port.
    pub fn site_named(&self, authority: &str) -> Option<Site> {
        let host = authority.split(':').next()?.to_ascii_lowercase();
        let index = index_in(&host)?;
        let exists = index < self.config.sites && host_name(self.config.seed, index) == host;
        exists.then(|| self.site(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(seed: u64, sites: u32) -> World {
        World::new(
            WorldConfig {
                sites,
                start: Timestamp::UNIX_EPOCH,
                ..WorldConfig::new(seed)
            },
            80,
        )
    }

    #[test]
    fn the_same_seed_makes_the_same_web() {
        let describe = |world: &World| format!("{:?}", world.sites().collect::<Vec<_>>());
        assert_eq!(describe(&world(7, 20)), describe(&world(7, 20)));
        assert_ne!(describe(&world(7, 20)), describe(&world(8, 20)));
    }

    #[test]
    fn a_million_sites_are_found_by_name() {
        let world = world(7, 1_000_000);
        for index in [0, 17, 999_999] {
            let site = world.site(index);
            assert_eq!(
                world.site_named(&site.authority).map(|s| s.index),
                Some(index)
            );
            assert_eq!(
                world.site_named(&site.host.to_uppercase()).map(|s| s.index),
                Some(index)
            );
        }
    }

    #[test]
    fn names_outside_the_web_are_unknown() {
        let world = world(7, 3);
        let beyond = host_name(7, 3);
        let wrong = format!("wrong-name-{}.localhost", 1);
        for name in [
            "",
            "localhost",
            "127.0.0.1",
            "example.com",
            "x-1.example",
            &beyond,
            &wrong,
        ] {
            assert!(world.site_named(name).is_none(), "{name}");
        }
    }

    #[test]
    fn every_article_is_found_at_its_own_path() {
        let config = WorldConfig {
            sites: 40,
            ..WorldConfig::new(3)
        };
        let now = config.start;
        for site in World::new(config, 80).sites() {
            let published = site.published_by(now);
            assert!(published > 50, "{} has {published}", site.host);
            for article in site.latest(now, 30) {
                for path in [&article.path, article.announced_path()] {
                    let found = site.article_at(path, now);
                    assert_eq!(found.map(|a| a.number), Some(article.number), "{path}");
                }
            }
            let unborn = site.article(published);
            assert!(site.article_at(&unborn.path, now).is_none());
        }
    }
}
