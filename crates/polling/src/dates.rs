//! Which dates of a feed may be believed. Some feeds date every item with the
//! day only, with the moment the document was built, or with the year 2099.

use jiff::Timestamp;

use crate::units::{DAY, HOUR, epoch};

/// A clock may be this far ahead of ours, in seconds.
const SKEW: f64 = 600.0;
/// Fewer dates prove nothing.
const ENOUGH: usize = 3;
/// Older items say nothing about today, in seconds: two years.
const OLDEST: f64 = 730.0 * DAY;

/// What the dates of a document teach about the time before it was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Past {
    /// Ages of the items in seconds; empty when the dates are no good.
    pub(crate) ages: Vec<f64>,
    /// Whether the time of day can be believed too.
    pub(crate) has_hours: bool,
}

/// Looks at all dates of a document that was read at `now`.
pub(crate) fn past(dates: &[Option<Timestamp>], now: Timestamp) -> Past {
    let now = epoch(now);
    let ages = dates.iter().flatten().map(|date| now - epoch(*date));
    let mut ages: Vec<f64> = ages
        .filter(|age| (-SKEW..OLDEST).contains(age))
        .map(|age| age.max(0.0))
        .collect();
    ages.sort_by(f64::total_cmp);
    let span = ages.last().unwrap_or(&0.0) - ages.first().unwrap_or(&0.0);
    // Half of the items without a date, or all items of one hour (the moment the
    // document was built): the dates say nothing about when items appeared.
    if ages.len() < ENOUGH || ages.len() * 2 < dates.len() || span < HOUR {
        return Past {
            ages: Vec::new(),
            has_hours: false,
        };
    }
    let has_hours = !share_time_of_day(&ages, now);
    Past { ages, has_hours }
}

/// The hour of a date can be believed if it lies between the two polls between
/// which the item appeared.
pub(crate) fn fits(date: Timestamp, last_poll: f64, now: f64) -> bool {
    let at = epoch(date);
    at >= last_poll - SKEW && at <= now + SKEW
}

/// Whether most items carry the same time of day, as day-stamped ones do, at
/// midnight of whichever zone.
fn share_time_of_day(ages: &[f64], now: f64) -> bool {
    let time = |age: &f64| ((now - age).rem_euclid(DAY) / 60.0).round() as i64;
    let mut times: Vec<i64> = ages.iter().map(time).collect();
    times.sort_unstable();
    let max = times.chunk_by(|a, b| a == b).map(<[i64]>::len).max();
    max.unwrap_or(0) * 2 > times.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<Timestamp> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn only_credible_dates_teach() {
        let day = |n: u32| at(&format!("2026-11-{n:02}T00:00:00Z"));
        let real = [
            at("2026-11-14T09:12:00Z"),
            at("2026-11-13T17:40:00Z"),
            at("2026-11-12T11:03:10Z"),
        ];
        let rows: [(&str, Vec<Option<Timestamp>>, usize, bool); 8] = [
            ("real", real.to_vec(), 3, true),
            ("by day", (1..10).map(day).collect(), 9, false),
            ("all equal", vec![real[0]; 20], 0, false),
            ("future", vec![at("2099-01-01T00:00:00Z"); 5], 0, false),
            ("none", vec![None; 10], 0, false),
            ("mostly none", [&real[..], &[None; 9]].concat(), 0, false),
            (
                "one from the future",
                [&real[..], &[at("2031-01-01T00:00:00Z")]].concat(),
                3,
                true,
            ),
            (
                "long ago",
                vec![
                    at("2003-01-01T00:00:00Z"),
                    at("2004-01-01T00:00:00Z"),
                    at("2005-01-01T00:00:00Z"),
                ],
                0,
                false,
            ),
        ];
        let now = at("2026-11-15T00:00:00Z").unwrap();
        for (name, dates, ages, has_hours) in rows {
            let past = past(&dates, now);
            assert_eq!(
                (past.ages.len(), past.has_hours),
                (ages, has_hours),
                "{name}"
            );
        }
    }

    #[test]
    fn a_new_item_is_dated_between_two_polls() {
        let (last, now) = (1_000_000.0, 1_003_600.0);
        let date = |second| Timestamp::from_second(second).unwrap();
        assert!(fits(date(1_001_000), last, now));
        assert!(fits(date(1_003_900), last, now), "a clock a little ahead");
        assert!(!fits(date(990_000), last, now), "listed late");
        assert!(!fits(date(1_100_000), last, now), "in the future");
    }
}
