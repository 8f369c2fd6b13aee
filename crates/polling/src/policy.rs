//! The outcome of a poll goes in, the time of the next comes out. Policy,
//! learning, errors, bounds and spreading come together here.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::adaptive;
use crate::backoff::{ErrorClass, backoff};
use crate::hints::{FLOOR, Hints};
use crate::listing;
use crate::price::Price;
use crate::reason::Reason;
use crate::spread::{jittered, jittered_interval, next_on_grid};
use crate::state::{Sighting, State};
use crate::units::after;

/// How it is decided when a feed is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// At a fixed interval, whatever the feed does.
    Fixed { every: Duration },
    /// Five minutes after new items, twice as long after every poll without, up
    /// to a week.
    Doubling,
    /// When the new items that must be waiting are worth a request.
    #[default]
    Adaptive,
    /// When a page that lists stories should have a few new ones. It lists nothing
    /// but other stories after `turnover`, if that is known.
    Listing { turnover: Option<Duration> },
}

/// The first interval of [`Policy::Doubling`].
pub const DOUBLING_FROM: Duration = Duration::from_secs(300);
/// The longest interval of [`Policy::Doubling`].
pub const DOUBLING_TO: Duration = Duration::from_secs(7 * 86_400);
/// What [`Policy::Adaptive`] spreads the first polls of its feeds over.
const FIRST_POLL_SPREAD: Duration = Duration::from_secs(900);

/// How a poll ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// A document was read, with new items or without.
    Read(Sighting<'a>),
    /// 304, the same body or the same items: nothing new.
    Unchanged,
    /// No document.
    Failed {
        class: ErrorClass,
        retry_after: Option<Duration>,
    },
}

/// A poll that has ended, and the circumstances that count.
#[derive(Debug, Clone, Copy)]
pub struct Poll<'a> {
    pub feed_id: i64,
    pub policy: Policy,
    pub outcome: Outcome<'a>,
    /// The publisher's hints.
    pub hints: &'a Hints,
    /// How much more than another an item of this source counts; 1.0 for most,
    /// a twelfth for a feed that pushes reliably.
    pub weight: f64,
    /// The price of a request now, for all adaptive feeds the same.
    pub price: Price,
    pub now: Timestamp,
    /// A random number in 0..1.
    pub random: f64,
}

/// When a feed is polled next, and why then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub at: Timestamp,
    pub reason: Reason,
}

/// When a feed that was never polled is due: at its phase, so that the feeds of a
/// large import are spread. (A single feed that a user adds is better polled now.)
pub fn first_poll(feed_id: i64, policy: Policy, now: Timestamp) -> Due {
    let within = match policy {
        Policy::Fixed { every } => every,
        Policy::Doubling => DOUBLING_FROM,
        Policy::Adaptive | Policy::Listing { .. } => FIRST_POLL_SPREAD,
    };
    Due {
        at: next_on_grid(feed_id, within, now),
        reason: Reason::First,
    }
}

/// What is learned from a poll, and when the next one is due. Never in the past,
/// and never more than [`crate::MAX_WAIT`] and its jitter away.
pub fn next_poll(state: &State, poll: &Poll<'_>) -> (State, Due) {
    let mut state = state.clone();
    match poll.outcome {
        Outcome::Read(sighting) => state.read(sighting, poll.now),
        Outcome::Unchanged => state.unchanged(poll.now),
        Outcome::Failed { class, .. } => state.failed(class.weight()),
    }
    let (interval, reason) = interval(&state, poll);
    let due = match poll.outcome {
        Outcome::Failed { class, retry_after } => {
            let (errors, failure) = (state.errors(), state.failure());
            let wait = backoff(interval, class, errors, failure, retry_after, poll.random);
            Due {
                at: jittered(after(poll.now, wait), wait, poll.random),
                reason: Reason::Error,
            }
        }
        _ => schedule(interval, reason, poll),
    };
    (state, due)
}

fn interval(state: &State, poll: &Poll<'_>) -> (Duration, Reason) {
    match poll.policy {
        Policy::Fixed { every } => (every.max(Duration::from_secs(1)), Reason::Interval),
        Policy::Doubling => {
            let doubled = DOUBLING_FROM.saturating_mul(1 << state.quiet_polls().min(20));
            (doubled.min(DOUBLING_TO), Reason::Interval)
        }
        Policy::Adaptive => {
            adaptive::interval(state, poll.weight, poll.price, poll.hints, poll.now)
        }
        Policy::Listing { turnover } => listing::interval(state, turnover, poll.hints, poll.now),
    }
}

