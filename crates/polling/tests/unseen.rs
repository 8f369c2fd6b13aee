//! The adaptive policy on traces that another hand made: other rates, nights
//! without a single item, chains of items that last for hours, feeds that get busy.
//! How much can be gained depends on how unlike the feeds are, so it is judged by
//! the best that even intervals could do for someone who knew the future.

use std::fmt::Write as _;
use std::time::Duration;

use tidings_polling::simulate::{Comparison, Contestants, Feed, World, compare, read_trace};

const START: f64 = 1_750_000_000.0;
const DAY: f64 = 86_400.0;

/// Minimal standard generator: nothing in common with the simulation's own.
struct MinStd(u64);

impl MinStd {
    fn fraction(&mut self) -> f64 {
        self.0 = self.0 * 48_271 % 2_147_483_647;
        self.0 as f64 / 2_147_483_647.0
    }

    fn wait(&mut self, mean: f64) -> f64 {
        -mean * self.fraction().ln()
    }
}

/// Items one by one at `per_day`, which is never more than `most`.
fn poisson(rng: &mut MinStd, days: f64, per_day: impl Fn(f64) -> f64, most: f64) -> Vec<f64> {
    let mut items = Vec::new();
    let mut at = 0.0;
    while at < days {
        at += rng.wait(1.0 / most);
        if rng.fraction() < per_day(at) / most {
            items.push(at);
        }
    }
    items
}

/// Each item leads to half another, hours later.
fn with_chains(rng: &mut MinStd, mut items: Vec<f64>) -> Vec<f64> {
    let mut at = 0;
    while at < items.len() {
        if rng.fraction() < 0.5 {
            items.push(items[at] + rng.wait(2.0 / 24.0));
        }
        at += 1;
    }
    items
}

fn trace(
    feeds: usize,
    days: f64,
    seed: u64,
    make: impl Fn(usize, &mut MinStd) -> Vec<f64>,
) -> World {
    let mut rng = MinStd(seed * 7919 + 1);
    let mut text = String::new();
    for feed in 0..feeds {
        let window = [12, 20, 40][feed % 3];
        for at in make(feed, &mut rng).into_iter().filter(|at| *at < days) {
            let published = START + at * DAY;
            let line = format!(
                "{{\"feed\":\"f{feed}\",\"published\":{published:.0},\"window\":{window}}}"
            );
            writeln!(text, "{line}").expect("a string takes every line");
        }
    }
    read_trace(&text, 30).expect("every line is as documented")
}

fn play(world: &World) -> Comparison {
    let everyone = Contestants {
        every: Duration::from_secs(900),
        fixed: true,
        doubling: true,
        adaptive: true,
    };
    compare(world, everyone, 5, &mut || ())
}

/// The least mean delay, in minutes, of even intervals T ≥ 5 min with a number of
/// requests in all: T = √(2K / rate) for one K, with rates known in hindsight.
fn best_of_even_intervals(world: &World, requests: u64) -> f64 {
    let minutes = world.judged_days() * 1440.0;
    let judged = |at: &&i64| (world.judged_from..world.end).contains(*at);
    let count = |feed: &Feed| feed.published.iter().filter(judged).count() as f64;
    let rates: Vec<f64> = world
        .feeds
        .iter()
        .map(|feed| count(feed) / minutes)
        .collect();
    let interval = |rate: f64, price: f64| (2.0 * price / rate.max(1e-12)).sqrt().max(5.0);
    let (mut cheap, mut dear) = (1e-9, 1e12);
    for _ in 0..100 {
        let price = f64::sqrt(cheap * dear);
        let polls: f64 = rates
            .iter()
            .map(|rate| minutes / interval(*rate, price))
            .sum();
        if polls > requests as f64 {
            cheap = price;
        } else {
            dear = price;
        }
    }
    let waiting: f64 = rates
        .iter()
        .map(|rate| rate * interval(*rate, dear) / 2.0)
        .sum();
    waiting / rates.iter().sum::<f64>()
}

fn is_near_the_best(name: &str, world: &World, within: f64) {
    let comparison = play(world);
    let figures: Vec<_> = comparison.rows.iter().map(|row| &row.measured).collect();
    let [fixed, as_fixed, doubling, as_doubling] = figures[..] else {
        panic!("four rows are expected");
    };
    for (ours, theirs) in [(as_fixed, fixed), (as_doubling, doubling)] {
        let best = best_of_even_intervals(world, ours.requests);
        let mean = ours.mean;
        assert!(
            mean <= within * best,
            "{name}: {mean:.2} min, best {best:.2}"
        );
        assert!(
            mean < theirs.mean,
            "{name}: {mean:.2} min, {:.2}",
            theirs.mean
        );
        assert!(ours.lost <= theirs.lost, "{name}: {} lost", ours.lost);
        let requests = ours.requests as f64 / theirs.requests as f64;
        assert!(requests <= 1.03, "{name}: {requests:.3} of the requests");
    }
    let ratio = as_doubling.mean / doubling.mean;
    assert!(ratio <= 0.35, "{name}: {ratio:.3} of doubling");
    let (late, limit) = (as_fixed.p90, fixed.p90);
    // Where feeds are nearly the same the best p90 is that of even intervals.
    assert!(
        late <= 1.03 * limit,
        "{name}: p90 {late:.2}, fixed {limit:.2}"
    );
}

/// Pareto: a few giants, a long tail.
fn pareto(rng: &mut MinStd) -> f64 {
    (0.6 * rng.fraction().powf(-1.0 / 1.1)).min(300.0)
}

#[test]
fn a_long_tail_that_sleeps_at_night() {
    for seed in 1..=3 {
        let world = trace(60, 24.0, seed, |feed, rng| {
            let rate = pareto(rng);
            let opens = (feed % 5) as f64 / 5.0;
            let is_open = |at: f64| (at - opens).rem_euclid(1.0) < 0.45;
            poisson(
                rng,
                24.0,
                |at| if is_open(at) { rate / 0.45 } else { 0.0 },
                rate / 0.45,
            )
        });
        is_near_the_best("long tail", &world, 1.15);
    }
}

#[test]
fn chains_of_items_that_last_for_hours() {
    for seed in 1..=3 {
        let world = trace(60, 24.0, seed, |_, rng| {
            let rate = pareto(rng) / 2.0;
            let items = poisson(rng, 24.0, |_| rate, rate);
            with_chains(rng, items)
        });
        is_near_the_best("chains", &world, 1.25);
    }
}

#[test]
fn feeds_that_get_busy_and_fall_silent() {
    for seed in 1..=3 {
        let world = trace(60, 24.0, seed, |feed, rng| {
            let rate = pareto(rng);
            let switch = 6.0 + 12.0 * rng.fraction();
            let per_day = |at: f64| match (feed % 3, at < switch) {
                (0, true) | (1, false) => rate / 8.0,
                (0, false) => rate * 2.0,
                _ => rate,
            };
            poisson(rng, 24.0, per_day, rate * 2.0)
        });
        is_near_the_best("getting busy", &world, 1.4);
    }
}

#[test]
fn feeds_that_are_all_the_same_are_polled_no_worse_than_evenly() {
    // Nothing to gain between feeds: the fixed interval is the best there is.
    let world = trace(40, 24.0, 9, |_, rng| poisson(rng, 24.0, |_| 12.0, 12.0));
    let comparison = play(&world);
    let (fixed, ours) = (&comparison.rows[0].measured, &comparison.rows[1].measured);
    assert!(
        ours.mean <= fixed.mean * 1.1,
        "{} {}",
        ours.mean,
        fixed.mean
    );
    assert!(ours.lost <= fixed.lost);
}
