//! The end of a poll: ingest what was read, schedule the next poll, record the
//! error, persist settings that the poll changed, and write the log row.

use std::time::Duration;

use serde_json::Value;
use tidings_polling::{Outcome, Poll, Sighting, next_poll};
use tidings_store::{FetchLogRow, Moment, PollResult, Result, Store};
use tracing::{error, info};

use super::feed_poll::{FeedPoll, FeedRead, timestamp};
use super::ingest_items::Ingested;
use super::poll_error::{LIMITED, PollError, RETIRED, SKIPPED};
use super::{PollOutcome, PollReport, Poller};
use crate::rng::random;
use crate::sources::SourceSettings;

/// Failures in a row after which an error is logged, once, and an alert is due.
pub const MANY_FAILURES: i64 = 10;

impl Poller {
    /// Ingests, schedules and stores the end of a poll. `None` when its lease was
    /// lost: another poller has the feed.
    pub(super) async fn complete_poll(
        &self,
        mut poll: FeedPoll<'_>,
        read: FeedRead,
    ) -> Result<Option<PollReport>> {
        let (outcome, ingested, error) = self.ingest(&mut poll, read).await?;
        let next_poll_in = self
            .schedule(&mut poll, outcome, &ingested, error.as_ref())
            .await?;
        if poll.is_cut {
            poll.expect_everything();
        }
        let error = error.or_else(|| poll.remark.take().map(PollError::remark));
        let error = error.or_else(|| lasting_remark(&poll, outcome));
        let (error, next_poll_in) = match retirement(&poll, outcome, error.as_ref()) {
            Some(reason) => (Some(PollError::remark((RETIRED, reason))), RETIRED_INTERVAL),
            None => (error, next_poll_in),
        };
        record_error(&mut poll, error.as_ref(), ingested.new.len());
        persist_settings(&poll, &self.context.store).await?;
        poll.feed.policy = poll.state.to_json();
        let report = PollReport {
            feed_id: poll.feed.feed_id,
            url: poll.feed.url.clone(),
            outcome,
            items_seen: ingested.seen,
            items_new: ingested.new.len(),
            skipped: ingested.skipped,
            error: error.as_ref().map(|error| error.message.clone()),
            next_poll_in,
        };
        let result = PollResult {
            log: log_row(&poll, &report, error.as_ref()),
            feed: poll.feed,
            next_poll_in,
        };
        let store = &self.context.store;
        let is_completed = store.complete_poll(poll.claim, &result).await?;
        if is_completed {
            self.options.metrics.record_poll(outcome.as_str());
        } else {
            info!(
                feed = report.url,
                "lease of the feed lost; poll not recorded"
            );
        }
        Ok(is_completed.then_some(report))
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

/// The remark on a limit or on skipped items, while the response is unchanged.
fn lasting_remark(poll: &FeedPoll<'_>, outcome: PollOutcome) -> Option<PollError> {
    let is_unchanged = matches!(
        outcome,
        PollOutcome::NotModified | PollOutcome::SameBody | PollOutcome::Redundant
    );
    let before = &poll.claim.feed;
    let class = before.error_class.as_deref();
    let class = [LIMITED, SKIPPED]
        .into_iter()
        .find(|lasting| class == Some(*lasting))?;
    let message = before.last_error.clone().filter(|_| is_unchanged)?;
    Some(PollError::remark((class, message)))
}

/// Failures in a row after which a sitemap below an index is retired.
const RETIRED_AFTER: i64 = 3;

/// A retired sitemap is polled this often, or when its index has a newer date of it.
const RETIRED_INTERVAL: Duration = Duration::from_secs(7 * 86_400);

/// Why a sitemap below an index is retired, if it is: an index may list thousands.
fn retirement(
    poll: &FeedPoll<'_>,
    outcome: PollOutcome,
    error: Option<&PollError>,
) -> Option<String> {
    if !poll.is_child_sitemap() {
        return None;
    }
    let before = &poll.claim.feed;
    let was_retired = before.error_class.as_deref() == Some(RETIRED);
    if let Some(error) = error.filter(|error| !error.is_remark) {
        let is_last = was_retired || before.consecutive_errors + 1 >= RETIRED_AFTER;
        return is_last.then(|| format!("it fails, polled once per week: {}", error.message));
    }
    match outcome {
        PollOutcome::Ok | PollOutcome::Redundant => poll
            .is_stale
            .then(|| "no recent entries; polled once per week".to_owned()),
        _ if was_retired => before.last_error.clone(),
        _ => None,
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
    if feed.consecutive_errors == MANY_FAILURES {
        error!(
            feed = feed.url,
            failures = MANY_FAILURES,
            error = error.message,
            "feed keeps failing"
        );
    }
}

/// Attempts to save settings while others edit the source.
const MAX_SAVES: usize = 5;

/// Saves settings that the poll changed: a feed that was found or has moved. What
/// a person has edited meanwhile stays.
async fn persist_settings(poll: &FeedPoll<'_>, store: &Store) -> Result<()> {
    let Ok(before) = SourceSettings::of(&poll.source) else {
        return Ok(());
    };
    let (before, after) = (before.to_json(), poll.settings.to_json());
    if after == before {
        return Ok(());
    }
    let id = poll.source.source_id;
    for _ in 0..MAX_SAVES {
        let Some(source) = store.source(id).await? else {
            return Ok(());
        };
        let Ok(current) = SourceSettings::of(&source) else {
            return Ok(());
        };
        let current = current.to_json();
        let merged = merge(&before, &after, &current);
        if merged == current || store.replace_source_config(&source, &merged).await? {
            return Ok(());
        }
    }
    info!(
        source = poll.source.name,
        "source edited again and again; settings not saved"
    );
    Ok(())
}

/// The current settings with the changes of a poll, except where they were edited.
fn merge(before: &Value, after: &Value, current: &Value) -> Value {
    let mut merged = current.clone();
    let keys = [before, after].into_iter().filter_map(Value::as_object);
    for key in keys.flat_map(|settings| settings.keys()) {
        let is_ours = after.get(key) != before.get(key) && current.get(key) == before.get(key);
        if is_ours && let Some(settings) = merged.as_object_mut() {
            match after.get(key) {
                Some(value) => settings.insert(key.clone(), value.clone()),
                None => settings.remove(key),
            };
        }
    }
    merged
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
