//! What a feed is expected to publish after a poll: a rate for each hour of the
//! day, and a trail of follow-ups that fades. Computes, in closed form within an
//! hour, when a number of items or an amount of waiting is reached.

use crate::beat::{SLOT, SLOTS, slot};
use crate::burst::DECAY_TIME;
use crate::rhythm::Factors;
use crate::units::HOUR;

/// The expectation from `start` on, with nothing undiscovered at `start`.
#[derive(Debug, Clone)]
pub(crate) struct Forecast {
    /// Seconds since 1970.
    pub(crate) start: f64,
    /// Items per second in the mean hour.
    pub(crate) steady: f64,
    /// How much more than that in each hour of the UTC day.
    pub(crate) factors: Factors,
    /// And in each slot of the hour.
    pub(crate) beat: [f64; SLOTS],
    /// Items that will follow the last find, in all.
    pub(crate) trail: f64,
}

impl Forecast {
    /// Seconds until `target` items are expected, or `limit`.
    pub(crate) fn until_items(&self, target: f64, limit: f64) -> f64 {
        let trail = |u: f64| self.trail * (1.0 - (-u / DECAY_TIME).exp());
        self.until(target, limit, |_, span, rate, _| rate * span, trail)
    }

    /// Seconds until the expected items have waited `target` item-seconds in
    /// all, or `limit`: the integral over time of the items expected by then.
    pub(crate) fn until_waiting(&self, target: f64, limit: f64) -> f64 {
        let trail = |u: f64| self.trail * (u - DECAY_TIME * (1.0 - (-u / DECAY_TIME).exp()));
        let steady = |items: f64, span: f64, rate: f64, earliness: f64| {
            span * (items + rate * span * earliness)
        };
        self.until(target, limit, steady, trail)
    }

    /// Walks hour by hour to the one in which the steady rate and the trail
    /// together reach `target`, then slot by slot, then halves the slot until
    /// the second is found. `steady` is what a span adds, given the items before
    /// it, its rate, and how early in it they come (1/2 when evenly).
    fn until(
        &self,
        target: f64,
        limit: f64,
        steady: impl Fn(f64, f64, f64, f64) -> f64,
        trail: impl Fn(f64) -> f64,
    ) -> f64 {
        let earliness = self.earliness();
        let (mut from, mut items, mut gathered) = (0.0, 0.0, 0.0);
        while from < limit {
            let now = self.start + from;
            let into_hour = now.rem_euclid(HOUR);
            let hourly = self.steady * self.factors.at(now);
            if into_hour < 1e-6 {
                let here = steady(items, HOUR, hourly, earliness);
                if gathered + here + trail(from + HOUR) < target {
                    gathered += here;
                    items += hourly * HOUR;
                    from += HOUR;
                    continue;
                }
            }
            let span = SLOT - into_hour.rem_euclid(SLOT);
            let rate = hourly * self.beat[slot(now)];
            let reached =
                |span: f64| gathered + steady(items, span, rate, 0.5) + trail(from + span);
            if reached(span) >= target {
                let (mut low, mut high) = (0.0, span);
                while high - low > 0.5 {
                    let middle = (low + high) / 2.0;
                    if reached(middle) >= target {
                        high = middle;
                    } else {
                        low = middle;
                    }
                }
                return (from + high).min(limit);
            }
            gathered += steady(items, span, rate, 0.5);
            items += rate * span;
            // Hours begin at whole seconds; a sum of slots may miss them by a hair.
            from = ((now + span) * 1000.0).round() / 1000.0 - self.start;
        }
        limit
    }

    /// The mean share of an hour that is left when an item comes.
    fn earliness(&self) -> f64 {
        let slots = SLOTS as f64;
        let left = |slot: usize| 1.0 - (slot as f64 + 0.5) / slots;
        let weighted = self.beat.iter().enumerate();
        weighted.map(|(at, factor)| factor * left(at)).sum::<f64>() / slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{DAY, hour_of_day};

    fn steady(per_day: f64) -> Forecast {
        Forecast {
            start: 1_700_000_123.0,
            steady: per_day / DAY,
            factors: Factors([1.0; 24]),
            beat: [1.0; SLOTS],
            trail: 0.0,
        }
    }

    #[test]
    fn a_steady_feed_follows_the_square_root_law() {
        for per_day in [0.1, 1.0, 24.0, 500.0] {
            let forecast = steady(per_day);
            let items = forecast.until_items(0.7, 1e9);
            assert!((items - 0.7 * DAY / per_day).abs() < 1.0, "{per_day}");
            let waiting = forecast.until_waiting(600.0, 1e9);
            let expected = (2.0 * 600.0 * DAY / per_day).sqrt();
            assert!(
                (waiting - expected).abs() < 1.0,
                "{per_day}: {waiting} {expected}"
            );
        }
    }

    #[test]
    fn the_limit_holds() {
        assert_eq!(steady(1e-9).until_items(5.0, 1000.0), 1000.0);
        assert_eq!(steady(0.0).until_waiting(5.0, DAY), DAY);
        assert_eq!(steady(100.0).until_waiting(5.0, 0.0), 0.0);
    }

    #[test]
    fn quiet_hours_are_waited_through() {
        // All items come in one hour; at its end, computed nearly a day before.
        let mut forecast = steady(24.0);
        let busy = hour_of_day(forecast.start + 20.0 * HOUR);
        forecast.factors = Factors([0.0; 24]);
        forecast.factors.0[busy] = 10.0;
        let wait = forecast.until_items(5.0, 1e9);
        let middle = (forecast.start + wait).rem_euclid(DAY);
        assert!((middle - (busy as f64 + 0.5) * HOUR).abs() < 2.0);
    }

    #[test]
    fn a_clock_is_waited_for() {
        // Items only in the slot from :15 to :20, computed at :30.
        let mut forecast = steady(240.0);
        forecast.start = 1_700_002_800.0 + 1800.0;
        forecast.beat = [0.0; SLOTS];
        forecast.beat[3] = 12.0;
        let minute = |wait: f64| (forecast.start + wait).rem_euclid(HOUR) / 60.0;
        let half = forecast.until_items(5.0, 1e6);
        assert!((minute(half) - 17.5).abs() < 0.1, "{}", minute(half));
        // Ten items that wait a minute each, from half past on average.
        let worth = forecast.until_waiting(600.0, 1e6);
        assert!((minute(worth) - 18.5).abs() < 0.5, "{}", minute(worth));
        // A full hour counts what it holds: the items, and how early they come.
        let ten_hours = forecast.until_items(100.0, 1e6);
        assert!(
            (ten_hours - (9.0 * HOUR + 50.0 * 60.0)).abs() < 1.0,
            "{ten_hours}"
        );
    }

    #[test]
    fn a_trail_brings_the_poll_forward_and_fades() {
        let mut forecast = steady(2.0);
        let before = forecast.until_waiting(3600.0, 1e9);
        forecast.trail = 3.0;
        let with_trail = forecast.until_waiting(3600.0, 1e9);
        assert!(with_trail < before / 2.0, "{with_trail} {before}");
        forecast.steady = 0.0;
        // No more than the trail will ever come.
        assert_eq!(forecast.until_items(3.1, 1e6), 1e6);
        assert!(forecast.until_items(2.9, 1e6) < 1e5);
    }
}
