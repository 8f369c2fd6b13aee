//! The health of a source as a score for lists: the success rate of its last polls,
//! less the errors of now. Also its new items per day.

use maud::{Markup, html};
use tidings_engine::LIMITED;
use tidings_store::{Feed, FetchLogRow, Moment, Source, Store};

use crate::problem::Problem;

/// Polls that are read per source: for a line of a list, and for its own page.
pub(super) const LINE_POLLS: u32 = 500;
pub(super) const PAGE_POLLS: u32 = 4000;
const MAX_FEEDS: usize = 10;
const RECENT_POLLS: usize = 30;
/// Points that each consecutive error costs.
const ERROR_PENALTY: i64 = 20;
const DAY: i64 = 86_400_000;
/// Days of the small chart in lists.
const DAYS: usize = 14;

/// A state, its score from 0 to 100 if it has one, and the reason.
#[derive(Debug, PartialEq, Eq)]
pub struct Health {
    /// `paused`, `feed paused`, `new`, `healthy`, `unsteady` or `failing`.
    pub word: &'static str,
    pub score: Option<i64>,
    class: &'static str,
    pub why: String,
}

impl Health {
    /// `polls` are those of its feeds, the newest first.
    pub fn of(source: &Source, feeds: &[Feed], polls: &[FetchLogRow]) -> Self {
        let state = |word, class, score, why: &str| Self {
            word,
            score,
            class,
            why: why.to_owned(),
        };
        if !source.enabled {
            return state(
                "paused",
                "warn",
                None,
                source.reason.as_deref().unwrap_or_default(),
            );
        }
        if let Some(reason) = feeds.iter().find_map(|feed| feed.paused_reason.as_deref()) {
            return state("feed paused", "bad", Some(0), reason);
        }
        if feeds.iter().all(|feed| feed.last_polled_at.is_none()) {
            return state("new", "", None, "not polled yet");
        }
        let worst = feeds.iter().max_by_key(|feed| feed.consecutive_errors);
        let errors = worst.map_or(0, |feed| feed.consecutive_errors);
        let class = worst.and_then(|feed| feed.error_class.as_deref());
        let why = match errors {
            0 => limit_of(feeds).unwrap_or_default().to_owned(),
            1 => class.unwrap_or("one error").to_owned(),
            _ => format!("{} × {errors}", class.unwrap_or("error")),
        };
        let score = (success_rate(polls) - errors * ERROR_PENALTY).clamp(0, 100);
        // A source that responds again is not failing, whatever its past.
        let (word, class) = match (score, errors) {
            (90.., _) => ("healthy", "good"),
            (50.., _) | (_, 0) => ("unsteady", "warn"),
            _ => ("failing", "bad"),
        };
        state(word, class, Some(score), &why)
    }

    pub(super) fn show(&self) -> Markup {
        html! {
            span.health {
                span class={ "badge " (self.class) } { @if let Some(score) = self.score { b { (score) } " " } (self.word) }
                @if !self.why.is_empty() { small { (self.why) } }
            }
        }
    }
}

/// The limit that a source has reached, if it has.
fn limit_of(feeds: &[Feed]) -> Option<&str> {
    let is_limited = |feed: &&Feed| feed.error_class.as_deref() == Some(LIMITED);
    feeds.iter().find(is_limited)?.last_error.as_deref()
}

/// The success rate of the recent polls, in percent.
fn success_rate(polls: &[FetchLogRow]) -> i64 {
    let recent = polls.len().min(RECENT_POLLS);
    let good = polls[..recent]
        .iter()
        .filter(|poll| poll.outcome != "failed")
        .count();
    match recent {
        0 => 100,
        recent => (good * 100 / recent) as i64,
    }
}

/// The last polls of a source, the newest first.
#[derive(Debug, Default)]
pub(super) struct Polls {
    pub(super) rows: Vec<FetchLogRow>,
    /// Polls before this are not all here.
    since: Option<Moment>,
}

impl Polls {
    /// Of all feeds of a source; `max` is shared among them.
    pub(super) async fn of(store: &Store, feeds: &[Feed], max: u32) -> Result<Self, Problem> {
        let each = max / feeds.len().clamp(1, MAX_FEEDS) as u32;
        let mut polls = Self::default();
        for feed in feeds.iter().take(MAX_FEEDS) {
            let rows = store.fetch_log(feed.feed_id, each).await?;
            let oldest = rows.last().filter(|_| rows.len() == each as usize);
            polls.since = polls.since.max(oldest.map(|poll| poll.started_at));
            polls.rows.extend(rows);
        }
        polls
            .rows
            .sort_by_key(|poll| std::cmp::Reverse(poll.started_at));
        Ok(polls)
    }

