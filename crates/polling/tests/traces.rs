//! The adaptive policy on publication times of real feeds (`tests/traces`: times only).
//! Feeds of the small web, most with less than one item per month, and one front page.
//! The limits are those that hold; docs/POLLING.md has the goals, and why some are missed.

use std::time::Duration;

use tidings_polling::simulate::{Contestants, Row, compare, read_trace};

/// At most these shares of a baseline, at equal requests.
struct Limits {
    mean_of_fixed: f64,
    p99_of_fixed: f64,
    mean_of_doubling: f64,
}

fn hold(name: &str, trace: &str, limits: &Limits) {
    let world = read_trace(trace, 30).expect("every line is as documented");
    let everyone = Contestants {
        every: Duration::from_secs(900),
        fixed: true,
        doubling: true,
        adaptive: true,
    };
    let comparison = compare(&world, everyone, 1, &mut || ());
    let [fixed, as_fixed, doubling, as_doubling] = &comparison.rows[..] else {
        panic!("four rows are expected: {comparison:?}");
    };
    let mean = |row: &Row| row.measured.mean;
    let p99 = |row: &Row| row.measured.p99;
    let of = |ours: f64, theirs: f64, limit: f64, what: &str| {
        let ratio = ours / theirs;
        println!("{name}: {what} {ours:.1} min, {ratio:.3} of {theirs:.1} min");
        assert!(ratio <= limit, "{name}: {what} {ratio:.3}, limit {limit}");
    };
    of(
        mean(as_fixed),
        mean(fixed),
        limits.mean_of_fixed,
        "mean, as fixed",
    );
    of(
        p99(as_fixed),
        p99(fixed),
        limits.p99_of_fixed,
        "p99, as fixed",
    );
    let limit = limits.mean_of_doubling;
    of(
        mean(as_doubling),
        mean(doubling),
        limit,
        "mean, as doubling",
    );
    for (ours, theirs) in [(as_fixed, fixed), (as_doubling, doubling)] {
        let (used, budget) = (
            ours.measured.requests as f64,
            theirs.measured.requests as f64,
        );
        let share = used / budget;
        assert!(
            (0.98..=1.02).contains(&share),
            "{name}: {share:.3} of the requests of {}",
            theirs.policy
        );
        assert!(
            ours.measured.lost <= theirs.measured.lost,
            "{name}: {ours:?}"
        );
    }
}

#[test]
fn half_a_year_of_feeds_with_exact_times() {
    let limits = Limits {
        mean_of_fixed: 0.51,
        p99_of_fixed: 1.25,
        mean_of_doubling: 0.35,
    };
    hold(
        "180 days",
        include_str!("traces/feeds-180-days.jsonl"),
        &limits,
    );
}

#[test]
fn a_year_of_feeds() {
    let limits = Limits {
        mean_of_fixed: 0.53,
        p99_of_fixed: 1.25,
        mean_of_doubling: 0.47,
    };
    hold(
        "365 days",
        include_str!("traces/feeds-365-days.jsonl"),
        &limits,
    );
}

#[test]
fn one_front_page_alone() {
    let limits = Limits {
        mean_of_fixed: 0.98,
        p99_of_fixed: 1.15,
        mean_of_doubling: 0.46,
    };
    hold(
        "front page",
        include_str!("traces/front-page.jsonl"),
        &limits,
    );
}
