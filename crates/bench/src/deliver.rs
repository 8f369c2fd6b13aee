//! `tidings-bench deliver`: documents per second from the outbox of PostgreSQL to an
//! index, by one `tidings` process and by several. The index is on this machine and
//! responds after a fixed time, as one on another machine would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use serde::Serialize;
use tidings_document::Document;
use tidings_sim::{FakeElasticsearch, PostgresServer, load_average, tidings_binary};
use tidings_store::{
    ClaimRequest, Completion, NewDocument, Origin, Outcome, Store, StoreOptions, Submission, Target,
};
use tidings_url::{FetchUrl, ProxyHosts, Rules};

use crate::output;

/// Measure deliveries to an index by one process and by several
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings-bench deliver
  tidings-bench deliver --processes 1,2,4 --index-ms 20")]
pub(crate) struct DeliverArgs {
    /// Pending documents
    #[arg(long, default_value_t = 20_000)]
    documents: usize,

    /// Numbers of processes
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 2])]
    processes: Vec<usize>,

    /// Time that the index takes for a bulk request
    #[arg(long, value_name = "MS", default_value_t = 100)]
    index_ms: u64,

    /// Repetitions; the fastest of each number counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,

    /// The tidings binary [default: next to this one]
    #[arg(long, value_name = "PATH", env = "TIDINGS_BIN")]
    tidings: Option<PathBuf>,
}

/// One measured row.
#[derive(Debug, Serialize)]
struct Figure {
    processes: usize,
    documents: usize,
    index_ms: u64,
    per_second: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    cores: usize,
    load_before: String,
    figures: Vec<Figure>,
}

const SINK: &str = "index";
/// Words of a text: about that many are in a news article.
const WORDS: usize = 600;
/// Documents of one site.
const PER_HOST: usize = 20;

pub(crate) fn run(args: &DeliverArgs, json: bool) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    let load_before = load_average();
    let figures = runtime.block_on(measure(args))?;
    if json {
        return output::json(&Report {
            version: env!("CARGO_PKG_VERSION"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load_before,
            figures,
        });
    }
    let base = figures.first().map_or(1.0, |figure| figure.per_second);
    for figure in &figures {
        output::line(&format!(
            "{} {:>7.0} documents per second, {:.2} times the first",
            match figure.processes {
                1 => "1 process:  ".to_owned(),
                n => format!("{n} processes:"),
            },
            figure.per_second,
            figure.per_second / base,
        ))?;
    }
    output::line(&format!("load before: {load_before}"))
}

async fn measure(args: &DeliverArgs) -> anyhow::Result<Vec<Figure>> {
    let tidings = tidings_binary(args.tidings.as_deref())?;
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let index = FakeElasticsearch::start().await?;
    index.set_latency(Duration::from_millis(args.index_ms));
    let config = format!(
        "[sinks.{SINK}]\nkind = 'elasticsearch'\nurl = '{}'\n",
        index.url()
    );
    fs::write(folder.path().join("tidings.toml"), config)?;
    // As a small server would be set up; durable, unlike the tests' ones.
    let server = PostgresServer::start(&["shared_buffers=1GB", "max_wal_size=4GB"])
        .context("no PostgreSQL to measure")?;
    let address = server.create_database().context("no database")?;
    let store = fill(&address, args.documents).await?;
    let mut best = vec![0.0_f64; args.processes.len()];
    for _ in 0..args.rounds.max(1) {
        for (best, processes) in best.iter_mut().zip(&args.processes) {
            let run = Delivery {
                tidings: &tidings,
                folder: folder.path(),
                address: &address,
                store: &store,
                index: &index,
            };
            let seconds = run.deliver(*processes, args.documents).await?;
            *best = best.max(args.documents as f64 / seconds);
        }
    }
    let figures = args.processes.iter().zip(best);
    let figure = |(processes, per_second): (&usize, f64)| Figure {
        processes: *processes,
        documents: args.documents,
        index_ms: args.index_ms,
        per_second,
    };
    Ok(figures.map(figure).collect())
}

struct Delivery<'a> {
    tidings: &'a Path,
    folder: &'a Path,
    address: &'a str,
    store: &'a Store,
    index: &'a FakeElasticsearch,
}

