//! Pages of a site that list its stories. A visit costs as much as a story, so it
//! has to bring a few; a page that brings nothing that others had not brought
//! before is visited ever more rarely. The price of feeds does not count here.

use std::time::Duration;

use jiff::Timestamp;

use crate::adaptive::{forecasts, safe_items};
use crate::hints::Hints;
use crate::reason::Reason;
use crate::state::State;
use crate::units::{DAY, HOUR, duration};

/// New items that a visit should bring.
const ITEMS_PER_VISIT: f64 = 5.0;
/// New items that are waited for, within bounds.
const ITEMS_AWAITED: f64 = 3.0;
/// The share of a page that may be replaced before it is visited again.
const SAFE_SHARE: f64 = 0.75;
/// However busy a site is. In seconds.
const MIN_INTERVAL: f64 = HOUR / 4.0;
/// The first visits show what to expect, so they come soon.
const FIRST_INTERVAL: f64 = HOUR;
/// However quiet it is.
const MAX_INTERVAL: f64 = 7.0 * DAY;

/// How long to wait, and why. `turnover` is how long the page takes to list
/// nothing but other stories, if that is known.
pub(crate) fn interval(
    state: &State,
    turnover: Option<Duration>,
    hints: &Hints,
    now: Timestamp,
) -> (Duration, Reason) {
    let soonest = MIN_INTERVAL.max(hints.floor().as_secs_f64());
    if state.is_overrun() {
        return (duration(soonest), Reason::Window);
    }
    let (expected, busy) = forecasts(state, now);
    let ceiling = ceiling(state).max(soonest);
    let enough = expected.until_items(ITEMS_PER_VISIT, ceiling);
    let full = busy.until_items(safe_items(state.window()), enough);
    let full = full.min(gone(state, turnover));
    let (wait, reason) = match full < enough {
        true => (full, Reason::Window),
        false if enough >= ceiling => (ceiling, Reason::Ceiling),
        false => (enough, Reason::Price),
    };
    match wait < soonest {
        true => (duration(soonest), Reason::Floor),
        false => (duration(wait), reason),
    }
}

/// No longer than it has been watched, nor than until some new items are expected;
/// but not for less than a day, nor for more than a week. In seconds.
fn ceiling(state: &State) -> f64 {
    let (rate, ..) = state.learned();
    let some = (ITEMS_AWAITED * DAY / rate.per_day().max(1e-9)).clamp(DAY, MAX_INTERVAL);
    (rate.days_watched() * DAY).clamp(FIRST_INTERVAL, some)
}

/// When stories leave the page unseen, if enough would to justify a visit: most of
/// what a page lists, others bring. In seconds.
fn gone(state: &State, turnover: Option<Duration>) -> f64 {
    let (rate, ..) = state.learned();
    let safe = turnover.map_or(f64::INFINITY, |time| SAFE_SHARE * time.as_secs_f64());
    match rate.per_day() * safe / DAY >= 1.0 {
        true => safe,
        false => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Sighting;
    use crate::units::after;

    /// Visits a page of thirty for some days, at the intervals of the policy; it
    /// lists `per_day` new items. Visits and new items of the second half.
    fn watched(per_day: f64, days: f64) -> (f64, f64) {
        let start = Timestamp::from_second(1_767_571_200).unwrap();
        let listed = [None; 30];
        let (mut state, mut now) = (State::default(), start);
        let (mut waiting, mut visits, mut items) = (30.0, 0.0, 0.0);
        let passed = |now: Timestamp| (now.as_second() - start.as_second()) as f64 / DAY;
        while passed(now) < days {
            let new = (waiting as usize).min(30);
            waiting -= new as f64;
            let sighting = Sighting {
                listed: &listed,
                new: &listed[..new],
            };
            state.read(sighting, now);
            if passed(now) > days / 2.0 {
                visits += 1.0;
                items += new as f64;
            }
            let (wait, _) = interval(&state, None, &Hints::default(), now);
            waiting += per_day * wait.as_secs_f64() / DAY;
            now = after(now, wait);
        }
        (visits, items)
    }

    #[test]
    fn a_visit_brings_a_few_new_items_where_there_are_any() {
        for per_day in [6.0, 30.0, 80.0, 200.0] {
            let (visits, items) = watched(per_day, 60.0);
            let per_visit = items / visits;
            assert!((3.5..=8.0).contains(&per_visit), "{per_day}: {per_visit}");
            // And hardly any are missed.
            assert!(items > 0.97 * per_day * 30.0, "{per_day}: {items}");
        }
    }

    #[test]
    fn a_page_that_brings_nothing_is_visited_once_per_week() {
        let (visits, _) = watched(0.0, 60.0);
        assert!((4.0..=5.0).contains(&visits), "{visits}");
    }

    #[test]
    fn a_page_full_of_new_items_is_visited_soon() {
        let now = Timestamp::from_second(1_767_571_200).unwrap();
        let listed = [None; 30];
        let sighting = Sighting {
            listed: &listed,
            new: &listed,
        };
        let mut state = State::default();
        state.read(sighting, now);
        assert_eq!(
            interval(&state, None, &Hints::default(), now).1,
            Reason::Ceiling
        );
        state.read(sighting, after(now, Duration::from_secs(86_400)));
        let (wait, reason) = interval(&state, None, &Hints::default(), now);
        assert_eq!((wait.as_secs(), reason), (900, Reason::Window));
    }

    #[test]
    fn a_page_is_visited_before_its_stories_are_gone_if_it_brings_any() {
        let now = Timestamp::from_second(1_767_571_200).unwrap();
        let listed = [None; 30];
        let wait = |new: usize| {
            let (mut state, mut now) = (State::default(), now);
            for _ in 0..20 {
                let new = &listed[..new];
                state.read(
                    Sighting {
                        listed: &listed,
                        new,
                    },
                    now,
                );
                now = after(now, Duration::from_secs(86_400));
            }
            let turnover = Some(Duration::from_secs(2 * 86_400));
            interval(&state, turnover, &Hints::default(), now)
        };
        let (some, none) = (wait(1), wait(0));
        assert_eq!((some.0.as_secs(), some.1), (129_600, Reason::Window));
        assert_eq!((none.0.as_secs(), none.1), (7 * 86_400, Reason::Ceiling));
    }
}
