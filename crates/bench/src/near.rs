//! How long it takes to find a near-duplicate among N documents, how many are found,
//! and what that costs when documents are written. The documents are synthetic:
//! sketches as news has them (phrases that all share, lines that a site has on
//! every page, one story in twenty a wire copy), and hardly any body.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tidings_document::Sketch;
use tidings_sim::PostgresServer;
use tidings_store::{
    ClaimRequest, Completion, NewDocument, Origin, Outcome, Store, StoreOptions, Submission, Target,
};
use tidings_url::{FetchUrl, ProxyHosts, Rules};
use tokio_postgres::NoTls;

use crate::output;

/// Measure looking up near-duplicates
#[derive(Debug, Args)]
#[command(
    after_help = "Measures both engines: SQLite in a temporary folder, and a throwaway PostgreSQL
started from the installed server binaries.

Examples:
  tidings-bench near
  tidings-bench near --documents 10000 --engine sqlite
  tidings-bench near --documents 100000 --plain    the same documents without sketches"
)]
pub(crate) struct NearArgs {
    /// Only this engine: sqlite or postgres
    #[arg(long, value_name = "ENGINE", value_parser = ["sqlite", "postgres"])]
    engine: Option<String>,

    /// Numbers of documents
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [10_000, 100_000, 1_000_000])]
    documents: Vec<u64>,

    /// Look-ups: half of them copies, half new stories
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    lookups: u64,

    /// Without sketches, to see what they cost; nothing can be looked up then
    #[arg(long)]
    plain: bool,
}

/// One measured row.
#[derive(Debug, Serialize)]
struct Figure {
    engine: &'static str,
    documents: u64,
    /// While documents were written, look-ups included.
    written_per_second: f64,
    /// Of the whole database.
    bytes_per_document: u64,
    #[serde(flatten)]
    lookups: Option<Lookups>,
}

/// How look-ups ended.
#[derive(Debug, Serialize)]
struct Lookups {
    p50_ms: f64,
    p99_ms: f64,
    /// Copies whose story was found, 0 to 1.
    found: f64,
    /// New stories that were mistaken for a copy, 0 to 1.
    mistaken: f64,
}

#[derive(Serialize)]
struct Report<'a> {
    version: &'a str,
    cores: usize,
    load_before: String,
    figures: &'a [Figure],
}

pub(crate) fn run(args: &NearArgs, json: bool) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    let load_before = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let figures = runtime.block_on(measure(args, json))?;
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        load_before: load_before.trim().to_owned(),
        figures: &figures,
    };
    match json {
        true => output::json(&report)?,
        false => output::line(&format!("\nload before: {}", report.load_before))?,
    }
    Ok(())
}

async fn measure(args: &NearArgs, quiet: bool) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let wants = |engine: &str| args.engine.as_deref().is_none_or(|only| only == engine);
    let mut show = |figure: Figure| -> anyhow::Result<()> {
        if !quiet {
            print(&figure, figures.is_empty())?;
        }
        figures.push(figure);
        Ok(())
    };
    if wants("sqlite") {
        for size in &args.documents {
            let folder = tempfile::tempdir().context("no temporary folder")?;
            let file = folder.path().join("tidings.db");
            let address = format!("sqlite:{}", file.display());
            let mut figure = one_size(args, "sqlite", &address, *size).await?;
            figure.bytes_per_document = sqlite_bytes(&file)? / size;
            show(figure)?;
        }
    }
    if wants("postgres") {
        // As a small server would be set up; durable, unlike the tests' ones.
        let server = PostgresServer::start(&[
            "shared_buffers=1GB",
            "max_wal_size=4GB",
            "checkpoint_timeout=15min",
        ])
        .context("no PostgreSQL to measure")?;
        for size in &args.documents {
            let address = server.create_database()?;
            let mut figure = one_size(args, "postgres", &address, *size).await?;
            figure.bytes_per_document = postgres_bytes(&address).await? / size;
            show(figure)?;
        }
    }
    Ok(figures)
}

