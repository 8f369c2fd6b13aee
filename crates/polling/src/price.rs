//! The one price of a request: how much waiting of undiscovered items it must
//! end. All adaptive feeds pay the same, so no request could end more elsewhere.
//!
//! Any number of machines agree on it without talking to each other: it follows
//! from numbers that they share in the store. See [`PriceControl`].

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::units::{DAY, seconds_between};

/// What one request must buy, in item-seconds: ten items that wait a minute
/// each are worth 600.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Price(f64);

impl Price {
    const MIN: f64 = 1e-6;
    const MAX: f64 = 1e12;

    pub fn from_item_seconds(item_seconds: f64) -> Self {
        if item_seconds.is_finite() {
            Self(item_seconds.clamp(Self::MIN, Self::MAX))
        } else {
            Self(Self::MAX)
        }
    }

    pub fn item_seconds(self) -> f64 {
        self.0
    }

    /// The price at which feeds of this demand spend the budget, were all of
    /// them steady and without bounds. A feed with rate r and weight w is
    /// polled when w·r·T²/2 reaches the price K, that is √(w·r/2) / √K times
    /// per second: the sum over all feeds is the budget when K is this.
    pub fn clearing(demand: Demand, budget: Budget) -> Self {
        let ratio = demand.0 / (budget.requests_per_day / DAY).max(1e-12);
        Self::from_item_seconds(ratio * ratio)
    }
}

/// How much a feed claims of the budget, √(weight × items per second / 2); that
/// of all feeds is the sum. From [`crate::State::demand`].
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
pub struct Demand(pub f64);

impl std::iter::Sum for Demand {
    fn sum<I: Iterator<Item = Self>>(feeds: I) -> Self {
        Self(feeds.map(|demand| demand.0).sum())
    }
}

/// How many requests all adaptive feeds may make together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    pub requests_per_day: f64,
}

impl Budget {
    /// As many as a fixed interval would make.
    pub fn like_fixed(feeds: u64, every: std::time::Duration) -> Self {
        Self {
            requests_per_day: feeds as f64 * DAY / every.as_secs_f64().max(1.0),
        }
    }
}

/// Holds the budget: price = correction × [`Price::clearing`]. The correction
/// learns what the formula leaves out (bounds, day and night, bursts, errors)
/// from the requests that were made.
///
/// This is the only state, one row in the store. Every minute or so each machine
/// reads the row, counts the polls logged since `at`, and writes [`Self::next`]
/// on the condition that `at` is still what it read: one of them wins, and the
/// others find the same value a moment later. Between two steps everyone uses
/// [`Self::price`]. A machine that is late or restarts loses nothing, since a
/// step follows from the time and the count alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PriceControl {
    /// Factor on the clearing price.
    pub correction: f64,
    /// Up to when requests are accounted for, in milliseconds since 1970.
    pub at: i64,
}

impl PriceControl {
    /// Six hours: soon enough after an import or a restart, and long enough to
    /// leave most of the rhythm of day and night to the feeds (in the simulation
    /// six hours and a day end at the same delay).
    const TIME_CONSTANT: f64 = 0.25 * DAY;
    /// One step moves the price by e at most, however long ago the last step was.
    const MAX_STEP: f64 = 1.0;
    /// Beyond this the bounds rule, and a price would only wind up.
    const MAX_CORRECTION: f64 = 1e4;

    pub fn new(now: Timestamp) -> Self {
        Self {
            correction: 1.0,
            at: now.as_millisecond(),
        }
    }

