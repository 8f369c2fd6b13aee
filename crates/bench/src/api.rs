//! `tidings-bench api`: latency of lists, statistics and pages over a frontier of a
//! million URLs, of bulk submits, and the cost of live streams. Sends requests to
//! the real server over loopback.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tidings_net::Client;
use tidings_server::{Server, ServerOptions};
use tidings_sim::{PostgresServer, load_average, peak_mib, reset_peak};
use tidings_store::{ClaimRequest, Completion, Outcome, Role, Store, StoreOptions, Submission};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::backlog::Backlog;
use crate::frontier::submission;
use crate::{loopback, output};

/// Measure the API and the dashboard over a large frontier
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings-bench api
  tidings-bench api --only sqlite --urls 100000 --streams 0")]
pub(crate) struct ApiArgs {
    /// sqlite or postgres instead of both
    #[arg(long, value_name = "ENGINE", value_parser = ["sqlite", "postgres"])]
    only: Option<String>,

    /// URLs of the frontier
    #[arg(long, default_value_t = 1_000_000)]
    urls: usize,

    /// Requests of each kind
    #[arg(long, default_value_t = 40)]
    requests: usize,

    /// URLs of each bulk submit
    #[arg(long, default_value_t = 100_000)]
    bulk: usize,

    /// Concurrent live streams; 0 for none
    #[arg(long, default_value_t = 1000)]
    streams: usize,
}

/// How long one kind of request takes.
#[derive(Debug, Serialize)]
struct Figure {
    engine: &'static str,
    what: String,
    p50_ms: f64,
    p95_ms: f64,
}

/// One bulk submit.
#[derive(Debug, Serialize)]
struct Bulk {
    engine: &'static str,
    format: &'static str,
    urls: usize,
    seconds: f64,
}

/// What clients of `/events` cost in memory, both ends in this process.
#[derive(Debug, Serialize)]
struct Streams {
    engine: &'static str,
    streams: usize,
    mib: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    cores: usize,
    load_before: String,
    urls: usize,
    figures: Vec<Figure>,
    bulk: Vec<Bulk>,
    streams: Vec<Streams>,
}

/// Percentage of the URLs that have been fetched, failed or are dead.
const COMPLETED_PERCENT: usize = 10;
const SECRET: &str = "tdg_only-for-this-measurement";

/// What is requested; source 1 has one URL in 2,000.
const PATHS: [&str; 19] = [
    "/api/v1/frontier",
    "/api/v1/frontier?order=newest",
    "/api/v1/frontier?status=pending",
    "/api/v1/frontier?status=fetching",
    "/api/v1/frontier?status=fetched",
    "/api/v1/frontier?status=failed",
    "/api/v1/frontier?status=dead",
    "/api/v1/frontier?status=dead&order=newest",
    "/api/v1/frontier?status=dead&order=priority",
    "/api/v1/frontier?reason=gone",
    "/api/v1/frontier?source_id=1",
    "/api/v1/frontier?source_id=1&order=newest",
    "/api/v1/frontier?origin=sitemap",
    "/api/v1/frontier?host=h17.example",
    "/api/v1/frontier?q=nothing-like-it",
    "/api/v1/frontier/stats",
    "/api/v1/hosts",
    "/frontier",
    "/metrics",
];

pub(crate) fn run(args: &ApiArgs, json: bool) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION"),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        load_before: load_average(),
        urls: args.urls,
        figures: Vec::new(),
        bulk: Vec::new(),
        streams: Vec::new(),
    };
    if !json {
        output::line(&format!(
            "{} URLs, load before: {}",
            args.urls, report.load_before
        ))?;
    }
    let wants = |engine: &str| args.only.as_deref().is_none_or(|only| only == engine);
    if wants("sqlite") {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
        runtime.block_on(measure(args, "sqlite", &address, json, &mut report))?;
    }
    if wants("postgres") {
        let server = PostgresServer::start(&["shared_buffers=1GB", "max_wal_size=4GB"])
            .context("no PostgreSQL to measure")?;
        let address = server.create_database().context("no database")?;
        runtime.block_on(measure(args, "postgres", &address, json, &mut report))?;
    }
    if json {
        output::json(&report)?;
    }
    Ok(())
}

