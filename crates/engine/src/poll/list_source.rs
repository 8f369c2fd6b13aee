//! What a source lists right now: its feed, sitemap or home page fetched once,
//! outside the schedule. For previews and collection runs; writes nothing.

use std::time::Duration;

use jiff::Timestamp;
use tidings_adapters::adapter;
use tidings_feed::Hints;
use tidings_feed::sitemap::SitemapKind;
use tidings_net::{Purpose, Request, Response};
use tidings_store::{Feed, FeedClaim, Result, Source, Submission};
use tidings_url::FetchUrl;

use super::feed_poll::{FeedPoll, FeedRead};
use super::feed_state::FeedState;
use super::items::Listed;
use super::poll_error::PollError;
use super::{Poller, sitemap};
use crate::politeness::{FetchResult, Politeness};
use crate::sources::{LISTING, SourceSettings};

/// Sitemaps of an index that are fetched; the schedule covers the rest.
const MAX_SITEMAPS: usize = 4;

/// A value, or the error of the source as a message.
pub(super) type SourceResult<T> = std::result::Result<T, String>;

/// One item that a source lists now.
pub(super) struct ListedItem {
    pub(super) submission: Submission,
    pub(super) title: Option<String>,
    pub(super) published: Option<Timestamp>,
}

/// What a source lists now.
#[derive(Default)]
pub(super) struct ListedItems {
    pub(super) items: Vec<ListedItem>,
    /// The titles of items that cannot be submitted, and why.
    pub(super) skipped: Vec<(Option<String>, &'static str)>,
}

impl Poller {
    /// The main feed of a source: its feed or service, else its sitemap, else its home
    /// page.
    pub(super) async fn feed_of(&self, source: &Source) -> Result<Option<Feed>> {
        let feeds = self.context.store.feeds_of_source(source.source_id).await?;
        let rank = |feed: &Feed| match feed.kind.as_str() {
            "feed" => Some(0),
            kind if adapter(kind).is_some() => Some(0),
            _ if FeedState::parse(&feed.policy).depth > 0 => None,
            "sitemap" => Some(1),
            LISTING => Some(2),
            _ => None,
        };
        let ranked = feeds
            .into_iter()
            .filter_map(|feed| Some((rank(&feed)?, feed)));
        Ok(ranked.min_by_key(|(rank, _)| *rank).map(|(_, feed)| feed))
    }

