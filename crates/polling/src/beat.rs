//! At which minutes of the hour a feed publishes. Many are filled by a clock (on
//! the hour, at :17, every half hour), and then one request just after is worth
//! more than four at any time.

use serde::{Deserialize, Serialize};

use crate::units::HOUR;

/// Slots of the hour, a minute each.
pub(crate) const SLOTS: usize = 60;
pub(crate) const SLOT: f64 = HOUR / SLOTS as f64;
/// Items that speak for [`usual_share`].
const PRIOR_ITEMS: f32 = 48.0;
/// Number of items that count; when there are twice as many, all count half.
const MEMORY_ITEMS: f32 = 200.0;
/// Where an item was found in a longer gap, its minute is not known. In seconds.
const MAX_GAP: f64 = 1800.0;
/// Of the items of real feeds, how many appear on the hour and on the half hour
/// because somebody scheduled them, beyond those of any minute.
const ON_THE_HOUR: f32 = 0.15;
const ON_THE_HALF: f32 = 0.02;

/// Items by slot of the hour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<f32>", into = "Vec<f32>")]
pub(crate) struct Beat([f32; SLOTS]);

impl Default for Beat {
    fn default() -> Self {
        Self([0.0; SLOTS])
    }
}

impl From<Vec<f32>> for Beat {
    fn from(items: Vec<f32>) -> Self {
        Self(items.try_into().unwrap_or([0.0; SLOTS]))
    }
}

impl From<Beat> for Vec<f32> {
    fn from(beat: Beat) -> Self {
        match beat.0.iter().all(|items| *items == 0.0) {
            true => Self::new(),
            false => beat.0.to_vec(),
        }
    }
}

impl Beat {
    /// How much busier each slot is than the mean slot; 1.0 on average.
    pub(crate) fn factors(&self) -> [f64; SLOTS] {
        let all = self.0.iter().sum::<f32>() + PRIOR_ITEMS;
        std::array::from_fn(|slot| {
            let items = self.0[slot] + PRIOR_ITEMS * usual_share(slot);
            f64::from(items / all) * SLOTS as f64
        })
    }

    /// Items of a known moment, in seconds since 1970.
    pub(crate) fn add(&mut self, at: f64, items: f64) {
        // Hundredths, so that the stored state stays short.
        let hundredths = |items: f32| (items * 100.0).round() / 100.0;
        let slot = &mut self.0[slot(at)];
        *slot = hundredths(*slot + (items as f32).min(MEMORY_ITEMS));
        if self.0.iter().sum::<f32>() >= 2.0 * MEMORY_ITEMS {
            self.0 = self.0.map(|items| hundredths(items / 2.0));
        }
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

/// The share of its items that a feed publishes in a slot, as far as one knows before
/// it was watched.
fn usual_share(slot: usize) -> f32 {
    let any = (1.0 - ON_THE_HOUR - ON_THE_HALF) / SLOTS as f32;
    match slot {
        0 => any + ON_THE_HOUR,
        30 => any + ON_THE_HALF,
        _ => any,
    }
}

/// The slot of a moment.
fn slot(epoch: f64) -> usize {
    (epoch.rem_euclid(HOUR) / SLOT) as usize % SLOTS
}

/// How the items of an hour lie in it: what has come by each slot.
#[derive(Debug, Clone)]
pub(crate) struct HourShape {
    factors: [f64; SLOTS],
    /// For an item per second: items before each slot, the sum of their moments, and
    /// that of the squares.
    before: [[f64; 3]; SLOTS],
}

impl HourShape {
    /// Items at any moment.
    pub(crate) const EVEN: Self = Self::new([1.0; SLOTS]);

    pub(crate) const fn new(factors: [f64; SLOTS]) -> Self {
        let mut before = [[0.0; 3]; SLOTS];
        let mut slot = 1;
        while slot < SLOTS {
            let [items, moments, squares] = before[slot - 1];
            let factor = factors[slot - 1];
            let (from, to) = ((slot - 1) as f64 * SLOT, slot as f64 * SLOT);
            before[slot] = [
                items + factor * SLOT,
                moments + factor * (to * to - from * from) / 2.0,
                squares + factor * (to * to * to - from * from * from) / 3.0,
            ];
            slot += 1;
        }
        Self { factors, before }
    }

    /// Of an item per second: those between two moments of the hour, in seconds, and
    /// their waiting at the later one, and the squares of it.
    pub(crate) fn between(&self, from: f64, to: f64) -> (f64, f64, f64) {
        let (before, by) = (self.by(from), self.by(to));
        let [items, moments, squares] = std::array::from_fn(|at| by[at] - before[at]);
        let waiting = items * to - moments;
        let squares = to * (items * to - 2.0 * moments) + squares;
        (items, waiting.max(0.0), squares.max(0.0))
    }

    fn by(&self, moment: f64) -> [f64; 3] {
        let slot = ((moment / SLOT) as usize).min(SLOTS - 1);
        let [items, moments, squares] = self.before[slot];
        let from = slot as f64 * SLOT;
        let factor = self.factors[slot];
        [
            items + factor * (moment - from),
            moments + factor * (moment * moment - from * from) / 2.0,
            squares + factor * (moment * moment * moment - from * from * from) / 3.0,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_learned_and_noise_is_not() {
        let mut beat = Beat::default();
        let usual = beat.factors();
        assert!(
            usual[0] > 5.0 && usual[30] > 1.5 && usual[17] < 1.0,
            "{usual:?}"
        );
        for hour in 0..100 {
            beat.add(f64::from(hour) * HOUR + 17.0 * 60.0, 1.0);
        }
        let factors = beat.factors();
        assert!(factors[17] > 20.0 && factors[16] < 0.5, "{factors:?}");
        assert!((factors.iter().sum::<f64>() - 60.0).abs() < 1e-3);

        let mut beat = Beat::default();
        for item in 0..1000 {
            beat.add(f64::from(item) * 1234.5, 1.0);
        }
        let factors = beat.factors();
        // Items at any minute; what is left of the full hour is what was believed of it.
        assert!(
            factors[1..].iter().all(|f| (0.5..1.5).contains(f)) && factors[0] < 4.0,
            "{factors:?}"
        );
    }

    #[test]
    fn a_clock_that_was_moved_is_learned_again() {
        let mut beat = Beat::default();
        for (minute, hours) in [(2.0, 1000), (42.0, 600)] {
            for hour in 0..hours {
                beat.add(f64::from(hour) * HOUR + minute * 60.0, 1.0);
            }
        }
        assert!(beat.factors()[42] > 2.0 * beat.factors()[2]);
    }

    #[test]
    fn items_between_polls_are_spread_unless_too_far_apart() {
        let mut beat = Beat::default();
        beat.spread(0.0, 2000.0, 3.0);
        assert_eq!(beat, Beat::default());
        beat.spread(150.0, 270.0, 2.0);
        assert!((beat.0[2] - 0.5).abs() < 0.01 && (beat.0[3] - 1.0).abs() < 0.01);
        // A batch larger than the memory replaces it.
        beat.add(0.0, 1e6);
        assert!(beat.is_sound());
    }
}
