//! The adaptive policy: poll when the expected waiting of undiscovered items
//! reaches the price of a request; sooner when the feed's window could overflow,
//! never sooner than the publisher allows, and once in a while in any case.

use std::time::Duration;

use jiff::Timestamp;

use crate::beat::SLOTS;
use crate::forecast::Forecast;
use crate::hints::{FLOOR, Hints};
use crate::price::Price;
use crate::reason::Reason;
use crate::state::State;
use crate::units::{DAY, duration, epoch};

/// A document may fill up to this share with new items before it is read again …
const SAFE_SHARE: f64 = 0.6;
/// … even if this many standard deviations more come than expected.
const SAFE_DEVIATIONS: f64 = 1.5;
/// The window of a feed that was never read.
const UNKNOWN_WINDOW: u32 = 10;
/// Seconds without new items after which a feed counts as silent: 90 days.
const SILENT_AFTER: f64 = 90.0 * DAY;

/// How long to wait, and why.
pub(crate) fn interval(
    state: &State,
    weight: f64,
    price: Price,
    hints: &Hints,
    now: Timestamp,
) -> (Duration, Reason) {
    if state.is_overrun() {
        return (FLOOR, Reason::Window);
    }
    let (expected, busy) = forecasts(state, now);
    let ceiling = ceiling(state.items_per_day(), state.silence(now));
    let worth = price.item_seconds() / weight.max(1e-9);
    let waiting = expected.until_waiting(worth, ceiling);
    let wanted = waiting.max(hints.floor().as_secs_f64());
    let full = busy.until_items(safe_items(state.window()), wanted);
    if full < wanted {
        return (duration(full).max(FLOOR), Reason::Window);
    }
    let reason = if wanted > waiting {
        Reason::Floor
    } else if waiting >= ceiling {
        Reason::Ceiling
    } else {
        Reason::Price
    };
    (duration(wanted), reason)
}

/// What is expected, and what is possible at worst: the highest rate that is
/// plausible, and no hour or minute quieter than the mean.
pub(crate) fn forecasts(state: &State, now: Timestamp) -> (Forecast, Forecast) {
    let (rate, rhythm, beat, burst) = state.learned();
    let factors = rhythm.factors();
    let expected = Forecast {
        start: epoch(now),
        // Followers are part of the rate: what they bring is not counted twice.
        steady: rate.per_day() / DAY * (1.0 - burst.per_item()),
        factors,
        beat: beat.factors(),
        trail: burst.trail(),
    };
    let busy = Forecast {
        steady: rate.high_per_day() / DAY,
        factors: factors.without_quiet_hours(),
        beat: [1.0; SLOTS],
        ..expected.clone()
    };
    (expected, busy)
}

/// However little is expected, a feed is polled once per day, slow ones (two
/// items apart) every three days, silent ones every seven. In seconds.
fn ceiling(per_day: f64, silence: Option<f64>) -> f64 {
    if silence.is_some_and(|silence| silence >= SILENT_AFTER) {
        return 7.0 * DAY;
    }
    (2.0 * DAY / per_day.max(1e-9)).clamp(DAY, 3.0 * DAY)
}

