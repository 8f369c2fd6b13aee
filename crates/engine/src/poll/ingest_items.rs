//! Ingests what a feed, sitemap or service lists: submits it to the frontier in
//! batches, each URL once, and nothing when the list is the same as before.

use std::collections::HashSet;

use jiff::Timestamp;
use tidings_adapters::Pull;
use tidings_feed::Feed as ParsedFeed;
use tidings_feed::sitemap::{Sitemap, SitemapKind};
use tidings_net::{Purpose, Request};
use tidings_store::{Result, Submission, TitleHash, Verdict};
use tidings_url::FetchUrl;

use super::buckets::Buckets;
use super::feed_poll::{FeedPoll, timestamp};
use super::items::{self, Listed, title_hash};
use super::poll_error::LIMITED;
use super::sitemap_index::{follow_index, named_by_host, robots_of_other_sites};
use super::{PollOutcome, Poller, adapter_items, sitemap};
use crate::politeness::{FetchResult, Politeness};

/// Items per submission.
const BATCH: usize = 2000;

/// What was ingested.
#[derive(Default)]
pub(super) struct Ingested {
    pub(super) seen: usize,
    /// Dates of all items.
    pub(super) dates: Vec<Option<Timestamp>>,
    /// Dates of the new items.
    pub(super) new: Vec<Option<Timestamp>>,
    is_redundant: bool,
    /// The dates are those of the sitemaps of an index.
    is_index: bool,
}

impl Ingested {
    /// Dates of the items that are new; sitemaps are no items.
    pub(super) fn new_items(&self) -> &[Option<Timestamp>] {
        match self.is_index {
            true => &[],
            false => &self.new,
        }
    }

    pub(super) fn outcome(&self) -> PollOutcome {
        match self.is_redundant {
            true => PollOutcome::Redundant,
            false => PollOutcome::Ok,
        }
    }
}

impl Poller {
    /// Ingests the items of a feed.
    pub(super) async fn ingest_feed(
        &self,
        poll: &mut FeedPoll<'_>,
        feed: &ParsedFeed,
    ) -> Result<Ingested> {
        let proxies = &self.context.proxies;
        let listed = items::listed(feed, &poll.url(), &poll.source, &poll.settings, proxies);
        let dates: Vec<_> = feed.items.iter().map(tidings_feed::Item::date).collect();
        let titles: Vec<_> = feed
            .items
            .iter()
            .map(|item| item.title.as_deref())
            .collect();
        self.ingest_listed(poll, listed, dates, &titles).await
    }

    /// Ingests the entries of a sitemap; the sitemaps of an index become due.
    pub(super) async fn ingest_sitemap(
        &self,
        poll: &mut FeedPoll<'_>,
        map: &Sitemap,
    ) -> Result<Ingested> {
        let (proxies, now) = (&self.context.proxies, timestamp(poll.now));
        poll.state.is_news = sitemap::has_news(map, &poll.feed.url, poll.state.is_news, now);
        let dates: Vec<_> = map
            .entries
            .iter()
            .map(|entry| sitemap::date(entry, map))
            .collect();
        if map.kind == SitemapKind::Index {
            let interval = i64::from(poll.settings.sitemap_interval_hours) * 3_600_000;
            let store = &self.context.store;
            let url = poll.url();
            let named = self.named_by_other_sites(map, &url).await;
            let followed =
                follow_index(store, map, &named, &url, &poll.feed, interval, poll.now).await?;
            if let Some(reason) = followed.left_out.reason() {
                poll.add_remark(LIMITED, reason);
            }
            poll.feed.item_count = map.entries.len() as i64;
            // It is polled as often as its sitemaps change.
            return Ok(Ingested {
                seen: map.entries.len(),
                dates,
                new: followed.changed,
                is_index: true,
                ..Ingested::default()
            });
        }
        poll.is_stale = sitemap::is_stale(map, &poll.feed.url, &poll.settings, now);
        let listed = sitemap::listed(map, &poll.url(), &poll.source, &poll.settings, proxies, now);
        let titles = vec![None; map.entries.len()];
        let (listed, entries) = changed_part(listed, &poll.state.entries);
        let ingested = self.ingest_listed(poll, listed, dates, &titles).await?;
        if !poll.is_cut {
            poll.state.entries = entries;
        }
        Ok(ingested)
    }

