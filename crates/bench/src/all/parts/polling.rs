//! How late items are found by each polling policy, at equal requests.

use serde::Deserialize;
use serde_json::Value as Json;

use super::super::chart::{Bar, Chart, Drawing};
use super::super::numbers::{number, times, whole};
use super::super::report::{Shown, Table};
use super::{Need, Part, Planned, Size, rows};

pub(super) const PART: Part = Part {
    name: "polling",
    title: "Polling: how late items are found",
    about: "Feeds in simulated time; the same seed gives the same figures on every machine. The adaptive policy runs once for each other
policy, with a budget of as many requests as the other one made. Delays are minutes from publication to discovery, after a
third of the time for learning; lost items had left the feed before it was polled.",
    limits: "What publishers do can't be known before they do it: the rest of the delay is random. `docs/POLLING.md` has more
populations, and recorded feeds.",
    runs,
    show,
};

fn runs(size: Size) -> Vec<Planned> {
    let world = size.choose(
        "--feeds 150 --days 42",
        "--feeds 60 --days 21",
        "--feeds 5 --days 3",
    );
    let command = format!("tidings simulate polling --seed 1 {world}");
    vec![Planned::new("made feeds", Need::Nothing, command)]
}

#[derive(Debug, Deserialize)]
struct Row {
    policy: String,
    spends: String,
    requests: u64,
    mean_minutes: f64,
    p50_minutes: f64,
    p90_minutes: f64,
    p99_minutes: f64,
    lost: u64,
    mean_ratio: Option<f64>,
}

fn show(measured: &[Json]) -> anyhow::Result<Shown> {
    let rows: Vec<Row> = rows(measured, "rows")?;
    let name = |row: &Row| format!("{}, {}", row.policy, row.spends);
    let sentence = |row: &Row| {
        let (ratio, other) = (row.mean_ratio?, row.spends.strip_prefix("as ")?);
        Some(format!(
            "**{}** the mean delay of the {other} policy with as many requests",
            times(ratio)
        ))
    };
    let findings = rows.iter().filter_map(sentence).collect();
    let figures = rows.iter().map(|row| {
        let delays = [
            row.mean_minutes,
            row.p50_minutes,
            row.p90_minutes,
            row.p99_minutes,
        ];
        let mut cells = vec![name(row), whole(row.requests)];
        cells.extend(delays.map(number));
        cells.push(whole(row.lost));
        cells
    });
    let bars = rows.iter().map(|row| Bar {
        name: name(row),
        is_peer: row.policy != "adaptive",
        value: row.mean_minutes,
    });
    Ok(Shown {
        findings,
        tables: vec![Table::new(
            "Delays in minutes",
            &["policy", "requests", "mean", "p50", "p90", "p99", "lost"],
            figures.collect(),
        )],
        charts: vec![Chart {
            name: "polling".to_owned(),
            title: "Mean delay from publication to discovery".to_owned(),
            drawing: Drawing::Bars {
                unit: "minutes",
                bars: bars.collect(),
            },
        }],
    })
}
