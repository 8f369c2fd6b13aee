//! Search for the feed of a site whose feed is unknown, or whose feed URL serves a
//! page now: what is found is polled from then on. At most one search per week;
//! its result is visible on the source.

use std::time::Duration;

use async_trait::async_trait;
use tidings_feed::discovery::{CandidateKind, Ranked};
use tidings_net::{Failure, Purpose, Request, Response, RobotsGate};
use tidings_store::Result;
use tidings_url::FetchUrl;
use tracing::info;

use super::feed_poll::{FeedPoll, FeedRead, timestamp};
use super::feed_state::FeedState;
use super::poll_error::PollError;
use super::{PollReport, Poller};
use crate::politeness::{FetchContext, FetchResult, Politeness};
use crate::sources::{LISTING, SiteProbe, search_site};

/// Interval of searches that found nothing.
const SEARCH_INTERVAL: Duration = Duration::from_secs(7 * 24 * 3600);

#[async_trait]
impl SiteProbe for FetchContext {
    async fn fetch(&self, url: &FetchUrl, purpose: Purpose) -> Result<Response, Failure> {
        let request = Request::get(url.clone(), purpose);
        let result = Self::fetch(self, request, Politeness::default()).await;
        match result.map_err(|error| Failure::Store {
            why: error.to_string(),
        })? {
            FetchResult::Response(response) => Ok(*response),
            FetchResult::Failed(failure) => Err(failure),
            FetchResult::HostBusy(wait) => Err(Failure::HostBusy {
                host: url.host().to_owned(),
                wait,
            }),
        }
    }

    fn robots(&self) -> &RobotsGate {
        &self.robots
    }
}

impl Poller {
    /// The first poll of a site without a known feed: searches for one.
    pub(super) async fn find_feed(
        &self,
        mut poll: FeedPoll<'_>,
        site: FetchUrl,
    ) -> Result<Option<PollReport>> {
        if poll.settings.feed_url.is_some() {
            // A user has set it meanwhile, and it has a row of its own.
            poll.feed.paused_reason = Some("the feed URL is set".to_owned());
            return self.complete_poll(poll, FeedRead::NotModified).await;
        }
        let found = search_site(&self.context, &site, timestamp(poll.now), |_| {}).await;
        let read = match found {
            Ok(found) => match poll.follow(&found) {
                true => FeedRead::Found,
                false if poll.settings.ingestion_mode.is_none() => poll.become_listing(),
                false => {
                    poll.next_poll_in = Some(SEARCH_INTERVAL);
                    let message = format!(
                        "{site}: no feed and no sitemap found; the next search is in a week"
                    );
                    FeedRead::Failed(PollError::hard("content", message))
                }
            },
            Err(failure) => FeedRead::Failed(PollError::of_failure(&failure)),
        };
        self.complete_poll(poll, read).await
    }

    /// Searches a site that is followed by its listings again, in case it has a feed
    /// now.
    pub(super) async fn find_feed_of_site(
        &self,
        poll: &mut FeedPoll<'_>,
        site: &FetchUrl,
    ) -> Option<FeedRead> {
        poll.state.searched_at = Some(poll.now.0);
        let found = search_site(&self.context, site, timestamp(poll.now), |_| {}).await;
        let is_followed = found.is_ok_and(|found| poll.follow(&found));
        is_followed.then_some(FeedRead::Found)
    }

    /// Searches a page that came instead of the feed, in case it links to the feed.
    pub(super) async fn find_feed_of_page(
        &self,
        poll: &mut FeedPoll<'_>,
        error: PollError,
    ) -> PollError {
        let searched = poll.state.searched_at.unwrap_or(i64::MIN);
        if poll.now.0.saturating_sub(searched) < SEARCH_INTERVAL.as_millis() as i64 {
            return error;
        }
        poll.state.searched_at = Some(poll.now.0);
        let page = poll.url();
        let found = search_site(&self.context, &page, timestamp(poll.now), |_| {}).await;
        let is_followed = found.is_ok_and(|found| poll.follow(&found));
        match is_followed {
            false => error,
            true => PollError {
                message: format!(
                    "a page, not a feed; its feed {} is polled from now on",
                    poll.feed.url
                ),
                ..error
            },
        }
    }
}

impl FeedPoll<'_> {
    pub(super) fn repeat_search_in_a_week(&mut self) {
        self.next_poll_in = Some(SEARCH_INTERVAL);
    }

    /// Only for the home page of a source without an ingestion mode: every week while
    /// its listing fails, else every four weeks.
    pub(super) fn is_search_due(&self) -> bool {
        let is_home = self.state.depth == 0 && self.settings.ingestion_mode.is_none();
        let interval = match self.feed.consecutive_errors {
            0 => SEARCH_INTERVAL * 4,
            _ => SEARCH_INTERVAL,
        };
        let searched = self.state.searched_at.unwrap_or(i64::MIN);
        is_home && self.now.0.saturating_sub(searched) >= interval.as_millis() as i64
    }

    /// There is no feed: the site is followed by its listings from now on.
    fn become_listing(&mut self) -> FeedRead {
        info!(
            source = self.source.name,
            "no feed found; listings are visited"
        );
        self.feed.kind = LISTING.to_owned();
        self.state = FeedState {
            searched_at: Some(self.now.0),
            ..FeedState::default()
        };
        self.next_poll_in = Some(Duration::ZERO);
        FeedRead::Found
    }

    /// Switches to the best candidate; false when there is no new one.
    fn follow(&mut self, found: &[Ranked]) -> bool {
        let best = |kind: CandidateKind| {
            let is_of_kind = |ranked: &&Ranked| ranked.candidate.kind == kind;
            let url = &found.iter().find(is_of_kind)?.candidate.url;
            FetchUrl::parse(url).ok()
        };
        let (kind, url) = match (best(CandidateKind::Feed), best(CandidateKind::Sitemap)) {
            (Some(feed), _) => ("feed", feed),
            (None, Some(sitemap)) if self.feed.kind != "feed" => ("sitemap", sitemap),
            _ => return false,
        };
        if url.as_str() == self.feed.url && kind == self.feed.kind {
            return false;
        }
        info!(
            source = self.source.name,
            found = url.as_str(),
            kind,
            "feed found"
        );
        match kind {
            "feed" => self.settings.feed_url = Some(url.clone()),
            _ => self.settings.sitemap_url = Some(url.clone()),
        }
        self.feed.kind = kind.to_owned();
        self.feed.url = url.as_str().to_owned();
        self.feed.etag = None;
        self.feed.last_modified = None;
        self.feed.body_hash = None;
        self.feed.items_checksum = None;
        self.state = FeedState {
            searched_at: self.state.searched_at,
            ..FeedState::default()
        };
        self.next_poll_in = Some(Duration::ZERO);
        true
    }
}
