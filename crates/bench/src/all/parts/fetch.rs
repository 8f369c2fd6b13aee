//! The way from feeds to stored documents, against Scrapy on the same pages.

use serde::Deserialize;
use serde_json::Value as Json;

use super::super::chart::{Bar, Chart, Drawing};
use super::super::numbers::{number, times, whole};
use super::super::report::{Shown, Table, engine};
use super::{Need, Part, Planned, Size, rows};

pub(super) const PART: Part = Part {
    name: "fetch",
    title: "Fetch: from feeds to documents",
    about: "A crawl of a simulated web in a process of its own, without delays: poll, claim, fetch, extract, commit. Scrapy gets the
same list of feeds. Alone it keeps all paragraphs as JSON lines, which is less than extraction and a store; with trafilatura
it does the whole job, as it is usually put together.",
    limits: "The CPU: reading pages is more than half of ours, the network comes next; the simulated web and the database's server
run on the same cores. Scrapy has one thread for everything.",
    runs,
    show,
};

fn runs(size: Size) -> Vec<Planned> {
    let web = size.choose(
        "--sites 200 --articles 100",
        "--sites 30 --articles 20",
        "--sites 2 --articles 3",
    );
    let bench = |only| format!("tidings-bench fetch --only {only} {web}");
    vec![
        Planned::new("SQLite", Need::Nothing, bench("sqlite")),
        Planned::new("PostgreSQL", Need::Postgres, bench("postgres")),
        Planned::new("Scrapy", Need::Scrapy, bench("scrapy --scrapy python3")),
    ]
}

#[derive(Debug, Deserialize)]
struct Row {
    what: String,
    documents: u64,
    pages_per_second: f64,
    our_cpu_us: f64,
    web_cpu_us: f64,
    peak_mib: f64,
    stages: Option<StageTimes>,
}

#[derive(Debug, Deserialize)]
struct StageTimes {
    claim_us: f64,
    fetch_us: f64,
    read_us: f64,
    commit_us: f64,
}

impl Row {
    /// Ours are measured by stages.
    fn is_peer(&self) -> bool {
        self.stages.is_none()
    }
}

fn show(measured: &[Json]) -> anyhow::Result<Shown> {
    let rows: Vec<Row> = rows(measured, "figures")?;
    let peers = || rows.iter().filter(|row| row.is_peer());
    let ours = || rows.iter().filter(|row| !row.is_peer());
    let sentence = |row: &Row, peer: &Row| {
        format!(
            "**{}** the pages per second of {}, at {} its CPU time per page ({})",
            times(row.pages_per_second / peer.pages_per_second),
            engine(&peer.what),
            times(row.our_cpu_us / peer.our_cpu_us),
            engine(&row.what),
        )
    };
    let findings = ours().flat_map(|row| peers().map(move |peer| sentence(row, peer)));
    let figures = rows.iter().map(|row| {
        vec![
            engine(&row.what).to_owned(),
            whole(row.documents),
            number(row.pages_per_second),
            number(row.our_cpu_us),
            number(row.web_cpu_us),
            number(row.peak_mib),
        ]
    });
    let stages = ours().filter_map(|row| {
        let stages = row.stages.as_ref()?;
        let times = [
            stages.claim_us,
            stages.fetch_us,
            stages.read_us,
            stages.commit_us,
        ];
        let name = engine(&row.what).to_owned();
        Some(std::iter::once(name).chain(times.map(number)).collect())
    });
    let bars = rows.iter().map(|row| Bar {
        name: engine(&row.what).to_owned(),
        is_peer: row.is_peer(),
        value: row.pages_per_second,
    });
    Ok(Shown {
        findings: findings.collect(),
        tables: vec![
            Table::new(
                "Crawls",
                &[
                    "",
                    "documents",
                    "pages per second",
                    "CPU per page, µs (without a server's)",
                    "the web's, µs",
                    "peak memory, MiB",
                ],
                figures.collect(),
            ),
            Table::new(
                "Time of each stage for a page, in µs; they overlap",
                &["", "claim", "fetch", "read", "commit"],
                stages.collect(),
            ),
        ],
        charts: vec![Chart {
            name: "fetch".to_owned(),
            title: "From feeds to documents".to_owned(),
            drawing: Drawing::Bars {
                unit: "pages per second",
                bars: bars.collect(),
            },
        }],
    })
}
