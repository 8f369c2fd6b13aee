//! Polling one source now, because a person asks: once a minute for real,
//! decided by the store; as often as one likes to see what would be new.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use tidings_feed::{Feed as ParsedFeed, Hints};
use tidings_net::{Purpose, Request};
use tidings_store::{Feed, Moment, Result, Source, StartedTask};
use tidings_url::FetchUrl;

use super::items::{self, Listed};
use super::{PollEnded, PollOutcome, Poller};
use crate::outside::Asked;
use crate::settings::SourceSettings;

/// One fire a source in this time, over all machines.
const EVERY: Duration = Duration::from_secs(60);

/// What became of a fire.
#[derive(Debug)]
pub enum Fired {
    Polled(PollEnded),
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
    pub async fn fire(&self, source: &Source) -> Result<Fired> {
        let store = &self.outside.store;
        let Some(feed) = self.feed_of(source).await? else {
            return Ok(Fired::NoFeed);
        };
        let subject = format!("source:{}", source.source_id);
        let task = match store.start_task("fire", &subject, EVERY).await? {
            StartedTask::Started(task) => task,
            StartedTask::TooSoon { last } => return Ok(Fired::TooSoon { last }),
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
        Ok(ended.map_or(Fired::Busy, Fired::Polled))
    }

    /// What the feed of a source lists now, and which of it is new. Writes
    /// nothing; the reason when it can't be read.
    pub async fn dry_fire(
        &self,
        source: &Source,
    ) -> Result<std::result::Result<Vec<SeenItem>, String>> {
        if let Ok(settings) = SourceSettings::of(source)
            && settings.adapter().is_some()
        {
            return self.dry_pull(source, settings).await;
        }
        let (parsed, listed) = match self.listed_now(source, None).await? {
            Ok(found) => found,
            Err(why) => return Ok(Err(why)),
        };
        let mut seen = Vec::new();
        for (submission, at) in listed.submissions.iter().zip(&listed.item_of) {
            let known = self.outside.store.url(submission.target.id()).await?;
            seen.push(SeenItem {
                url: submission.target.url.as_str().to_owned(),
                title: parsed.items[*at].title.clone(),
                published: parsed.items[*at].date(),
                is_new: known.is_none(),
            });
        }
        Ok(Ok(seen))
    }

    /// What the feed of a source lists now; the reason when it can't be read.
    pub(super) async fn listed_now(
        &self,
        source: &Source,
        time_limit: Option<Duration>,
    ) -> Result<std::result::Result<(ParsedFeed, Listed), String>> {
        let Some(feed) = self.feed_of(source).await? else {
            return Ok(Err("the source has no feed".to_owned()));
        };
        let settings = match SourceSettings::of(source) {
            Ok(settings) => settings,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let address = settings
            .feed_url
            .clone()
            .map_or_else(|| FetchUrl::parse(&feed.url), Ok);
        let Ok(url) = address else {
            return Ok(Err(format!("{:?} is not an address", feed.url)));
        };
        let mut request = Request::get(url, Purpose::Feed);
        request.time_limit = time_limit;
        let response = match self.outside.ask(request, settings.feed_manners()).await? {
            Asked::Answered(response) if response.is_success() => response,
            Asked::Answered(response) => return Ok(Err(format!("status {}", response.status))),
            Asked::Failed(failure) => return Ok(Err(failure.to_string())),
            Asked::NotNow(_) => return Ok(Err("the host is busy".to_owned())),
        };
        let hints = Hints {
            content_type: response.header("content-type"),
            url: Some(response.url.as_url()),
            ..Hints::default()
        };
        let parsed = match tidings_feed::parse(&response.body, &hints) {
            Ok(parsed) => parsed,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let listed = items::listed(
            &parsed,
            &response.url,
            source,
            &settings,
            &self.outside.proxies,
        );
        Ok(Ok((parsed, listed)))
    }

    async fn feed_of(&self, source: &Source) -> Result<Option<Feed>> {
        let feeds = self.outside.store.feeds_of_source(source.source_id).await?;
        Ok(feeds
            .into_iter()
            .find(|feed| feed.kind == "feed" || tidings_adapters::adapter(&feed.kind).is_some()))
    }
}
