//! The whole simulated web: a seed, a number of sites, and nothing stored.
//! Sites are computed on demand, so a million cost no more than one.

use crate::site::{Site, host_name, index_in};
use crate::world_config::WorldConfig;

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
    use jiff::Timestamp;

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