/// The time at the end of an interval: fixed ones on the feed's own grid, where they
/// stay whenever the poll ended; others where they fall, with jitter.
fn schedule(interval: Duration, reason: Reason, poll: &Poll<'_>) -> Due {
    match poll.policy {
        Policy::Fixed { .. } => {
            let grid = next_on_grid(poll.feed_id, interval, poll.now);
            Due {
                at: jittered(grid, interval, poll.random),
                reason,
            }
        }
        Policy::Doubling => Due {
            at: after(
                poll.now,
                jittered_interval(interval, DOUBLING_FROM, poll.random),
            ),
            reason,
        },
        Policy::Adaptive | Policy::Listing { .. } => {
            let at = after(poll.now, jittered_interval(interval, FLOOR, poll.random));
            let allowed = poll.hints.next_allowed(at);
            Due {
                at: allowed,
                reason: if allowed > at {
                    Reason::SkippedHours
                } else {
                    reason
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const FIFTEEN: Policy = Policy::Fixed {
        every: Duration::from_secs(900),
    };

    fn now() -> Timestamp {
        "2026-11-15T05:59:23Z".parse().unwrap()
    }

    fn poll<'a>(policy: Policy, outcome: Outcome<'a>, hints: &'a Hints) -> Poll<'a> {
        Poll {
            feed_id: 7,
            policy,
            outcome,
            hints,
            weight: 1.0,
            price: Price::from_item_seconds(300.0),
            now: now(),
            random: 0.5,
        }
    }

    /// Minutes until the next poll, after these outcomes.
    fn minutes_after(policy: Policy, outcomes: &[Outcome<'_>]) -> f64 {
        let hints = Hints::default();
        let mut state = State::default();
        let mut minutes = 0.0;
        for outcome in outcomes {
            let (next, due) = next_poll(&state, &poll(policy, *outcome, &hints));
            minutes = (due.at.as_millisecond() - now().as_millisecond()) as f64 / 60_000.0;
            state = next;
        }
        minutes
    }

    const QUIET: Outcome<'_> = Outcome::Unchanged;
    const NEW_ITEMS: Outcome<'_> = Outcome::Read(Sighting {
        listed: &[None; 20],
        new: &[None],
    });
    const FAILED: Outcome<'_> = Outcome::Failed {
        class: ErrorClass::Soft,
        retry_after: None,
    };

    #[test]
    fn doubling_doubles_while_nothing_comes() {
        let rows: [(&str, &[Outcome<'_>], f64); 5] = [
            ("new items", &[NEW_ITEMS], 5.0),
            ("quiet once", &[NEW_ITEMS, QUIET], 10.0),
            ("quiet thrice", &[NEW_ITEMS, QUIET, QUIET, QUIET], 40.0),
            ("new items again", &[QUIET, QUIET, NEW_ITEMS], 5.0),
            ("quiet for ever", &[QUIET; 30], 7.0 * 1440.0),
        ];
        for (name, outcomes, minutes) in rows {
            assert_eq!(minutes_after(Policy::Doubling, outcomes), minutes, "{name}");
        }
    }

    #[test]
    fn fixed_stays_on_its_grid() {
        let hints = Hints::default();
        for outcome in [QUIET, NEW_ITEMS] {
            let (_, due) = next_poll(&State::default(), &poll(FIFTEEN, outcome, &hints));
            // The middle of a jitter of a minute.
            let grid = next_on_grid(7, 15 * MINUTE, now());
            assert_eq!(due.at, after(grid, MINUTE / 2));
            assert_eq!(due.reason, Reason::Interval);
        }
        assert_eq!(
            first_poll(7, FIFTEEN, now()).at,
            next_on_grid(7, 15 * MINUTE, now())
        );
    }

    #[test]
    fn errors_back_off_under_every_policy_and_success_forgives() {
        for policy in [FIFTEEN, Policy::Doubling, Policy::Adaptive] {
            let once = minutes_after(policy, &[QUIET, FAILED]);
            let thrice = minutes_after(policy, &[QUIET, FAILED, FAILED, FAILED]);
            let ten = minutes_after(policy, &[FAILED; 10]);
            let long = minutes_after(policy, &[FAILED; 60]);
            assert!(thrice >= 2.0 * once || thrice >= 1440.0, "{policy:?}");
            assert!((1440.0..=1450.0).contains(&ten), "{policy:?}: {ten}");
            assert!((10_080.0..=10_090.0).contains(&long), "{policy:?}: {long}");
            let (state, due) = {
                let hints = Hints::default();
                let (failed, _) = next_poll(&State::default(), &poll(policy, FAILED, &hints));
                assert_eq!(failed.errors(), 1);
                next_poll(&failed, &poll(policy, NEW_ITEMS, &hints))
            };
            assert_eq!(state.errors(), 0);
            assert_ne!(due.reason, Reason::Error);
        }
        // 15 minutes, doubled once, in the middle of a jitter of a minute.
        assert_eq!(minutes_after(FIFTEEN, &[FAILED]), 30.5);
    }

    #[test]
    fn retry_after_is_honoured_under_every_policy() {
        for policy in [FIFTEEN, Policy::Doubling, Policy::Adaptive] {
            let failed = Outcome::Failed {
                class: ErrorClass::TooManyRequests,
                retry_after: Some(12 * 60 * MINUTE),
            };
            let minutes = minutes_after(policy, &[NEW_ITEMS, failed]);
            assert!((720.0..=800.0).contains(&minutes), "{policy:?}: {minutes}");
        }
    }

    #[test]
    fn the_publisher_bounds_the_adaptive_policy_only() {
        let hints = Hints {
            ttl: Some(180 * MINUTE),
            skip_hours: vec![8, 9],
            ..Hints::default()
        };
        let cheap = Poll {
            price: Price::from_item_seconds(0.001),
            ..poll(Policy::Adaptive, NEW_ITEMS, &hints)
        };
        // 05:59 and three hours is in a skipped hour.
        let (_, due) = next_poll(&State::default(), &cheap);
        assert_eq!(due.at.to_string(), "2026-11-15T10:00:00Z");
        assert_eq!(due.reason, Reason::SkippedHours);
        let fixed = poll(FIFTEEN, NEW_ITEMS, &hints);
        let (_, due) = next_poll(&State::default(), &fixed);
        assert!(due.at.as_second() - now().as_second() <= 960);
    }
}
