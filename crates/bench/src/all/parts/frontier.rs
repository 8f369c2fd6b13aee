//! Claims and submits as the frontier grows, against the query that joins URLs
//! with hosts.

use serde::Deserialize;
use serde_json::Value as Json;

use super::super::chart::{Chart, Drawing, Line};
use super::super::numbers::{number, times, whole};
use super::super::report::{Cell, Shown, Table, engine};
use super::{Need, Part, Planned, Size, distinct, names, rows};

pub(super) const PART: Part = Part {
    name: "frontier",
    title: "Frontier: claims and submits",
    about: "Every completed URL is due again immediately, so the frontier stays the same size: 10,000 hosts, batches of 100, 200 ms between
requests to a host. *uniform*: all hosts equal, one priority. *skewed*: a few hosts have most URLs, ten priorities. *adversarial*:
half of the URLs, most urgent, on one blocked host. The peer is the claim that everyone writes first: one wide
table, a join with the hosts, one URL at a time with `SKIP LOCKED`, on the same PostgreSQL.",
    limits: "PostgreSQL: the CPU, which server and client share here. SQLite: its one writer, and with many URLs the disk, since a
row that changes costs its whole page twice, in the log and in the file. The join query reads every URL of every host
that has to wait before it finds one that may be fetched.",
    runs,
    show,
};

fn runs(size: Size) -> Vec<Planned> {
    let options = size.choose(
        "--sizes 10000,100000,1000000 --workers 1,10,50 --seconds 5",
        "--sizes 10000,100000 --workers 10 --seconds 1",
        "--sizes 10,100 --workers 1 --backlogs uniform --seconds 1",
    );
    let bench = |engine| format!("tidings-bench frontier --engine {engine} {options}");
    vec![
        Planned::new("SQLite", Need::Nothing, bench("sqlite")),
        Planned::new(
            "PostgreSQL and the join query",
            Need::Postgres,
            bench("postgres --reference"),
        ),
    ]
}

#[derive(Debug, Deserialize)]
struct Row {
    engine: String,
    what: String,
    urls: u64,
    backlog: String,
    workers: u64,
    per_second: f64,
    p99_ms: Option<f64>,
    violations: Option<u64>,
}

const CLAIM: &str = "claim+complete";
const REFERENCE: &str = "reference";

fn show(measured: &[Json]) -> anyhow::Result<Shown> {
    let rows: Vec<Row> = rows(measured, "figures")?;
    let (claims, submits): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| row.what == CLAIM);
    let workers = distinct(claims.iter().map(|row| row.workers));
    let usual = workers.get(workers.len() / 2).copied().unwrap_or(1);
    let mut findings = against_the_join(&claims, usual);
    findings.extend(growth(&claims, usual));
    findings.extend(violations(&claims));
    Ok(Shown {
        findings,
        tables: tables(&claims, &submits),
        charts: charts(&claims, usual),
    })
}

/// The row of the join query that was measured under the same conditions.
fn peer<'a>(claims: &'a [Row], row: &Row) -> Option<&'a Row> {
    let same = |other: &&Row| {
        (other.urls, &other.backlog, other.workers) == (row.urls, &row.backlog, row.workers)
    };
    let mut peers = claims.iter().filter(|other| other.engine == REFERENCE);
    peers.find(same)
}

fn against_the_join(claims: &[Row], workers: u64) -> Vec<String> {
    let most = claims.iter().map(|row| row.urls).max();
    let ours = claims
        .iter()
        .filter(|row| row.engine == "postgres" && row.workers == workers && Some(row.urls) == most);
    let sentence = |row: &Row| {
        let peer = peer(claims, row)?;
        Some(format!(
            "**{}** the join query with {} URLs, {}: {} claims and completions per second against {} (PostgreSQL, {workers} workers)",
            times(row.per_second / peer.per_second),
            whole(row.urls),
            row.backlog,
            number(row.per_second),
            number(peer.per_second),
        ))
    };
    ours.filter_map(sentence).collect()
}

/// What is left of the rate when the frontier has grown from the smallest to the largest.
fn growth(claims: &[Row], workers: u64) -> Vec<String> {
    let sizes = distinct(claims.iter().map(|row| row.urls));
    let (Some(least), Some(most)) = (sizes.first(), sizes.last()) else {
        return Vec::new();
    };
    let rate = |of: &str, urls: u64| {
        let is_it = |row: &&Row| {
            row.engine == of
                && row.urls == urls
                && row.workers == workers
                && row.backlog == "uniform"
        };
        claims.iter().find(is_it).map(|row| row.per_second)
    };
    let sentence = |of: &str| {
        let ratio = rate(of, *most)? / rate(of, *least)?;
        let grown = whole(most / least);
        (most > least).then(|| {
            format!(
                "**{}** the rate when the frontier is {grown} times as large ({}, uniform, {workers} workers)",
                times(ratio),
                engine(of)
            )
        })
    };
    let engines = names(claims.iter().map(|row| row.engine.as_str()));
    engines.into_iter().filter_map(sentence).collect()
}