    /// New items per day, today last. Days that are not fully covered are left out.
    pub(super) fn by_day(&self, now: Moment) -> Vec<i64> {
        let place = |at: Moment| {
            let ago = now.0.div_euclid(DAY) - at.0.div_euclid(DAY);
            (DAYS - 1).checked_sub(usize::try_from(ago).ok()?)
        };
        let mut days = vec![0; DAYS];
        for poll in &self.rows {
            if let Some(day) = place(poll.started_at) {
                days[day] += poll.items_new;
            }
        }
        let unknown = self.since.and_then(place).map_or(0, |day| day + 1);
        days.split_off(unknown.min(DAYS - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(enabled: bool) -> Source {
        Source {
            source_id: 1,
            name: "a".to_owned(),
            url: "https://a.example/".to_owned(),
            kind: "feed".to_owned(),
            priority: 5,
            enabled,
            reason: (!enabled).then(|| "too loud".to_owned()),
            config: serde_json::json!({}),
            created_at: Moment(0),
            updated_at: Moment(0),
        }
    }

    fn feed(errors: i64, is_polled: bool) -> Feed {
        Feed {
            feed_id: 1,
            source_id: 1,
            kind: "feed".to_owned(),
            url: "https://a.example/feed".to_owned(),
            etag: None,
            last_modified: None,
            body_hash: None,
            items_checksum: None,
            item_count: 0,
            last_polled_at: is_polled.then_some(Moment(1)),
            last_new_at: None,
            next_poll_at: Moment(2),
            consecutive_errors: errors,
            error_class: (errors > 0).then(|| "http_transient".to_owned()),
            last_error: None,
            paused_reason: None,
            policy: String::new(),
            demand_nano: 0,
        }
    }

    fn polls(outcomes: &[&str]) -> Vec<FetchLogRow> {
        let poll = |outcome: &&str| FetchLogRow {
            started_at: Moment(DAY * 20),
            elapsed_ms: 1,
            outcome: (*outcome).to_owned(),
            items_seen: 3,
            items_new: 2,
            error_class: None,
            error_message: None,
            bytes: 9,
        };
        outcomes.iter().map(poll).collect()
    }

    #[test]
    fn the_score_falls_with_errors_and_fastest_with_current_ones() {
        let rows = [
            (
                "no errors",
                feed(0, true),
                polls(&["ok", "not_modified"]),
                "healthy",
                Some(100),
            ),
            ("never polled", feed(0, false), Vec::new(), "new", None),
            (
                "a past error",
                feed(0, true),
                polls(&["ok", "failed", "ok", "ok"]),
                "unsteady",
                Some(75),
            ),
            (
                "a current error",
                feed(1, true),
                polls(&["failed", "ok", "ok", "ok"]),
                "unsteady",
                Some(55),
            ),
            (
                "past errors",
                feed(0, true),
                polls(&["ok", "failed", "failed", "failed"]),
                "unsteady",
                Some(25),
            ),
            (
                "errors only",
                feed(9, true),
                polls(&["failed"; 9]),
                "failing",
                Some(0),
            ),
        ];
        for (name, feed, polls, word, score) in rows {
            let health = Health::of(&source(true), &[feed], &polls);
            assert_eq!((health.word, health.score), (word, score), "{name}");
        }
        let paused = Feed {
            paused_reason: Some("gone".to_owned()),
            ..feed(0, true)
        };
        assert_eq!(
            Health::of(&source(true), &[paused], &[]).word,
            "feed paused"
        );
        let limited = Feed {
            error_class: Some(LIMITED.to_owned()),
            last_error: Some("too many sitemaps".to_owned()),
            ..feed(0, true)
        };
        let limited = Health::of(&source(true), &[feed(0, true), limited], &[]);
        assert_eq!(
            (limited.word, limited.why.as_str()),
            ("healthy", "too many sitemaps")
        );
        let disabled = Health::of(&source(false), &[], &[]);
        assert_eq!(
            (disabled.word, disabled.why.as_str()),
            ("paused", "too loud")
        );
    }

    #[test]
    fn items_are_counted_per_day_as_far_as_the_log_reaches() {
        let mut rows = polls(&["ok", "ok", "ok"]);
        rows[1].started_at = Moment(DAY * 19 + 5);
        rows[2].started_at = Moment(DAY * 2);
        let now = Moment(DAY * 20 + 7);
        let by_day = |since: Option<i64>| {
            let since = since.map(Moment);
            let rows = rows.clone();
            Polls { rows, since }.by_day(now)
        };
        let all = by_day(None);
        assert_eq!((all.len(), all.iter().sum::<i64>()), (DAYS, 4));
        assert_eq!(all[DAYS - 2..], [2, 2]);
        assert_eq!(by_day(Some(DAY * 2)).len(), DAYS, "it reaches far enough");
        assert_eq!(
            by_day(Some(DAY * 18 + 9)),
            [2, 2],
            "of the 18th not all is known"
        );
        assert_eq!(
            by_day(Some(DAY * 20 + 1)),
            [2],
            "of today there is always something"
        );
    }
}
