//! At which hours of the day a feed publishes, learned from its items and drawn
//! towards "at any hour" as long as there are few of them.

use serde::{Deserialize, Serialize};

use crate::units::{DAY, HOUR, hour_of_day};

/// Items that speak for "at any hour", spread over the day.
const PRIOR_ITEMS: f64 = 16.0;
const HALF_LIFE: f64 = 28.0 * DAY;
/// Where an item was found in a longer gap, its hour is not known.
pub(crate) const LONGEST_GAP: f64 = 4.0 * HOUR;

/// Items by hour of the UTC day, discounted by age.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Rhythm {
    hours: [f32; 24],
}

impl Rhythm {
    /// How much busier each hour is than the mean hour; 1.0 on average.
    pub(crate) fn factors(&self) -> [f64; 24] {
        let prior = PRIOR_ITEMS / 24.0;
        let total: f64 = self.hours.iter().map(|items| f64::from(*items)).sum();
        std::array::from_fn(|hour| {
            // Neighbours speak for each other: nobody publishes by our hours.
            let near = |offset: usize| f64::from(self.hours[(hour + offset) % 24]);
            let smooth = 0.25 * near(23) + 0.5 * near(0) + 0.25 * near(1);
            (smooth + prior) / (total / 24.0 + prior)
        })
    }

    /// The days that a stretch of time is worth: more than its length in busy
    /// hours, less in quiet ones.
    pub(crate) fn exposure(factors: &[f64; 24], from: f64, to: f64) -> f64 {
        let whole_days = ((to - from) / DAY).floor().max(0.0);
        let mut at = from + whole_days * DAY;
        let mut exposure = whole_days * DAY;
        while at < to {
            let end = ((at / HOUR).floor() * HOUR + HOUR).min(to);
            exposure += (end - at) * factors[hour_of_day(at)];
            at = end;
        }
        exposure / DAY
    }

    pub(crate) fn age(&mut self, elapsed: f64) {
        let keep = 0.5_f32.powf((elapsed / HALF_LIFE) as f32);
        for items in &mut self.hours {
            *items *= keep;
        }
    }

    /// An item of a known moment, in seconds since 1970.
    pub(crate) fn add(&mut self, at: f64, weight: f64) {
        self.hours[hour_of_day(at)] += weight as f32;
    }

    /// Items of an unknown moment between two polls.
    pub(crate) fn spread(&mut self, from: f64, to: f64, items: f64) {
        if items <= 0.0 || to <= from || to - from > LONGEST_GAP {
            return;
        }
        let mut at = from;
        while at < to {
            let end = ((at / HOUR).floor() * HOUR + HOUR).min(to);
            self.add(at, items * (end - at) / (to - from));
            at = end;
        }
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.hours
            .iter()
            .all(|items| items.is_finite() && *items >= 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_items_say_little_and_many_say_much() {
        let mut rhythm = Rhythm::default();
        assert_eq!(rhythm.factors(), [1.0; 24]);
        let noon = 12.0 * HOUR + 60.0;
        rhythm.add(noon, 1.0);
        assert!(rhythm.factors()[12] < 2.0);
        for _ in 0..200 {
            rhythm.add(noon, 1.0);
        }
        let factors = rhythm.factors();
        assert!(factors[12] > 5.0 && factors[11] > 2.0 && factors[0] < 0.2);
        assert!((factors.iter().sum::<f64>() - 24.0).abs() < 1e-9);
    }

    #[test]
    fn exposure_counts_busy_hours_for_more() {
        let flat = [1.0; 24];
        assert!((Rhythm::exposure(&flat, 1000.0, 1000.0 + 2.5 * DAY) - 2.5).abs() < 1e-9);
        let mut factors = [0.5; 24];
        factors[3] = 12.5;
        let around_three = Rhythm::exposure(&factors, 3.0 * HOUR, 4.0 * HOUR);
        assert!((around_three - 12.5 / 24.0).abs() < 1e-9);
        assert_eq!(Rhythm::exposure(&factors, 100.0, 50.0), 0.0);
    }

    #[test]
    fn items_of_a_long_gap_have_no_hour() {
        let mut rhythm = Rhythm::default();
        rhythm.spread(0.0, 12.0 * HOUR, 7.0);
        assert_eq!(rhythm, Rhythm::default());
        rhythm.spread(1.5 * HOUR, 3.0 * HOUR, 3.0);
        assert!((rhythm.hours[1] - 1.0).abs() < 1e-6 && (rhythm.hours[2] - 2.0).abs() < 1e-6);
        rhythm.age(HALF_LIFE);
        assert!((rhythm.hours[2] - 1.0).abs() < 1e-6);
    }
}
