//! Retry delays of a URL, the number of attempts before it fails permanently, and
//! the recrawl interval. Pure; randomness comes in as an argument.

use std::time::Duration;

use tidings_net::Class;

use crate::sources::Retries;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// The longest Retry-After that is honoured.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

/// The longest delay of a schedule that doubles.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30 * 24 * 3600);

/// Delay after a 429 without Retry-After.
const TOO_MANY_REQUESTS_DELAY: Duration = Duration::from_secs(5 * 60);

/// The delay before each retry of a URL, by class of failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// After an error of DNS, connecting, TLS or the transfer, or a timeout.
    pub network: Vec<Duration>,
    /// After 408, 425 and 5xx.
    pub http: Vec<Duration>,
    /// After 503, where it has delays of its own.
    pub unavailable: Option<Vec<Duration>>,
    /// After 401, 403, 451, a CAPTCHA or a consent page.
    pub blocked: Vec<Duration>,
    /// Attempts in all, for every class; the last delay is repeated. Without it there
    /// is one retry for each delay.
    pub max_attempts: Option<u16>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        let delays = [MINUTE, MINUTE * 5, MINUTE * 30, HOUR * 2, HOUR * 6];
        Self {
            network: delays.to_vec(),
            http: delays.to_vec(),
            unavailable: None,
            blocked: vec![HOUR * 6, HOUR * 24, HOUR * 72],
            max_attempts: None,
        }
    }
}

impl RetryPolicy {
    /// As Media Cloud: after 503 five attempts, and delays that double from an hour.
    pub fn media_cloud() -> Self {
        Self {
            unavailable: Some(vec![HOUR, HOUR * 2, HOUR * 4, HOUR * 8]),
            ..Self::default()
        }
    }

    /// As North Cloud: three attempts whatever fails, and delays that double from a
    /// minute.
    pub fn north_cloud() -> Self {
        let delays = vec![MINUTE, MINUTE * 2];
        Self {
            network: delays.clone(),
            http: delays.clone(),
            unavailable: None,
            blocked: delays,
            max_attempts: None,
        }
    }

    /// The delay after a failure when `retries` have been used; `None` when there are
    /// no more.
    pub(crate) fn after(
        &self,
        class: Class,
        status: Option<u16>,
        retries: u16,
        random: f64,
    ) -> Option<Duration> {
        let delays = match (class, status, &self.unavailable) {
            (Class::Blocked, ..) => &self.blocked,
            (Class::HttpTransient, Some(503), Some(unavailable)) => unavailable,
            (Class::HttpTransient, ..) => &self.http,
            _ => &self.network,
        };
        let max_retries = match self.max_attempts {
            Some(attempts) => usize::from(attempts).saturating_sub(1),
            None => delays.len(),
        };
        let used = usize::from(retries);
        if used >= max_retries {
            return None;
        }
        let delay = delays.get(used).or(delays.last())?;
        Some(jitter(*delay, random))
    }

    /// The same for a source with retries of its own after errors of its site.
    pub(super) fn with_retries(&self, retries: Retries) -> Self {
        let first = Duration::from_secs(u64::from(retries.first_seconds));
        let delay = |used: u16| {
            let factor = 1u32.checked_shl(u32::from(used)).unwrap_or(u32::MAX);
            first.saturating_mul(factor).min(MAX_RETRY_DELAY)
        };
        let delays: Vec<Duration> = (0..retries.max).map(delay).collect();
        Self {
            network: delays.clone(),
            http: delays,
            unavailable: None,
            blocked: self.blocked.clone(),
            max_attempts: None,
        }
    }
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

    /// The delays of a policy in minutes, until a URL fails permanently.
    fn minutes(policy: &RetryPolicy, class: Class, status: Option<u16>) -> Vec<u64> {
        (0..100)
            .map_while(|retries| policy.after(class, status, retries, 0.5))
            .map(|wait| wait.as_secs() / 60)
            .collect()
    }

    #[test]
    fn each_class_of_failures_has_its_delays_and_ends() {
        let standard = RetryPolicy::default();
        let media = RetryPolicy::media_cloud();
        let north = RetryPolicy::north_cloud();
        let capped = RetryPolicy {
            max_attempts: Some(3),
            ..RetryPolicy::default()
        };
        let patient = RetryPolicy {
            max_attempts: Some(6),
            blocked: vec![MINUTE, HOUR],
            ..RetryPolicy::default()
        };
        let never = RetryPolicy {
            network: Vec::new(),
            max_attempts: Some(9),
            ..RetryPolicy::default()
        };
        let (network, http) = (Class::Network, Class::HttpTransient);
        let usual = &[1, 5, 30, 120, 360][..];
        let rows: [(&RetryPolicy, Class, Option<u16>, &[u64]); 13] = [
            (&standard, network, None, usual),
            (&standard, http, Some(500), usual),
            (&standard, http, Some(503), usual),
            (&standard, Class::Blocked, Some(403), &[360, 1440, 4320]),
            (&media, http, Some(503), &[60, 120, 240, 480]),
            (&media, http, Some(502), usual),
            (&media, network, None, usual),
            (&north, http, Some(503), &[1, 2]),
            (&north, Class::Blocked, Some(403), &[1, 2]),
            (&capped, http, Some(503), &[1, 5]),
            (&capped, Class::Blocked, Some(403), &[360, 1440]),
            (&patient, Class::Blocked, None, &[1, 60, 60, 60, 60]),
            (&never, network, None, &[]),
        ];
        for (policy, class, status, expected) in rows {
            assert_eq!(
                minutes(policy, class, status),
                expected,
                "{class:?} {status:?} {policy:?}"
            );
        }
        for random in [0.0, 0.3, 1.0] {
            let wait = standard.after(network, None, 4, random).unwrap();
            assert!(wait >= HOUR * 5 && wait <= HOUR * 7, "{wait:?}");
        }
    }

    #[test]
    fn retries_of_a_source_double_and_end() {
        let policy = |max, first_seconds| {
            RetryPolicy::default().with_retries(Retries { max, first_seconds })
        };
        let hourly = policy(5, 3600);
        let hours = [60, 120, 240, 480, 960];
        assert_eq!(minutes(&hourly, Class::Network, None), hours);
        assert_eq!(minutes(&hourly, Class::HttpTransient, Some(503)), hours);
        assert_eq!(
            minutes(&hourly, Class::Blocked, Some(403)),
            [360, 1440, 4320]
        );
        let long = policy(50, 3600);
        assert_eq!(long.network[49], MAX_RETRY_DELAY);
        assert_eq!(minutes(&policy(0, 1), Class::Network, None), [0; 0]);
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
