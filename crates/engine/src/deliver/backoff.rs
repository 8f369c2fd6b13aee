//! Backoff of a delivery after a failed attempt, and of a sink that accepts
//! nothing. Pure.

use std::time::Duration;

const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(600);
/// Short, so that a sink that is back gets its deliveries soon.
const MAX_SINK_DELAY: Duration = Duration::from_secs(30);

/// After N attempts of one delivery: 1 s, doubled each time, up to ten
/// minutes, with ten percent of jitter each way.
pub(super) fn after_attempt(attempts: i64, random: f64) -> Duration {
    let doubled = doubled(FIRST_DELAY, attempts.saturating_sub(1), MAX_DELAY);
    doubled.mul_f64(0.9 + 0.2 * random.clamp(0.0, 1.0))
}

/// After N batches in a row of which the sink accepted nothing.
pub(super) fn after_outage(failures: i64) -> Duration {
    doubled(FIRST_DELAY / 4, failures.saturating_sub(1), MAX_SINK_DELAY)
}

fn doubled(first: Duration, times: i64, max: Duration) -> Duration {
    let factor = 1_u32 << times.clamp(0, 20);
    (first * factor).min(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_bound() {
        let seconds: Vec<u64> = [1, 2, 3, 10, 11, 1000, i64::MAX]
            .map(|attempts| after_attempt(attempts, 0.5).as_secs())
            .to_vec();
        assert_eq!(seconds, [1, 2, 4, 512, 600, 600, 600]);
        assert_eq!(after_outage(1), Duration::from_millis(250));
        assert_eq!(after_outage(100), MAX_SINK_DELAY);
    }
}
