//! The story of one poll: load the source, choose how its feed is polled, fetch,
//! parse, and complete the poll. Sites are searched for a feed, listings are
//! visited by the spider, services are pulled by their adapter.

use std::time::Duration;

use tidings_adapters::adapter;
use tidings_store::{FeedClaim, Result};
use tidings_url::FetchUrl;
use tracing::error;

use super::feed_poll::{FeedPoll, FeedRead};
use super::poll_error::PollError;
use super::{PollReport, Poller};
use crate::politeness::FetchResult;
use crate::sources::{SITE, SourceSettings};

/// Retry delay of a source whose settings are invalid.
const INVALID_SETTINGS_DELAY: Duration = Duration::from_secs(3600);

impl Poller {
    /// Polls a leased feed. `None` when the poll was deferred, the feed removed, or the
    /// lease lost.
    pub(super) async fn poll_feed(&self, claim: &FeedClaim) -> Result<Option<PollReport>> {
        let store = &self.context.store;
        let Some(source) = store.source(claim.feed.source_id).await? else {
            // The source was removed just now, and the feed with it.
            return Ok(None);
        };
        let settings = match SourceSettings::of(&source) {
            Ok(settings) => settings,
            Err(error) => {
                error!(%error, "invalid source settings; poll deferred");
                store.defer_feed(claim, INVALID_SETTINGS_DELAY).await?;
                return Ok(None);
            }
        };
        let now = store.now().await?;
        let mut poll = FeedPoll::new(claim, source, settings, now);
        if let Some(adapter) = adapter(&claim.feed.kind) {
            return self.poll_service(poll, adapter).await;
        }
        if !poll.settings.wants(&claim.feed.kind) {
            // The ingestion mode of the source has changed.
            store.remove_feeds(&[claim.feed.feed_id]).await?;
            return Ok(None);
        }
        poll.follow_settings();
        let Ok(url) = FetchUrl::parse(&poll.feed.url) else {
            let error = PollError::invalid_url(&poll.feed.url);
            let read = FeedRead::Failed(error);
            return self.complete_poll(poll, read).await;
        };
        if poll.feed.kind == SITE {
            return self.find_feed(poll, url).await;
        }
        if poll.is_listing() {
            return self.visit_listing(poll, url).await;
        }
        let request = poll.request(url);
        let politeness = poll.settings.feed_politeness();
        // For what the feed is parsed into, until it is ingested.
        let mut _room = None;
        let read = match self.context.fetch(request, politeness).await? {
            FetchResult::HostBusy(wait) => {
                store.defer_feed(claim, wait).await?;
                return Ok(None);
            }
            FetchResult::Failed(failure) => FeedRead::Failed(PollError::of_failure(&failure)),
            FetchResult::Response(response) => {
                let cost = poll.reading_cost(&response, self.context.client.limits());
                _room = Some(self.context.client.memory().room_to_read(cost).await);
                match poll.read(&response) {
                    FeedRead::Failed(error) if poll.is_page(&response) => {
                        drop(response);
                        FeedRead::Failed(self.find_feed_of_page(&mut poll, error).await)
                    }
                    read => read,
                }
            }
        };
        self.complete_poll(poll, read).await
    }
}