impl Delivery<'_> {
    /// How long it takes from the first bulk request until all are delivered.
    async fn deliver(&self, processes: usize, documents: usize) -> anyhow::Result<f64> {
        self.store.replay(SINK, None).await?;
        let outbox = self.store.outbox().await?;
        let waiting: i64 = outbox.iter().map(|sink| sink.waiting).sum();
        ensure!(
            waiting == documents as i64,
            "{waiting} of {documents} documents wait"
        );
        let bulks = || self.index.bulk_sizes().len();
        let before = bulks();
        let mut running = (0..processes)
            .map(|number| self.start(number))
            .collect::<anyhow::Result<Vec<_>>>()?;
        while bulks() == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let begun = Instant::now();
        while self.store.next_delivery_due(SINK).await?.is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            for process in &mut running {
                let exited = process.0.try_wait()?;
                ensure!(exited.is_none(), "a process exited: {exited:?}");
            }
        }
        Ok(begun.elapsed().as_secs_f64())
    }

    fn start(&self, number: usize) -> anyhow::Result<Running> {
        let mut command = Command::new(self.tidings);
        command
            .args(["work", "--roles", "deliver", "--config", "tidings.toml"])
            .args(["--store", self.address, "--log-level", "error"])
            .args(["--data-dir", &format!("process-{number}")])
            .args(["--set", "sink.allow=127.0.0.0/8"])
            .args(["--set", "search.enabled=false"])
            .current_dir(self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Ok(Running(command.spawn().context("cannot start tidings")?))
    }
}

/// Ends with the measurement.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Stores documents as workers do.
async fn fill(address: &str, documents: usize) -> anyhow::Result<Store> {
    let mut options = StoreOptions::default();
    options.host_delay = Duration::ZERO;
    options.max_per_host = 100;
    let store = Store::open(address, &options).await?;
    store.register_sink(SINK, false).await?;
    store.disable_sink(SINK).await?;
    let numbers: Vec<usize> = (0..documents).collect();
    for chunk in numbers.chunks(1000) {
        let urls: Vec<_> = chunk
            .iter()
            .map(|number| target(*number).map(|target| Submission::new(target, Origin::Feed)))
            .collect::<anyhow::Result<_>>()?;
        store.submit(&urls).await?;
    }
    let mut stored = 0;
    while stored < documents {
        let claims = store.claim(&ClaimRequest::new(1, 500)).await?.claims;
        ensure!(
            !claims.is_empty(),
            "{stored} of {documents} documents stored"
        );
        let completions: Vec<_> = claims
            .iter()
            .map(|claim| {
                let outcome = fetched(claim.url.as_str())?;
                Ok(Completion::new(claim.lease_token, outcome))
            })
            .collect::<anyhow::Result<_>>()?;
        stored += store.complete(&completions).await?.len();
    }
    store.enable_sink(SINK).await?;
    Ok(store)
}

fn target(number: usize) -> anyhow::Result<Target> {
    let host = number / PER_HOST;
    parsed(&format!(
        "https://h{host}.example/the-harbour-plan-{number}"
    ))
}

fn parsed(text: &str) -> anyhow::Result<Target> {
    let url = FetchUrl::parse(text)?;
    Ok(Target {
        key: url.canonical(&Rules::default()).key(),
        host: url.host_key(&ProxyHosts::default()),
        url,
    })
}

fn fetched(url: &str) -> anyhow::Result<Outcome> {
    let words = [
        "harbour", "plan", "council", "vote", "Tuesday", "ferry", "pier",
    ];
    let text: Vec<&str> = words.iter().copied().cycle().take(WORDS).collect();
    let document = Document {
        url: url.to_owned(),
        title: format!("The harbour plan: {url}"),
        body_text: text.join(" "),
        word_count: WORDS as u64,
        content_type: "article".to_owned(),
        ..Document::default()
    };
    Ok(Outcome::Fetched {
        etag: None,
        last_modified: None,
        content_hash: Some(url.as_bytes().to_vec()),
        again_in: None,
        document: Some(Box::new(NewDocument {
            key: parsed(url)?.key,
            source_id: 0,
            title: document.title.clone(),
            content_hash: Some(url.as_bytes().to_vec()),
            sketch: None,
            body: serde_json::to_string(&document)?,
        })),
    })
}
