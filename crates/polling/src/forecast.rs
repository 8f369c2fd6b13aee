//! What a feed is expected to publish after a poll: a rate for each hour of the
//! day, a shape of the hour, and a trail of follow-ups that fades. Computes when a
//! number of items or an amount of waiting is reached, and which of the next moments is
//! the best for a poll.

use crate::beat::{HourShape, SLOT};
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
    /// How the items of an hour lie in it.
    pub(crate) hour: HourShape,
    /// Items that will follow the last find, in all.
    pub(crate) trail: f64,
    /// How much more the waiting of an item costs for each second that it has waited.
    pub(crate) impatience: f64,
}

/// What has gathered by a moment, were nothing polled: items, and item-seconds of
/// waiting. Without the trail.
#[derive(Debug, Clone, Copy, Default)]
struct Gathered {
    /// Seconds after the start.
    at: f64,
    items: f64,
    waiting: f64,
    /// The same with the square of each item's waiting.
    squares: f64,
}

/// Between which moments a plan chooses, in seconds: all divide the hour or are
/// multiples of it, so that the full hour is always among them.
const STEPS: [f64; 9] = [
    60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10_800.0,
];
/// Moments to choose from in the usual interval, at least.
const CHOICES: f64 = 12.0;
/// A plan looks ahead for this many usual intervals, and for an hour.
const INTERVALS_AHEAD: f64 = 3.0;
/// The longest interval of a plan, in usual ones.
const MAX_STRETCH: f64 = 2.5;
/// A poll comes this long after its slot begins: items that a clock publishes are out.
const AFTER_THE_CLOCK: f64 = SLOT;

impl Forecast {
    /// Seconds until `target` items are expected, or `limit`.
    pub(crate) fn until_items(&self, target: f64, limit: f64) -> f64 {
        self.until(target, limit, |gathered| self.items(gathered))
    }

    /// Seconds until the expected items have waited `target` item-seconds in
    /// all, or `limit`: the integral over time of the items expected by then.
    pub(crate) fn until_waiting(&self, target: f64, limit: f64) -> f64 {
        self.until(target, limit, |gathered| {
            self.waiting(gathered) + self.impatience * self.squares(gathered)
        })
    }

    /// Seconds until the next poll, when each costs `worth` item-seconds and items
    /// cost their waiting: the first of those polls of the near future that cost the
    /// least together. For a steady feed that is `usual`, from [`Self::until_waiting`];
    /// otherwise a poll moves to just after the items that a clock or a morning brings.
    pub(crate) fn best_wait(&self, worth: f64, usual: f64, floor: f64, ceiling: f64) -> f64 {
        if usual >= ceiling {
            return usual;
        }
        let step = STEPS.iter().find(|step| **step * CHOICES >= usual);
        let step = *step.unwrap_or(&STEPS[STEPS.len() - 1]);
        let horizon = (INTERVALS_AHEAD * usual).max(HOUR);
        let longest = (MAX_STRETCH * usual).min(ceiling);
        let moments = self.moments(step, floor, horizon + usual);
        let last = moments[moments.len() - 1];
        let rate = last.items / last.at.max(1.0);
        // What a second costs in the long run: whoever is further has saved it.
        let per_second = worth / usual + rate * usual * (0.5 + self.impatience * usual / 3.0);
        let mut costs = vec![0.0; moments.len()];
        let mut first = usual;
        for (at, from) in moments.iter().enumerate().rev() {
            if from.at >= horizon {
                costs[at] = -per_second * (from.at - horizon);
                continue;
            }
            let mut best = f64::INFINITY;
            for (to, cost) in moments[at + 1..].iter().zip(&costs[at + 1..]) {
                let wait = to.at - from.at;
                if wait < floor {
                    continue;
                }
                if wait > longest && best.is_finite() {
                    break;
                }
                let waiting = to.waiting - from.waiting - wait * from.items;
                let squares =
                    to.squares - from.squares - wait * (2.0 * from.waiting + wait * from.items);
                let waiting = waiting + squares * self.impatience;
                let total = waiting + worth + cost;
                if total < best {
                    (best, first) = (total, to.at);
                }
            }
            costs[at] = best;
        }
        first
    }

    /// The start, and the moments from `earliest` to `end` at which a plan may poll; with
    /// the trail.
    fn moments(&self, step: f64, earliest: f64, end: f64) -> Vec<Gathered> {
        let mut gathered = Gathered::default();
        let mut moments = vec![gathered];
        let grid = (self.start + earliest - AFTER_THE_CLOCK) / step;
        let grid = grid.ceil() * step + AFTER_THE_CLOCK - self.start;
        // As soon as may be is worth considering too: a busy feed is always polled then.
        let mut at = earliest;
        loop {
            gathered = self.advance(gathered, at);
            moments.push(Gathered {
                at,
                items: self.items(gathered),
                waiting: self.waiting(gathered),
                squares: self.squares(gathered),
            });
            if at >= end {
                return moments;
            }
            at = if at < grid { grid } else { at + step };
        }
    }

