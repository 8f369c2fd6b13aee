//! Retry delays of a URL, the number of retries before it fails permanently, and
//! the recrawl interval. Pure; randomness comes in as an argument.

use std::time::Duration;

use crate::sources::Retries;

const MINUTE: Duration = Duration::from_secs(60);

/// Delays after the first failure, the second, and so on.
const FAILURE_DELAYS: [Duration; 5] = [
    MINUTE,
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3600),
    Duration::from_secs(6 * 3600),
];

/// Delays after a site denied access.
const REFUSAL_DELAYS: [Duration; 3] = [
    Duration::from_secs(6 * 3600),
    Duration::from_secs(24 * 3600),
    Duration::from_secs(72 * 3600),
];

/// The longest Retry-After that is honoured.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

/// The longest delay of a schedule that doubles.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30 * 24 * 3600);

/// Delay after a 429 without Retry-After.
const TOO_MANY_REQUESTS_DELAY: Duration = Duration::from_secs(5 * 60);

/// The delay after a failure when `retries` have been used; `None` when there are
/// no more.
pub(crate) fn after_failure(retries: u16, random: f64) -> Option<Duration> {
    let wait = FAILURE_DELAYS.get(usize::from(retries))?;
    Some(jitter(*wait, random))
}

/// The same for a source with a schedule of its own.
pub(crate) fn after_failure_of(schedule: Retries, retries: u16, random: f64) -> Option<Duration> {
    if retries >= schedule.max {
        return None;
    }
    let factor = 1u32.checked_shl(u32::from(retries)).unwrap_or(u32::MAX);
    let first = Duration::from_secs(u64::from(schedule.first_seconds));
    let wait = first.saturating_mul(factor).min(MAX_RETRY_DELAY);
    Some(jitter(wait, random))
}

/// The same for a refusal: 401, 403, 451, a CAPTCHA.
pub(crate) fn after_refusal(retries: u16, random: f64) -> Option<Duration> {
    let wait = REFUSAL_DELAYS.get(usize::from(retries))?;
    Some(jitter(*wait, random))
}

/// The delay after 429: the server's Retry-After, bounded.
pub(crate) fn after_too_many_requests(retry_after: Option<Duration>) -> Duration {
    retry_after
        .unwrap_or(TOO_MANY_REQUESTS_DELAY)
        .min(MAX_RETRY_AFTER)
}

/// At least the server's Retry-After, bounded.
pub(crate) fn at_least(wait: Duration, retry_after: Option<Duration>) -> Duration {
    wait.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER))
}

/// Ten percent of jitter each way, so that URLs that failed together are not
/// retried together.
fn jitter(wait: Duration, random: f64) -> Duration {
    wait.mul_f64(0.9 + 0.2 * random.clamp(0.0, 1.0))
}

/// The interval to the next recrawl: half of the last one after a change, half as
/// long again after none. `elapsed` is how long the last one was.
pub(crate) fn recrawl_after(
    min: Duration,
    max: Duration,
    elapsed: Option<Duration>,
    has_changed: bool,
) -> Duration {
    let max = max.max(min);
    match elapsed {
        None => min,
        Some(elapsed) if has_changed => (elapsed / 2).clamp(min, max),
        Some(elapsed) => (elapsed + elapsed / 2).clamp(min, max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn failures_wait_longer_each_time_and_end() {
        let waits: Vec<_> = (0..7).map(|retries| after_failure(retries, 0.5)).collect();
        let expected = [1, 5, 30, 120, 360].map(|minutes| Some(MINUTE * minutes));
        assert_eq!(waits[..5], expected);
        assert_eq!(waits[5..], [None, None]);
        for random in [0.0, 0.3, 1.0] {
            let wait = after_failure(4, random).unwrap();
            assert!(wait >= HOUR * 5 && wait <= HOUR * 7, "{wait:?}");
        }
    }

    #[test]
    fn a_schedule_doubles_and_ends() {
        let hourly = Retries {
            max: 5,
            first_seconds: 3600,
        };
        let hours: Vec<_> = (0..6)
            .map(|retries| after_failure_of(hourly, retries, 0.5))
            .map(|wait| wait.map(|wait| wait.as_secs() / 3600))
            .collect();
        assert_eq!(hours, [Some(1), Some(2), Some(4), Some(8), Some(16), None]);
        let long = Retries {
            max: 50,
            first_seconds: 3600,
        };
        assert_eq!(after_failure_of(long, 49, 0.5), Some(MAX_RETRY_DELAY));
        let none = Retries {
            max: 0,
            first_seconds: 1,
        };
        assert_eq!(after_failure_of(none, 0, 0.5), None);
    }

    #[test]
    fn refusals_wait_for_days_and_end() {
        let hours: Vec<_> = (0..4)
            .map(|retries| after_refusal(retries, 0.5).map(|wait| wait.as_secs() / 3600))
            .collect();
        assert_eq!(hours, [Some(6), Some(24), Some(72), None]);
    }

    #[test]
    fn retry_after_is_bounded_by_a_day() {
        assert_eq!(after_too_many_requests(None), TOO_MANY_REQUESTS_DELAY);
        assert_eq!(after_too_many_requests(Some(HOUR)), HOUR);
        assert_eq!(after_too_many_requests(Some(HOUR * 1000)), MAX_RETRY_AFTER);
        assert_eq!(at_least(MINUTE, Some(HOUR)), HOUR);
        assert_eq!(at_least(HOUR, Some(MINUTE)), HOUR);
    }

    #[test]
    fn pages_that_change_are_recrawled_more_often() {
        let (min, max) = (HOUR, HOUR * 24);
        let rows = [
            (None, true, HOUR),
            (Some(HOUR * 8), true, HOUR * 4),
            (Some(HOUR * 8), false, HOUR * 12),
            (Some(HOUR), true, HOUR),
            (Some(HOUR * 20), false, HOUR * 24),
            (Some(HOUR * 200), true, HOUR * 24),
        ];
        for (elapsed, changed, expected) in rows {
            assert_eq!(
                recrawl_after(min, max, elapsed, changed),
                expected,
                "{elapsed:?}"
            );
        }
    }
}
