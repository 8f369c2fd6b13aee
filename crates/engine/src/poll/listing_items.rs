//! Ingests what a listing shows: articles go to the frontier, listings that were
//! not known are added to the source, and traps are reported by name.

use std::time::Duration;

use tidings_spider::{Found, TrapSighting};
use tidings_store::{Feed, Origin, Result, Submission};
use tidings_url::UrlKey;

use super::Poller;
use super::feed_poll::FeedPoll;
use super::feed_state::{External, FeedState};
use super::ingest_items::Ingested;
use super::items::{Listed, checksum};
use crate::sources::{LISTING, priority, target};

/// Interval of listings that bring nothing new.
pub(super) const RARE_INTERVAL: Duration = Duration::from_secs(30 * 86_400);
/// How much lower the priority of an article of another site is.
const EXTERNAL_MALUS: u8 = 2;

pub(super) const DAY_MS: i64 = 86_400_000;

impl Poller {
    /// Submits the articles of a listing, and adds the listings that it links to.
    pub(super) async fn ingest_listing(
        &self,
        poll: &mut FeedPoll<'_>,
        found: &Found,
    ) -> Result<Ingested> {
        for name in &found.session_params {
            let params = &mut poll.settings.strip_params;
            if !params.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                params.push(name.clone());
            }
        }
        let listed = self.listed(poll, found).await?;
        let prefix = |submission: &Submission| key_prefix(&submission.target.key);
        let shown = listed.submissions.iter().map(prefix).collect();
        poll.state.shown = poll.state.shown.next(shown, poll.now);
        let dates = vec![None; found.articles.len()];
        let ingested = self.ingest_listed(poll, listed, dates).await?;
        self.add_listings(poll, found).await?;
        let is_first = poll.claim.feed.last_polled_at.is_none();
        let is_all_new = ingested.seen > 0 && ingested.new.len() >= ingested.seen;
        if is_all_new && !is_first {
            self.resume_older_listings(poll).await?;
        }
        let is_empty = found.articles.is_empty();
        if poll.state.is_older || is_empty {
            poll.next_poll_in = Some(RARE_INTERVAL);
        }
        if !found.traps.is_empty() {
            poll.add_remark("trap", describe_traps(&found.traps));
        } else if is_empty {
            poll.add_remark("content", "the page lists no articles".to_owned());
        }
        Ok(ingested)
    }

    /// The articles of a listing as submissions, each once.
    pub(super) async fn listed(&self, poll: &mut FeedPoll<'_>, found: &Found) -> Result<Listed> {
        let rules = poll.settings.rules();
        let depth = poll.state.depth as u16 + 1;
        let own_priority = priority(poll.source.priority, Origin::Spider, depth);
        let mut seen = std::collections::BTreeSet::new();
        let (mut submissions, mut item_of) = (Vec::new(), Vec::new());
        for (at, article) in found.articles.iter().enumerate() {
            let target = target(article.url.clone(), &rules, &self.context.proxies);
            if !seen.insert(target.key.to_string()) {
                continue;
            }
            let submission = Submission {
                source_id: poll.source.source_id,
                priority: match article.is_external {
                    true => own_priority.saturating_sub(EXTERNAL_MALUS).max(1),
                    false => own_priority,
                },
                depth,
                parent_url: Some(poll.feed.url.clone()),
                title: self.listing(poll).title(Some(&article.text)),
                ..Submission::new(target, Origin::Spider)
            };
            if article.is_external && !self.may_submit_external(poll, &submission).await? {
                continue;
            }
            submissions.push(submission);
            item_of.push(at);
        }
        Ok(Listed {
            submissions,
            item_of,
            checksum: checksum(seen.iter().map(String::as_str)),
            skipped: Vec::new(),
        })
    }

    /// The listings of a source that are known.
    pub(super) async fn listings_of(&self, poll: &FeedPoll<'_>) -> Result<Vec<Feed>> {
        let store = &self.context.store;
        let feeds = store.feeds_of_source(poll.source.source_id).await?;
        let listings = feeds.into_iter().filter(|feed| feed.kind == LISTING);
        Ok(listings.collect())
    }

    /// Whether a new article of another site fits into today's budget; counts it.
    async fn may_submit_external(
        &self,
        poll: &mut FeedPoll<'_>,
        article: &Submission,
    ) -> Result<bool> {
        let known = self.context.store.url(article.target.id()).await?;
        if known.is_some() {
            return Ok(false);
        }
        let day = poll.now.0.div_euclid(DAY_MS);
        let external = &mut poll.state.external;
        if external.day != day {
            *external = External { day, taken: 0 };
        }
        let may = external.taken < poll.settings.external_per_day;
        external.taken += u32::from(may);
        Ok(may)
    }

    async fn add_listings(&self, poll: &FeedPoll<'_>, found: &Found) -> Result<()> {
        for listing in &found.listings {
            let state = FeedState {
                depth: poll.state.depth + 1,
                parent: Some(poll.feed.url.clone()),
                is_older: listing.is_older,
                ..FeedState::default()
            };
            let (id, url) = (poll.source.source_id, listing.url.as_str());
            let store = &self.context.store;
            store
                .add_child_feeds(id, LISTING, &[(url.to_owned(), state.to_json())])
                .await?;
        }
        Ok(())
    }

    /// A listing with only new articles has pushed some to its older pages.
    async fn resume_older_listings(&self, poll: &FeedPoll<'_>) -> Result<()> {
        let store = &self.context.store;
        for feed in self.listings_of(poll).await? {
            let state = FeedState::parse(&feed.policy);
            if state.is_older && state.parent.as_ref() == Some(&poll.feed.url) {
                store.resume_feed(feed.feed_id, poll.now).await?;
            }
        }
        Ok(())
    }
}

/// Enough of a key to distinguish the articles of a page.
fn key_prefix(key: &UrlKey) -> u32 {
    let [a, b, c, d, ..] = *key.as_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// The traps of a page as a message.
pub(super) fn describe_traps(traps: &[TrapSighting]) -> String {
    let one = |met: &TrapSighting| {
        let (trap, links, example) = (met.trap, met.links, &met.example);
        format!("{trap} ({links} links, such as {example})")
    };
    let all: Vec<String> = traps.iter().map(one).collect();
    format!("not followed into traps: {}", all.join(", "))
}