async fn measure(
    args: &ApiArgs,
    engine: &'static str,
    address: &str,
    quiet: bool,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut options = StoreOptions::default();
    options.host_delay = Duration::from_millis(1);
    let store = Store::open(address, &options).await?;
    fill(&store, args.urls).await?;
    store.add_token("bench", Role::Admin, SECRET, None).await?;
    let client = loopback::client()?;
    let bind = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = ServerOptions {
        max_connections: 2 * args.streams + 512,
        ..ServerOptions::new(bind)
    };
    let server = Server::bind(options, store.clone(), client.clone()).await?;
    let at = &ApiTarget {
        at: server.address(),
        client,
    };
    let serving = tokio::spawn(server.run(std::future::pending()));
    for path in PATHS {
        let figure = figure(engine, path, walk(at, path, args.requests).await?)?;
        if !quiet {
            output::line(&format!(
                "{engine:<9} p50 {:>7.1} ms, p95 {:>7.1} ms  {path}",
                figure.p50_ms, figure.p95_ms
            ))?;
        }
        report.figures.push(figure);
    }
    for format in [JSON_LINES, CSV] {
        let bulk = bulk(at, engine, format, args.bulk).await?;
        if !quiet {
            output::line(&format!(
                "{engine:<9} {:>6.2} s  {} URLs as {format}",
                bulk.seconds, bulk.urls
            ))?;
        }
        report.bulk.push(bulk);
    }
    if args.streams > 0 {
        let mib = streams(&store, at, args.streams).await?;
        if !quiet {
            output::line(&format!(
                "{engine:<9} {} live streams: {mib:.0} MiB, both ends in this process",
                args.streams
            ))?;
        }
        report.streams.push(Streams {
            engine,
            streams: args.streams,
            mib,
        });
    }
    serving.abort();
    Ok(())
}

fn figure(engine: &'static str, what: &str, mut taken: Vec<Duration>) -> anyhow::Result<Figure> {
    taken.sort_unstable();
    let at = |share: usize| {
        let taken = taken.get(taken.len() * share / 100);
        taken.map(|taken| taken.as_secs_f64() * 1000.0)
    };
    Ok(Figure {
        engine,
        what: what.to_owned(),
        p50_ms: at(50).context("there is nothing to measure without requests")?,
        p95_ms: at(95).context("there is nothing to measure without requests")?,
    })
}

const JSON_LINES: &str = "JSON lines";
const CSV: &str = "CSV";

/// New URLs in one bulk submit.
async fn bulk(
    at: &ApiTarget,
    engine: &'static str,
    format: &'static str,
    urls: usize,
) -> anyhow::Result<Bulk> {
    let url = |folder, n| format!("https://bulk{}.example/{folder}/story-{n}", n % 1000);
    let (kind, body): (_, String) = match format == CSV {
        true => {
            let rows = (0..urls).map(|n| format!("{}\n", url("csv", n)));
            let body = std::iter::once("url\n".to_owned()).chain(rows);
            ("text/csv", body.collect())
        }
        false => {
            let lines = (0..urls).map(|n| format!("{{\"url\":\"{}\"}}\n", url("jsonl", n)));
            ("application/x-ndjson", lines.collect())
        }
    };
    let start = Instant::now();
    let response = request(at, "POST", "/api/v1/frontier/submit/bulk", kind, &body).await?;
    let seconds = start.elapsed().as_secs_f64();
    anyhow::ensure!(
        response.contains(&format!("\"new\":{urls}")),
        "not all of {urls} URLs as {format} were accepted"
    );
    Ok(Bulk {
        engine,
        format,
        urls,
        seconds,
    })
}

/// The server under test, and a client for it.
struct ApiTarget {
    at: SocketAddr,
    client: Client,
}

/// Most URLs are pending; a tenth has been fetched, some of those failed, and
/// a few are of another source.
async fn fill(store: &Store, urls: usize) -> anyhow::Result<()> {
    let of = |n: usize| Submission {
        source_id: i64::from(n.is_multiple_of(2000)),
        ..submission(n, Backlog::Skewed)
    };
    let numbers: Vec<usize> = (0..urls).collect();
    for chunk in numbers.chunks(1000) {
        let batch: Vec<_> = chunk.iter().map(|n| of(*n)).collect();
        store.submit(&batch).await?;
    }
    complete(store, urls * COMPLETED_PERCENT / 100).await
}

