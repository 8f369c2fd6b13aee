//! How fast a host may be asked, after what it answered. Pure: the delay that
//! was, the one it should have, and the answer in; what to change out.

use std::time::Duration;

use jiff::Timestamp;
use tidings_net::{Class, Failure, Response, retry_after};
use tidings_store::HostChange;

/// The longest gap that trouble alone can make.
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// What a host that had no delay gets after "too many".
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// Answers that take longer than this are a sign of strain.
const SLOW: Duration = Duration::from_secs(1);
/// The longest rest after a slow answer.
const LONGEST_REST: Duration = Duration::from_secs(30);
/// How long a host is left alone at most when its robots.txt can't be had.
const WITHOUT_ROBOTS: Duration = Duration::from_secs(5 * 60);

/// What an answer changes: `delay` is the gap that the host has, `floor` the one
/// that it would have if there had never been trouble.
pub(crate) fn learned(
    delay: Duration,
    floor: Duration,
    answer: &Result<Response, Failure>,
    now: Timestamp,
) -> HostChange {
    let eased = (delay != floor).then(|| ease(delay, floor));
    match answer {
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
            rest: rest(response.timings.first_byte),
            is_error: response.status >= 500,
            ..HostChange::default()
        },
        Err(Failure::RobotsUnavailable { retry_in, .. }) => HostChange {
            block_for: Some(WITHOUT_ROBOTS.min(*retry_in)),
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
    (delay * 2).clamp(FIRST_DELAY, LONGEST_DELAY.max(delay))
}

/// A fifth less after each good answer, until the floor is reached; a floor that
/// has risen counts at once.
fn ease(delay: Duration, floor: Duration) -> Duration {
    let eased = delay * 4 / 5;
    if eased < floor + floor / 20 + Duration::from_millis(10) {
        floor
    } else {
        eased
    }
}

/// Twice as long as a slow answer took.
fn rest(took: Duration) -> Duration {
    if took < SLOW {
        Duration::ZERO
    } else {
        (took * 2).min(LONGEST_REST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn trouble_doubles_up_to_a_minute() {
        let mut delay = SECOND;
        let mut delays = Vec::new();
        for _ in 0..8 {
            delay = double(delay);
            delays.push(delay.as_secs());
        }
        assert_eq!(delays, [2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(double(Duration::ZERO), SECOND);
        // A Crawl-delay above a minute is no trouble of ours to shorten.
        assert_eq!(double(SECOND * 90), SECOND * 90);
    }

    #[test]
    fn good_answers_ease_it_back_to_the_floor_and_no_further() {
        let mut delay = SECOND * 60;
        let mut answers = 0;
        while delay > SECOND {
            let eased = ease(delay, SECOND);
            assert!(eased < delay && eased >= SECOND, "{eased:?}");
            delay = eased;
            answers += 1;
        }
        assert!((15..30).contains(&answers), "{answers}");
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
    fn slow_hosts_get_a_rest() {
        assert_eq!(rest(SECOND / 2), Duration::ZERO);
        assert_eq!(rest(SECOND * 3), SECOND * 6);
        assert_eq!(rest(SECOND * 100), LONGEST_REST);
    }
}