async fn one_size(
    args: &NearArgs,
    engine: &'static str,
    address: &str,
    size: u64,
) -> anyhow::Result<Figure> {
    let mut options = StoreOptions::default();
    options.host_delay = Duration::ZERO;
    let store = Store::open(address, &options).await?;
    let written_per_second = fill(&store, size, args.plain).await?;
    let lookups = match args.plain {
        true => None,
        false => Some(look_up(&store, size, args.lookups).await?),
    };
    Ok(Figure {
        engine,
        documents: size,
        written_per_second,
        bytes_per_document: 0,
        lookups,
    })
}

/// The size of the file, and of its log as long as there is one.
fn sqlite_bytes(file: &Path) -> anyhow::Result<u64> {
    let log = std::fs::metadata(file.with_extension("db-wal"));
    Ok(std::fs::metadata(file)?.len() + log.map_or(0, |log| log.len()))
}

async fn postgres_bytes(address: &str) -> anyhow::Result<u64> {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
    tokio::spawn(async move { drop(connection.await) });
    let row = client
        .query_one("SELECT pg_database_size(current_database())", &[])
        .await?;
    Ok(row.get::<_, i64>(0).unsigned_abs())
}

/// Sites; each has a hundredth of a percent of the documents.
const HOSTS: u64 = 10_000;
/// Documents of one commit, as a busy process has them.
const BATCH: u16 = 100;
const WRITERS: i64 = 4;

