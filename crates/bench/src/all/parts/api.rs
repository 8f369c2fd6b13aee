//! Lists, numbers and pages of the server over a large frontier, against a small
//! one; bulk submits; live streams.

use serde::Deserialize;
use serde_json::Value as Json;

use super::super::chart::{Bar, Chart, Drawing};
use super::super::numbers::{number, times, whole};
use super::super::report::{Cell, Shown, Table, engine};
use super::{Need, Part, Planned, Size, names};

pub(super) const PART: Part = Part {
    name: "api",
    title: "API: lists, numbers and pages",
    about: "The real server over loopback, one request at a time, each on a connection of its own: the first page, then those after it.
A tenth of the frontier has been fetched, failed or is dead. The baseline is the same over a small frontier. Bulk submits are
one request each; live streams are clients of `/events` that all receive one event, both ends in one process.",
    limits: "The store. Lists read their page from an index whatever lies behind it; what grows are queries without an index of their
own, which scan every URL until a page is full: a part of an address, one source among many.",
    runs,
    show,
};

fn runs(size: Size) -> Vec<Planned> {
    let large = size.choose(
        "--urls 1000000",
        "--urls 50000 --requests 20 --bulk 10000 --streams 200",
        "--urls 200 --requests 2 --bulk 50 --streams 2",
    );
    let small = size.choose(
        "--urls 10000 --bulk 1000 --streams 0",
        "--urls 5000 --requests 20 --bulk 1000 --streams 0",
        "--urls 100 --requests 2 --bulk 10 --streams 0",
    );
    let bench = |only, size| format!("tidings-bench api --only {only} {size}");
    vec![
        Planned::new("SQLite, small", Need::Nothing, bench("sqlite", small)),
        Planned::new("SQLite", Need::Nothing, bench("sqlite", large)),
        Planned::new(
            "PostgreSQL, small",
            Need::Postgres,
            bench("postgres", small),
        ),
        Planned::new("PostgreSQL", Need::Postgres, bench("postgres", large)),
    ]
}

#[derive(Debug, Deserialize)]
struct Measured {
    urls: u64,
    figures: Vec<Row>,
    bulk: Vec<Bulk>,
    streams: Vec<Streams>,
}

#[derive(Debug, Deserialize)]
struct Row {
    engine: String,
    what: String,
    p50_ms: f64,
    p95_ms: f64,
}

#[derive(Debug, Deserialize)]
struct Bulk {
    engine: String,
    format: String,
    urls: u64,
    seconds: f64,
}

#[derive(Debug, Deserialize)]
struct Streams {
    engine: String,
    streams: u64,
    mib: f64,
}

fn show(measured: &[Json]) -> anyhow::Result<Shown> {
    let all: Vec<Measured> = measured
        .iter()
        .map(|one| Measured::deserialize(one.clone()))
        .collect::<Result<_, _>>()?;
    let most = all.iter().map(|one| one.urls).max().unwrap_or(0);
    let least = all.iter().map(|one| one.urls).min().unwrap_or(0);
    let of = |urls| all.iter().filter(move |one| one.urls == urls);
    let rows: Vec<&Row> = of(most).flat_map(|one| &one.figures).collect();
    let small: Vec<&Row> = match most > least {
        true => of(least).flat_map(|one| &one.figures).collect(),
        false => Vec::new(),
    };
    let engines = names(rows.iter().map(|row| row.engine.as_str()));
    let findings = engines
        .iter()
        .filter_map(|of| growth(&rows, &small, of, most / least.max(1)));
    let mut tables = vec![times_table(&rows, &small, most)];
    tables.push(bulk_table(of(most).flat_map(|one| &one.bulk)));
    tables.push(streams_table(of(most).flat_map(|one| &one.streams)));
    Ok(Shown {
        findings: findings.collect(),
        tables,
        charts: engines.iter().map(|of| chart(&rows, of, most)).collect(),
    })
}

fn ratio(row: &Row, small: &[&Row]) -> Option<f64> {
    let same = |other: &&&Row| (&other.engine, &other.what) == (&row.engine, &row.what);
    let other = small.iter().find(same)?;
    Some(row.p50_ms / other.p50_ms)
}

fn growth(rows: &[&Row], small: &[&Row], of: &str, grown: u64) -> Option<String> {
    let mut ratios: Vec<(f64, &str)> = rows
        .iter()
        .filter(|row| row.engine == of)
        .filter_map(|row| Some((ratio(row, small)?, row.what.as_str())))
        .collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (middle, (worst, what)) = (ratios.get(ratios.len() / 2)?, ratios.last()?);
    Some(format!(
        "**{}** the time over {} times as many URLs (the median of {} kinds of requests), at worst **{}** for `{what}` ({})",
        times(middle.0),
        whole(grown),
        ratios.len(),
        times(*worst),
        engine(of)
    ))
}

fn times_table(rows: &[&Row], small: &[&Row], urls: u64) -> Table {
    let cells = rows.iter().flat_map(|row| {
        let cell = |column: &str, text: String| Cell {
            row: vec![format!("`{}`", row.what)],
            column: format!("{}{column}", engine(&row.engine)),
            text,
        };
        let ratio = ratio(row, small).map(|ratio| cell(" against small", times(ratio)));
        let half = cell(", p50, ms", number(row.p50_ms));
        let most = cell(", p95, ms", number(row.p95_ms));
        ratio.into_iter().chain([half, most])
    });
    let title = format!("Requests over {} URLs", whole(urls));
    Table::of(&title, &["request"], cells.collect())
}

fn bulk_table<'a>(bulk: impl Iterator<Item = &'a Bulk>) -> Table {
    let row = |bulk: &Bulk| {
        vec![
            engine(&bulk.engine).to_owned(),
            bulk.format.clone(),
            whole(bulk.urls),
            number(bulk.seconds),
            number(bulk.urls as f64 / bulk.seconds),
        ]
    };
    let header = ["", "format", "new URLs", "seconds", "URLs per second"];
    Table::new("Bulk submits", &header, bulk.map(row).collect())
}

fn streams_table<'a>(streams: impl Iterator<Item = &'a Streams>) -> Table {
    let row = |row: &Streams| {
        vec![
            engine(&row.engine).to_owned(),
            whole(row.streams),
            number(row.mib),
            number(row.mib * 1024.0 / row.streams.max(1) as f64),
        ]
    };
    let header = ["", "concurrent streams", "MiB", "KiB each"];
    Table::new("Live streams", &header, streams.map(row).collect())
}

fn chart(rows: &[&Row], of: &str, urls: u64) -> Chart {
    let bars = rows.iter().filter(|row| row.engine == of).map(|row| Bar {
        name: row.what.clone(),
        is_peer: false,
        value: row.p95_ms,
    });
    Chart {
        name: format!("api-{of}"),
        title: format!("Requests over {} URLs, {}", whole(urls), engine(of)),
        drawing: Drawing::Bars {
            unit: "p95 latency in milliseconds",
            bars: bars.collect(),
        },
    }
}