fn violations(claims: &[Row]) -> Option<String> {
    let count = |is_reference: bool| -> u64 {
        let of = claims
            .iter()
            .filter(|row| (row.engine == REFERENCE) == is_reference);
        of.filter_map(|row| row.violations).sum()
    };
    (!claims.is_empty()).then(|| {
        format!(
            "politeness violations over all rows: **{}** of ours, {} of the join query's",
            count(false),
            count(true)
        )
    })
}

fn tables(claims: &[Row], submits: &[Row]) -> Vec<Table> {
    let place = |row: &Row| vec![row.backlog.clone(), whole(row.urls)];
    let column = |row: &Row| format!("{}, {} workers", engine(&row.engine), row.workers);
    let cells = |text: &dyn Fn(&Row) -> Option<String>| -> Vec<Cell> {
        let cell = |row: &Row| {
            Some(Cell {
                row: place(row),
                column: column(row),
                text: text(row)?,
            })
        };
        claims.iter().filter_map(cell).collect()
    };
    let ratio = |row: &Row| match row.engine == "postgres" {
        true => peer(claims, row).map(|peer| times(row.per_second / peer.per_second)),
        false => None,
    };
    let submitted = submits.iter().map(|row| Cell {
        row: vec![whole(row.urls)],
        column: format!("{}, {}", engine(&row.engine), row.what),
        text: number(row.per_second),
    });
    let corner = ["backlog", "URLs"];
    vec![
        Table::of("Against the join query", &corner, cells(&ratio)),
        Table::of(
            "Claims and completions per second",
            &corner,
            cells(&|row| Some(number(row.per_second))),
        ),
        Table::of(
            "p99 of a claim, in milliseconds (ours of 100 URLs, the join query's of one)",
            &corner,
            cells(&|row| row.p99_ms.map(number)),
        ),
        Table::of("Submits per second", &["URLs"], submitted.collect()),
    ]
}

fn charts(claims: &[Row], workers: u64) -> Vec<Chart> {
    let engines = names(claims.iter().map(|row| row.engine.as_str()));
    let line = |of: &str, backlog: &str| Line {
        name: engine(of).to_owned(),
        is_peer: of == REFERENCE,
        points: claims
            .iter()
            .filter(|row| row.engine == of && row.backlog == backlog && row.workers == workers)
            .map(|row| (row.urls as f64, row.per_second))
            .collect(),
    };
    let chart = |backlog: &str| Chart {
        name: format!("frontier-{backlog}"),
        title: format!("Claims and completions per second, {backlog}, {workers} workers"),
        drawing: Drawing::Lines {
            x: "URLs in the frontier",
            y: "per second",
            lines: engines.iter().map(|of| line(of, backlog)).collect(),
        },
    };
    let backlogs = names(claims.iter().map(|row| row.backlog.as_str()));
    backlogs.into_iter().map(chart).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ratios_are_of_rows_measured_under_the_same_conditions() {
        let row = |engine, urls, workers, per_second| {
            json!({"engine": engine, "what": CLAIM, "urls": urls, "backlog": "uniform", "workers": workers,
                   "per_second": per_second, "p99_ms": 1.5, "violations": if engine == REFERENCE { 3 } else { 0 }})
        };
        let measured = [
            json!({"figures": [row("sqlite", 10, 10, 500.0), row("sqlite", 1000, 10, 250.0)]}),
            json!({"figures": [
                row("postgres", 10, 10, 800.0), row("postgres", 1000, 10, 600.0), row("postgres", 1000, 1, 90.0),
                row(REFERENCE, 10, 10, 400.0), row(REFERENCE, 1000, 10, 60.0), row(REFERENCE, 1000, 1, 30.0),
            ]}),
        ];
        let shown = show(&measured).expect("figures as the benchmark writes them");
        insta::assert_snapshot!(shown.findings.join("\n"), @"
        **10.0×** the join query with 1,000 URLs, uniform: 600 claims and completions per second against 60.0 (PostgreSQL, 10 workers)
        **0.50×** the rate when the frontier is 100 times as large (SQLite, uniform, 10 workers)
        **0.75×** the rate when the frontier is 100 times as large (PostgreSQL, uniform, 10 workers)
        **0.15×** the rate when the frontier is 100 times as large (join query, uniform, 10 workers)
        politeness violations over all rows: **0** of ours, 9 of the join query's
        ");
        let ratios = &shown.tables[0];
        assert_eq!(ratios.rows[1], ["uniform", "1,000", "10.0×", "3.00×"]);
        assert_eq!(shown.charts.len(), 1);
    }
}
