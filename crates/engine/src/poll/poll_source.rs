//! Polling one source now, because a person asks: once a minute for real,
//! decided by the store; as often as one likes to see what would be new.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use tidings_adapters::adapter;
use tidings_feed::Hints;
use tidings_feed::sitemap::SitemapKind;
use tidings_net::{Purpose, Request, Response};
use tidings_store::{Feed, FeedClaim, Moment, Result, Source, StartedTask, Submission};
use tidings_url::FetchUrl;

use super::items::{self, Listed};
use super::one::{Polling, Read, time};
use super::{PollOutcome, PollReport, Poller, sitemap};
use crate::memory::Memory;
use crate::outside::FetchResult;
use crate::registry::LISTING;
use crate::settings::SourceSettings;
use crate::way::Politeness;

/// One fire a source in this time, over all machines.
const EVERY: Duration = Duration::from_secs(60);
/// Sitemaps that are asked for at once; pollers look at the rest.
const MOST_SITEMAPS: usize = 4;

/// Something, or the reason why there is nothing.
type Told<T> = std::result::Result<T, String>;

/// One item that a source has now.
pub(super) struct Offered {
    pub(super) submission: Submission,
    title: Option<String>,
    published: Option<Timestamp>,
}

/// What became of a fire.
#[derive(Debug)]
pub enum PolledSource {
    Polled(PollReport),
    /// Someone fired it a moment ago.
    TooSoon {
        last: Moment,
    },
    /// A poller is at it right now, or its host had no time.
    Busy,
    NoFeed,
}

/// An item that a dry fire saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenItem {
    pub url: String,
    pub title: Option<String>,
    pub published: Option<Timestamp>,
    pub is_new: bool,
}

impl Poller {
    /// Polls the feed of a source now, as a task that can be asked about.
    pub async fn poll_source(&self, source: &Source) -> Result<PolledSource> {
        let store = &self.outside.store;
        let Some(feed) = self.feed_of(source).await? else {
            return Ok(PolledSource::NoFeed);
        };
        let subject = format!("source:{}", source.source_id);
        let task = match store.start_task("fire", &subject, EVERY).await? {
            StartedTask::Started(task) => task,
            StartedTask::TooSoon { last } => return Ok(PolledSource::TooSoon { last }),
        };
        let claim = store.claim_feed(feed.feed_id, self.options.lease).await?;
        let ended = match &claim {
            Some(claim) => self.poll_feed(claim).await?,
            None => None,
        };
        let result = match &ended {
            None => Err("the feed or its host is busy".to_owned()),
            Some(poll) if poll.outcome == PollOutcome::Failed => {
                Err(poll.error.clone().unwrap_or_default())
            }
            Some(poll) => Ok(format!("{} items, {} new", poll.items_seen, poll.items_new)),
        };
        let result = result.as_ref().map(String::as_str).map_err(String::as_str);
        store.finish_task(task.task_id, result).await?;
        Ok(ended.map_or(PolledSource::Busy, PolledSource::Polled))
    }

    /// What the feed of a source lists now, and which of it is new. Writes
    /// nothing; the reason when it can't be read.
    pub async fn preview_source(
        &self,
        source: &Source,
    ) -> Result<std::result::Result<Vec<SeenItem>, String>> {
        if let Ok(settings) = SourceSettings::of(source)
            && settings.adapter().is_some()
        {
            return self.dry_pull(source, settings).await;
        }
        let offered = match self.listed_now(source, None).await? {
            Ok(offered) => offered,
            Err(why) => return Ok(Err(why)),
        };
        let mut seen = Vec::new();
        for Offered {
            submission,
            title,
            published,
        } in offered
        {
            let known = self.outside.store.url(submission.target.id()).await?;
            seen.push(SeenItem {
                url: submission.target.url.as_str().to_owned(),
                title,
                published,
                is_new: known.is_none(),
            });
        }
        Ok(Ok(seen))
    }

    /// What a source is polled by first: its feed or service, else its sitemap,
    /// else its home page.
    async fn feed_of(&self, source: &Source) -> Result<Option<Feed>> {
        let feeds = self.outside.store.feeds_of_source(source.source_id).await?;
        let rank = |feed: &Feed| match feed.kind.as_str() {
            "feed" => Some(0),
            kind if adapter(kind).is_some() => Some(0),
            _ if Memory::parse(&feed.policy).depth > 0 => None,
            "sitemap" => Some(1),
            LISTING => Some(2),
            _ => None,
        };
        let ranked = feeds
            .into_iter()
            .filter_map(|feed| Some((rank(&feed)?, feed)));
        Ok(ranked.min_by_key(|(rank, _)| *rank).map(|(_, feed)| feed))
    }

