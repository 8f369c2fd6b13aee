//! The end of a poll: ingest what was read, schedule the next poll, record the
//! error, persist settings that the poll changed, and write the log row.

use std::time::Duration;

use tidings_polling::{Outcome, Poll, Sighting, next_poll};
use tidings_store::{FetchLogRow, Moment, NewSource, PollResult, Result, Store};
use tracing::{error, info};

use super::feed_poll::{FeedPoll, FeedRead, timestamp};
use super::ingest_items::Ingested;
use super::poll_error::PollError;
use super::{PollOutcome, PollReport, Poller};
use crate::rng::random;
use crate::sources::SourceSettings;

/// Failures in a row after which an error is logged, once.
const LOG_ERROR_AFTER: i64 = 10;

impl Poller {
    /// Ingests, schedules and stores the end of a poll.
    pub(super) async fn complete_poll(
        &self,
        mut poll: FeedPoll<'_>,
        read: FeedRead,
    ) -> Result<PollReport> {
        let (outcome, ingested, error) = self.ingest(&mut poll, read).await?;
        let next_poll_in = self
            .schedule(&mut poll, outcome, &ingested, error.as_ref())
            .await?;
        let error = error.or_else(|| poll.remark.take().map(PollError::remark));
        record_error(&mut poll, error.as_ref(), ingested.new.len());
        persist_settings(&poll, &self.context.store).await?;
        poll.feed.policy = poll.state.to_json();
        let report = PollReport {
            feed_id: poll.feed.feed_id,
            url: poll.feed.url.clone(),
            outcome,
            items_seen: ingested.seen,
            items_new: ingested.new.len(),
            error: error.as_ref().map(|error| error.message.clone()),
            next_poll_in,
        };
        let result = PollResult {
            log: log_row(&poll, &report, error.as_ref()),
            feed: poll.feed,
            next_poll_in,
        };
        self.context
            .store
            .complete_poll(poll.claim, &result)
            .await?;
        Ok(report)
    }

    /// Submits the items of what was read.
    async fn ingest(
        &self,
        poll: &mut FeedPoll<'_>,
        read: FeedRead,
    ) -> Result<(PollOutcome, Ingested, Option<PollError>)> {
        let unchanged = |outcome| Ok((outcome, Ingested::default(), None));
        let ingested = match read {
            FeedRead::NotModified | FeedRead::Page => return unchanged(PollOutcome::NotModified),
            FeedRead::Found => return unchanged(PollOutcome::Found),
            FeedRead::SameBody => return unchanged(PollOutcome::SameBody),
            FeedRead::Failed(error) => {
                return Ok((PollOutcome::Failed, Ingested::default(), Some(error)));
            }
            FeedRead::Feed(feed) => self.ingest_feed(poll, &feed).await?,
            FeedRead::Sitemap(sitemap) => self.ingest_sitemap(poll, &sitemap).await?,
            FeedRead::Listing(found) => self.ingest_listing(poll, &found).await?,
            FeedRead::Pulled(pull) => self.ingest_pull(poll, &pull).await?,
        };
        Ok((ingested.outcome(), ingested, None))
    }

    /// Runs the polling policy: updates its state, and returns the time until the
    /// next poll.
    async fn schedule(
        &self,
        poll: &mut FeedPoll<'_>,
        outcome: PollOutcome,
        ingested: &Ingested,
        error: Option<&PollError>,
    ) -> Result<Duration> {
        let outcome = match error {
            Some(error) => Outcome::Failed {
                class: error.class,
                retry_after: error.retry_after,
            },
            None if outcome == PollOutcome::Ok => Outcome::Read(Sighting {
                listed: &ingested.dates,
                new: &ingested.new,
            }),
            None => Outcome::Unchanged,
        };
        let input = Poll {
            feed_id: poll.feed.feed_id,
            policy: poll.policy(),
            outcome,
            hints: &poll.state.hints,
            weight: weight(poll.source.priority),
            price: self.budget.price(&self.context.store, poll.now).await?,
            now: timestamp(poll.now),
            random: random(),
        };
        let (state, due) = next_poll(&poll.state.polling, &input);
        let demand = state.demand(input.weight).0;
        poll.feed.demand_nano = (demand * 1e9) as i64;
        poll.state.polling = state;
        let next_poll_in = poll.next_poll_in;
        Ok(next_poll_in.unwrap_or_else(|| Moment::from(due.at).since(poll.now)))
    }
}

/// The error state of the feed: class, message, failures in a row, pause.
fn record_error(poll: &mut FeedPoll<'_>, error: Option<&PollError>, new: usize) {
    let feed = &mut poll.feed;
    feed.error_class = error.map(|error| error.name.to_owned());
    feed.last_error = error.map(|error| error.message.clone());
    let Some(error) = error.filter(|error| !error.is_remark) else {
        feed.consecutive_errors = 0;
        if new > 0 {
            feed.last_new_at = Some(poll.now);
        }
        return;
    };
    feed.consecutive_errors += 1;
    if error.is_gone {
        feed.paused_reason = Some(error.message.clone());
        info!(feed = feed.url, "feed gone; paused");
    }
    if feed.consecutive_errors == LOG_ERROR_AFTER {
        error!(
            feed = feed.url,
            failures = LOG_ERROR_AFTER,
            error = error.message,
            "feed keeps failing"
        );
    }
}

/// Saves settings that the poll changed: a feed that was found or has moved.
async fn persist_settings(poll: &FeedPoll<'_>, store: &Store) -> Result<()> {
    let source = &poll.source;
    let stored = SourceSettings::of(source).map(|stored| stored.to_json());
    let config = poll.settings.to_json();
    if config == stored.unwrap_or_default() {
        return Ok(());
    }
    let changed = NewSource {
        name: source.name.clone(),
        url: source.url.clone(),
        kind: source.kind.clone(),
        priority: source.priority,
        config,
    };
    store.update_source(source.source_id, &changed).await
}

fn log_row(poll: &FeedPoll<'_>, report: &PollReport, error: Option<&PollError>) -> FetchLogRow {
    FetchLogRow {
        started_at: poll.now,
        elapsed_ms: poll.started.elapsed().as_millis() as i64,
        outcome: report.outcome.as_str().to_owned(),
        items_seen: report.items_seen as i64,
        items_new: report.items_new as i64,
        error_class: error.map(|error| error.name.to_owned()),
        error_message: error.map(|error| error.message.clone()),
        bytes: poll.bytes as i64,
    }
}

/// The weight of a source in the polling policy by its priority; 5 is neutral.
fn weight(priority: u8) -> f64 {
    f64::from(priority.clamp(1, 10)) / 5.0
}
