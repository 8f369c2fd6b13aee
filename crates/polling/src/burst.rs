//! Bursts: after a find, more items follow than the hour alone explains. Learns
//! for each feed how many, so that a feed which publishes one batch per day is not
//! polled again immediately, and a live blog is.

use serde::{Deserialize, Serialize};

use crate::units::DAY;

/// How fast follow-ups fade, in seconds: 25 minutes (facts, section 2.4). How
/// many there are is learned; how soon they come hardly matters beside it.
pub(crate) const DECAY_TIME: f64 = 1500.0;

/// What is believed of a feed that was never watched: one follow-up for ten
/// items, with the weight of five items.
const PRIOR_FOLLOWERS: f64 = 0.5;
const PRIOR_LEADERS: f64 = 5.0;
/// A feed where every item led to another would never end.
const MAX_PER_ITEM: f64 = 0.7;
const HALF_LIFE: f64 = 28.0 * DAY;

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Burst {
    /// Items that could lead to others, discounted by age.
    leaders: f32,
    /// Items that were better explained as followers, discounted too.
    followers: f32,
    /// Items whose followers may still come.
    recent: f32,
}

impl Burst {
    /// How many items one item leads to.
    pub(crate) fn per_item(&self) -> f64 {
        let followers = f64::from(self.followers) + PRIOR_FOLLOWERS;
        let leaders = f64::from(self.leaders) + PRIOR_LEADERS;
        (followers / leaders).min(MAX_PER_ITEM)
    }

    /// Items that will follow those found so far.
    pub(crate) fn trail(&self) -> f64 {
        self.per_item() * f64::from(self.recent)
    }

    /// Learns from a poll that found `items`, `elapsed` seconds after the last
    /// one, when the rate alone promised `steady` of them. That rate includes
    /// followers, so only clusters that stand out from it count: a busy feed
    /// does not pass for a bursty one.
    pub(crate) fn observe(&mut self, items: usize, steady: f64, elapsed: f64) {
        let items = items as f64;
        let faded = (-elapsed / DECAY_TIME).exp();
        let ripe = f64::from(self.recent) * (1.0 - faded);
        let promised = self.per_item() * ripe;
        let share = if promised > 0.0 {
            promised / (promised + steady.max(0.0) + 1e-9)
        } else {
            0.0
        };
        let keep = 0.5_f64.powf(elapsed / HALF_LIFE);
        self.leaders = stored(f64::from(self.leaders) * keep + ripe);
        self.followers = stored(f64::from(self.followers) * keep + items * share);
        self.recent = stored(f64::from(self.recent) * faded + items);
    }

    pub(crate) fn is_sound(&self) -> bool {
        [self.leaders, self.followers, self.recent]
            .iter()
            .all(|number| number.is_finite() && *number >= 0.0)
    }
}

/// What has faded to nothing is nothing.
fn stored(number: f64) -> f32 {
    if number < 1e-4 { 0.0 } else { number as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_that_publishes_in_batches_has_no_followers() {
        let mut burst = Burst::default();
        for poll in 0..2000 {
            let items = if poll % 48 == 0 { 5 } else { 0 };
            burst.observe(items, 0.05, 900.0);
        }
        assert!(burst.per_item() < 0.02, "{burst:?}");
    }

    #[test]
    fn a_busy_feed_is_not_a_bursty_one() {
        let mut burst = Burst::default();
        for _ in 0..5000 {
            burst.observe(2, 2.0, 900.0);
        }
        assert!(burst.per_item() < 0.1, "{burst:?}");
    }

    #[test]
    fn a_feed_whose_items_come_in_bursts_has_many() {
        let mut burst = Burst::default();
        for poll in 0..2000 {
            let items = match poll % 96 {
                0..4 => 2,
                _ => 0,
            };
            burst.observe(items, 0.08, 900.0);
        }
        assert!(burst.per_item() > 0.3, "{burst:?}");
        assert!(burst.trail() < 1e-3);
    }
}