    /// What a source lists now; the reason when it can't be read.
    pub(super) async fn listed_now(
        &self,
        source: &Source,
        time_limit: Option<Duration>,
    ) -> Result<Told<Vec<Offered>>> {
        let Some(feed) = self.feed_of(source).await? else {
            return Ok(Err("the source has no feed".to_owned()));
        };
        let settings = match SourceSettings::of(source) {
            Ok(settings) => settings,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let claim = FeedClaim { feed, attempt: 0 };
        let now = self.outside.store.now().await?;
        let mut polling = Polling::new(&claim, source.clone(), settings, now);
        polling.follow_settings();
        let Ok(url) = FetchUrl::parse(&polling.feed.url) else {
            let place = &polling.feed.url;
            return Ok(Err(format!("{place:?} is not an address")));
        };
        match polling.feed.kind.as_str() {
            "sitemap" => self.sitemap_now(&polling, url, time_limit).await,
            LISTING => self.listing_now(&mut polling, url, time_limit).await,
            _ => self.feed_now(&polling, url, time_limit).await,
        }
    }

    async fn feed_now(
        &self,
        polling: &Polling<'_>,
        url: FetchUrl,
        time_limit: Option<Duration>,
    ) -> Result<Told<Vec<Offered>>> {
        let manners = polling.settings.feed_manners();
        let request = asking(url, Purpose::Feed, time_limit);
        let response = match self.ask_now(request, manners).await? {
            Ok(response) => response,
            Err(why) => return Ok(Err(why)),
        };
        let parsed = match tidings_feed::parse(&response.body, &hints(&response)) {
            Ok(parsed) => parsed,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let (source, settings) = (&polling.source, &polling.settings);
        let proxies = &self.outside.proxies;
        let listed = items::listed(&parsed, &response.url, source, settings, proxies);
        Ok(Ok(offered(listed, |at| {
            let item = &parsed.items[at];
            (item.title.clone(), item.date())
        })))
    }

    /// A sitemap, or of an index the first few that it names.
    async fn sitemap_now(
        &self,
        polling: &Polling<'_>,
        url: FetchUrl,
        time_limit: Option<Duration>,
    ) -> Result<Told<Vec<Offered>>> {
        let (source, settings) = (&polling.source, &polling.settings);
        let (mut waiting, mut found) = (vec![url], Vec::<Offered>::new());
        for _ in 0..MOST_SITEMAPS {
            let Some(url) = waiting.pop() else {
                break;
            };
            let request = asking(url, Purpose::Sitemap, time_limit);
            let response = match self.ask_now(request, settings.feed_manners()).await? {
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
            let (proxies, now) = (&self.outside.proxies, time(polling.now));
            let listed = sitemap::listed(&map, &response.url, source, settings, proxies, now);
            found.extend(offered(listed, |at| {
                let entry = &map.entries[at];
                let news = entry.news.as_ref().and_then(|news| news.title.clone());
                (news, sitemap::date(entry, &map))
            }));
        }
        // News stand in two of them.
        let mut seen = std::collections::HashSet::new();
        found.retain(|item| seen.insert(item.submission.target.key));
        Ok(Ok(found))
    }

    async fn listing_now(
        &self,
        polling: &mut Polling<'_>,
        url: FetchUrl,
        time_limit: Option<Duration>,
    ) -> Result<Told<Vec<Offered>>> {
        let request = asking(url, Purpose::Page, time_limit);
        let response = match self.ask_now(request, polling.settings.manners()).await? {
            Ok(response) => response,
            Err(why) => return Ok(Err(why)),
        };
        let found = match self.read_listing(polling, &response).await? {
            Read::Listing(found) => found,
            Read::Failed(trouble) => return Ok(Err(trouble.message)),
            _ => return Ok(Ok(Vec::new())),
        };
        let listed = polling.listed(self, &found).await?;
        Ok(Ok(offered(listed, |at| {
            (Some(found.articles[at].text.clone()), None)
        })))
    }

    /// The answer, if it is one that can be read.
    async fn ask_now(&self, request: Request, manners: Politeness) -> Result<Told<Box<Response>>> {
        Ok(match self.outside.ask(request, manners).await? {
            FetchResult::Answered(response) if response.is_success() => Ok(response),
            FetchResult::Answered(response) => Err(format!("status {}", response.status)),
            FetchResult::Failed(failure) => Err(failure.to_string()),
            FetchResult::NotNow(_) => Err("the host is busy".to_owned()),
        })
    }
}

fn asking(url: FetchUrl, purpose: Purpose, time_limit: Option<Duration>) -> Request {
    let mut request = Request::get(url, purpose);
    request.time_limit = time_limit;
    request
}

fn hints(response: &Response) -> Hints<'_> {
    Hints {
        content_type: response.header("content-type"),
        url: Some(response.url.as_url()),
        ..Hints::default()
    }
}

/// What is listed, each with what `said` knows of the item.
fn offered(
    listed: Listed,
    said: impl Fn(usize) -> (Option<String>, Option<Timestamp>),
) -> Vec<Offered> {
    let pairs = listed.submissions.into_iter().zip(listed.item_of);
    pairs
        .map(|(submission, at)| {
            let (title, published) = said(at);
            Offered {
                submission,
                title,
                published,
            }
        })
        .collect()
}
