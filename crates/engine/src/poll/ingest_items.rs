//! Ingests what a feed, sitemap or service lists: submits it to the frontier in
//! batches, each URL once, and nothing when the list is the same as before.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;
use tidings_adapters::Pull;
use tidings_feed::Feed as ParsedFeed;
use tidings_feed::sitemap::{Sitemap, SitemapKind};
use tidings_net::{Purpose, Request};
use tidings_store::{GuidHash, Newness, Result, Submission, Verdict};
use tidings_url::FetchUrl;
use tracing::info;

use super::feed_poll::{FeedPoll, timestamp};
use super::items::{self, Listed, Listing, repeats_guids};
use super::poll_error::{LIMITED, SKIPPED};
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
    /// Items that could not be submitted, by reason.
    pub(super) skipped: BTreeMap<&'static str, usize>,
    is_redundant: bool,
}

impl Ingested {
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
        let (listed, repeats_guids) = self.list_items(poll, feed).await?;
        if repeats_guids && !poll.state.repeats_guids {
            info!(
                feed = poll.feed.url,
                "guids of the feed repeat; not used as identity"
            );
            poll.state.repeats_guids = true;
        }
        let dates: Vec<_> = feed.items.iter().map(tidings_feed::Item::date).collect();
        self.ingest_listed(poll, listed, dates).await
    }

    /// The items of a feed, and whether its guids repeat: two items have the same, or
    /// one that was the guid of another item which the feed still lists.
    pub(super) async fn list_items(
        &self,
        poll: &FeedPoll<'_>,
        feed: &ParsedFeed,
    ) -> Result<(Listed, bool)> {
        let is_automatic = poll.settings.guid_is_identity.is_none();
        let mut repeats = is_automatic && (poll.state.repeats_guids || repeats_guids(feed));
        let (url, listing) = (poll.url(), self.listing(poll));
        let mut listed = items::listed(feed, &url, &listing, !repeats);
        let is_same = poll.feed.items_checksum.as_ref() == Some(&listed.checksum);
        if is_automatic && !repeats && !is_same {
            repeats = self.reassigns_guids(poll, &listed.submissions).await?;
            if repeats {
                listed = items::listed(feed, &url, &listing, false);
            }
        }
        Ok((listed, repeats))
    }

    /// Whether a guid belonged to an item that is listed with another one now.
    async fn reassigns_guids(
        &self,
        poll: &FeedPoll<'_>,
        submissions: &[Submission],
    ) -> Result<bool> {
        let with_guid = |submission: &Submission| Some((submission.target.id(), submission.guid?));
        let listed: HashMap<_, _> = submissions.iter().filter_map(with_guid).collect();
        let guids: Vec<GuidHash> = listed.values().copied().collect();
        let (store, source_id) = (&self.context.store, poll.source.source_id);
        let known = store.urls_of_guids(source_id, &guids).await?;
        let mut known = guids.iter().zip(known);
        Ok(known.any(|(guid, id)| {
            let now = id.and_then(|id| listed.get(&id));
            now.is_some_and(|now| now != guid)
        }))
    }

    pub(super) fn listing<'p>(&'p self, poll: &'p FeedPoll<'_>) -> Listing<'p> {
        Listing {
            source: &poll.source,
            settings: &poll.settings,
            proxies: &self.context.proxies,
            now: timestamp(poll.now),
        }
    }

    /// Ingests the entries of a sitemap; the sitemaps of an index become due.
    pub(super) async fn ingest_sitemap(
        &self,
        poll: &mut FeedPoll<'_>,
        map: &Sitemap,
    ) -> Result<Ingested> {
        if map.kind == SitemapKind::Index {
            let interval = i64::from(poll.settings.sitemap_interval_hours) * 3_600_000;
            let store = &self.context.store;
            let url = poll.url();
            let named = self.named_by_other_sites(map, &url).await;
            let left_out =
                follow_index(store, map, &named, &url, &poll.feed, interval, poll.now).await?;
            if let Some(reason) = left_out.reason() {
                poll.add_remark(LIMITED, reason);
            }
            poll.feed.item_count = map.entries.len() as i64;
            return Ok(Ingested {
                seen: map.entries.len(),
                ..Ingested::default()
            });
        }
        let now = timestamp(poll.now);
        poll.is_stale = sitemap::is_stale(map, &poll.feed.url, &poll.settings, now);
        let listed = sitemap::listed(map, &poll.url(), &self.listing(poll));
        let dates = map
            .entries
            .iter()
            .map(|entry| sitemap::date(entry, map))
            .collect();
        self.ingest_listed(poll, listed, dates).await
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
        let listed = adapter_items::listed(pull, &self.listing(poll));
        let dates: Vec<_> = pull.items.iter().map(|item| item.published).collect();
        let skipped = remark_skipped(poll, &listed);
        let new = self.submit(poll, &listed, &dates).await?;
        poll.feed.item_count = pull.items.len() as i64;
        if !poll.is_cut {
            poll.state.cursor = Some(pull.cursor.clone());
        }
        Ok(Ingested {
            seen: pull.items.len(),
            dates,
            new,
            skipped,
            is_redundant: false,
        })
    }

    /// Submits a list, unless it is the same as at the last poll.
    pub(super) async fn ingest_listed(
        &self,
        poll: &mut FeedPoll<'_>,
        listed: Listed,
        dates: Vec<Option<Timestamp>>,
    ) -> Result<Ingested> {
        let seen = dates.len();
        poll.feed.item_count = seen as i64;
        let skipped = remark_skipped(poll, &listed);
        if poll.feed.items_checksum.as_ref() == Some(&listed.checksum) {
            return Ok(Ingested {
                seen,
                skipped,
                is_redundant: true,
                ..Ingested::default()
            });
        }
        let new = self.submit(poll, &listed, &dates).await?;
        poll.feed.items_checksum = Some(listed.checksum);
        Ok(Ingested {
            seen,
            dates,
            new,
            skipped,
            is_redundant: false,
        })
    }

    /// Submits in batches; returns the dates of the items that are new.
    async fn submit(
        &self,
        poll: &mut FeedPoll<'_>,
        listed: &Listed,
        dates: &[Option<Timestamp>],
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
            let verdicts = store.submit(&submissions).await?;
            let before = new.len();
            for ((_, item), verdict) in batch.iter().zip(verdicts) {
                if verdict == Verdict::New {
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
        let submissions = batch.iter().map(|(submission, _)| (*submission).clone());
        let submissions: Vec<Submission> = submissions.collect();
        for (at, newness) in store.judge(&submissions).await?.into_iter().enumerate() {
            if newness != Newness::New {
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

/// Remarks which items cannot be submitted and why, and counts them by reason.
fn remark_skipped(poll: &mut FeedPoll<'_>, listed: &Listed) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for (_, reason) in &listed.skipped {
        *counts.entry(*reason).or_insert(0) += 1;
    }
    for (reason, count) in &counts {
        let items = if *count == 1 { "item" } else { "items" };
        poll.add_remark(SKIPPED, format!("{count} {items} skipped: {reason}"));
    }
    counts
}
