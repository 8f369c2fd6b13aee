//! Submits and claims per second, as the frontier grows and as workers are
//! added; evenly spread, and with half of the backlog on one blocked host.
//! Every run counts politeness violations, by the clock of the database.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tidings_sim::PostgresServer;
use tidings_store::{
    Claim, ClaimRequest, Completion, HostId, Moment, Origin, Outcome, Store, StoreOptions,
    Submission, Target,
};
use tidings_url::{FetchUrl, ProxyHosts, Rules};

use crate::backlog::{Backlog, Figure};
use crate::{output, reference};

/// Measure submits and claims of the frontier
#[derive(Debug, Args)]
#[command(
    after_help = "Without --store it measures both engines: SQLite in a temporary folder, and a
throwaway PostgreSQL started from the installed server binaries.

Examples:
  tidings-bench frontier
  tidings-bench frontier --sizes 10000,100000 --seconds 3
  tidings-bench frontier --store postgres://me@db/scratch --reference --out bench.json"
)]
pub(crate) struct FrontierArgs {
    /// Store to measure: sqlite:FILE or postgres://…; it must be empty
    #[arg(long, value_name = "ADDRESS")]
    store: Option<String>,

    /// Only this engine: sqlite or postgres
    #[arg(long, value_name = "ENGINE", value_parser = ["sqlite", "postgres"], conflicts_with = "store")]
    engine: Option<String>,

    /// Numbers of URLs
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [10_000, 100_000, 1_000_000])]
    sizes: Vec<usize>,

    /// Ten million URLs as well
    #[arg(long)]
    ten_million: bool,

    /// Numbers of workers
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 10, 50])]
    workers: Vec<usize>,

    /// Distribution of the URLs: uniform, skewed or adversarial
    #[arg(long, value_name = "KIND,…", value_delimiter = ',', default_values_t = Backlog::ALL)]
    backlogs: Vec<Backlog>,

    /// URLs of one claim
    #[arg(long, value_name = "N", default_value_t = 100)]
    batch: u16,

    /// The delay between two requests to a host, in milliseconds
    #[arg(long, value_name = "N", default_value_t = 200)]
    delay_ms: u32,

    /// How long each row is measured
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u64,

    /// Beside it the plain join query, on the same PostgreSQL
    #[arg(long)]
    reference: bool,

    /// Write all figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Enough hosts that politeness is not the limit: 10,000 every 200 ms would
/// allow 50,000 fetches per second.
const HOSTS: usize = 10_000;

impl FrontierArgs {
    fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms.into())
    }

    fn options(&self) -> StoreOptions {
        let mut options = StoreOptions::default();
        options.host_delay = self.delay();
        options
    }
}

#[derive(Serialize)]
struct Report<'a> {
    version: &'a str,
    cores: usize,
    load_before: String,
    batch: u16,
    delay_ms: u32,
    hosts: usize,
    figures: &'a [Figure],
}

pub(crate) fn run(args: &FrontierArgs, json: bool) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    let load_before = std::fs::read_to_string("/proc/loadavg")
        .unwrap_or_default()
        .trim()
        .to_owned();
    let figures = runtime.block_on(measure(args, json))?;
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        load_before,
        batch: args.batch,
        delay_ms: args.delay_ms,
        hosts: HOSTS,
        figures: &figures,
    };
    if let Some(path) = &args.out {
        let text = serde_json::to_string_pretty(&report)
            .context("cannot serialize the figures as JSON")?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if json {
        output::json(&report)?;
    }
    let violations: usize = figures
        .iter()
        .filter(|f| f.engine != "reference")
        .filter_map(|f| f.violations)
        .sum();
    if violations > 0 {
        anyhow::bail!("{violations} politeness violations: this is a bug");
    }
    Ok(())
}

