//! The publisher's hints, as bounds on the adaptive policy: how soon a feed may
//! be polled again, and in which hours it may not be polled at all.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::units::{HOUR, day_of_week, epoch, hour_of_day};

/// The shortest interval of the adaptive policy, whatever a feed publishes.
pub const FLOOR: Duration = Duration::from_secs(300);

/// The longest interval that a publisher's hint may set.
const MAX_HINT: Duration = Duration::from_secs(86_400);

/// `sy:updatePeriod` says nothing about the rate (nearly all feeds that have it
/// carry their software's default, hourly), so it counts for an hour at most.
const MAX_SYNDICATION: Duration = Duration::from_secs(3600);

/// A feed that sends its whole body every time is polled this many times more rarely.
const COSTLY_FACTOR: u32 = 4;

/// The hints of a publisher, as its last responses stated them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hints {
    /// `ttl` of RSS.
    pub ttl: Option<Duration>,
    /// `sy:updatePeriod` divided by `sy:updateFrequency`.
    pub syndication: Option<Duration>,
    /// `Cache-Control: max-age`, or `Expires` minus `Date`.
    pub max_age: Option<Duration>,
    /// `skipHours`: hours of the UTC day, 0 to 23.
    pub skip_hours: Vec<u8>,
    /// `skipDays`: days of the week, 0 = Monday.
    pub skip_days: Vec<u8>,
    /// No validators, and a body over 200 KB: every poll costs all of it.
    pub is_costly: bool,
}

impl Hints {
    /// The shortest interval that respects every hint; the largest wins.
    pub fn floor(&self) -> Duration {
        let bounded = |hint: Option<Duration>, max| hint.unwrap_or_default().min(max);
        let floor = FLOOR
            .max(bounded(self.ttl, MAX_HINT))
            .max(bounded(self.max_age, MAX_HINT))
            .max(bounded(self.syndication, MAX_SYNDICATION));
        if self.is_costly {
            (floor * COSTLY_FACTOR).min(MAX_HINT.max(floor))
        } else {
            floor
        }
    }

    /// `at`, or the start of the next hour that is not skipped. A feed that
    /// skips every hour of the week skips none.
    pub fn next_allowed(&self, at: Timestamp) -> Timestamp {
        if self.skip_hours.is_empty() && self.skip_days.is_empty() {
            return at;
        }
        let start = epoch(at);
        let hour_start = (start / HOUR).floor() * HOUR;
        let hours = (0..8 * 24).map(|hour| hour_start + f64::from(hour) * HOUR);
        let allowed = hours.into_iter().find(|hour| !self.skips(*hour));
        match allowed {
            Some(hour) if hour > start => {
                Timestamp::from_second(hour as i64).unwrap_or(Timestamp::MAX)
            }
            _ => at,
        }
    }

    fn skips(&self, epoch_seconds: f64) -> bool {
        let has = |list: &[u8], value: usize| list.iter().any(|item| usize::from(*item) == value);
        has(&self.skip_hours, hour_of_day(epoch_seconds))
            || has(&self.skip_days, day_of_week(epoch_seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn the_largest_hint_wins_within_its_bound() {
        let hints = |ttl: u32, syndication: u32, max_age: u32, is_costly| Hints {
            ttl: Some(ttl * MINUTE),
            syndication: Some(syndication * MINUTE),
            max_age: Some(max_age * MINUTE),
            is_costly,
            ..Hints::default()
        };
        let rows = [
            ("no hints", hints(0, 0, 0, false), 5),
            ("ttl below the floor", hints(1, 0, 0, false), 5),
            ("ttl", hints(60, 0, 10, false), 60),
            ("max-age", hints(60, 0, 90, false), 90),
            ("a ttl of a month", hints(43_200, 0, 0, false), 1440),
            ("sy: counts for an hour", hints(0, 1440, 0, false), 60),
            ("costly", hints(0, 0, 0, true), 20),
            ("costly and a day", hints(1440, 0, 0, true), 1440),
        ];
        for (name, hints, minutes) in rows {
            assert_eq!(hints.floor(), minutes * MINUTE, "{name}");
        }
        assert_eq!(Hints::default().floor(), FLOOR);
    }

    #[test]
    fn skipped_hours_and_days_move_the_poll() {
        let hints = |skip_hours: &[u8], skip_days: &[u8]| Hints {
            skip_hours: skip_hours.to_vec(),
            skip_days: skip_days.to_vec(),
            ..Hints::default()
        };
        let every_hour: Vec<u8> = (0..24).collect();
        // 2026-11-15 is a Sunday.
        let rows = [
            ("none", hints(&[], &[]), "2026-11-15T05:59:23Z"),
            ("another hour", hints(&[6], &[]), "2026-11-15T05:59:23Z"),
            ("this hour", hints(&[5, 6], &[]), "2026-11-15T07:00:00Z"),
            ("this day", hints(&[], &[6]), "2026-11-16T00:00:00Z"),
            ("day and hour", hints(&[0], &[6]), "2026-11-16T01:00:00Z"),
            (
                "over midnight",
                hints(
                    &[
                        5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
                    ],
                    &[],
                ),
                "2026-11-16T00:00:00Z",
            ),
            (
                "every hour",
                hints(&every_hour, &[]),
                "2026-11-15T05:59:23Z",
            ),
            ("no such hour", hints(&[99], &[99]), "2026-11-15T05:59:23Z"),
        ];
        let at: Timestamp = "2026-11-15T05:59:23Z".parse().unwrap();
        for (name, hints, expected) in rows {
            assert_eq!(hints.next_allowed(at).to_string(), expected, "{name}");
        }
    }
}