    /// The sitemaps of an index on other sites that robots.txt there names.
    async fn named_by_other_sites(&self, index: &Sitemap, own_url: &FetchUrl) -> HashSet<String> {
        let mut named = HashSet::new();
        for robots in robots_of_other_sites(index, own_url) {
            // With the permit of its host; the rules are cached then.
            let request = Request::get(robots.clone(), Purpose::Robots);
            let fetched = self.context.fetch(request, Politeness::default()).await;
            if let Ok(FetchResult::Response(_)) = fetched
                && let Ok(rules) = self.context.robots.rules(&robots).await
            {
                named.extend(named_by_host(index, own_url, &robots, &rules.sitemaps));
            }
        }
        named
    }

    /// Ingests the items of a service; only then is its cursor stored.
    pub(super) async fn ingest_pull(
        &self,
        poll: &mut FeedPoll<'_>,
        pull: &Pull,
    ) -> Result<Ingested> {
        let proxies = &self.context.proxies;
        let listed = adapter_items::listed(pull, &poll.source, &poll.settings, proxies);
        let dates: Vec<_> = pull.items.iter().map(|item| item.published).collect();
        let titles: Vec<_> = pull.items.iter().map(|item| Some(&*item.title)).collect();
        let new = self.submit(poll, &listed, &dates, &titles).await?;
        poll.feed.item_count = pull.items.len() as i64;
        if !poll.is_cut {
            poll.state.cursor = Some(pull.cursor.clone());
        }
        Ok(Ingested {
            seen: pull.items.len(),
            dates,
            new,
            ..Ingested::default()
        })
    }

    /// Submits a list, unless it is the same as at the last poll.
    pub(super) async fn ingest_listed(
        &self,
        poll: &mut FeedPoll<'_>,
        listed: Listed,
        dates: Vec<Option<Timestamp>>,
        titles: &[Option<&str>],
    ) -> Result<Ingested> {
        let seen = dates.len();
        poll.feed.item_count = seen as i64;
        if poll.feed.items_checksum.as_ref() == Some(&listed.checksum) {
            return Ok(Ingested {
                seen,
                is_redundant: true,
                ..Ingested::default()
            });
        }
        let new = self.submit(poll, &listed, &dates, titles).await?;
        poll.feed.items_checksum = Some(listed.checksum);
        Ok(Ingested {
            seen,
            dates,
            new,
            ..Ingested::default()
        })
    }

    /// Submits in batches; returns the dates of the items that are new.
    async fn submit(
        &self,
        poll: &mut FeedPoll<'_>,
        listed: &Listed,
        dates: &[Option<Timestamp>],
        titles: &[Option<&str>],
    ) -> Result<Vec<Option<Timestamp>>> {
        let store = &self.context.store;
        let source_id = poll.source.source_id;
        let mut new = Vec::new();
        let pairs: Vec<(&Submission, usize)> = listed
            .submissions
            .iter()
            .zip(listed.item_of.iter().copied())
            .collect();
        for batch in pairs.chunks(BATCH) {
            let batch = self.within_quota(poll, batch).await?;
            if batch.is_empty() {
                break;
            }
            let submissions: Vec<Submission> = batch
                .iter()
                .map(|(submission, _)| (*submission).clone())
                .collect();
            // An article that an aggregator lists again under another URL is dropped.
            let hashes: Vec<Option<TitleHash>> = batch
                .iter()
                .map(|(_, item)| title_of(poll, titles[*item]))
                .collect();
            let verdicts = store.submit_titled(&submissions, &hashes).await?;
            let before = new.len();
            for ((_, item), verdict) in batch.iter().zip(verdicts) {
                if verdict == Some(Verdict::New) {
                    new.push(dates[*item]);
                }
            }
            if new.len() > before {
                let count = (new.len() - before) as u64;
                store.count_new_urls(source_id, count).await?;
            }
            // A huge list takes long; no other poller should claim the feed.
            if pairs.len() > BATCH {
                store
                    .extend_feed_lease(poll.claim, self.options.lease)
                    .await?;
            }
        }
        Ok(new)
    }
}

