//! What a document lists, into the frontier: in slices, each once, and nothing
//! when it lists what it listed before.

use jiff::Timestamp;
use tidings_adapters::Pull;
use tidings_feed::Feed as ParsedFeed;
use tidings_feed::sitemap::{Sitemap, SitemapKind};
use tidings_store::{Result, Submission, Verdict};

use super::adapter;
use super::items::{self, Listed, title_hash};
use super::one::{Polling, time};
use super::sitemap;
use super::{PollOutcome, Poller};

/// Items that are submitted at once; more come in the next slice.
const SLICE: usize = 2000;

/// What a document gave.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) seen: usize,
    /// Of all items.
    pub(super) dates: Vec<Option<Timestamp>>,
    /// Of those that nobody knew.
    pub(super) new: Vec<Option<Timestamp>>,
    is_redundant: bool,
}

impl Taken {
    pub(super) fn outcome(&self) -> PollOutcome {
        match self.is_redundant {
            true => PollOutcome::Redundant,
            false => PollOutcome::Ok,
        }
    }
}

impl Polling<'_> {
    /// Submits what a feed lists, unless it lists what it listed before.
    pub(super) async fn take_feed(&mut self, poller: &Poller, feed: &ParsedFeed) -> Result<Taken> {
        let proxies = &poller.outside.proxies;
        let listed = items::listed(feed, &self.url(), &self.source, &self.settings, proxies);
        let dates: Vec<_> = feed.items.iter().map(tidings_feed::Item::date).collect();
        let titles: Vec<_> = feed
            .items
            .iter()
            .map(|item| item.title.as_deref())
            .collect();
        self.take(poller, listed, dates, &titles).await
    }

    /// The same of a sitemap; the sitemaps of an index become due instead.
    pub(super) async fn take_sitemap(&mut self, poller: &Poller, map: &Sitemap) -> Result<Taken> {
        if map.kind == SitemapKind::Index {
            let interval = i64::from(self.settings.sitemap_interval_hours) * 3_600_000;
            let store = &poller.outside.store;
            let (url, depth) = (self.url(), self.memory.depth);
            sitemap::follow_index(store, map, &url, &self.feed, depth, interval, self.now).await?;
            self.feed.item_count = map.entries.len() as i64;
            return Ok(Taken {
                seen: map.entries.len(),
                ..Taken::default()
            });
        }
        let proxies = &poller.outside.proxies;
        let now = time(self.now);
        let listed = sitemap::listed(map, &self.url(), &self.source, &self.settings, proxies, now);
        let dates = map
            .entries
            .iter()
            .map(|entry| sitemap::date(entry, map))
            .collect();
        let titles = vec![None; map.entries.len()];
        self.take(poller, listed, dates, &titles).await
    }

    pub(super) async fn take(
        &mut self,
        poller: &Poller,
        listed: Listed,
        dates: Vec<Option<Timestamp>>,
        titles: &[Option<&str>],
    ) -> Result<Taken> {
        let seen = dates.len();
        self.feed.item_count = seen as i64;
        if self.feed.items_checksum.as_ref() == Some(&listed.checksum) {
            return Ok(Taken {
                seen,
                is_redundant: true,
                ..Taken::default()
            });
        }
        let new = self.submit(poller, &listed, &dates, titles).await?;
        self.feed.items_checksum = Some(listed.checksum);
        Ok(Taken {
            seen,
            dates,
            new,
            is_redundant: false,
        })
    }

    /// Submits what an adapter brought; only then does its cursor count.
    pub(super) async fn take_pull(&mut self, poller: &Poller, pull: &Pull) -> Result<Taken> {
        let listed = adapter::listed(pull, &self.source, &self.settings, &poller.outside.proxies);
        let dates: Vec<_> = pull.items.iter().map(|item| item.published).collect();
        let titles: Vec<_> = pull.items.iter().map(|item| Some(&*item.title)).collect();
        let new = self.submit(poller, &listed, &dates, &titles).await?;
        self.feed.item_count = pull.items.len() as i64;
        self.memory.cursor = Some(pull.cursor.clone());
        Ok(Taken {
            seen: pull.items.len(),
            dates,
            new,
            is_redundant: false,
        })
    }

    /// The dates of the items that nobody knew.
    async fn submit(
        &self,
        poller: &Poller,
        listed: &Listed,
        dates: &[Option<Timestamp>],
        titles: &[Option<&str>],
    ) -> Result<Vec<Option<Timestamp>>> {
        let store = &poller.outside.store;
        let mut found = Vec::new();
        let pairs: Vec<(&Submission, usize)> = listed
            .submissions
            .iter()
            .zip(listed.item_of.iter().copied())
            .collect();
        for slice in pairs.chunks(SLICE) {
            let wanted = self.new_stories(poller, titles, slice).await?;
            let submissions: Vec<Submission> = wanted
                .iter()
                .map(|(submission, _)| (*submission).clone())
                .collect();
            let verdicts = store.submit(&submissions).await?;
            for ((_, item), verdict) in wanted.iter().zip(verdicts) {
                if verdict == Verdict::New {
                    found.push(dates[*item]);
                }
            }
            // A huge document takes its time; nobody else should start on it.
            if pairs.len() > SLICE {
                store
                    .extend_feed_lease(self.claim, poller.options.lease)
                    .await?;
            }
        }
        Ok(found)
    }

    /// Without the stories that an aggregator lists again under another address.
    async fn new_stories<'s>(
        &self,
        poller: &Poller,
        titles: &[Option<&str>],
        slice: &[(&'s Submission, usize)],
    ) -> Result<Vec<(&'s Submission, usize)>> {
        if !self.settings.title_week {
            return Ok(slice.to_vec());
        }
        let now = time(self.now);
        let title = |item: usize| titles[item].filter(|title| !title.is_empty());
        let titled: Vec<usize> = (0..slice.len())
            .filter(|at| title(slice[*at].1).is_some())
            .collect();
        let hashes: Vec<[u8; 16]> = titled
            .iter()
            .map(|at| title_hash(title(slice[*at].1).unwrap_or_default(), now))
            .collect();
        let is_new = poller
            .outside
            .store
            .record_titles(self.source.source_id, &hashes)
            .await?;
        let mut keep = vec![true; slice.len()];
        for (at, is_new) in titled.into_iter().zip(is_new) {
            keep[at] = is_new;
        }
        let kept = slice.iter().zip(keep).filter(|(_, keep)| *keep);
        Ok(kept.map(|(pair, _)| *pair).collect())
    }
}