    /// Lists the items of a source; the error when it cannot be read.
    pub(super) async fn list_source(
        &self,
        source: &Source,
        timeout: Option<Duration>,
    ) -> Result<SourceResult<ListedItems>> {
        let Some(feed) = self.feed_of(source).await? else {
            return Ok(Err("the source has no feed".to_owned()));
        };
        let settings = match SourceSettings::of(source) {
            Ok(settings) => settings,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let claim = FeedClaim { feed, attempt: 0 };
        let now = self.context.store.now().await?;
        let mut poll = FeedPoll::new(&claim, source.clone(), settings, now);
        poll.follow_settings();
        let Ok(url) = FetchUrl::parse(&poll.feed.url) else {
            return Ok(Err(PollError::invalid_url(&poll.feed.url).message));
        };
        match poll.feed.kind.as_str() {
            "sitemap" => self.list_sitemap(&poll, url, timeout).await,
            LISTING => self.list_home_page(&mut poll, url, timeout).await,
            _ => self.list_feed(&poll, url, timeout).await,
        }
    }

    async fn list_feed(
        &self,
        poll: &FeedPoll<'_>,
        url: FetchUrl,
        timeout: Option<Duration>,
    ) -> Result<SourceResult<ListedItems>> {
        let politeness = poll.settings.feed_politeness();
        let request = request(url, Purpose::Feed, timeout);
        let response = match self.fetch_now(request, politeness).await? {
            Ok(response) => response,
            Err(why) => return Ok(Err(why)),
        };
        let parsed = match tidings_feed::parse(&response.body, &hints(&response)) {
            Ok(parsed) => parsed,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let (listed, _) = self.list_items(poll, &parsed).await?;
        Ok(Ok(with_metadata(listed, |at| {
            let item = &parsed.items[at];
            (item.title.clone(), item.date())
        })))
    }

    /// A sitemap, or the first sitemaps of an index.
    async fn list_sitemap(
        &self,
        poll: &FeedPoll<'_>,
        url: FetchUrl,
        timeout: Option<Duration>,
    ) -> Result<SourceResult<ListedItems>> {
        let settings = &poll.settings;
        let (mut waiting, mut found) = (vec![url], ListedItems::default());
        for _ in 0..MAX_SITEMAPS {
            let Some(url) = waiting.pop() else {
                break;
            };
            let request = request(url, Purpose::Sitemap, timeout);
            let response = match self.fetch_now(request, settings.feed_politeness()).await? {
                Ok(response) => response,
                Err(why) => return Ok(Err(why)),
            };
            let map = match tidings_feed::sitemap::parse(&response.body, &hints(&response)) {
                Ok(map) => map,
                Err(error) => return Ok(Err(error.to_string())),
            };
            if map.kind == SitemapKind::Index {
                waiting.extend(sitemap::news_last(&map, &response.url));
                continue;
            }
            let listed = sitemap::listed(&map, &response.url, &self.listing(poll));
            let listed = with_metadata(listed, |at| {
                let entry = &map.entries[at];
                let news = entry.news.as_ref().and_then(|news| news.title.clone());
                (news, sitemap::date(entry, &map))
            });
            found.items.extend(listed.items);
            found.skipped.extend(listed.skipped);
        }
        // News sitemaps repeat entries of others.
        let mut seen = std::collections::HashSet::new();
        found
            .items
            .retain(|item| seen.insert(item.submission.target.key));
        Ok(Ok(found))
    }

    async fn list_home_page(
        &self,
        poll: &mut FeedPoll<'_>,
        url: FetchUrl,
        timeout: Option<Duration>,
    ) -> Result<SourceResult<ListedItems>> {
        let request = request(url, Purpose::Page, timeout);
        let response = match self.fetch_now(request, poll.settings.politeness()).await? {
            Ok(response) => response,
            Err(why) => return Ok(Err(why)),
        };
        let found = match self.read_listing(poll, &response).await? {
            FeedRead::Listing(found) => found,
            FeedRead::Failed(error) => return Ok(Err(error.message)),
            _ => return Ok(Ok(ListedItems::default())),
        };
        let listed = self.listed(poll, &found).await?;
        Ok(Ok(with_metadata(listed, |at| {
            (Some(found.articles[at].text.clone()), None)
        })))
    }

    /// A successful response, or the error.
    async fn fetch_now(
        &self,
        request: Request,
        politeness: Politeness,
    ) -> Result<SourceResult<Box<Response>>> {
        Ok(match self.context.fetch(request, politeness).await? {
            FetchResult::Response(response) if response.is_success() => Ok(response),
            FetchResult::Response(response) => Err(format!("status {}", response.status)),
            FetchResult::Failed(failure) => Err(failure.to_string()),
            FetchResult::HostBusy(_) => Err("the host is busy".to_owned()),
        })
    }
}

fn request(url: FetchUrl, purpose: Purpose, timeout: Option<Duration>) -> Request {
    let mut request = Request::get(url, purpose);
    request.time_limit = timeout;
    request
}

fn hints(response: &Response) -> Hints<'_> {
    Hints {
        content_type: response.header("content-type"),
        url: Some(response.url.as_url()),
        ..Hints::default()
    }
}

/// The submissions, each with the title and date of its item.
fn with_metadata(
    listed: Listed,
    metadata: impl Fn(usize) -> (Option<String>, Option<Timestamp>),
) -> ListedItems {
    let pairs = listed.submissions.into_iter().zip(listed.item_of);
    let items = pairs.map(|(submission, at)| {
        let (title, published) = metadata(at);
        ListedItem {
            submission,
            title,
            published,
        }
    });
    let skipped = listed.skipped.into_iter();
    ListedItems {
        items: items.collect(),
        skipped: skipped.map(|(at, why)| (metadata(at).0, why)).collect(),
    }
}