/// Writes documents the way that workers do; returns how many per second, from the
/// moment that their URLs are known.
async fn fill(store: &Store, size: u64, plain: bool) -> anyhow::Result<f64> {
    let numbers: Vec<u64> = (0..size).collect();
    for chunk in numbers.chunks(1_000) {
        let urls: Vec<_> = chunk
            .iter()
            .map(|n| Submission::new(target(*n), Origin::Feed))
            .collect();
        store.submit(&urls).await?;
    }
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for owner in 0..WRITERS {
        let store = store.clone();
        tasks.spawn(async move {
            loop {
                let claims = store.claim(&ClaimRequest::new(owner, BATCH)).await?.claims;
                if claims.is_empty() && store.stats().await?.by_status["pending"] == 0 {
                    return anyhow::Ok(());
                }
                let ends: Vec<_> = claims
                    .iter()
                    .filter_map(|claim| {
                        let number = claim.url.as_str().rsplit('-').next()?.parse().ok()?;
                        Some(Completion::new(claim.lease_token, document(number, plain)))
                    })
                    .collect();
                store.complete(&ends).await?;
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    Ok(size as f64 / start.elapsed().as_secs_f64())
}

fn target(n: u64) -> Target {
    let text = format!(
        "https://h{}.example/2026/11/15/the-harbour-plan-{n}",
        site(n)
    );
    let url = FetchUrl::parse(&text).expect("made of ASCII words");
    Target {
        key: url.canonical(&Rules::default()).key(),
        host: url.host_key(&ProxyHosts::default()),
        url,
    }
}

fn site(n: u64) -> u64 {
    n % HOSTS
}

fn document(n: u64, plain: bool) -> Outcome {
    let document = NewDocument {
        key: target(n).key,
        source_id: 1,
        title: format!("The harbour plan, part {n}"),
        content_hash: Some(n.to_be_bytes().to_vec()),
        sketch: (!plain).then(|| sketch(n)),
        body: format!("{{\"title\":\"The harbour plan, part {n}\"}}"),
    };
    Outcome::Fetched {
        etag: None,
        last_modified: None,
        content_hash: document.content_hash.clone(),
        document: Some(Box::new(document)),
        again_in: None,
    }
}

/// A number of 64 bits that follows from two others (splitmix64).
fn mixed(a: u64, b: u64) -> u64 {
    let mut z = a
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(b)
        .wrapping_mul(0xd134_2543_de82_ef95);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Phrases that all share, some very often.
const PHRASES: u64 = 20_000;
/// Shingles of the lines that a site has on every page.
const ON_EVERY_PAGE: u64 = 15;

/// The shingles of a story without those of its site: 150 to 800, of which one in
/// twenty is a phrase that others use, too.
fn story(n: u64) -> Vec<u64> {
    let length = 150 + mixed(n, 1) % 650;
    (0..length)
        .map(|at| {
            let roll = mixed(n, at + 10);
            if !roll.is_multiple_of(20) {
                return roll;
            }
            let skewed = (roll >> 40) as f64 / (1_u64 << 24) as f64;
            mixed(u64::MAX, (PHRASES as f64 * skewed.powi(3)) as u64)
        })
        .collect()
}

/// The same story with 5 to 20 % of its words changed: a shingle survives if all
/// three of its words do.
fn copy(n: u64, original: u64) -> Vec<u64> {
    let kept = 0.95 - (mixed(n, 2) % 16) as f64 / 100.0;
    let limit = (kept.powi(3) * 1_000.0) as u64;
    let shingles = story(original).into_iter().zip(0_u64..);
    shingles
        .map(|(shingle, at)| match mixed(n, at + 10) {
            roll if roll % 1_000 < limit => shingle,
            roll => roll,
        })
        .collect()
}

/// The sketch of a document; one in twenty is a copy of an earlier one.
fn sketch(n: u64) -> Sketch {
    let shingles = match n % 20 == 19 {
        true => copy(n, n - 1 - mixed(n, 3) % n.min(19)),
        false => story(n),
    };
    with_site(n, shingles)
}

fn with_site(n: u64, shingles: Vec<u64>) -> Sketch {
    let lines = (0..ON_EVERY_PAGE).map(|at| mixed(u64::MAX - 1 - site(n), at));
    Sketch::of(shingles.into_iter().chain(lines))
}

async fn look_up(store: &Store, size: u64, lookups: u64) -> anyhow::Result<Lookups> {
    let (mut found, mut mistaken, mut times) = (0, 0, Vec::new());
    for nth in 0..lookups {
        let n = size + nth;
        let is_copy = nth.is_multiple_of(2);
        let original = mixed(n, 4) % size / 20 * 20;
        let sketch = match is_copy {
            true => with_site(n, copy(n, original)),
            false => with_site(n, story(n)),
        };
        let start = Instant::now();
        let alike = store.nearest(&sketch).await?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        let cluster = alike.map(|alike| alike.cluster);
        let right = store.document(target(original).id()).await?;
        match is_copy {
            true => found += u64::from(cluster == right.map(|original| original.cluster)),
            false => mistaken += u64::from(cluster.is_some()),
        }
    }
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| times.get(times.len() * percent / 100).copied();
    let half = (lookups / 2).max(1) as f64;
    Ok(Lookups {
        p50_ms: at(50).unwrap_or(0.0),
        p99_ms: at(99).unwrap_or(0.0),
        found: found as f64 / half,
        mistaken: mistaken as f64 / half,
    })
}

fn print(figure: &Figure, first: bool) -> anyhow::Result<()> {
    if first {
        output::line(
            "engine     documents  written/s  bytes/document   p50 look-up   p99 look-up   found  mistaken",
        )?;
    }
    let lookups = figure.lookups.as_ref().map(|lookups| {
        format!(
            "{:>10.3} ms  {:>9.3} ms  {:>6.3}  {:>8.3}",
            lookups.p50_ms, lookups.p99_ms, lookups.found, lookups.mistaken
        )
    });
    output::line(&format!(
        "{:9}  {:>9}  {:>9.0}  {:>14}  {}",
        figure.engine,
        figure.documents,
        figure.written_per_second,
        figure.bytes_per_document,
        lookups.unwrap_or_default()
    ))
}
