//! The adaptive policy: poll when the expected waiting of undiscovered items
//! reaches the price of a request; sooner when the feed's window could overflow,
//! never sooner than the publisher allows, and once in a while in any case.

use jiff::Timestamp;

use crate::forecast::Forecast;
use crate::hints::{FLOOR, Hints};
use crate::policy::Reason;
use crate::price::Price;
use crate::state::State;
use crate::units::{DAY, duration, epoch};

/// A document may fill up to this share with news before it is read again …
const SAFE_SHARE: f64 = 0.6;
/// … even if so many standard deviations more come than expected.
const SAFE_DEVIATIONS: f64 = 1.5;
/// The window of a feed that was never read.
const UNKNOWN_WINDOW: u32 = 10;
/// So long without news, in seconds, and a feed counts as silent: 90 days.
const SILENT: f64 = 90.0 * DAY;

/// How long to wait, and why.
pub(crate) fn interval(
    state: &State,
    weight: f64,
    price: Price,
    hints: &Hints,
    now: Timestamp,
) -> (std::time::Duration, Reason) {
    let (rate, rhythm, burst) = state.learned();
    let factors = rhythm.factors();
    let per_second = rate.per_day() / DAY;
    let ceiling = ceiling(rate.per_day(), state.silence(now));
    let forecast = |per_second: f64, factors: &[f64; 24]| Forecast {
        start: epoch(now),
        hourly: factors.map(|factor| per_second * factor),
        trail: burst.trail(),
    };
    // Followers are part of the rate: what they bring is not counted twice.
    let expected = forecast(per_second * (1.0 - burst.per_item()), &factors);
    let target = price.item_seconds() / weight.max(1e-9);
    let waiting = expected.until_waiting(target, ceiling);

    // The guard reckons with a bad day: the highest rate that is plausible, and
    // no hour quieter than the mean.
    let busy = forecast(
        rate.high_per_day() / DAY,
        &factors.map(|factor| factor.max(1.0)),
    );
    let full = busy.until_items(safe_items(state.window()), ceiling);

    let floor = hints.floor().as_secs_f64();
    let wished = waiting.max(floor);
    let hard_floor = FLOOR.as_secs_f64();
    if state.is_overrun() {
        return (FLOOR, Reason::Window);
    }
    if full < wished {
        return (duration(full.max(hard_floor)), Reason::Window);
    }
    let reason = if wished > waiting {
        Reason::Floor
    } else if waiting >= ceiling {
        Reason::Ceiling
    } else {
        Reason::Price
    };
    (duration(wished), reason)
}

/// However little is expected, a feed is looked at once a day, slow ones (two
/// items apart) every three days, silent ones every seven. In seconds.
fn ceiling(per_day: f64, silence: Option<f64>) -> f64 {
    if silence.is_some_and(|silence| silence >= SILENT) {
        return 7.0 * DAY;
    }
    (2.0 * DAY / per_day.max(1e-9)).clamp(DAY, 3.0 * DAY)
}

/// How many items may be expected before the window is in danger: the e for
/// which e + 1.5 √e is a safe share of the window.
fn safe_items(window: u32) -> f64 {
    let window = if window == 0 { UNKNOWN_WINDOW } else { window };
    let safe = SAFE_SHARE * f64::from(window);
    let root = ((SAFE_DEVIATIONS * SAFE_DEVIATIONS + 4.0 * safe).sqrt() - SAFE_DEVIATIONS) / 2.0;
    root * root
}