impl Poller {
    /// As much of a batch as the source may submit today. When that is not all, the
    /// rest waits for tomorrow: the response is read again then, and nothing is lost.
    async fn within_quota<'b>(
        &self,
        poll: &mut FeedPoll<'_>,
        batch: &'b [(&'b Submission, usize)],
    ) -> Result<&'b [(&'b Submission, usize)]> {
        let store = &self.context.store;
        let quota = poll.settings.max_new_urls_per_day;
        let quota = quota.map_or(self.options.max_new_urls_per_day, u64::from);
        let today = store.new_urls_today(poll.source.source_id).await?;
        let mut left = quota.saturating_sub(today.count);
        if left >= batch.len() as u64 {
            return Ok(batch);
        }
        for (at, (submission, _)) in batch.iter().enumerate() {
            if store.url(submission.target.id()).await?.is_some() {
                continue;
            }
            if left == 0 {
                poll.is_cut = true;
                poll.next_poll_in = Some(today.resets_in);
                poll.add_remark(
                    LIMITED,
                    format!(
                        "max_new_urls_per_day ({quota}) is reached; the rest waits until tomorrow"
                    ),
                );
                return Ok(&batch[..at]);
            }
            left -= 1;
        }
        Ok(batch)
    }
}

/// The part of a long list that has changed since it was read, and what to compare the next
/// one with. A short list is submitted whole.
fn changed_part(mut listed: Listed, before: &Buckets) -> (Listed, Buckets) {
    if listed.submissions.len() <= BATCH {
        return (listed, Buckets::default());
    }
    let submissions = listed.submissions.iter();
    let now = Buckets::of(submissions.map(|submission| &submission.target.key));
    let submissions = listed.submissions.into_iter().zip(listed.item_of);
    (listed.submissions, listed.item_of) = submissions
        .filter(|(submission, _)| now.has_changed(before, &submission.target.key))
        .unzip();
    (listed, now)
}

/// What an item's title is compared by, if the source wants that.
fn title_of(poll: &FeedPoll<'_>, title: Option<&str>) -> Option<TitleHash> {
    let title = title.filter(|title| poll.settings.title_week && !title.is_empty())?;
    Some(title_hash(title, timestamp(poll.now)))
}

#[cfg(test)]
mod tests {
    use tidings_store::Origin;
    use tidings_url::{FetchUrl, ProxyHosts, Rules};

    use super::*;
    use crate::sources::target;

    fn listed(count: usize) -> Listed {
        let submission = |n| {
            let url = FetchUrl::parse(&format!("https://a.example/{n}")).unwrap();
            let target = target(url, &Rules::default(), &ProxyHosts::default());
            Submission::new(target, Origin::Sitemap)
        };
        Listed {
            submissions: (0..count).map(submission).collect(),
            item_of: (0..count).collect(),
            checksum: String::new(),
        }
    }

    #[test]
    fn one_new_entry_of_fifty_thousand_is_one_submit() {
        let (all, before) = changed_part(listed(49_999), &Buckets::default());
        assert_eq!(all.submissions.len(), 49_999);
        let (changed, after) = changed_part(listed(50_000), &before);
        assert!(changed.item_of.contains(&49_999) && changed.submissions.len() < BATCH / 4);
        assert_eq!(changed.submissions.len(), changed.item_of.len());
        let (none, _) = changed_part(listed(50_000), &after);
        assert!(none.submissions.is_empty());
        // A short list is submitted whole, whatever it was before.
        assert_eq!(changed_part(listed(20), &after).0.submissions.len(), 20);
    }
}
