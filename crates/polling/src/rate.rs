//! How many items a feed publishes a day, learned from finds. Three memories of
//! different length watch the same feed; the one that foresaw best is trusted
//! most, so a steady feed is known well and a feed that changes is followed.

use serde::{Deserialize, Serialize};

use crate::units::DAY;

/// Half-lives of the memories, in days.
const HALF_LIVES: [f64; 3] = [2.0, 14.0, 60.0];
/// Before anything is known: 0.35 items in one day of watching.
const PRIOR_ITEMS: f64 = 0.35;
const PRIOR_DAYS: f64 = 1.0;
/// How long it counts which memory was right, in days.
const TRUST_HALF_LIFE: f64 = 7.0;
/// Items come in clusters, so each poll says less than independent items would.
const CANDOUR: f64 = 0.4;

/// Items and the days they were watched for, both discounted by age: a gamma
/// posterior of the rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Memory {
    items: f32,
    days: f32,
    /// Logarithm of how well it foresaw, against the others.
    trust: f32,
}

impl Memory {
    fn shape(&self) -> f64 {
        f64::from(self.items) + PRIOR_ITEMS
    }

    fn scale(&self) -> f64 {
        f64::from(self.days) + PRIOR_DAYS
    }

    /// Logarithm of the chance of `items` in `days`, less a term that is the
    /// same for all memories: negative binomial, as a gamma rate implies.
    fn foresight(&self, items: usize, days: f64) -> f64 {
        let (shape, scale) = (self.shape(), self.scale());
        let chances: f64 = (0..items).map(|k| (shape + k as f64).ln()).sum();
        chances + shape * (scale / (scale + days)).ln() - items as f64 * (scale + days).ln()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Rate {
    memories: [Memory; 3],
}

impl Rate {
    /// Items per day, as expected now.
    pub(crate) fn per_day(&self) -> f64 {
        let best = self.memories.iter().map(|memory| memory.trust);
        let best = best.fold(f32::NEG_INFINITY, f32::max);
        let (mut sum, mut weights) = (0.0, 0.0);
        for memory in &self.memories {
            let weight = f64::from(memory.trust - best).exp();
            sum += weight * memory.shape() / memory.scale();
            weights += weight;
        }
        sum / weights
    }

    /// Items per day if the most excited memory is right: what a guard against
    /// loss has to reckon with.
    pub(crate) fn high_per_day(&self) -> f64 {
        let rates = self.memories.iter().map(|m| m.shape() / m.scale());
        rates.fold(0.0, f64::max)
    }

    /// Learns that `items` came in a stretch worth `exposure` days, which took
    /// `elapsed` seconds.
    pub(crate) fn observe(&mut self, items: usize, exposure: f64, elapsed: f64) {
        let days = elapsed / DAY;
        for (memory, half_life) in self.memories.iter_mut().zip(HALF_LIVES) {
            // Forgets first: the law that more news never lowers the rate holds
            // because each memory is judged by what it believes just before.
            let keep = 0.5_f64.powf(days / half_life);
            memory.items = (f64::from(memory.items) * keep) as f32;
            memory.days = (f64::from(memory.days) * keep) as f32;
            let trust = f64::from(memory.trust) * 0.5_f64.powf(days / TRUST_HALF_LIFE);
            memory.trust = (trust + CANDOUR * memory.foresight(items, exposure)) as f32;
            memory.items += items as f32;
            memory.days += exposure as f32;
        }
        // Only differences matter; without this they would drown in the sum.
        let best = self.memories.iter().map(|memory| memory.trust);
        let best = best.fold(f32::NEG_INFINITY, f32::max);
        for memory in &mut self.memories {
            memory.trust -= best;
        }
    }

    /// Starts from the ages of past items, in seconds, of which the oldest marks
    /// where the record begins.
    pub(crate) fn seed(&mut self, ages: &[f64]) {
        let Some(oldest) = ages.iter().copied().reduce(f64::max) else {
            return;
        };
        for (memory, half_life) in self.memories.iter_mut().zip(HALF_LIVES) {
            let keep = |age: f64| 0.5_f64.powf(age / DAY / half_life);
            let items = ages.iter().map(|age| keep(*age)).sum::<f64>() - keep(oldest);
            let days = half_life / std::f64::consts::LN_2 * (1.0 - keep(oldest));
            memory.items = items.max(0.0) as f32;
            memory.days = days.max(0.0) as f32;
        }
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.memories.iter().all(|memory| {
            let counts = memory.items >= 0.0 && memory.days >= 0.0;
            counts
                && memory.items.is_finite()
                && memory.days.is_finite()
                && memory.trust.is_finite()
        })
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
        for per_day in [0.1, 1.0, 20.0, 300.0] {
            let mut rate = Rate::default();
            watch(&mut rate, DAY / per_day, 60);
            let learned = rate.per_day();
            assert!(
                (0.7..1.4).contains(&(learned / per_day)),
                "{per_day}: {learned}"
            );
        }
    }

    #[test]
    fn a_feed_that_wakes_up_is_followed_within_a_day_or_two() {
        let mut rate = Rate::default();
        watch(&mut rate, 2.0 * DAY, 60);
        watch(&mut rate, DAY / 50.0, 2);
        assert!(rate.per_day() > 20.0, "{}", rate.per_day());
        assert!(rate.high_per_day() >= rate.per_day());
    }

    #[test]
    fn a_feed_that_dies_is_let_go() {
        let mut rate = Rate::default();
        watch(&mut rate, DAY / 20.0, 60);
        watch(&mut rate, f64::INFINITY, 14);
        assert!(rate.per_day() < 1.0, "{}", rate.per_day());
        watch(&mut rate, f64::INFINITY, 90);
        assert!(rate.per_day() < 0.1, "{}", rate.per_day());
    }

    #[test]
    fn past_items_give_a_start() {
        let mut rate = Rate::default();
        let ages: Vec<f64> = (1..=20).map(|n| f64::from(n) * DAY / 4.0).collect();
        rate.seed(&ages);
        assert!((3.0..4.5).contains(&rate.per_day()), "{}", rate.per_day());
        rate.seed(&[]);
        assert!(rate.is_sound());
    }
}
