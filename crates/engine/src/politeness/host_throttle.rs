//! The delay between two requests to a host, adapted to how the host responds.
//! Pure: the current delay, the floor and the response in; the change out.

use std::time::Duration;

use jiff::Timestamp;
use tidings_net::{Class, Failure, Response, retry_after};
use tidings_store::HostChange;

/// The longest delay that errors alone can lead to.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// The delay of a host without one after its first 429 or 503.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// A response that takes longer than this is a sign of load.
const SLOW_RESPONSE: Duration = Duration::from_secs(1);
/// The longest cooldown after a slow response.
const MAX_COOLDOWN: Duration = Duration::from_secs(30);
/// The longest block of a host whose robots.txt is unavailable.
const MAX_ROBOTS_BLOCK: Duration = Duration::from_secs(5 * 60);

/// What a source sets of the politeness of its requests.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Politeness {
    /// For feeds and APIs only, and for feeds only where the operator set it.
    pub(crate) ignores_robots: bool,
    /// The delay that the source sets; the Crawl-delay of robots.txt overrides it.
    pub(crate) gap: Option<Duration>,
}

/// The change to a host after a request: `delay` is its current delay, `floor`
/// the one it would have if it had never failed.
pub(crate) fn adapt_delay(
    delay: Duration,
    floor: Duration,
    result: &Result<Response, Failure>,
    now: Timestamp,
) -> HostChange {
    let eased = (delay != floor).then(|| ease(delay, floor));
    match result {
        Ok(response) if matches!(response.status, 429 | 503) => HostChange {
            delay: Some(double(delay.max(floor))),
            block_for: response
                .header("retry-after")
                .and_then(|header| retry_after(header, now)),
            is_error: true,
            ..HostChange::default()
        },
        Ok(response) => HostChange {
            delay: eased,
            cooldown: cooldown(response.timings.first_byte),
            is_error: response.status >= 500,
            ..HostChange::default()
        },
        Err(Failure::RobotsUnavailable { retry_in, .. }) => HostChange {
            block_for: Some(MAX_ROBOTS_BLOCK.min(*retry_in)),
            is_error: true,
            ..HostChange::default()
        },
        Err(failure) => HostChange {
            is_error: failure.class() == Class::Network,
            ..HostChange::default()
        },
    }
}

fn double(delay: Duration) -> Duration {
    (delay * 2).clamp(FIRST_DELAY, MAX_DELAY.max(delay))
}

/// A fifth less after each good response, down to the floor; a floor that has
/// risen applies immediately.
fn ease(delay: Duration, floor: Duration) -> Duration {
    let eased = delay * 4 / 5;
    if eased < floor + floor / 20 + Duration::from_millis(10) {
        floor
    } else {
        eased
    }
}

/// Twice as long as a slow response took.
fn cooldown(elapsed: Duration) -> Duration {
    if elapsed < SLOW_RESPONSE {
        Duration::ZERO
    } else {
        (elapsed * 2).min(MAX_COOLDOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn errors_double_the_delay_up_to_a_minute() {
        let mut delay = SECOND;
        let mut delays = Vec::new();
        for _ in 0..8 {
            delay = double(delay);
            delays.push(delay.as_secs());
        }
        assert_eq!(delays, [2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(double(Duration::ZERO), SECOND);
        // A Crawl-delay above a minute is not shortened.
        assert_eq!(double(SECOND * 90), SECOND * 90);
    }

    #[test]
    fn good_responses_ease_the_delay_back_to_the_floor_and_no_further() {
        let mut delay = SECOND * 60;
        let mut responses = 0;
        while delay > SECOND {
            let eased = ease(delay, SECOND);
            assert!(eased < delay && eased >= SECOND, "{eased:?}");
            delay = eased;
            responses += 1;
        }
        assert!((15..30).contains(&responses), "{responses}");
        assert_eq!(ease(SECOND, SECOND * 5), SECOND * 5);
        assert_eq!(
            ease(Duration::from_millis(20), Duration::ZERO),
            Duration::from_millis(16)
        );
        assert_eq!(
            ease(Duration::from_millis(10), Duration::ZERO),
            Duration::ZERO
        );
    }

    #[test]
    fn slow_hosts_get_a_cooldown() {
        assert_eq!(cooldown(SECOND / 2), Duration::ZERO);
        assert_eq!(cooldown(SECOND * 3), SECOND * 6);
        assert_eq!(cooldown(SECOND * 100), MAX_COOLDOWN);
    }
}
