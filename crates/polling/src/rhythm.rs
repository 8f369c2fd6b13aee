//! At which hours of the day a feed publishes, learned from its items and drawn
//! towards "at any hour" as long as there are few of them. (Days of the week
//! were tried too: they bought less than one percent.)

use serde::{Deserialize, Serialize};

use crate::units::{DAY, HOUR, hour_of_day};

/// Items that speak for "at any hour", spread over the day.
const PRIOR_ITEMS: f64 = 16.0;
/// In seconds.
const HALF_LIFE: f64 = 28.0 * DAY;
/// Where an item was found in a longer gap, its hour is not known. In seconds.
const MAX_GAP: f64 = 4.0 * HOUR;

/// How many items came in an hour of the day, and for how many days in all that
/// hour was watched; both discounted by age.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Slot(f32, f32);

/// One slot for each hour of the UTC day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Rhythm([Slot; 24]);

/// How much busier each hour is than the mean hour; 1.0 on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Factors(pub(crate) [f64; 24]);

impl Factors {
    /// At a moment, in seconds since 1970.
    pub(crate) fn at(&self, epoch: f64) -> f64 {
        self.0[hour_of_day(epoch)]
    }

    /// No hour quieter than the mean: for the worst case.
    pub(crate) fn without_quiet_hours(&self) -> Self {
        Self(self.0.map(|factor| factor.max(1.0)))
    }

    /// The days that a stretch of time is worth: more than its length in busy
    /// hours, less in quiet ones.
    pub(crate) fn exposure(&self, from: f64, to: f64) -> f64 {
        let whole_days = ((to - from) / DAY).floor().max(0.0);
        let rest = hours(from + whole_days * DAY, to);
        let rest: f64 = rest.map(|(at, length)| length * self.at(at)).sum();
        whole_days + rest / DAY
    }
}

/// The hours that a stretch of time touches: where each begins, and how much of
/// it lies within, in seconds.
fn hours(from: f64, to: f64) -> impl Iterator<Item = (f64, f64)> {
    let mut at = from;
    std::iter::from_fn(move || {
        (at < to).then(|| {
            let begin = at;
            at = ((at / HOUR).floor() * HOUR + HOUR).min(to);
            (begin, at - begin)
        })
    })
}

impl Rhythm {
    pub(crate) fn factors(&self) -> Factors {
        let items: f64 = self.0.iter().map(|slot| f64::from(slot.0)).sum();
        let watched: f64 = self.0.iter().map(|slot| f64::from(slot.1)).sum();
        let mean = items / watched.max(1e-9);
        let prior = PRIOR_ITEMS / 24.0;
        // Neighbours speak for each other: nobody publishes by our clock.
        let smooth = |hour: usize, part: fn(&Slot) -> f32| {
            let near = |offset: usize| f64::from(part(&self.0[(hour + offset) % 24]));
            0.25 * near(23) + 0.5 * near(0) + 0.25 * near(1)
        };
        let raw: [f64; 24] = std::array::from_fn(|hour| {
            let expected = mean * smooth(hour, |slot| slot.1);
            (smooth(hour, |slot| slot.0) + prior) / (expected + prior)
        });
        let sum: f64 = raw.iter().sum();
        Factors(raw.map(|factor| factor * 24.0 / sum))
    }

    /// A stretch of time was watched, in seconds since 1970.
    pub(crate) fn watch(&mut self, from: f64, to: f64) {
        let keep = 0.5_f32.powf(((to - from) / HALF_LIFE).max(0.0) as f32);
        for slot in &mut self.0 {
            *slot = Slot(slot.0 * keep, slot.1 * keep);
        }
        // What is longer ago hardly counts.
        for (at, length) in hours(from.max(to - HALF_LIFE), to) {
            self.0[hour_of_day(at)].1 += (length / DAY) as f32;
        }
    }

    /// An item of a known moment, in seconds since 1970.
    pub(crate) fn add(&mut self, at: f64) {
        self.0[hour_of_day(at)].0 += 1.0;
    }

    /// Items of an unknown moment between two polls.
    pub(crate) fn spread(&mut self, from: f64, to: f64, items: f64) {
        if items > 0.0 && from < to && to - from <= MAX_GAP {
            for (at, length) in hours(from, to) {
                self.0[hour_of_day(at)].0 += (items * length / (to - from)) as f32;
            }
        }
    }

    pub(crate) fn is_sound(&self) -> bool {
        let is_sound = |number: f32| number.is_finite() && number >= 0.0;
        let mut slots = self.0.iter();
        slots.all(|slot| is_sound(slot.0) && is_sound(slot.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_items_say_little_and_many_say_much() {
        let mut rhythm = Rhythm::default();
        assert_eq!(rhythm.factors(), Factors([1.0; 24]));
        let noon = 12.0 * HOUR + 60.0;
        rhythm.watch(0.0, 10.0 * DAY);
        rhythm.add(noon);
        assert!(rhythm.factors().at(noon) < 2.0);
        for _ in 0..200 {
            rhythm.add(noon);
        }
        let Factors(factors) = rhythm.factors();
        assert!(factors[12] > 5.0 && factors[11] > 2.0 && factors[0] < 0.2);
        assert!((factors.iter().sum::<f64>() - 24.0).abs() < 1e-9);
    }

    #[test]
    fn hours_that_were_not_watched_are_not_quiet() {
        // Twenty items in the five hours that a document reaches back.
        let mut rhythm = Rhythm::default();
        rhythm.watch(10.0 * HOUR, 15.0 * HOUR);
        for item in 0..20 {
            rhythm.add(10.0 * HOUR + f64::from(item) * 900.0);
        }
        let Factors(factors) = rhythm.factors();
        assert!(
            factors.iter().all(|factor| (0.7..1.4).contains(factor)),
            "{factors:?}"
        );
    }

    #[test]
    fn exposure_counts_busy_hours_for_more() {
        let flat = Factors([1.0; 24]);
        assert!((flat.exposure(1000.0, 1000.0 + 2.5 * DAY) - 2.5).abs() < 1e-9);
        let mut factors = Factors([0.5; 24]);
        factors.0[3] = 12.5;
        let around_three = factors.exposure(3.0 * HOUR, 4.0 * HOUR);
        assert!((around_three - 12.5 / 24.0).abs() < 1e-9);
        assert_eq!(factors.exposure(100.0, 50.0), 0.0);
        assert_eq!(factors.without_quiet_hours().at(0.0), 1.0);
    }

    #[test]
    fn items_of_a_long_gap_have_no_hour() {
        let mut rhythm = Rhythm::default();
        rhythm.spread(0.0, 12.0 * HOUR, 7.0);
        assert_eq!(rhythm, Rhythm::default());
        rhythm.spread(1.5 * HOUR, 3.0 * HOUR, 3.0);
        assert!((rhythm.0[1].0 - 1.0).abs() < 1e-6 && (rhythm.0[2].0 - 2.0).abs() < 1e-6);
    }
}
