//! One claimed URL as a value: the request it needs, and when it is due again.
//! Pure.

use std::time::Duration;

use jiff::Timestamp;
use tidings_net::{Purpose, Request};
use tidings_store::Claim;

use super::retry;
use crate::sources::SourceSettings;

/// A claim and the time when it was claimed.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) claim: Claim,
    pub(super) now: Timestamp,
}

/// Done when nothing more may be sent for a claim.
pub(super) trait Cancelled: Future<Output = ()> + Send {}

impl<F: Future<Output = ()> + Send> Cancelled for F {}

impl Job {
    pub(super) fn request(&self, settings: &SourceSettings) -> Request {
        let claim = &self.claim;
        let mut request = Request::get(claim.url.clone(), Purpose::Page);
        request.user_agent.clone_from(&settings.user_agent);
        // Only a page that was read before can be unmodified.
        if claim.last_fetched_at.is_some() && claim.content_hash.is_some() {
            request.etag.clone_from(&claim.etag);
            request.last_modified.clone_from(&claim.last_modified);
        }
        request
    }

    /// When to fetch the page again, if its source sets a recrawl interval.
    pub(super) fn recrawl_in(
        &self,
        settings: &SourceSettings,
        has_changed: bool,
    ) -> Option<Duration> {
        let (min, max) = settings.recrawl?.bounds();
        let before = self.claim.last_fetched_at;
        let elapsed = before.map(|before| {
            let elapsed = self.now.as_millisecond().saturating_sub(before.0);
            Duration::from_millis(u64::try_from(elapsed).unwrap_or(0))
        });
        Some(retry::recrawl_after(min, max, elapsed, has_changed))
    }
}
