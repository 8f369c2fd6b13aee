//! When a site publishes: article number `n` has a fixed time, in order, and
//! the number published by any time is found without counting them.
//!
//! The site's day is stretched, not thinned: quiet hours pass quickly on the
//! way from an even beat to the clock, so the order and the count stay exact.

use jiff::Timestamp;

use crate::rng::Rng;

const DAY: i64 = 86_400;

/// How the articles of a day lie over its hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rhythm {
    /// Evenly, day and night.
    Steady,
    /// Four fifths between 07:00 and 20:00 UTC.
    Daytime,
    /// Collected and published on the full hour.
    Hourly,
}

/// The publication times of one site.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    pub(crate) rhythm: Rhythm,
    pub(crate) per_day: f64,
    /// When article 0 could appear, on the even beat, in seconds.
    pub(crate) origin: i64,
    pub(crate) seed: u64,
    pub(crate) site: u64,
}

impl Schedule {
    pub(crate) fn published_at(&self, number: u64) -> Timestamp {
        let seconds = self.second_of(number);
        Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
    }

    /// How many articles are published by `now`: numbers `0..count`.
    pub(crate) fn count_by(&self, now: Timestamp) -> u64 {
        let now = now.as_second();
        let beat = self.beat();
        // The clock never leaves the even beat by more than a day.
        let guess = (now - self.origin + DAY) as f64 / beat;
        let mut count = guess.max(0.0) as u64 + 1;
        let low = (((now - self.origin - DAY) as f64 / beat).max(0.0)) as u64;
        let mut low = low.min(count);
        while low < count {
            let middle = low + (count - low) / 2;
            if self.second_of(middle) <= now {
                low = middle + 1;
            } else {
                count = middle;
            }
        }
        low
    }

    fn beat(&self) -> f64 {
        DAY as f64 / self.per_day.max(1e-3)
    }

    fn second_of(&self, number: u64) -> i64 {
        let mut rng = Rng::of(self.seed ^ self.site, "beat", number);
        let even = (number as f64 + 0.9 * rng.fraction()) * self.beat();
        self.on_the_clock(self.origin + even as i64)
    }

    fn on_the_clock(&self, even: i64) -> i64 {
        match self.rhythm {
            Rhythm::Steady => even,
            Rhythm::Hourly => even.div_euclid(3600) * 3600 + 3600,
            Rhythm::Daytime => {
                let (day, second) = (even.div_euclid(DAY), even.rem_euclid(DAY));
                day * DAY + stretch(second)
            }
        }
    }
}

/// Maps a second of the even day to the clock: the first tenth of the articles
/// falls before 07:00, eight tenths before 20:00, the last tenth after.
fn stretch(second: i64) -> i64 {
    const KNOTS: [(i64, i64); 4] = [
        (0, 0),
        (DAY / 10, 7 * 3600),
        (DAY * 9 / 10, 20 * 3600),
        (DAY, DAY),
    ];
    let next = KNOTS.iter().position(|(even, _)| second < *even);
    let (from, to) = match next {
        Some(at) if at > 0 => (KNOTS[at - 1], KNOTS[at]),
        _ => return second,
    };
    from.1 + (second - from.0) * (to.1 - from.1) / (to.0 - from.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(rhythm: Rhythm, per_day: f64) -> Schedule {
        Schedule {
            rhythm,
            per_day,
            origin: 1_700_000_000,
            seed: 7,
            site: 3,
        }
    }

    #[test]
    fn the_count_agrees_with_the_times() {
        for rhythm in [Rhythm::Steady, Rhythm::Daytime, Rhythm::Hourly] {
            for per_day in [0.2, 3.0, 60.0, 5000.0] {
                let schedule = schedule(rhythm, per_day);
                let times: Vec<_> = (0..2000).map(|n| schedule.published_at(n)).collect();
                assert!(times.is_sorted(), "{rhythm:?} {per_day}");
                for now in [0, 1, 17, 250, 399] {
                    let expected = times.iter().filter(|t| **t <= times[now]).count() as u64;
                    assert_eq!(
                        schedule.count_by(times[now]),
                        expected,
                        "{rhythm:?} {per_day}"
                    );
                }
                let before = Timestamp::from_second(1_699_000_000).unwrap();
                assert_eq!(schedule.count_by(before), 0);
            }
        }
    }

    #[test]
    fn the_day_of_a_newsroom_is_by_day() {
        let schedule = schedule(Rhythm::Daytime, 100.0);
        let hour = |n| schedule.published_at(n).as_second().rem_euclid(DAY) / 3600;
        let by_day = (0..1000).filter(|n| (7..20).contains(&hour(*n))).count();
        assert!((750..850).contains(&by_day), "{by_day}");
    }
}
