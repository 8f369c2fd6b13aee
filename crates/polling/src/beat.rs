//! At which minutes of the hour a feed publishes. Many are filled by a clock (on
//! the hour, at :17, every half hour), and then one request just after is worth
//! more than four at any time.

use serde::{Deserialize, Serialize};

use crate::units::HOUR;

/// Slots of the hour, five minutes each: no poll comes sooner than that anyway.
pub(crate) const SLOTS: usize = 12;
pub(crate) const SLOT: f64 = HOUR / SLOTS as f64;
/// Items that speak for "at any minute", spread over the hour.
const PRIOR_ITEMS: f32 = 48.0;
/// Number of items that count; older ones fade as new ones come.
const MEMORY_ITEMS: f32 = 200.0;
/// Where an item was found in a longer gap, its minute is not known. In seconds.
const MAX_GAP: f64 = 1800.0;

/// Items by slot of the hour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Beat([f32; SLOTS]);

impl Beat {
    /// How much busier each slot is than the mean slot; 1.0 on average.
    pub(crate) fn factors(&self) -> [f64; SLOTS] {
        let prior = PRIOR_ITEMS / SLOTS as f32;
        let mean = self.0.iter().sum::<f32>() / SLOTS as f32;
        self.0
            .map(|items| f64::from((items + prior) / (mean + prior)))
    }

    /// An item of a known moment, in seconds since 1970.
    pub(crate) fn add(&mut self, at: f64, items: f64) {
        let keep = (1.0 - items as f32 / MEMORY_ITEMS).max(0.0);
        self.0 = self.0.map(|before| before * keep);
        self.0[slot(at)] += items as f32;
    }

    /// Items of an unknown moment between two polls.
    pub(crate) fn spread(&mut self, from: f64, to: f64, items: f64) {
        if items > 0.0 && from < to && to - from <= MAX_GAP {
            let mut at = from;
            while at < to {
                let end = ((at / SLOT).floor() * SLOT + SLOT).min(to);
                self.add(at, items * (end - at) / (to - from));
                at = end;
            }
        }
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.0
            .iter()
            .all(|items| items.is_finite() && *items >= 0.0)
    }
}

/// The slot of a moment.
pub(crate) fn slot(epoch: f64) -> usize {
    (epoch.rem_euclid(HOUR) / SLOT) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_learned_and_noise_is_not() {
        let mut beat = Beat::default();
        assert_eq!(beat.factors(), [1.0; SLOTS]);
        for hour in 0..100 {
            beat.add(f64::from(hour) * HOUR + 17.0 * 60.0, 1.0);
        }
        let factors = beat.factors();
        assert!(factors[3] > 5.0 && factors[2] < 0.5, "{factors:?}");
        assert!((factors.iter().sum::<f64>() - 12.0).abs() < 1e-4);

        let mut beat = Beat::default();
        for item in 0..1000 {
            beat.add(f64::from(item) * 1234.5, 1.0);
        }
        let factors = beat.factors();
        assert!(
            factors.iter().all(|f| (0.8..1.2).contains(f)),
            "{factors:?}"
        );
    }

    #[test]
    fn a_clock_that_was_moved_is_learned_again() {
        let mut beat = Beat::default();
        for (minute, hours) in [(2.0, 1000), (42.0, 300)] {
            for hour in 0..hours {
                beat.add(f64::from(hour) * HOUR + minute * 60.0, 1.0);
            }
        }
        assert!(beat.factors()[8] > 2.0 * beat.factors()[0]);
    }

    #[test]
    fn items_between_polls_are_spread_unless_too_far_apart() {
        let mut beat = Beat::default();
        beat.spread(0.0, 2000.0, 3.0);
        assert_eq!(beat, Beat::default());
        beat.spread(150.0, 450.0, 2.0);
        assert!((beat.0[0] - 1.0).abs() < 0.01 && (beat.0[1] - 1.0).abs() < 0.01);
        // A batch larger than the memory replaces it.
        beat.add(0.0, 1e6);
        assert!(beat.is_sound());
    }
}