    /// Walks hour by hour to the one in which `measure` reaches `target`, then
    /// halves it until the second is found.
    fn until(&self, target: f64, limit: f64, measure: impl Fn(Gathered) -> f64) -> f64 {
        let mut from = Gathered::default();
        while from.at < limit {
            let rest = HOUR - (self.start + from.at).rem_euclid(HOUR);
            let next = self.advance(from, (from.at + rest.max(1e-3)).min(limit));
            if measure(next) >= target {
                let (mut low, mut high) = (from.at, next.at);
                while high - low > 0.5 {
                    let middle = f64::midpoint(low, high);
                    if measure(self.advance(from, middle)) >= target {
                        high = middle;
                    } else {
                        low = middle;
                    }
                }
                return high;
            }
            from = next;
        }
        limit
    }

    /// What has gathered by `to`, from what had before.
    fn advance(&self, from: Gathered, to: f64) -> Gathered {
        let mut gathered = from;
        while gathered.at < to {
            let now = self.start + gathered.at;
            let begin = now.rem_euclid(HOUR);
            let span = (HOUR - begin).max(1e-3).min(to - gathered.at);
            let rate = self.steady * self.factors.at(now);
            let (items, waiting, squares) = self.hour.between(begin, begin + span);
            gathered = Gathered {
                at: if span < to - gathered.at {
                    gathered.at + span
                } else {
                    to
                },
                items: gathered.items + rate * items,
                waiting: gathered.waiting + gathered.items * span + rate * waiting,
                squares: gathered.squares
                    + span * (2.0 * gathered.waiting + span * gathered.items)
                    + rate * squares,
            };
        }
        gathered
    }

    /// With those of the trail.
    fn items(&self, gathered: Gathered) -> f64 {
        gathered.items + self.trail * (1.0 - (-gathered.at / DECAY_TIME).exp())
    }

    fn waiting(&self, gathered: Gathered) -> f64 {
        let faded = DECAY_TIME * (1.0 - (-gathered.at / DECAY_TIME).exp());
        gathered.waiting + self.trail * (gathered.at - faded)
    }

    fn squares(&self, gathered: Gathered) -> f64 {
        let at = gathered.at;
        let faded = DECAY_TIME * (1.0 - (-at / DECAY_TIME).exp());
        gathered.squares + self.trail * (at * at - 2.0 * DECAY_TIME * (at - faded))
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
            hour: HourShape::EVEN,
            trail: 0.0,
            impatience: 0.0,
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
        // Items only from :15 to :20, computed at :30.
        let mut forecast = steady(240.0);
        forecast.start = 1_700_002_800.0 + 1800.0;
        let factor = |slot| if (15..20).contains(&slot) { 12.0 } else { 0.0 };
        forecast.hour = HourShape::new(std::array::from_fn(factor));
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
    fn a_steady_feed_is_polled_when_it_is_worth_it() {
        for (per_day, worth) in [(0.1, 1e5), (2.0, 3e4), (24.0, 5e3), (500.0, 600.0)] {
            let forecast = steady(per_day);
            let usual = forecast.until_waiting(worth, 1e9);
            let planned = forecast.best_wait(worth, usual, 300.0, 1e9);
            let ratio = planned / usual;
            assert!(
                (0.85..1.15).contains(&ratio),
                "{per_day}: {planned} {usual}"
            );
        }
    }

    #[test]
    fn a_poll_comes_just_after_the_clock() {
        // A third of the items on the hour; whenever it is computed, and however rarely
        // it is polled, a poll follows the hour.
        let mut forecast = steady(24.0);
        let factor = |slot| if slot == 0 { 20.0 } else { 40.0 / 59.0 };
        forecast.hour = HourShape::new(std::array::from_fn(factor));
        for (worth, polls) in [(500.0, 3), (1e4, 1), (2e5, 1)] {
            let mut after_the_hour = 0;
            for _ in 0..3 * polls {
                let usual = forecast.until_waiting(worth, 1e9);
                forecast.start += forecast.best_wait(worth, usual, 300.0, 1e9);
                let minute = forecast.start.rem_euclid(HOUR) / 60.0;
                after_the_hour += i32::from((1.0..2.0).contains(&minute));
            }
            assert!(after_the_hour >= 2, "{worth}: {after_the_hour}");
        }
    }

    #[test]
    fn impatience_shortens_long_intervals_most() {
        let ratio = |per_day: f64| {
            let patient = steady(per_day);
            let impatient = Forecast {
                impatience: 1.0 / 900.0,
                ..patient.clone()
            };
            impatient.until_waiting(600.0, 1e9) / patient.until_waiting(600.0, 1e9)
        };
        assert!(
            ratio(1.0) < 0.6 && ratio(1000.0) > 0.8,
            "{} {}",
            ratio(1.0),
            ratio(1000.0)
        );
    }

    #[test]
    fn what_has_gathered_does_not_depend_on_the_steps() {
        let mut forecast = steady(24.0);
        forecast.hour = HourShape::new(std::array::from_fn(|slot| slot as f64 / 29.5));
        let whole = forecast.advance(Gathered::default(), 20_000.0);
        let steps = (1..=100).fold(Gathered::default(), |from, step| {
            forecast.advance(from, f64::from(step) * 200.0)
        });
        let pairs = [
            (whole.items, steps.items),
            (whole.waiting, steps.waiting),
            (whole.squares, steps.squares),
        ];
        for (whole, steps) in pairs {
            assert!((whole / steps - 1.0).abs() < 1e-9, "{whole} {steps}");
        }
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
