//! `tidings-bench fetch`: pages per second from a list of feeds to stored
//! documents, over a simulated web in a process of its own, and what each side
//! and each stage costs. Beside it the same crawl with Scrapy, if it is installed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use tidings_engine::{
    FetchContext, FetchOptions, PollOptions, Poller, SourceDraft, SourceSettings, Worker,
    add_source,
};
use tidings_net::{Client, Egress, NetOptions};
use tidings_sim::{
    Ledger, PostgresServer, SimClock, SimServer, World, WorldConfig, cpu_seconds, load_average,
    peak_mib, reset_peak,
};
use tidings_store::{Store, StoreOptions};

use crate::output;

/// Measure the pipeline from feeds to documents, without politeness
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings-bench fetch
  tidings-bench fetch --scrapy python3        beside Scrapy (pip install scrapy trafilatura)
  tidings-bench fetch --only sqlite --sites 100 --articles 50")]
pub(crate) struct FetchArgs {
    #[command(flatten)]
    web: WebArgs,

    /// sqlite or postgres instead of both, or scrapy instead of us
    #[arg(long, value_name = "ENGINE", value_parser = ["sqlite", "postgres", "scrapy"])]
    #[arg(requires_if("scrapy", "scrapy"))]
    only: Option<String>,

    /// A Python that has Scrapy, to crawl the same pages with it; with trafilatura
    /// if it has that too
    #[arg(long, value_name = "PYTHON")]
    scrapy: Option<String>,
}

#[derive(Debug, Args)]
struct WebArgs {
    /// Sites of the simulated web
    #[arg(long, default_value_t = 200)]
    sites: u32,

    /// Articles of each
    #[arg(long, default_value_t = 100)]
    articles: u32,

    /// Size of each page
    #[arg(long, value_name = "BYTES", default_value_t = 40_000)]
    page_bytes: usize,
}

#[derive(Debug, Args)]
pub(crate) struct PagesArgs {
    #[command(flatten)]
    web: WebArgs,
}

impl WebArgs {
    fn config(&self) -> WorldConfig {
        WorldConfig {
            sites: self.sites,
            articles_per_site: self.articles,
            start: Timestamp::UNIX_EPOCH,
            plain_fates: true,
            crawl_delay: Duration::ZERO,
            feed_window: Some(u64::from(self.articles) * 10),
            page_bytes: self.page_bytes,
            ..WorldConfig::new(7)
        }
    }
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    cores: usize,
    load_before: String,
    sites: u32,
    page_bytes: usize,
    figures: Vec<Figure>,
}

/// One crawl.
#[derive(Serialize)]
struct Figure {
    what: String,
    documents: u64,
    seconds: f64,
    pages_per_second: f64,
    /// CPU time for one page, in microseconds: the crawler's and the web's.
    our_cpu_us: f64,
    web_cpu_us: f64,
    peak_mib: f64,
    /// Time for one page of each stage, in microseconds; they overlap.
    #[serde(skip_serializing_if = "Option::is_none")]
    stages: Option<StageTimes>,
}

#[derive(Serialize)]
struct StageTimes {
    claim_us: f64,
    fetch_us: f64,
    read_us: f64,
    commit_us: f64,
}

pub(crate) fn run(args: &FetchArgs, json: bool) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION"),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        load_before: load_average(),
        sites: args.web.sites,
        page_bytes: args.web.page_bytes,
        figures: Vec::new(),
    };
    let wants = |engine: &str| args.only.as_deref().is_none_or(|only| only == engine);
    if wants("sqlite") {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
        let figure = runtime.block_on(crawl(&args.web, "sqlite", &address))?;
        show(&mut report, figure, json)?;
    }
    if wants("postgres") {
        let server = PostgresServer::start(&["shared_buffers=512MB", "max_wal_size=4GB"])
            .context("no PostgreSQL to measure")?;
        let address = server.create_database().context("no database")?;
        let figure = runtime.block_on(crawl(&args.web, "postgres", &address))?;
        show(&mut report, figure, json)?;
    }
    if let Some(python) = &args.scrapy {
        let figure = scrapy(&args.web, python, "scrapy", &[])?;
        show(&mut report, figure, json)?;
        if has_trafilatura(python) {
            // The whole job, as it is usually put together.
            let figure = scrapy(&args.web, python, "+ trafilatura", &["trafilatura"])?;
            show(&mut report, figure, json)?;
        }
    }
    if json {
        output::json(&report)?;
    }
    Ok(())
}

