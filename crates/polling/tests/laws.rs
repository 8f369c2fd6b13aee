//! Laws that hold for every feed, however odd: the next poll is never in the
//! past and never too far, a state survives being stored, and more new items
//! never mean rarer polls.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use tidings_polling::{
    Budget, Demand, ErrorClass, FLOOR, Hints, MAX_WAIT, Outcome, Policy, Poll, Price, PriceControl,
    Sighting, State, next_poll, phase,
};

const START: i64 = 1_767_571_200_000;

/// One step in the life of a feed.
#[derive(Debug, Clone)]
enum Step {
    Read {
        listed: Vec<Option<i64>>,
        new: usize,
    },
    Unchanged,
    Failed {
        class: ErrorClass,
        retry_after: Option<u64>,
    },
}

fn date() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        Just(None),
        // Around the polls, far off, and at midnight.
        (-1_000_000_000i64..1_000_000_000).prop_map(|off| Some(START + off)),
        (-62_000_000_000_000i64..250_000_000_000_000).prop_map(Some),
        (20_000i64..21_000).prop_map(|day| Some(day * 86_400_000)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let class = prop_oneof![
        Just(ErrorClass::Temporary),
        Just(ErrorClass::Soft),
        Just(ErrorClass::TooManyRequests),
        Just(ErrorClass::Hard),
    ];
    prop_oneof![
        3 => (prop::collection::vec(date(), 0..40), 0usize..40)
            .prop_map(|(listed, new)| Step::Read { new: new.min(listed.len()), listed }),
        2 => Just(Step::Unchanged),
        1 => (class, prop::option::of(0u64..10_000_000))
            .prop_map(|(class, retry_after)| Step::Failed { class, retry_after }),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![
        (0u64..1_000_000).prop_map(|every| Policy::Fixed {
            every: Duration::from_secs(every)
        }),
        Just(Policy::Doubling),
        prop::option::of(0u64..1_000_000).prop_map(|seconds| Policy::Listing {
            turnover: seconds.map(Duration::from_secs),
        }),
        Just(Policy::Adaptive),
        Just(Policy::Adaptive),
    ]
}

fn hints() -> impl Strategy<Value = Hints> {
    let seconds = || prop::option::of((0u64..10_000_000).prop_map(Duration::from_secs));
    let small = || prop::collection::vec(0u8..30, 0..24);
    (
        seconds(),
        seconds(),
        seconds(),
        small(),
        small(),
        any::<bool>(),
    )
        .prop_map(
            |(ttl, syndication, max_age, skip_hours, skip_days, is_costly)| Hints {
                ttl,
                syndication,
                max_age,
                skip_hours,
                skip_days,
                is_costly,
            },
        )
}

fn moments(dates: &[Option<i64>]) -> Vec<Option<Timestamp>> {
    let moment = |date: &Option<i64>| date.and_then(|at| Timestamp::from_millisecond(at).ok());
    dates.iter().map(moment).collect()
}

fn moment(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap()
}

/// Plays steps with gaps in seconds; calls `judge` after each.
fn live(
    steps: &[(Step, u64, f64)],
    policy: Policy,
    hints: &Hints,
    price: f64,
    mut judge: impl FnMut(&State, &Step, i64, i64),
) -> State {
    let mut state = State::default();
    let mut now = START;
    for (step, gap, random) in steps {
        now += i64::try_from(*gap).unwrap() * 1000;
        let listed = match step {
            Step::Read { listed, .. } => moments(listed),
            _ => Vec::new(),
        };
        let outcome = match step {
            Step::Read { new, .. } => Outcome::Read(Sighting {
                listed: &listed,
                new: &listed[..*new],
            }),
            Step::Unchanged => Outcome::Unchanged,
            Step::Failed { class, retry_after } => Outcome::Failed {
                class: *class,
                retry_after: retry_after.map(Duration::from_secs),
            },
        };
        let poll = Poll {
            feed_id: 7,
            policy,
            outcome,
            hints,
            weight: 1.0,
            price: Price::from_item_seconds(price),
            now: moment(now),
            random: *random,
        };
        let (next, due) = next_poll(&state, &poll);
        judge(&next, step, now, due.at.as_millisecond());
        state = next;
    }
    state
}

fn life() -> impl Strategy<Value = Vec<(Step, u64, f64)>> {
    let gap = prop_oneof![0u64..4000, 0u64..10_000_000];
    prop::collection::vec((step(), gap, 0.0..1.0), 1..30)
}

proptest! {
    #[test]
    fn the_next_poll_is_within_bounds(
        steps in life(), policy in policy(), hints in hints(), price in 1e-6..1e12f64,
    ) {
        let limit = i64::try_from(MAX_WAIT.as_millis()).unwrap();
        live(&steps, policy, &hints, price, |_, step, now, due| {
            assert!(due > now, "in the past: {due} after {now}");
            let wait = due - now;
            let longest = match policy {
                // What an operator set holds, even if it is longer.
                Policy::Fixed { every } => limit.max(i64::try_from(every.as_millis()).unwrap()),
                // Skipped hours come on top: a week of them at most.
                _ => limit + limit,
            };
            // A spread of an hour after a 429, and ten minutes of jitter.
            assert!(wait <= longest + 4_200_000, "too far: {wait} ms");
            let succeeded = !matches!(step, Step::Failed { .. });
            if policy != (Policy::Fixed { every: Duration::ZERO }) && succeeded {
                let floor = match policy {
                    Policy::Fixed { .. } => 0,
                    _ => i64::try_from(FLOOR.as_millis()).unwrap(),
                };
                assert!(wait >= floor, "too soon: {wait} ms");
            }
            if let Step::Failed { retry_after: Some(demanded), .. } = step {
                let demanded = i64::try_from(*demanded).unwrap().min(86_400) * 1000;
                assert!(wait >= demanded, "sooner than Retry-After: {wait} ms");
            }
        });
    }

    #[test]
    fn a_state_survives_being_stored(steps in life(), hints in hints(), price in 1e-3..1e9f64) {
        live(&steps, Policy::Adaptive, &hints, price, |state, _, _, _| {
            let json = state.to_json();
            assert_eq!(&State::from_json(&json), state);
            assert!(json.len() < 1200, "{} bytes", json.len());
            assert!(state.items_per_day().is_finite() && state.items_per_day() > 0.0);
            assert!(state.demand(1.0).0.is_finite());
        });
    }

    #[test]
    fn any_text_is_a_state(text in ".{0,200}", number in any::<f64>()) {
        let _ = State::from_json(&text);
        for field in ["rate", "rhythm", "burst", "failure", "window", "read_at"] {
            let state = State::from_json(&format!("{{\"{field}\": {number}}}"));
            assert!(state.items_per_day().is_finite());
        }
    }

    /// Two feeds with the same past; one has more new items now. It is not expected
    /// to publish less, and it is not polled later.
    #[test]
    fn more_new_items_never_mean_rarer_polls(
        past in prop::collection::vec((0usize..20, 14_500u64..1_000_000), 0..20),
        fewer in 0usize..20, more in 0usize..20, gap in 14_500u64..1_000_000, price in 1.0..1e9f64,
    ) {
        // Undated items and gaps of hours: what moves between the hours of the
        // day is not tested here.
        let read = |new| Step::Read { listed: vec![None; 40], new };
        let mut steps: Vec<_> = past.iter().map(|(new, gap)| (read(*new), *gap, 0.5)).collect();
        steps.push((read(0), 20_000, 0.5));
        let hints = Hints::default();
        let outcome = |new: usize| {
            let mut steps = steps.clone();
            steps.push((read(new), gap, 0.5));
            let mut wait = 0;
            let state = live(&steps, Policy::Adaptive, &hints, price, |_, _, now, due| wait = due - now);
            (state.items_per_day(), wait)
        };
        let (low, high) = (fewer.min(more), fewer.max(more));
        let ((low_rate, late), (high_rate, soon)) = (outcome(low), outcome(high));
        assert!(high_rate >= low_rate * (1.0 - 1e-5), "{high_rate} {low_rate}");
        // The crossing is found to half a second, on two sides.
        assert!(soon <= late + 2000, "{low} items: {late} ms, {high} items: {soon} ms");
    }

    #[test]
    fn a_dearer_request_is_never_made_sooner(steps in life(), price in 1e-3..1e9f64) {
        let wait = |price| {
            let mut waits = Vec::new();
            live(&steps, Policy::Adaptive, &Hints::default(), price, |_, _, now, due| {
                waits.push(due - now);
            });
            waits
        };
        let (cheap, dear) = (wait(price), wait(price * 3.0));
        for (cheap, dear) in cheap.iter().zip(&dear) {
            // A longer interval has a wider jitter, by at most five minutes down.
            assert!(*dear >= cheap - 300_000, "{cheap} {dear}");
        }
    }

    #[test]
    fn a_price_is_a_price(
        demand in any::<f64>(), budget in any::<f64>(), requests in any::<u64>(), later in 0i64..1_000_000_000,
    ) {
        let budget = Budget { requests_per_day: budget };
        let control = PriceControl::new(moment(START)).next(moment(START + later), requests, budget);
        let price = control.price(Demand(demand), budget).item_seconds();
        prop_assert!(price.is_finite() && price > 0.0);
    }

    #[test]
    fn the_phase_is_within_the_period(feed_id in any::<i64>(), period in 1u64..10_000_000) {
        prop_assert!(phase(feed_id, Duration::from_secs(period)).as_secs() < period);
    }
}
