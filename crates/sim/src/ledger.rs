//! What the simulated web has published, and what an honest pipeline must have
//! made of it. Computed from the seed and the time, so it can't be wrong by
//! what was or was not requested.

use jiff::Timestamp;
use serde::Serialize;
use tidings_url::{Rules, UrlKey};

use crate::article::{Article, Fate};
use crate::site::{RobotsKind, Site};
use crate::world::World;

/// Everything published by one moment.
#[derive(Debug, Clone)]
pub struct Ledger<'a> {
    world: &'a World,
    now: Timestamp,
}

/// One published article.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    pub site: u32,
    pub number: u64,
    /// The link as feeds and sitemaps announce it, without tracking parameters.
    pub announced_url: String,
    /// The page's own address.
    pub url: String,
    /// The url key of the page's own address.
    pub key: UrlKey,
    pub title: String,
    pub published: Timestamp,
    pub expected: Expected,
}

/// How the article must end up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expected {
    /// Exactly one document.
    Document,
    /// Never fetched.
    RobotsBlocked,
    /// Dead: the server says 404.
    NotFound,
}

impl<'a> Ledger<'a> {
    pub fn new(world: &'a World, now: Timestamp) -> Self {
        Self { world, now }
    }

    /// All articles, site by site, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.world
            .sites()
            .flat_map(|site| self.entries_of(&site).collect::<Vec<_>>())
    }

    /// The articles of one site, oldest first.
    pub fn entries_of<'s>(&self, site: &'s Site) -> impl Iterator<Item = Entry> + use<'s> {
        self.entries_from(site, 0)
    }

    /// The same from a number on, for those who know the ones before.
    pub fn entries_from<'s>(
        &self,
        site: &'s Site,
        number: u64,
    ) -> impl Iterator<Item = Entry> + use<'s> {
        let published = site.published_by(self.now);
        (number..published).map(|number| entry(site, &site.article(number)))
    }

    /// How many articles there are, without making them.
    pub fn published(&self) -> u64 {
        self.world
            .sites()
            .map(|site| site.published_by(self.now))
            .sum()
    }
}

fn entry(site: &Site, article: &Article) -> Entry {
    let page = site.url(&article.path);
    Entry {
        site: site.index,
        number: article.number,
        announced_url: site.absolute(article.announced_path()),
        key: page.canonical(&Rules::default()).key(),
        url: page.into(),
        title: article.title.clone(),
        published: article.published,
        expected: match article.fate {
            Fate::Missing => Expected::NotFound,
            Fate::Members if site.robots != RobotsKind::Absent => Expected::RobotsBlocked,
            Fate::Page | Fate::Moved | Fate::Members => Expected::Document,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::world_config::WorldConfig;

    #[test]
    fn every_article_has_a_key_of_its_own() {
        let config = WorldConfig {
            sites: 60,
            articles_per_site: 50,
            ..WorldConfig::new(11)
        };
        let now = config.start;
        let world = World::new(config, 8080);
        let ledger = Ledger::new(&world, now);
        let entries: Vec<_> = ledger.entries().collect();
        let keys: HashSet<_> = entries.iter().map(|entry| entry.key).collect();
        assert_eq!(keys.len(), entries.len());
        assert_eq!(entries.len() as u64, ledger.published());
        for expected in [
            Expected::Document,
            Expected::RobotsBlocked,
            Expected::NotFound,
        ] {
            assert!(
                entries.iter().any(|entry| entry.expected == expected),
                "{expected:?}"
            );
        }
    }
}