async fn measure(args: &FrontierArgs, quiet: bool) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut sizes = args.sizes.clone();
    sizes.extend(args.ten_million.then_some(10_000_000));
    let mut show = |figure: Figure| -> anyhow::Result<()> {
        if !quiet {
            print(&figure, figures.is_empty())?;
        }
        figures.push(figure);
        Ok(())
    };
    let wants = |engine: &str| args.engine.as_deref().is_none_or(|only| only == engine);
    if let Some(address) = &args.store {
        let engine = if address.starts_with("sqlite:") {
            "sqlite"
        } else {
            "postgres"
        };
        for size in &sizes {
            one_size(args, engine, address, *size, &mut show).await?;
            empty(address).await?;
        }
        if args.reference && engine == "postgres" {
            reference_sizes(args, address, &sizes, &mut show).await?;
        }
        return Ok(figures);
    }
    if wants("sqlite") {
        for size in &sizes {
            let folder = tempfile::tempdir().context("no temporary folder")?;
            let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
            one_size(args, "sqlite", &address, *size, &mut show).await?;
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
        for size in &sizes {
            one_size(
                args,
                "postgres",
                &server.create_database()?,
                *size,
                &mut show,
            )
            .await?;
        }
        if args.reference {
            reference_sizes(args, &server.create_database()?, &sizes, &mut show).await?;
        }
    }
    Ok(figures)
}

async fn reference_sizes(
    args: &FrontierArgs,
    address: &str,
    sizes: &[usize],
    show: &mut impl FnMut(Figure) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let seconds = Duration::from_secs(args.seconds);
    for size in sizes {
        for backlog in &args.backlogs {
            reference::fill(address, *size, HOSTS, *backlog, args.delay_ms).await?;
            for workers in &args.workers {
                show(
                    reference::measure(address, *size, *workers, *backlog, args.delay(), seconds)
                        .await?,
                )?;
            }
        }
    }
    Ok(())
}

async fn empty(address: &str) -> anyhow::Result<()> {
    drop(Store::open(address, &StoreOptions::default().at_schema_version(0)).await?);
    Ok(())
}

async fn one_size(
    args: &FrontierArgs,
    engine: &'static str,
    address: &str,
    size: usize,
    show: &mut impl FnMut(Figure) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let seconds = Duration::from_secs(args.seconds);
    for backlog in args.backlogs.iter().copied() {
        let store = Store::open(address, &args.options()).await?;
        anyhow::ensure!(
            store.stats().await?.hosts == 0,
            "the store {} is not empty",
            store.location()
        );
        let row = |what, workers, per_second, p99_ms, violations| Figure {
            engine,
            what,
            urls: size,
            backlog: backlog.as_str(),
            workers,
            per_second,
            p99_ms,
            violations,
        };
        let rate = submit_all(&store, size, backlog).await?;
        if backlog == Backlog::Uniform {
            show(row("submit new", 4, rate, None, None))?;
            let rate = submit_all(&store, size.min(100_000), backlog).await?;
            show(row("submit known", 4, rate, None, None))?;
        }
        if backlog == Backlog::Adversarial {
            store
                .block_host(target("blocked", 0).id().host, Moment::NEVER, "benchmark")
                .await?;
        }
        for workers in &args.workers {
            let done = claim_for(&store, *workers, args, seconds).await?;
            let per_second = done.completed as f64 / done.took.as_secs_f64();
            show(row(
                "claim+complete",
                *workers,
                per_second,
                Some(done.p99_ms()),
                Some(done.violations),
            ))?;
        }
        drop(store);
        empty(address).await?;
    }
    Ok(())
}

fn target(host: &str, n: usize) -> Target {
    let text = format!("https://{host}.example/2026/11/15/council-votes-on-the-harbour-plan-{n}");
    let url = FetchUrl::parse(&text).expect("made of ASCII words");
    Target {
        key: url.canonical(&Rules::default()).key(),
        host: url.host_key(&ProxyHosts::default()),
        url,
    }
}

pub(super) fn submission(n: usize, backlog: Backlog) -> Submission {
    let (host, priority) = match backlog {
        Backlog::Adversarial if n.is_multiple_of(2) => ("blocked".to_owned(), 10),
        Backlog::Uniform | Backlog::Adversarial => (format!("h{}", n % HOSTS), 5),
        Backlog::Skewed => {
            // The golden ratio spreads n over 0..1 evenly and without a pattern.
            let even = (n as f64 * 0.618_033_988_749_895).fract();
            (
                format!("h{}", (HOSTS as f64 * even.powi(3)) as usize),
                (n % 10) as u8 + 1,
            )
        }
    };
    Submission {
        priority,
        ..Submission::new(target(&host, n), Origin::Feed)
    }
}

