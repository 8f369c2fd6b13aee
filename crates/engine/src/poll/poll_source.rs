//! Polls one source now, on request of a user: at most once per minute, enforced by
//! the store. A preview shows what would be new, at any time, and writes nothing.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use tidings_store::{Moment, Newness, Result, Source, StartedTask, Submission};

use super::{CollectOptions, PollOutcome, PollReport, Poller};
use crate::sources::SourceSettings;

/// Minimum interval of polls on request per source, over all machines.
const MIN_INTERVAL: Duration = Duration::from_secs(60);

/// The result of a poll on request.
#[derive(Debug)]
pub enum PolledSource {
    Polled(PollReport),
    /// It was polled on request less than a minute ago.
    TooSoon {
        last: Moment,
    },
    /// The feed is being polled right now, or its host is busy.
    Busy,
    NoFeed,
}

/// An item of a preview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenItem {
    pub url: String,
    pub title: Option<String>,
    pub published: Option<Timestamp>,
    pub is_new: bool,
    /// By what it is known, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_by: Option<Newness>,
    /// Why it cannot be submitted, if so; it may have no URL then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<&'static str>,
}

impl SeenItem {
    fn judged(url: String, title: Option<String>, newness: Newness) -> Self {
        Self {
            url,
            title,
            published: None,
            is_new: newness == Newness::New,
            known_by: Some(newness).filter(|newness| *newness != Newness::New),
            skipped: None,
        }
    }
}

impl Poller {
    /// Polls the main feed of a source now, recorded as a task.
    pub async fn poll_source(&self, source: &Source) -> Result<PolledSource> {
        let store = &self.context.store;
        let Some(feed) = self.feed_of(source).await? else {
            return Ok(PolledSource::NoFeed);
        };
        let subject = format!("source:{}", source.source_id);
        let task = match store.start_task("poll", &subject, MIN_INTERVAL).await? {
            StartedTask::Started(task) => task,
            StartedTask::TooSoon { last } => return Ok(PolledSource::TooSoon { last }),
        };
        let ended = self.poll_now(feed.feed_id).await;
        let result = match &ended {
            Err(error) => Err(error.to_string()),
            Ok(None) => Err("the feed or its host is busy".to_owned()),
            Ok(Some(poll)) if poll.outcome == PollOutcome::Failed => {
                Err(poll.error.clone().unwrap_or_default())
            }
            Ok(Some(poll)) => Ok(format!("{} items, {} new", poll.items_seen, poll.items_new)),
        };
        let result = result.as_ref().map(String::as_str).map_err(String::as_str);
        let finished = store.finish_task(task.task_id, result).await;
        // The error of the poll is the cause, if there are two.
        let ended = ended?;
        finished?;
        Ok(ended.map_or(PolledSource::Busy, PolledSource::Polled))
    }

    /// Claims and polls a feed; `None` when it or its host is busy.
    async fn poll_now(&self, feed_id: i64) -> Result<Option<PollReport>> {
        let store = &self.context.store;
        match store.claim_feed(feed_id, self.options.lease).await? {
            Some(claim) => self.poll_feed(&claim).await,
            None => Ok(None),
        }
    }

    /// The items that a source lists now, and which are new. Writes nothing; the error
    /// when it cannot be read.
    pub async fn preview_source(
        &self,
        source: &Source,
    ) -> Result<std::result::Result<Vec<SeenItem>, String>> {
        if let Ok(settings) = SourceSettings::of(source)
            && settings.adapter().is_some()
        {
            return self.preview_pull(source, settings).await;
        }
        let listed = match self.list_source(source, None).await? {
            Ok(listed) => listed,
            Err(why) => return Ok(Err(why)),
        };
        let submissions = listed.items.iter().map(|item| item.submission.clone());
        let submissions: Vec<Submission> = submissions.collect();
        let newness = self.context.store.judge(&submissions).await?;
        let judged = listed.items.into_iter().zip(newness);
        let judged = judged.map(|(item, newness)| SeenItem {
            published: item.published,
            ..SeenItem::judged(
                item.submission.target.url.as_str().to_owned(),
                item.title,
                newness,
            )
        });
        let skipped = listed.skipped.into_iter().map(|(title, why)| SeenItem {
            is_new: false,
            skipped: Some(why),
            ..SeenItem::judged(String::new(), title, Newness::New)
        });
        Ok(Ok(judged.chain(skipped).collect()))
    }

    /// The items that a service has now, and which are new. Writes nothing.
    async fn preview_pull(
        &self,
        source: &Source,
        settings: SourceSettings,
    ) -> Result<std::result::Result<Vec<SeenItem>, String>> {
        let options = CollectOptions {
            dry_run: true,
            ..CollectOptions::default()
        };
        let offer = match self.pull_offer(source, settings, &options).await? {
            Ok(offer) => offer,
            Err(why) => return Ok(Err(why)),
        };
        let items = offer.pulled.map_or_else(Vec::new, |(_, pull)| pull.items);
        let seen = items.into_iter().map(|item| {
            let mut new = offer.new.iter();
            let newness = match new.any(|new| new.target.url.as_str() == item.url) {
                true => Newness::New,
                false => Newness::Url,
            };
            SeenItem {
                published: item.published,
                ..SeenItem::judged(item.url, Some(item.title), newness)
            }
        });
        Ok(Ok(seen.collect()))
    }
}
