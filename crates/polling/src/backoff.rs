//! After an error: how long until a feed is retried. Never for good; only an
//! operator disables a feed. Says nothing about polls that succeed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::spread::fraction;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// The longest wait while a failure may still pass by itself.
pub const MAX_BACKOFF: Duration = DAY;
/// The longest wait after long failure, and the longest wait of all.
pub const MAX_WAIT: Duration = DAY.saturating_mul(7);
/// The longest `Retry-After` that is honoured.
pub const MAX_RETRY_AFTER: Duration = DAY;
/// The weight from which failure is long: 30 hard errors, 60 soft ones or 120 temporary ones
/// in a row, weeks at the one-day cap.
pub const LONG_FAILURE: f32 = 30.0;

/// The class of an error, as far as it matters for when to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// It usually passes by itself: name resolution, connection, time-out.
    Temporary,
    /// The server responds with an error: 404, 5xx.
    Soft,
    /// The server wants fewer requests: 429.
    TooManyRequests,
    /// It won't pass by itself: 401, 403, 410, a document that is no feed.
    Hard,
}

impl ErrorClass {
    /// How much one error counts towards [`LONG_FAILURE`].
    pub fn weight(self) -> f32 {
        match self {
            Self::Temporary => 0.25,
            Self::Soft | Self::TooManyRequests => 0.5,
            Self::Hard => 1.0,
        }
    }
}

/// How long to wait after the `errors`-th error in a row: the interval doubled
/// for each, at most a day (a week after long failure), at least what
/// `Retry-After` demands; after a 429 up to half as long again, at random, so
/// that the feeds of one host don't come back together.
pub fn backoff(
    interval: Duration,
    class: ErrorClass,
    errors: u32,
    failure: f32,
    retry_after: Option<Duration>,
    random: f64,
) -> Duration {
    let cap = if failure >= LONG_FAILURE {
        MAX_WAIT
    } else {
        MAX_BACKOFF
    };
    let doubled = interval.saturating_mul(1 << errors.min(20)).min(cap);
    let demanded = retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
    let wait = doubled.max(demanded);
    if class == ErrorClass::TooManyRequests {
        let spread = (wait / 2).clamp(Duration::from_secs(60), HOUR);
        wait + spread.mul_f64(fraction(random))
    } else {
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn errors_double_the_interval_up_to_a_cap() {
        let rows = [
            ("the first error", 15, 1, 0.25, 30),
            ("the third", 15, 3, 0.75, 120),
            ("the cap", 15, 7, 1.75, 1440),
            ("many errors, not yet long", 15, 29, 29.0, 1440),
            ("long failure", 15, 40, 30.0, 7 * 1440),
            (
                "long failure of a short interval",
                5,
                4_000_000,
                1e9,
                7 * 1440,
            ),
            ("a slow feed", 1440, 1, 1.0, 1440),
        ];
        for (name, interval, errors, failure, minutes) in rows {
            let wait = backoff(
                interval * MINUTE,
                ErrorClass::Hard,
                errors,
                failure,
                None,
                0.7,
            );
            assert_eq!(wait, minutes * MINUTE, "{name}");
        }
    }

    #[test]
    fn retry_after_is_honoured_up_to_a_day() {
        let rows = [(10, 30), (45, 45), (1440, 1440), (100_000, 1440)];
        for (demanded, minutes) in rows {
            let demanded = Some(demanded * MINUTE);
            let wait = backoff(15 * MINUTE, ErrorClass::Soft, 1, 0.5, demanded, 0.7);
            assert_eq!(wait, minutes * MINUTE, "{demanded:?}");
        }
    }

    #[test]
    fn too_many_requests_are_spread_at_random() {
        let wait = |random| {
            let class = ErrorClass::TooManyRequests;
            backoff(15 * MINUTE, class, 1, 0.5, Some(40 * MINUTE), random)
        };
        assert_eq!(wait(0.0), 40 * MINUTE);
        assert_eq!(wait(0.5), 50 * MINUTE);
        assert_eq!(wait(1.0), 60 * MINUTE);
    }
}