/// Claims this many URLs and completes them.
async fn complete(store: &Store, urls: usize) -> anyhow::Result<()> {
    let mut completed = 0;
    while completed < urls {
        let max = u16::try_from(urls - completed).unwrap_or(u16::MAX);
        let mut request = ClaimRequest::new(1, max.min(500));
        request.per_host = 50;
        let claimed = store.claim(&request).await?.claims;
        if claimed.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        }
        let ended: Vec<_> = claimed
            .iter()
            .enumerate()
            .map(|(n, claim)| Completion::new(claim.lease_token, outcome(completed + n)))
            .collect();
        store.complete(&ended).await?;
        completed += claimed.len();
    }
    Ok(())
}

fn outcome(n: usize) -> Outcome {
    match n % 100 {
        0..=4 => Outcome::Dead {
            reason: "gone".to_owned(),
            error: Some("HTTP 410".to_owned()),
        },
        5..=9 => Outcome::Failed {
            error: "HTTP 503".to_owned(),
            retry_in: Duration::from_secs(86_400),
        },
        _ => Outcome::Fetched {
            etag: None,
            last_modified: None,
            content_hash: None,
            document: None,
            again_in: None,
        },
    }
}

/// The first page, then the pages after it, and again from the start.
async fn walk(at: &ApiTarget, path: &str, requests: usize) -> anyhow::Result<Vec<Duration>> {
    let (mut taken, mut next) = (Vec::new(), None::<String>);
    for _ in 0..requests {
        let joint = if path.contains('?') { '&' } else { '?' };
        let page = match &next {
            Some(next) => format!("{path}{joint}after={next}"),
            None => path.to_owned(),
        };
        let start = Instant::now();
        let response = request(at, "GET", &page, "text/plain", "").await?;
        taken.push(start.elapsed());
        let after = response.rsplit_once("\"next\":\"").map(|(_, rest)| rest);
        next = after.and_then(|rest| rest.split('"').next().map(str::to_owned));
    }
    Ok(taken)
}

async fn connect(at: &ApiTarget, head: &str, body: &str) -> anyhow::Result<TcpStream> {
    let host = at.at.ip().to_string();
    let mut connection = at.client.connect(&host, at.at.port()).await?;
    let head = format!(
        "{head}\r\nhost: {}\r\nauthorization: Bearer {SECRET}\r\n\r\n",
        at.at
    );
    connection.write_all(head.as_bytes()).await?;
    connection.write_all(body.as_bytes()).await?;
    Ok(connection)
}

/// The whole response as text; anything but success is an error.
async fn request(
    at: &ApiTarget,
    method: &str,
    path: &str,
    kind: &str,
    body: &str,
) -> anyhow::Result<String> {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {length}"
    );
    let mut connection = connect(at, &head, body).await?;
    let mut response = Vec::new();
    connection.read_to_end(&mut response).await?;
    let response = String::from_utf8_lossy(&response).into_owned();
    anyhow::ensure!(
        response.starts_with("HTTP/1.1 200"),
        "{path} failed: {}",
        response.chars().take(400).collect::<String>()
    );
    Ok(response)
}

/// What this many clients of `/events` cost in memory while an event is sent.
async fn streams(store: &Store, at: &ApiTarget, number: usize) -> anyhow::Result<f64> {
    reset_peak();
    let before = peak_mib();
    let mut open = Vec::with_capacity(number);
    for _ in 0..number {
        let mut connection = connect(at, "GET /api/v1/events HTTP/1.1", "").await?;
        let mut first = [0; 512];
        let read = connection.read(&mut first).await?;
        anyhow::ensure!(
            first[..read].starts_with(b"HTTP/1.1 200"),
            "a stream was rejected"
        );
        open.push(connection);
    }
    complete(store, 1).await?;
    for connection in &mut open {
        let mut received = Vec::new();
        while !String::from_utf8_lossy(&received).contains("event: event") {
            let mut part = [0; 2048];
            let read = connection.read(&mut part).await?;
            anyhow::ensure!(read > 0, "a stream ended");
            received.extend_from_slice(&part[..read]);
        }
    }
    Ok(peak_mib() - before)
}
