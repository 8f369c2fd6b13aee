//! A daily quota spread over the day. Pure.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How many requests a service still allows, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    pub left: u32,
    /// Until the count starts again.
    pub resets_in: Duration,
}

/// The interval to the next pull: as short as the quota allows when it is spread
/// evenly, and never shorter than `min_interval`.
pub fn next_pull_in(quota: Quota, requests_per_pull: u32, min_interval: Duration) -> Duration {
    let pulls = quota.left / requests_per_pull.max(1);
    match pulls {
        0 => quota.resets_in.max(min_interval),
        pulls => (quota.resets_in / pulls).max(min_interval),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_lasts_until_it_is_renewed() {
        let minutes = |n: u64| Duration::from_secs(n * 60);
        let rows = [
            // 100 per day, one each: every 14.4 minutes.
            (100, 1440, 1, 5, Duration::from_secs(864)),
            (100, 1440, 4, 5, Duration::from_secs(3456)),
            // Plenty: as often as the source wants.
            (5000, 1440, 1, 15, minutes(15)),
            // Nothing left, or too little for one pull: when it starts again.
            (0, 300, 1, 15, minutes(300)),
            (3, 300, 4, 15, minutes(300)),
            (0, 1, 1, 15, minutes(15)),
            (7, 70, 0, 1, minutes(10)),
        ];
        for (left, resets, each, every, expected) in rows {
            let quota = Quota {
                left,
                resets_in: minutes(resets),
            };
            let next = next_pull_in(quota, each, minutes(every));
            assert_eq!(next, expected, "{left} left for {resets} min, {each} each");
        }
    }
}