async fn submit_all(store: &Store, size: usize, backlog: Backlog) -> anyhow::Result<f64> {
    const SUBMITTERS: usize = 4;
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for nth in 0..SUBMITTERS {
        let store = store.clone();
        tasks.spawn(async move {
            let numbers: Vec<usize> = (nth..size).step_by(SUBMITTERS).collect();
            for chunk in numbers.chunks(1000) {
                let batch: Vec<_> = chunk.iter().map(|n| submission(*n, backlog)).collect();
                store.submit(&batch).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    Ok(size as f64 / start.elapsed().as_secs_f64())
}

struct Done {
    completed: usize,
    took: Duration,
    violations: usize,
    claims_ms: Vec<f64>,
}

impl Done {
    fn p99_ms(&self) -> f64 {
        let mut sorted = self.claims_ms.clone();
        sorted.sort_by(f64::total_cmp);
        let at = (sorted.len() * 99 / 100).min(sorted.len().saturating_sub(1));
        sorted.get(at).copied().unwrap_or(0.0)
    }
}

/// When each host was last started, by the clock of the database, and how often
/// that was too soon. Two concurrent leases would show as a gap that is too short.
#[derive(Debug, Default)]
struct Watch {
    last_start: HashMap<HostId, Moment>,
    violations: usize,
}

impl Watch {
    fn started(&mut self, claim: &Claim, at: Moment, delay: Duration) {
        let before = self.last_start.insert(claim.lease_token.id.host, at);
        // Claims may be seen here in another sequence than they were made in.
        let gap = before.map(|before| at.since(before).max(before.since(at)));
        self.violations += usize::from(gap.is_some_and(|gap| gap < delay));
    }
}

/// Steady state: what is completed is due again immediately, so the frontier stays
/// the same size and only politeness limits a host.
async fn claim_for(
    store: &Store,
    workers: usize,
    args: &FrontierArgs,
    seconds: Duration,
) -> anyhow::Result<Done> {
    let (delay, batch) = (args.delay(), args.batch);
    let watch: Arc<Mutex<Watch>> = Arc::default();
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for owner in 0..workers {
        let (store, watch) = (store.clone(), Arc::clone(&watch));
        tasks.spawn(async move {
            let request = ClaimRequest::new(owner as i64, batch);
            let (mut completed, mut claims_ms) = (0, Vec::new());
            while start.elapsed() < seconds {
                let sent = Instant::now();
                let claimed = store.claim(&request).await?;
                claims_ms.push(sent.elapsed().as_secs_f64() * 1000.0);
                {
                    let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
                    claimed
                        .claims
                        .iter()
                        .for_each(|claim| watch.started(claim, claimed.at, delay));
                }
                let ends: Vec<_> = claimed
                    .claims
                    .iter()
                    .map(|claim| Completion::new(claim.lease_token, again()))
                    .collect();
                completed += store
                    .complete(&ends)
                    .await?
                    .into_iter()
                    .filter(|accepted| *accepted)
                    .count();
                if claimed.claims.is_empty() {
                    tokio::time::sleep(
                        claimed
                            .next_ready
                            .unwrap_or(delay)
                            .min(Duration::from_millis(20)),
                    )
                    .await;
                }
            }
            anyhow::Ok((completed, claims_ms))
        });
    }
    let (mut completed, mut claims_ms) = (0, Vec::new());
    while let Some(task) = tasks.join_next().await {
        let (done, times) = task??;
        completed += done;
        claims_ms.extend(times);
    }
    let violations = watch
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .violations;
    Ok(Done {
        completed,
        took: start.elapsed(),
        violations,
        claims_ms,
    })
}

fn again() -> Outcome {
    Outcome::Fetched {
        etag: None,
        last_modified: None,
        content_hash: None,
        document: None,
        again_in: Some(Duration::ZERO),
    }
}

fn print(figure: &Figure, first: bool) -> anyhow::Result<()> {
    if first {
        output::line(
            "engine     what              urls  backlog      workers     per second    p99 claim  violations",
        )?;
    }
    let p99 = figure
        .p99_ms
        .map(|ms| format!("{ms:.1} ms"))
        .unwrap_or_default();
    let violations = figure.violations.map(|n| n.to_string()).unwrap_or_default();
    output::line(&format!(
        "{:9}  {:14}  {:>8}  {:11}  {:>7}  {:>13.1}  {:>11}  {:>10}",
        figure.engine,
        figure.what,
        figure.urls,
        figure.backlog,
        figure.workers,
        figure.per_second,
        p99,
        violations
    ))
}
