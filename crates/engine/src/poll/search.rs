//! Sources whose feed is not known: the site is searched, and what is found is
//! followed from then on. Also for feeds that have become pages. At most once a
//! week, and visibly.

use std::time::Duration;

use async_trait::async_trait;
use tidings_feed::discovery::{CandidateKind, Ranked};
use tidings_net::{Failure, Media, Purpose, Request, Response, RobotsGate};
use tidings_store::Result;
use tidings_url::FetchUrl;
use tracing::info;

use super::one::{Polling, Read, time};
use super::trouble::AdapterErrorKind;
use super::{PollReport, Poller};
use crate::discover::{SiteProbe, search};
use crate::memory::Memory;
use crate::outside::{FetchContext, FetchResult};
use crate::registry::LISTING;
use crate::way::Politeness;

/// How long a search that found nothing is not repeated.
const AGAIN: Duration = Duration::from_secs(7 * 24 * 3600);

#[async_trait]
impl SiteProbe for FetchContext {
    async fn ask(&self, url: &FetchUrl, purpose: Purpose) -> Result<Response, Failure> {
        let request = Request::get(url.clone(), purpose);
        let asked = Self::ask(self, request, Politeness::default()).await;
        match asked.map_err(|error| Failure::Store {
            why: error.to_string(),
        })? {
            FetchResult::Answered(response) => Ok(*response),
            FetchResult::Failed(failure) => Err(failure),
            FetchResult::NotNow(wait) => Err(Failure::HostBusy {
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
    /// The first polls of a source without a feed: they look for one.
    pub(super) async fn find_feed(
        &self,
        mut polling: Polling<'_>,
        site: FetchUrl,
    ) -> Result<PollReport> {
        if polling.settings.feed_url.is_some() {
            // Somebody said meanwhile where it is, and it has a row of its own.
            polling.feed.paused_reason = Some("the feed is known".to_owned());
            return polling.end(self, Read::NotModified).await;
        }
        let found = search(&self.outside, &site, time(polling.now), |_| {}).await;
        let read = match found {
            Ok(found) => match polling.follow(&found) {
                true => Read::Found,
                false if polling.settings.ingestion_mode.is_none() => polling.become_listing(),
                false => {
                    polling.come_again = Some(AGAIN);
                    let message = format!(
                        "{site} has no feed and no sitemap that we can find; it is searched again in a week"
                    );
                    Read::Failed(AdapterErrorKind::hard("content", message))
                }
            },
            Err(failure) => Read::Failed(AdapterErrorKind::of_failure(&failure)),
        };
        polling.end(self, read).await
    }

    /// A site without a feed that is read by its pages may get one: then that is
    /// followed.
    pub(super) async fn find_feed_of_site(
        &self,
        polling: &mut Polling<'_>,
        site: &FetchUrl,
    ) -> Option<Read> {
        polling.memory.searched_at = Some(polling.now.0);
        let found = search(&self.outside, site, time(polling.now), |_| {}).await;
        let is_followed = found.is_ok_and(|found| polling.follow(&found));
        is_followed.then_some(Read::Found)
    }

    /// A page stands where the feed was: perhaps it says where the feed is now.
    pub(super) async fn find_feed_of_page(
        &self,
        polling: &mut Polling<'_>,
        trouble: AdapterErrorKind,
    ) -> Result<AdapterErrorKind> {
        let searched = polling.memory.searched_at.unwrap_or(i64::MIN);
        if polling.now.0.saturating_sub(searched) < AGAIN.as_millis() as i64 {
            return Ok(trouble);
        }
        polling.memory.searched_at = Some(polling.now.0);
        let page = polling.url();
        let found = search(&self.outside, &page, time(polling.now), |_| {}).await;
        let is_followed = found.is_ok_and(|found| polling.follow(&found));
        Ok(match is_followed {
            false => trouble,
            true => AdapterErrorKind {
                message: format!(
                    "a page, not a feed; its feed {} is followed from now on",
                    polling.feed.url
                ),
                ..trouble
            },
        })
    }
}

impl Polling<'_> {
    pub(super) fn come_again_in_a_week(&mut self) {
        self.come_again = Some(AGAIN);
    }

    /// Only the home page of a source that does not say how it is followed: every
    /// week while it brings nothing, then every month.
    pub(super) fn is_to_be_searched(&self) -> bool {
        let is_home = self.memory.depth == 0 && self.settings.ingestion_mode.is_none();
        let wait = match self.feed.consecutive_errors {
            0 => AGAIN * 4,
            _ => AGAIN,
        };
        let searched = self.memory.searched_at.unwrap_or(i64::MIN);
        is_home && self.now.0.saturating_sub(searched) >= wait.as_millis() as i64
    }

    /// There is no feed: the site is read by its pages from now on.
    fn become_listing(&mut self) -> Read {
        info!(
            source = self.source.name,
            "no feed was found; its pages are read"
        );
        self.feed.kind = LISTING.to_owned();
        self.memory = Memory {
            searched_at: Some(self.now.0),
            ..Memory::default()
        };
        self.come_again = Some(Duration::ZERO);
        Read::Found
    }

    pub(super) fn is_page(&self, response: &Response) -> bool {
        self.feed.kind == "feed" && response.is_success() && response.media == Media::Html
    }

    /// Follows the best of what was found; false when there is nothing new.
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
            "a feed was found"
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
        self.memory = Memory {
            searched_at: self.memory.searched_at,
            ..Memory::default()
        };
        self.come_again = Some(Duration::ZERO);
        true
    }
}
