//! How many items a feed publishes per day, learned from finds. A long memory
//! knows a steady feed well; a short one notices that a feed got busy or fell
//! silent, and the long one is believed only within what the short one allows.

use serde::{Deserialize, Serialize};

use crate::units::DAY;

/// Half-lives in days.
const LONG: f64 = 14.0;
const SHORT: f64 = 2.0;
/// Before anything is known: 0.35 items in one day of watching.
const PRIOR_ITEMS: f64 = 0.35;
const PRIOR_DAYS: f64 = 1.0;
/// How far off the short memory may be at random, in standard deviations.
const DEVIATIONS: f64 = 2.0;

/// Half a standard deviation above the mean: whoever is little known gets the
/// benefit of the doubt, which costs nothing on average and spares the tail.
const BENEFIT: f64 = 0.5;

/// Items and the days they were watched for, both discounted by age: a gamma
/// posterior of the rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Memory {
    items: f32,
    days: f32,
}

impl Memory {
    fn per_day(&self) -> f64 {
        (self.items() + BENEFIT * self.items().sqrt()) / self.days()
    }

    /// The lowest and highest rates that are still plausible. The prior's day
    /// counts only for the lowest: it would talk a busy feed down.
    fn bounds(&self) -> (f64, f64) {
        let margin = DEVIATIONS * (self.items() + 1.0).sqrt();
        let low = (self.items() - margin).max(0.0) / self.days();
        let high = (self.items() + margin) / f64::from(self.days).max(0.05);
        (low, high.max(low))
    }

    fn items(&self) -> f64 {
        f64::from(self.items) + PRIOR_ITEMS
    }

    fn days(&self) -> f64 {
        f64::from(self.days) + PRIOR_DAYS
    }

    fn observe(&mut self, items: usize, exposure: f64, elapsed: f64, half_life: f64) {
        let keep = 0.5_f64.powf(elapsed / DAY / half_life);
        self.items = (f64::from(self.items) * keep + items as f64) as f32;
        self.days = (f64::from(self.days) * keep + exposure) as f32;
    }

    fn seed(&mut self, ages: &[f64], half_life: f64) {
        let keep = |age: f64| 0.5_f64.powf(age / DAY / half_life);
        let oldest = ages.iter().copied().fold(0.0, f64::max);
        let items = ages.iter().map(|age| keep(*age)).sum::<f64>() - keep(oldest);
        let days = half_life / std::f64::consts::LN_2 * (1.0 - keep(oldest));
        self.items = items.max(0.0) as f32;
        self.days = days.max(0.0) as f32;
    }

    fn is_sound(&self) -> bool {
        let numbers = [self.items, self.days];
        numbers.iter().all(|n| n.is_finite() && *n >= 0.0)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Rate {
    long: Memory,
    short: Memory,
}

impl Rate {
    /// Items per day, as expected now.
    pub(crate) fn per_day(&self) -> f64 {
        let (low, high) = self.short.bounds();
        self.long.per_day().clamp(low, high)
    }

    /// How long it has been watched, in days that count.
    pub(crate) fn days_watched(&self) -> f64 {
        f64::from(self.long.days)
    }

    /// Items per day if the more excited memory is right: the worst case
    /// of a guard against loss.
    pub(crate) fn high_per_day(&self) -> f64 {
        self.per_day().max(self.short.per_day())
    }

    /// Learns that `items` came in a stretch worth `exposure` days, which took
    /// `elapsed` seconds.
    pub(crate) fn observe(&mut self, items: usize, exposure: f64, elapsed: f64) {
        self.long.observe(items, exposure, elapsed, LONG);
        self.short.observe(items, exposure, elapsed, SHORT);
    }

    /// Starts from the ages of past items, in seconds; the oldest marks where
    /// the record begins.
    pub(crate) fn seed(&mut self, ages: &[f64]) {
        self.long.seed(ages, LONG);
        self.short.seed(ages, SHORT);
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.long.is_sound() && self.short.is_sound()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Watches a feed that publishes every `gap` seconds, polled every 15 min.
    fn watch(rate: &mut Rate, gap: f64, days: u32) {
        let mut due = 0.0;
        for _ in 0..days * 96 {
            due += 900.0 / gap;
            let items = due as usize;
            due -= items as f64;
            rate.observe(items, 900.0 / DAY, 900.0);
        }
    }

    #[test]
    fn a_steady_rate_is_learned() {
        for per_day in [0.5, 3.0, 20.0, 300.0] {
            let mut rate = Rate::default();
            watch(&mut rate, DAY / per_day, 60);
            let learned = rate.per_day();
            let ratio = learned / per_day;
            // The benefit of the doubt is largest where there is least to learn from.
            assert!((0.9..1.5).contains(&ratio), "{per_day}: {learned}");
        }
    }

    #[test]
    fn a_feed_that_gets_busy_is_followed_within_two_days() {
        let mut rate = Rate::default();
        watch(&mut rate, 2.0 * DAY, 60);
        watch(&mut rate, DAY / 50.0, 2);
        assert!(rate.per_day() > 10.0, "{rate:?}");
        assert!(rate.high_per_day() >= rate.per_day());
    }

    #[test]
    fn a_feed_that_dies_is_forgotten() {
        let mut rate = Rate::default();
        watch(&mut rate, DAY / 20.0, 60);
        watch(&mut rate, f64::INFINITY, 14);
        assert!(rate.per_day() < 1.5, "{rate:?}");
        watch(&mut rate, f64::INFINITY, 90);
        assert!(rate.per_day() < 0.2, "{rate:?}");
    }

    #[test]
    fn past_items_give_a_start() {
        let mut rate = Rate::default();
        let ages: Vec<f64> = (1..=20).map(|n| f64::from(n) * DAY / 4.0).collect();
        rate.seed(&ages);
        assert!((3.0..4.5).contains(&rate.per_day()), "{rate:?}");
        rate.seed(&[]);
        assert_eq!(rate, Rate::default());
    }
}
