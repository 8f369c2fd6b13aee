//! Units, in one place: moments are milliseconds since 1970 inside a learned
//! state, everything that is computed is in seconds, rates are per second.

use std::time::Duration;

use jiff::Timestamp;

pub(crate) const HOUR: f64 = 3600.0;
pub(crate) const DAY: f64 = 86_400.0;

/// Seconds from `earlier` to `later`; zero when the clock went backwards.
pub(crate) fn seconds_between(earlier: Timestamp, later: Timestamp) -> f64 {
    let millis = later
        .as_millisecond()
        .saturating_sub(earlier.as_millisecond());
    millis.max(0) as f64 / 1000.0
}

/// A duration of this many seconds; what is no number becomes zero.
pub(crate) fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::ZERO)
}

/// The moment `wait` after `now`, at the end of time at the latest.
pub(crate) fn after(now: Timestamp, wait: Duration) -> Timestamp {
    now.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// Seconds since 1970, with fractions.
pub(crate) fn epoch(at: Timestamp) -> f64 {
    at.as_millisecond() as f64 / 1000.0
}

/// The hour of the UTC day, 0 to 23.
pub(crate) fn hour_of_day(epoch_seconds: f64) -> usize {
    // The remainder is in 0..86,400, so the quotient is in 0..=23.
    (epoch_seconds.rem_euclid(DAY) / HOUR) as usize % 24
}

/// The day of the week, 0 = Monday: 1970 began on a Thursday.
pub(crate) fn day_of_week(epoch_seconds: f64) -> usize {
    ((epoch_seconds / DAY).floor() as i64 + 3).rem_euclid(7) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_and_days_are_those_of_utc() {
        let rows = [
            ("1970-01-01T00:00:00Z", 0, 3),
            ("1969-12-31T23:59:59Z", 23, 2),
            ("2026-11-15T05:59:23Z", 5, 6),
            ("2026-11-16T00:00:00Z", 0, 0),
        ];
        for (text, hour, day) in rows {
            let at: Timestamp = text.parse().unwrap();
            assert_eq!(hour_of_day(epoch(at)), hour, "{text}");
            assert_eq!(day_of_week(epoch(at)), day, "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_none() {
        assert_eq!(duration(f64::NAN), Duration::ZERO);
        assert_eq!(duration(-1.0), Duration::ZERO);
        assert_eq!(duration(1.5), Duration::from_millis(1500));
    }
}
