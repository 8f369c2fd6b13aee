//! Polls one source now, on request of a user: a task, at most once per minute, which
//! the store enforces. A preview shows what would be new, at any time, and writes nothing.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use tidings_store::{
    Moment, Newness, Result, Source, StartedTask, Submission, Task, TaskCounts, TaskResult,
};

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

/// A poll on request that was recorded, and has not begun.
#[derive(Debug)]
pub struct PollTask {
    pub task: Task,
    feed_id: i64,
}

/// The result of starting a poll on request.
#[derive(Debug)]
pub enum StartedPoll {
    Started(PollTask),
    /// It was polled on request less than a minute ago.
    TooSoon {
        last: Moment,
    },
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
    /// Records a poll of the main feed of a source as a task, which
    /// [`Poller::finish_poll`] does.
    pub async fn start_poll(&self, source: &Source) -> Result<StartedPoll> {
        let store = &self.context.store;
        let Some(feed) = self.feed_of(source).await? else {
            return Ok(StartedPoll::NoFeed);
        };
        let subject = format!("source:{}", source.source_id);
        let started = store.start_task("poll", &subject, MIN_INTERVAL).await?;
        Ok(match started {
            StartedTask::TooSoon { last } => StartedPoll::TooSoon { last },
            StartedTask::Started(task) => StartedPoll::Started(PollTask {
                task,
                feed_id: feed.feed_id,
            }),
        })
    }

    /// Polls, and finishes the task with what was found.
    pub async fn finish_poll(&self, started: PollTask) -> Result<PolledSource> {
        let polled = self.poll_now(started.feed_id).await;
        let failed = |detail: String, counts| TaskResult {
            has_failed: true,
            detail,
            counts,
        };
        let result = match &polled {
            Err(error) => failed(error.to_string(), None),
            Ok(None) => failed("the feed or its host is busy".to_owned(), None),
            Ok(Some(poll)) => {
                let has_failed = poll.outcome == PollOutcome::Failed;
                let counts = Some(TaskCounts {
                    sources_attempted: 1,
                    sources_succeeded: u64::from(!has_failed),
                    items_seen: poll.items_seen as u64,
                    items_new: poll.items_new as u64,
                });
                match has_failed {
                    true => failed(poll.error.clone().unwrap_or_default(), counts),
                    false => TaskResult {
                        has_failed,
                        detail: format!("{} items, {} new", poll.items_seen, poll.items_new),
                        counts,
                    },
                }
            }
        };
        let store = &self.context.store;
        let finished = store.finish_task(started.task.task_id, &result).await;
        // The error of the poll is the cause, if there are two.
        let polled = polled?;
        finished?;
        Ok(polled.map_or(PolledSource::Busy, PolledSource::Polled))
    }

    /// Polls the main feed of a source now, recorded as a task.
    pub async fn poll_source(&self, source: &Source) -> Result<PolledSource> {
        match self.start_poll(source).await? {
            StartedPoll::Started(started) => self.finish_poll(started).await,
            StartedPoll::TooSoon { last } => Ok(PolledSource::TooSoon { last }),
            StartedPoll::NoFeed => Ok(PolledSource::NoFeed),
        }
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
            ..self.collect_options()
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