fn show(report: &mut Report, figure: Figure, json: bool) -> anyhow::Result<()> {
    if !json {
        if report.figures.is_empty() {
            output::line(&format!(
                "{} sites, pages of {} bytes, {} cores, load before: {}",
                report.sites, report.page_bytes, report.cores, report.load_before
            ))?;
        }
        output::line(&format!(
            "{:<13} {:>6} documents in {:>6.1} s: {:>6.0} per second; CPU per page {:>5.0} µs, the web's {:>4.0} µs; peak {:>4.0} MiB",
            figure.what,
            figure.documents,
            figure.seconds,
            figure.pages_per_second,
            figure.our_cpu_us,
            figure.web_cpu_us,
            figure.peak_mib
        ))?;
        if let Some(times) = &figure.stages {
            output::line(&format!(
                "          per page: claim {:.0} µs, fetch {:.0} µs, read {:.0} µs, commit {:.0} µs",
                times.claim_us, times.fetch_us, times.read_us, times.commit_us
            ))?;
        }
    }
    report.figures.push(figure);
    Ok(())
}

/// The other side: serves until its standard input ends, which it does when the
/// process that started it is gone, however it ended.
pub(crate) fn serve(args: &PagesArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    runtime.block_on(async {
        let clock = SimClock::manual(Timestamp::UNIX_EPOCH);
        let sim = SimServer::start(args.web.config(), clock, "127.0.0.1:0")
            .await
            .context("cannot serve the simulated web")?;
        output::line(&sim.address().port().to_string())?;
        let wait = || std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let ended = tokio::task::spawn_blocking(wait).await;
        ended
            .context("cannot read standard input")?
            .context("cannot read standard input")?;
        Ok(())
    })
}

/// The simulated web in a process of its own; it ends with this value.
struct Web {
    process: Child,
    world: World,
    port: u16,
}

