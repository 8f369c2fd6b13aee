//! `Retry-After`, as seconds or as a date, clamped so that no server can delay us
//! for longer than a day. Pure.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;

/// The longest delay that a server may demand.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

/// How long to wait; `None` when the header is invalid.
pub fn retry_after(header: &str, now: Timestamp) -> Option<Duration> {
    let text = header.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number can hold are still a long time.
        let seconds = text.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER));
    }
    let date = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    let wait = Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO);
    Some(wait.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_understood_and_clamped() {
        let now: Timestamp = "2026-11-15T08:00:00Z".parse().unwrap();
        let seconds = |n| Some(Duration::from_secs(n));
        let rows = [
            ("5", seconds(5)),
            (" 120 ", seconds(120)),
            ("0", seconds(0)),
            ("99999999", Some(MAX_RETRY_AFTER)),
            ("99999999999999999999999", Some(MAX_RETRY_AFTER)),
            ("Sun, 15 Nov 2026 08:01:30 GMT", seconds(90)),
            ("Sun, 15 Nov 2026 07:00:00 GMT", seconds(0)),
            ("Thu, 01 Jan 2099 00:00:00 GMT", Some(MAX_RETRY_AFTER)),
            ("soon", None),
            ("-5", None),
            ("", None),
        ];
        for (header, wait) in rows {
            assert_eq!(retry_after(header, now), wait, "{header}");
        }
    }
}
