//! When a URL is tried again, and when it is given up: the retries of spec and
//! table, nothing else. Pure; chance comes in as an argument.

use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// Waits after the first failure, the second, and so on.
const AFTER_FAILURE: [Duration; 5] = [
    MINUTE,
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3600),
    Duration::from_secs(6 * 3600),
];

/// A site that refuses us is left alone for long.
const AFTER_REFUSAL: [Duration; 3] = [
    Duration::from_secs(6 * 3600),
    Duration::from_secs(24 * 3600),
    Duration::from_secs(72 * 3600),
];

/// The longest that a server may make us wait.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// What a site says without a time, when it says that it is too much.
const AFTER_TOO_MANY: Duration = Duration::from_secs(5 * 60);

/// How long to wait after a failure when `retries` have been used up; `None`
/// when that were too many.
pub(crate) fn after_failure(retries: u16, random: f64) -> Option<Duration> {
    let wait = AFTER_FAILURE.get(usize::from(retries))?;
    Some(spread(*wait, random))
}

/// The same for a refusal: 401, 403, 451, a CAPTCHA.
pub(crate) fn after_refusal(retries: u16, random: f64) -> Option<Duration> {
    let wait = AFTER_REFUSAL.get(usize::from(retries))?;
    Some(spread(*wait, random))
}

/// After 429, by what the server said, within reason.
pub(crate) fn after_too_many(retry_after: Option<Duration>) -> Duration {
    retry_after.unwrap_or(AFTER_TOO_MANY).min(LONGEST)
}

/// A wait that the server asked for, within reason.
pub(crate) fn at_least(wait: Duration, retry_after: Option<Duration>) -> Duration {
    wait.max(retry_after.unwrap_or_default().min(LONGEST))
}

/// A fifth around the wait, so that what failed together does not come together.
fn spread(wait: Duration, random: f64) -> Duration {
    wait.mul_f64(0.9 + 0.2 * random.clamp(0.0, 1.0))
}

/// Between two looks at a page that may change: half after a change, half as
/// long again after none. `passed` is how long the last wait was.
pub(crate) fn look_again(
    min: Duration,
    max: Duration,
    passed: Option<Duration>,
    has_changed: bool,
) -> Duration {
    let max = max.max(min);
    match passed {
        None => min,
        Some(passed) if has_changed => (passed / 2).clamp(min, max),
        Some(passed) => (passed + passed / 2).clamp(min, max),
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
    fn refusals_wait_for_days_and_end() {
        let hours: Vec<_> = (0..4)
            .map(|retries| after_refusal(retries, 0.5).map(|wait| wait.as_secs() / 3600))
            .collect();
        assert_eq!(hours, [Some(6), Some(24), Some(72), None]);
    }

    #[test]
    fn servers_may_ask_for_a_day_at_most() {
        assert_eq!(after_too_many(None), AFTER_TOO_MANY);
        assert_eq!(after_too_many(Some(HOUR)), HOUR);
        assert_eq!(after_too_many(Some(HOUR * 1000)), LONGEST);
        assert_eq!(at_least(MINUTE, Some(HOUR)), HOUR);
        assert_eq!(at_least(HOUR, Some(MINUTE)), HOUR);
    }

    #[test]
    fn what_changes_is_looked_at_more_often() {
        let (min, max) = (HOUR, HOUR * 24);
        let rows = [
            (None, true, HOUR),
            (Some(HOUR * 8), true, HOUR * 4),
            (Some(HOUR * 8), false, HOUR * 12),
            (Some(HOUR), true, HOUR),
            (Some(HOUR * 20), false, HOUR * 24),
            (Some(HOUR * 200), true, HOUR * 24),
        ];
        for (passed, changed, expected) in rows {
            assert_eq!(
                look_again(min, max, passed, changed),
                expected,
                "{passed:?}"
            );
        }
    }
}
