//! When an order is tried again, and how long a sink that takes nothing is left
//! alone. Pure.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(600);
/// A sink that is back should not wait for long.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// After so many tries of one order: a second, doubled each time, up to ten
/// minutes, with a fifth of chance.
pub(super) fn after_attempt(attempts: i64, random: f64) -> Duration {
    let doubled = doubled(FIRST, attempts.saturating_sub(1), LONGEST);
    doubled.mul_f64(0.9 + 0.2 * random.clamp(0.0, 1.0))
}

/// After so many batches in a row of which nothing was taken.
pub(super) fn after_outage(failures: i64) -> Duration {
    doubled(FIRST / 4, failures.saturating_sub(1), LONGEST_PAUSE)
}

fn doubled(first: Duration, times: i64, most: Duration) -> Duration {
    let factor = 1_u32 << times.clamp(0, 20);
    (first * factor).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let seconds: Vec<u64> = [1, 2, 3, 10, 11, 1000, i64::MAX]
            .map(|attempts| after_attempt(attempts, 0.5).as_secs())
            .to_vec();
        assert_eq!(seconds, [1, 2, 4, 512, 600, 600, 600]);
        assert_eq!(after_outage(1), Duration::from_millis(250));
        assert_eq!(after_outage(100), LONGEST_PAUSE);
    }
}
