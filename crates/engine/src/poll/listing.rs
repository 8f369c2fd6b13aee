//! Visits of listings: pages of a site that list its articles, read by the
//! spider. The home page is the first; a source has a number of visits per day.

use tidings_net::{Media, Response};
use tidings_spider::{Found, Listing, Site, gather};
use tidings_store::{Moment, Result};
use tidings_url::FetchUrl;

use super::feed_poll::{FeedPoll, FeedRead, timestamp};
use super::listing_items::{DAY_MS, RARE_INTERVAL, describe_traps};
use super::poll_error::PollError;
use super::{PollReport, Poller};
use crate::politeness::FetchResult;
use crate::sources::LISTING;

/// Listings per source.
const MAX_LISTINGS: usize = 50;

impl Poller {
    /// Visits a listing, if its source has visits left today.
    pub(super) async fn visit_listing(
        &self,
        mut poll: FeedPoll<'_>,
        url: FetchUrl,
    ) -> Result<Option<PollReport>> {
        let store = &self.context.store;
        let midnight = Moment(poll.now.0 - poll.now.0.rem_euclid(DAY_MS));
        let source_id = poll.source.source_id;
        let visits = store.polls_since(source_id, LISTING, midnight).await?;
        let max_visits = u64::from(poll.settings.pages_per_day);
        if visits >= max_visits {
            let tomorrow = Moment(midnight.0 + DAY_MS).since(poll.now);
            store.defer_feed(poll.claim, tomorrow).await?;
            return Ok(None);
        }
        if poll.is_search_due()
            && let Some(read) = self.find_feed_of_site(&mut poll, &url).await
        {
            return self.complete_poll(poll, read).await;
        }
        let request = poll.request(url);
        let politeness = poll.settings.politeness();
        let read = match self.context.fetch(request, politeness).await? {
            FetchResult::HostBusy(wait) => {
                store.defer_feed(poll.claim, wait).await?;
                return Ok(None);
            }
            FetchResult::Failed(failure) => FeedRead::Failed(PollError::of_failure(&failure)),
            FetchResult::Response(response) => match poll.read(&response) {
                FeedRead::Page => self.read_listing(&mut poll, &response).await?,
                read => read,
            },
        };
        if matches!(read, FeedRead::NotModified | FeedRead::SameBody) {
            poll.repeat_trap_remark();
        }
        if poll.state.depth > 0 && matches!(&read, FeedRead::Failed(error) if error.is_permanent())
        {
            poll.next_poll_in = Some(RARE_INTERVAL);
        }
        if visits + 1 == max_visits {
            let message = format!("all {max_visits} visits of this day are used; resumed tomorrow");
            poll.add_remark("budget", message);
        }
        self.complete_poll(poll, read).await
    }

    /// Reads what a page lists.
    pub(super) async fn read_listing(
        &self,
        poll: &mut FeedPoll<'_>,
        response: &Response,
    ) -> Result<FeedRead> {
        let failed = |message: String| Ok(FeedRead::Failed(PollError::hard("content", message)));
        let Ok(home) = FetchUrl::parse(&poll.source.url) else {
            return Ok(FeedRead::Failed(PollError::invalid_url(&poll.source.url)));
        };
        if !response.url.is_same_site(&home) {
            return failed(format!(
                "the page redirects to another site: {}",
                response.url
            ));
        }
        if response.media != Media::Html {
            return failed("the response is not HTML".to_owned());
        }
        let known = self.listings_of(poll).await?;
        let urls = known
            .iter()
            .filter_map(|feed| FetchUrl::parse(&feed.url).ok());
        let site = Site {
            rules: poll.settings.rules(),
            patterns: poll.settings.patterns(),
            max_depth: poll.settings.max_depth,
            max_listings: MAX_LISTINGS,
            listings: urls.collect(),
            allows_external: poll.settings.external_per_day > 0 && poll.state.depth == 0,
            ..Site::new(&home, timestamp(poll.now))
        };
        let parent = poll.state.parent.as_deref();
        let parent = parent.and_then(|parent| FetchUrl::parse(parent).ok());
        let text = response.text();
        let page = Listing {
            html: text.text.as_bytes(),
            charset: Some("utf-8"),
            url: &response.url,
            depth: poll.state.depth as u16,
            parent: parent.as_ref(),
        };
        let found = gather(&page, &site);
        if found.articles.is_empty() && poll.state.depth == 0 {
            return Ok(FeedRead::Failed(poll.no_articles(&found)));
        }
        Ok(FeedRead::Listing(Box::new(found)))
    }
}

impl FeedPoll<'_> {
    /// An unchanged page still has its traps.
    fn repeat_trap_remark(&mut self) {
        let last = self.claim.feed.last_error.clone();
        if let (Some("trap"), Some(message)) = (self.claim.feed.error_class.as_deref(), last) {
            self.add_remark("trap", message);
        }
    }

    fn no_articles(&mut self, found: &Found) -> PollError {
        let traps = match found.traps.is_empty() {
            true => String::new(),
            false => format!("; {}", describe_traps(&found.traps)),
        };
        let url = &self.feed.url;
        let message = format!("{url} links to no recognizable articles{traps}");
        let message = match self.settings.ingestion_mode {
            Some(_) => message,
            None => {
                format!("{message}, and has no feed and no sitemap; the next search is in a week")
            }
        };
        self.repeat_search_in_a_week();
        PollError::hard("content", message)
    }
}
