//! Dates in every form that feeds use, without ever guessing between day and
//! month: RFC 3339 and RFC 822 fast, everything else by looking at the words
//! and numbers. No clock: whether a date is plausible is checked against a `now`.

mod fast;
mod names;
mod scan;
mod zones;

use jiff::Timestamp;
use jiff::civil::{Date, Time, Weekday};
use jiff::tz::Offset;

/// Longer texts are not dates.
const MAX_BYTES: usize = 120;

/// Reads a date in any known form. `None` if there is none, if it can't exist
/// (30 February), or if day and month are ambiguous.
///
/// ```
/// use tidings_feed::date;
///
/// let noon = date::parse("Tue, 10 Nov 2026 12:00:00 GMT").unwrap();
/// assert_eq!(date::parse("2026-11-10T13:00:00+01:00"), Some(noon));
/// assert_eq!(date::parse("10. November 2026, 13:00 MEZ"), Some(noon));
/// assert_eq!(date::parse("30 Feb 2026"), None);
/// assert_eq!(date::parse("03/04/2026"), None);
/// ```
pub fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    // Addresses hold numbers that look like dates.
    if text.len() > MAX_BYTES || text.contains("://") {
        return None;
    }
    let bytes = text.as_bytes();
    fast::rfc3339(bytes)
        .or_else(|| fast::rfc822(bytes))
        .or_else(|| scan::parse(text))
}

/// Whether an item can have been published then: not before feeds existed, and
/// not after tomorrow. Hugo writes year 1 where it knows no date.
pub fn is_plausible(date: Timestamp, now: Timestamp) -> bool {
    const YEAR_1990: i64 = 631_152_000;
    const DAY: i64 = 86_400;
    date.as_second() >= YEAR_1990 && date.as_second() <= now.as_second().saturating_add(DAY)
}

/// A moment from its parts, if they exist on the calendar and the clock.
fn moment(date: Date, clock: Clock, offset_seconds: i32) -> Option<Timestamp> {
    // 24:00 is the end of the day, and second 60 is one that UTC inserts.
    let (hour, next_day) = match clock.hour {
        24 if clock.minute == 0 && clock.second == 0 => (0, true),
        hour => (hour, false),
    };
    let (second, is_inserted) = match clock.second {
        60 => (59, true),
        second => (second, false),
    };
    let time = Time::new(hour, clock.minute, second, clock.nanosecond).ok()?;
    let date = if next_day {
        date.tomorrow().ok()?
    } else {
        date
    };
    let offset = Offset::from_seconds(offset_seconds).ok()?;
    let moment = offset.to_timestamp(date.to_datetime(time)).ok()?;
    if is_inserted {
        Timestamp::new(moment.as_second() + 1, moment.subsec_nanosecond()).ok()
    } else {
        Some(moment)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Clock {
    hour: i8,
    minute: i8,
    second: i8,
    nanosecond: i32,
}

/// Two digits of a year: the window of POSIX.
fn full_year(two_digits: i16) -> i16 {
    if two_digits < 69 {
        2000 + two_digits
    } else {
        1900 + two_digits
    }
}

fn weekday_of(date: Date) -> Weekday {
    date.weekday()
}