/// How many items may be expected before the window is in danger: the e for
/// which e + 1.5 √e is a safe share of the window.
pub(crate) fn safe_items(window: u32) -> f64 {
    let window = if window == 0 { UNKNOWN_WINDOW } else { window };
    let safe = SAFE_SHARE * f64::from(window);
    let root = ((SAFE_DEVIATIONS * SAFE_DEVIATIONS + 4.0 * safe).sqrt() - SAFE_DEVIATIONS) / 2.0;
    root * root
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Sighting;
    use crate::units::after;

    const MINUTE: Duration = Duration::from_secs(60);

    /// A feed with `window` items that had `per_day` new items for a month,
    /// polled every 15 minutes.
    fn watched(per_day: f64, window: usize) -> (State, Timestamp) {
        let start = Timestamp::from_second(1_767_571_200).unwrap();
        let listed = vec![None; window];
        let mut state = State::default();
        let (mut now, mut due) = (start, 0.0);
        for _ in 0..30 * 96 {
            due += per_day / 96.0;
            let items = due as usize;
            due -= items as f64;
            now = after(now, 15 * MINUTE);
            let new = &listed[..items.min(window)];
            state.read(
                Sighting {
                    listed: &listed,
                    new,
                },
                now,
            );
        }
        (state, now)
    }

    fn minutes(state: &State, now: Timestamp, price: f64, hints: &Hints) -> (f64, Reason) {
        let price = Price::from_item_seconds(price);
        let (wait, reason) = interval(state, 1.0, price, hints, now);
        (wait.as_secs_f64() / 60.0, reason)
    }

    #[test]
    fn the_reason_names_what_decided() {
        let limited = Hints {
            max_age: Some(30 * MINUTE),
            ..Hints::default()
        };
        let none = Hints::default();
        let rows = [
            (
                "cheap, so at the floor",
                10.0,
                50,
                0.01,
                &none,
                5.0..5.1,
                Reason::Floor,
            ),
            (
                "cheap, but the publisher sets a limit",
                10.0,
                50,
                0.01,
                &limited,
                30.0..30.1,
                Reason::Floor,
            ),
            // √(2 × 5,000 × 86,400 / 24): 100 minutes.
            (
                "worth a request",
                24.0,
                50,
                5e3,
                &none,
                70.0..130.0,
                Reason::Price,
            ),
            (
                "dear, but the window is short",
                100.0,
                10,
                1e9,
                &none,
                20.0..60.0,
                Reason::Window,
            ),
            (
                "the window beats the limit",
                500.0,
                10,
                1e9,
                &limited,
                5.0..10.0,
                Reason::Window,
            ),
            (
                "dear, but once per day",
                3.0,
                50,
                1e9,
                &none,
                1439.0..1441.0,
                Reason::Ceiling,
            ),
            (
                "dear and slow",
                0.2,
                50,
                1e9,
                &none,
                4319.0..4321.0,
                Reason::Ceiling,
            ),
        ];
        for (name, per_day, window, price, hints, expected, reason) in rows {
            let (state, now) = watched(per_day, window);
            let (wait, why) = minutes(&state, now, price, hints);
            assert!(expected.contains(&wait), "{name}: {wait}");
            assert_eq!(why, reason, "{name}");
        }
    }

    #[test]
    fn a_silent_feed_is_still_polled_every_week() {
        let (mut state, mut now) = watched(5.0, 20);
        for _ in 0..100 {
            now = after(now, 1440 * MINUTE);
            state.unchanged(now);
        }
        let (wait, reason) = minutes(&state, now, 1e12, &Hints::default());
        assert_eq!((wait, reason), (7.0 * 1440.0, Reason::Ceiling));
    }

    #[test]
    fn a_document_of_only_new_items_is_read_again_at_the_floor() {
        let (mut state, now) = watched(1.0, 10);
        let all = [None; 10];
        let sighting = Sighting {
            listed: &all,
            new: &all,
        };
        state.read(sighting, after(now, 60 * MINUTE));
        let (wait, reason) = minutes(&state, after(now, 60 * MINUTE), 1e9, &Hints::default());
        assert_eq!((wait, reason), (5.0, Reason::Window));
    }

    #[test]
    fn the_safe_part_of_a_window_leaves_room_for_variance() {
        for window in [1, 5, 10, 20, 100] {
            let safe = safe_items(window);
            let with_variance = safe + SAFE_DEVIATIONS * safe.sqrt();
            assert!((with_variance - SAFE_SHARE * f64::from(window)).abs() < 1e-9);
        }
        assert_eq!(safe_items(0), safe_items(UNKNOWN_WINDOW));
    }

    #[test]
    fn weight_buys_sooner_polls() {
        let (state, now) = watched(2.0, 50);
        let wait = |weight| {
            let price = Price::from_item_seconds(1e4);
            interval(&state, weight, price, &Hints::default(), now).0
        };
        assert!(wait(4.0) < wait(1.0) && wait(1.0) < wait(1.0 / 12.0));
    }
}