    /// The control after the time since [`Self::at`], in which `requests` were
    /// made: dearer when that was more than the budget, cheaper when less.
    #[must_use]
    pub fn next(self, now: Timestamp, requests: u64, budget: Budget) -> Self {
        let since = Timestamp::from_millisecond(self.at).unwrap_or(now);
        let elapsed = seconds_between(since, now);
        if elapsed <= 0.0 {
            return self;
        }
        let allowed = (budget.requests_per_day / DAY * elapsed).max(1e-9);
        let excess = requests as f64 / allowed - 1.0;
        let step = elapsed / Self::TIME_CONSTANT * excess;
        let step = step.clamp(-Self::MAX_STEP, Self::MAX_STEP);
        let correction = self.correction * step.exp();
        Self {
            correction: correction.clamp(1.0 / Self::MAX_CORRECTION, Self::MAX_CORRECTION),
            at: now.as_millisecond(),
        }
    }

    pub fn price(self, demand: Demand, budget: Budget) -> Price {
        let clearing = Price::clearing(demand, budget).item_seconds();
        Price::from_item_seconds(self.correction * clearing)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::units::after;

    fn start() -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap()
    }

    #[test]
    fn the_clearing_price_spends_the_budget() {
        // 50 feeds of 10 items per day and 50 of one, polled when r·T²/2 = K.
        let rates = [10.0 / DAY; 50].into_iter().chain([1.0 / DAY; 50]);
        let demand: Demand = rates.clone().map(|r| Demand((r / 2.0_f64).sqrt())).sum();
        let budget = Budget::like_fixed(100, Duration::from_secs(900));
        assert_eq!(budget.requests_per_day, 9600.0);
        let price = Price::clearing(demand, budget).item_seconds();
        let polls = rates.map(|rate| DAY / (2.0 * price / rate).sqrt());
        assert!((polls.sum::<f64>() - 9600.0).abs() < 1e-6);
    }

    #[test]
    fn the_control_finds_a_factor_that_the_formula_does_not_know() {
        // The feeds make three times the requests that their demand says.
        let budget = Budget {
            requests_per_day: 1440.0,
        };
        let demand = Demand(0.4);
        let mut control = PriceControl::new(start());
        let mut made = 0.0;
        for minute in 1..=20 * 1440 {
            let price = control.price(demand, budget).item_seconds();
            made += 3.0 * 60.0 * demand.0 / price.sqrt();
            let requests = made as u64;
            made -= requests as f64;
            control = control.next(
                after(start(), Duration::from_secs(minute * 60)),
                requests,
                budget,
            );
        }
        assert!((control.correction - 9.0).abs() < 0.2, "{control:?}");
    }

    #[test]
    fn it_does_not_matter_how_often_or_by_whom_a_step_is_made() {
        let budget = Budget {
            requests_per_day: 1440.0,
        };
        let at = |minute: u64| after(start(), Duration::from_secs(minute * 60));
        let requests = |minute: u64| minute % 3;
        let once = PriceControl::new(start()).next(at(60), (1..=60).map(requests).sum(), budget);
        let often = (1..=60).fold(PriceControl::new(start()), |control, minute| {
            control.next(at(minute), requests(minute), budget)
        });
        assert!((once.correction - often.correction).abs() < 1e-9);
        assert_eq!(once.at, often.at);
    }

    #[test]
    fn more_requests_are_never_cheaper() {
        let budget = Budget {
            requests_per_day: 100.0,
        };
        let later = after(start(), Duration::from_secs(3600));
        let step = |requests| {
            PriceControl::new(start())
                .next(later, requests, budget)
                .correction
        };
        let steps: Vec<_> = (0..200).map(step).collect();
        assert!(steps.is_sorted());
        assert!(steps[0] < 1.0 && steps[199] > 1.0);
    }

    #[test]
    fn odd_numbers_give_a_price_all_the_same() {
        let none = Budget {
            requests_per_day: 0.0,
        };
        let control = PriceControl::new(start());
        assert_eq!(control.next(start(), 5, none), control);
        let later = after(start(), Duration::from_secs(60));
        assert!(control.next(later, u64::MAX, none).correction.is_finite());
        for demand in [0.0, 1.0, f64::INFINITY, f64::NAN] {
            let price = control.price(Demand(demand), none).item_seconds();
            assert!(price.is_finite() && price > 0.0, "{demand}");
        }
    }
}
