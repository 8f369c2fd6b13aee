//! Processes that only scenarios need: a worker whose extractor can be crashed by
//! a page, a submitter that prints what was acknowledged, and a TCP relay.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use tidings_engine::{FetchContext, FetchOptions, Worker};
use tidings_extract::{Article, Options, Page};
use tidings_net::{Client, Egress, NetOptions};
use tidings_sim::TcpRelay;
use tidings_store::{Origin, Store, StoreOptions, Submission, Target};
use tidings_url::{FetchUrl, ProxyHosts, Rules};

use crate::environment::HOST_DELAY;

#[derive(Debug, Subcommand)]
pub(crate) enum Child {
    Worker(WorkerArgs),
    Submitter(SubmitterArgs),
    Relay(RelayArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    #[arg(long)]
    store: String,

    /// The port of the pages, on loopback
    #[arg(long)]
    port: u16,

    #[arg(long)]
    lease_seconds: u64,

    /// Folder of the crash journal
    #[arg(long)]
    journal: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct SubmitterArgs {
    #[arg(long)]
    store: String,

    /// The number of the first URL
    #[arg(long)]
    from: u64,
}

#[derive(Debug, Args)]
pub(crate) struct RelayArgs {
    #[arg(long)]
    listen: String,

    /// The Unix socket that connections are forwarded to
    #[arg(long)]
    to: PathBuf,
}

/// URLs per submit.
pub(crate) const BATCH: u64 = 20;

impl Child {
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Worker(args) => work(args).await,
            Self::Submitter(args) => submit(args).await,
            Self::Relay(args) => relay(args).await,
        }
    }
}

async fn relay(args: &RelayArgs) -> anyhow::Result<()> {
    let _relay = TcpRelay::start(args.listen.as_str(), &args.to).await?;
    std::future::pending().await
}

async fn work(args: &WorkerArgs) -> anyhow::Result<()> {
    let mut options = StoreOptions::default();
    options.host_delay = HOST_DELAY;
    let store = Store::open(&args.store, &options).await?;
    let client = Client::new(NetOptions {
        egress: Egress {
            allow: vec!["127.0.0.0/8".parse().context("the loopback network")?],
            ports: vec![args.port..=args.port],
        },
        ..NetOptions::default()
    })
    .context("cannot set up the HTTP client")?;
    let lease = Duration::from_secs(args.lease_seconds);
    let context = FetchContext {
        lease,
        ..FetchContext::new(client, store)
    };
    let options = FetchOptions {
        lease,
        crash_journal: Some(args.journal.clone()),
        extractor: extract,
        ..FetchOptions::default()
    };
    let worker = Arc::new(Worker::new(context, options));
    Ok(worker.run(std::future::pending()).await?)
}

/// Aborts the process on one page and panics on another.
fn extract(page: &Page<'_>, options: &Options<'_>) -> Article {
    if page.url.ends_with("/abort") {
        std::process::abort();
    }
    assert!(
        !page.url.ends_with("/panic"),
        "a page that panics the extractor"
    );
    tidings_extract::extract(page, options)
}

/// Submits until it is killed, and prints after each batch how many URLs were
/// acknowledged.
async fn submit(args: &SubmitterArgs) -> anyhow::Result<()> {
    let store = Store::open(&args.store, &StoreOptions::default()).await?;
    let mut next = args.from;
    loop {
        let batch = (next..next + BATCH)
            .map(numbered)
            .collect::<anyhow::Result<Vec<_>>>()?;
        store.submit(&batch).await?;
        next += BATCH;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{next}").and_then(|()| out.flush())?;
    }
}

/// The same URL for the same number.
fn numbered(number: u64) -> anyhow::Result<Submission> {
    submission(&format!("https://h{}.example/{number}", number % 50))
}

pub(crate) fn submission(url: &str) -> anyhow::Result<Submission> {
    let url = FetchUrl::parse(url)?;
    let target = Target {
        key: url.canonical(&Rules::default()).key(),
        host: url.host_key(&ProxyHosts::default()),
        url,
    };
    Ok(Submission::new(target, Origin::Manual))
}