impl Web {
    fn start(args: &WebArgs) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot locate this executable")?;
        let mut process = Command::new(program)
            .arg("serve-pages")
            .args(["--sites", &args.sites.to_string()])
            .args(["--articles", &args.articles.to_string()])
            .args(["--page-bytes", &args.page_bytes.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the simulated web")?;
        let stdout = process.stdout.take().context("it has no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let port = line.trim().parse().context("it printed no port")?;
        Ok(Self {
            process,
            world: World::new(args.config(), port),
            port,
        })
    }

    fn cpu(&self) -> f64 {
        cpu_seconds(&self.process.id().to_string())
    }

    fn feeds(&self) -> Vec<tidings_url::FetchUrl> {
        // One feed of each site has all that the others have.
        let first = |site: tidings_sim::Site| Some(site.url(&site.feeds.first()?.path));
        self.world.sites().filter_map(first).collect()
    }

    fn published(&self) -> u64 {
        Ledger::new(&self.world, Timestamp::UNIX_EPOCH).published()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        // It has nothing to lose.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn crawl(args: &WebArgs, what: &str, address: &str) -> anyhow::Result<Figure> {
    let web = Web::start(args)?;
    let mut options = StoreOptions::default();
    options.host_delay = Duration::ZERO;
    let store = Store::open(address, &options).await?;
    for url in web.feeds() {
        let draft = SourceDraft {
            name: url.as_str().to_owned(),
            url: url.clone(),
            priority: 5,
            settings: SourceSettings {
                feed_url: Some(url),
                ..SourceSettings::default()
            },
        };
        add_source(&store, &draft).await?;
    }
    let client = Client::new(NetOptions {
        egress: Egress {
            allow: vec!["127.0.0.0/8".parse().context("a range")?],
            ports: vec![web.port..=web.port],
        },
        ..NetOptions::default()
    })?;
    let polls = PollOptions {
        concurrency: 16,
        ..PollOptions::default()
    };
    let context = || FetchContext::new(client.clone(), store.clone());
    let poller = Arc::new(Poller::new(context(), polls));
    let work = FetchOptions {
        ends_when_idle: true,
        ..FetchOptions::default()
    };
    let worker = Arc::new(Worker::new(context(), work));
    reset_peak();
    let (start, ours, theirs) = (Instant::now(), cpu_seconds("self"), web.cpu());
    poller.poll_due(|_| {}).await?;
    worker.run(std::future::pending()).await?;
    let seconds = start.elapsed().as_secs_f64();
    let documents = worker.tally().documents;
    let per_page = |seconds: f64| seconds * 1e6 / documents.max(1) as f64;
    let stages = worker.stages();
    let stage = |nanoseconds: u64| per_page(nanoseconds as f64 / 1e9);
    anyhow::ensure!(
        documents == web.published(),
        "{documents} documents of {} articles: {:?}",
        web.published(),
        worker.tally()
    );
    Ok(Figure {
        what: what.to_owned(),
        documents,
        seconds,
        pages_per_second: documents as f64 / seconds,
        our_cpu_us: per_page(cpu_seconds("self") - ours),
        web_cpu_us: per_page(web.cpu() - theirs),
        peak_mib: peak_mib(),
        stages: Some(StageTimes {
            claim_us: stage(stages.claiming),
            fetch_us: stage(stages.fetching),
            read_us: stage(stages.reading),
            commit_us: stage(stages.committing),
        }),
    })
}

fn has_trafilatura(python: &str) -> bool {
    let import = Command::new(python)
        .args(["-c", "import trafilatura"])
        .stderr(Stdio::null())
        .status();
    import.is_ok_and(|status| status.success())
}

/// The same crawl with Scrapy: feeds to items in a file of JSON lines.
fn scrapy(args: &WebArgs, python: &str, what: &str, more: &[&str]) -> anyhow::Result<Figure> {
    let web = Web::start(args)?;
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let script = folder.path().join("scrapy_peer.py");
    std::fs::write(&script, include_str!("scrapy_peer.py"))?;
    let list = folder.path().join("feeds.txt");
    let mut file = std::fs::File::create(&list)?;
    for url in web.feeds() {
        writeln!(file, "{url}")?;
    }
    let items: PathBuf = folder.path().join("items.jsonl");
    let (start, theirs) = (Instant::now(), web.cpu());
    let done = Command::new(python)
        .arg(&script)
        .args([&list, &items])
        .args(more)
        .stdout(Stdio::piped())
        .spawn()
        .and_then(Child::wait_with_output)
        .with_context(|| format!("cannot run {python}"))?;
    anyhow::ensure!(
        done.status.success(),
        "Scrapy failed; install it with: {python} -m pip install scrapy"
    );
    let seconds = start.elapsed().as_secs_f64();
    let documents = BufReader::new(std::fs::File::open(&items)?).lines().count() as u64;
    // Its last line: CPU seconds and peak memory in MiB.
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    let mut numbers = printed
        .split_whitespace()
        .rev()
        .filter_map(|word| word.parse::<f64>().ok());
    let peak = numbers.next().unwrap_or(0.0);
    let cpu = numbers.next().unwrap_or(0.0);
    let per_page = |seconds: f64| seconds * 1e6 / documents.max(1) as f64;
    Ok(Figure {
        what: what.to_owned(),
        documents,
        seconds,
        pages_per_second: documents as f64 / seconds,
        our_cpu_us: per_page(cpu),
        web_cpu_us: per_page(web.cpu() - theirs),
        peak_mib: peak,
        stages: None,
    })
}
