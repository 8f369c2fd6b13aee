//! Looking up near-duplicates as documents become many, against writing the same
//! documents without sketches.

use serde::Deserialize;
use serde_json::Value as Json;

use super::super::chart::{Chart, Drawing, Line};
use super::super::numbers::{number, times, whole};
use super::super::report::{Shown, Table, engine};
use super::{Need, Part, Planned, Size, names, rows};

pub(super) const PART: Part = Part {
    name: "near",
    title: "Near-duplicates: finding copies",
    about: "Synthetic documents with sketches as news has them (one in twenty is a copy, sites have lines on every page, all share some
phrases), written the way that workers do; then edited copies and new stories are looked up, one after the other. The
baseline is the same documents without sketches.",
    limits: "A look-up reads the documents behind twelve keys, on PostgreSQL with the way to the server and back. Writing pays for the
look-up, the sketch and six index entries per document.",
    runs,
    show,
};

fn runs(size: Size) -> Vec<Planned> {
    let sizes = size.choose(
        "--documents 10000,100000,1000000 --lookups 2000",
        "--documents 1000,10000 --lookups 400",
        "--documents 20,200 --lookups 20",
    );
    let plain = size.choose("100000", "10000", "200");
    let bench = |engine| format!("tidings-bench near --engine {engine} {sizes}");
    let plain =
        |engine| format!("tidings-bench near --engine {engine} --documents {plain} --plain");
    vec![
        Planned::new("SQLite", Need::Nothing, bench("sqlite")),
        Planned::new("SQLite without sketches", Need::Nothing, plain("sqlite")),
        Planned::new("PostgreSQL", Need::Postgres, bench("postgres")),
        Planned::new(
            "PostgreSQL without sketches",
            Need::Postgres,
            plain("postgres"),
        ),
    ]
}

#[derive(Debug, Deserialize)]
struct Row {
    engine: String,
    documents: u64,
    written_per_second: f64,
    bytes_per_document: u64,
    #[serde(flatten)]
    lookups: Option<Lookups>,
}

#[derive(Debug, Deserialize)]
struct Lookups {
    p50_ms: f64,
    p99_ms: f64,
    found: f64,
    mistaken: f64,
}

fn show(measured: &[Json]) -> anyhow::Result<Shown> {
    let rows: Vec<Row> = rows(measured, "figures")?;
    let (sketched, plain): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| row.lookups.is_some());
    let mut findings: Vec<String> = plain
        .iter()
        .filter_map(|row| against_plain(&sketched, row))
        .collect();
    let engines = names(sketched.iter().map(|row| row.engine.as_str()));
    findings.extend(engines.iter().filter_map(|of| growth(&sketched, of)));
    Ok(Shown {
        findings,
        tables: vec![table(&sketched)],
        charts: vec![chart(&sketched, &engines)],
    })
}

fn against_plain(sketched: &[Row], plain: &Row) -> Option<String> {
    let same = |row: &&Row| (&row.engine, row.documents) == (&plain.engine, plain.documents);
    let row = sketched.iter().find(same)?;
    Some(format!(
        "**{}** the rate of writing and **{}** the space of {} documents without sketches: {} per second against {} ({})",
        times(row.written_per_second / plain.written_per_second),
        times(row.bytes_per_document as f64 / plain.bytes_per_document.max(1) as f64),
        whole(row.documents),
        number(row.written_per_second),
        number(plain.written_per_second),
        engine(&row.engine),
    ))
}

fn growth(sketched: &[Row], of: &str) -> Option<String> {
    let rows = || sketched.iter().filter(|row| row.engine == of);
    let least = rows().min_by_key(|row| row.documents)?;
    let most = rows().max_by_key(|row| row.documents)?;
    let ratio = most.lookups.as_ref()?.p50_ms / least.lookups.as_ref()?.p50_ms;
    (most.documents > least.documents).then(|| {
        format!(
            "**{}** the time of a look-up (the median) among {} times as many documents ({})",
            times(ratio),
            whole(most.documents / least.documents),
            engine(of)
        )
    })
}

fn table(sketched: &[Row]) -> Table {
    let row = |row: &Row| {
        let lookups = row.lookups.as_ref()?;
        Some(vec![
            engine(&row.engine).to_owned(),
            whole(row.documents),
            number(lookups.p50_ms),
            number(lookups.p99_ms),
            format!("{:.3}", lookups.found),
            format!("{:.3}", lookups.mistaken),
            number(row.written_per_second),
            whole(row.bytes_per_document),
        ])
    };
    Table::new(
        "Look-ups",
        &[
            "",
            "documents",
            "p50, ms",
            "p99, ms",
            "copies found",
            "new stories mistaken",
            "written per second",
            "bytes per document",
        ],
        sketched.iter().filter_map(row).collect(),
    )
}

fn chart(sketched: &[Row], engines: &[&str]) -> Chart {
    let line = |of: &str, name: &str, time: fn(&Lookups) -> f64| Line {
        name: format!("{}, {name}", engine(of)),
        is_peer: false,
        points: sketched
            .iter()
            .filter(|row| row.engine == of)
            .filter_map(|row| Some((row.documents as f64, time(row.lookups.as_ref()?))))
            .collect(),
    };
    let both = |of: &&str| {
        [
            line(of, "half", |lookups| lookups.p50_ms),
            line(of, "99 %", |lookups| lookups.p99_ms),
        ]
    };
    Chart {
        name: "near".to_owned(),
        title: "Time to look up a copy".to_owned(),
        drawing: Drawing::Lines {
            x: "documents",
            y: "milliseconds",
            lines: engines.iter().flat_map(both).collect(),
        },
    }
}
