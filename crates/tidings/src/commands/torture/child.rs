//! Processes that only scenarios need: a worker whose reader can be killed or
//! broken by a page, a submitter that says what was acknowledged, and a cable.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use tidings_engine::{FetchContext, FetchOptions, Worker};
use tidings_extract::{Article, Options, Page};
use tidings_net::Client;
use tidings_sim::TcpRelay;
use tidings_store::{Origin, Store, Submission, Target};
use tidings_url::{FetchUrl, ProxyHosts, Rules};

use crate::config::Config;
use crate::failure::Failure;
use crate::stores;

#[derive(Debug, Args)]
pub(super) struct ChildArgs {
    #[arg(long, hide = true, value_enum)]
    child: Option<Kind>,

    /// The first number of a submitter
    #[arg(long, hide = true, default_value_t = 0)]
    from: u64,

    /// Where a relay listens
    #[arg(long, hide = true, default_value = "127.0.0.1:0")]
    listen: String,

    /// The socket that a relay carries to
    #[arg(long, hide = true, default_value = "socket")]
    to: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Reader,
    Submitter,
    TcpRelay,
}

impl ChildArgs {
    pub(super) fn is_wanted(&self) -> bool {
        self.child.is_some()
    }
}

/// How many URLs are submitted at once.
pub(super) const BATCH: u64 = 20;

pub(super) async fn run(args: &ChildArgs, config: &Config) -> Result<(), Failure> {
    let address = config.store_address();
    let store = || stores::open(&address, config);
    match args.child {
        Some(Kind::Reader) => read(store().await?, config).await,
        Some(Kind::Submitter) => Ok(submit(store().await?, args.from).await?),
        Some(Kind::TcpRelay) => Ok(carry(args).await?),
        None => Ok(()),
    }
}

async fn carry(args: &ChildArgs) -> anyhow::Result<()> {
    let _relay = TcpRelay::start(args.listen.as_str(), &args.to).await?;
    std::future::pending().await
}

async fn read(store: Store, config: &Config) -> Result<(), Failure> {
    let client = Client::new(config.net.options()?).context("the network can't be used")?;
    let outside = FetchContext {
        lease: config.lease,
        ..FetchContext::new(client, store)
    };
    let options = FetchOptions {
        lease: config.lease,
        crash_journal: Some(config.data_dir().join("readings")),
        extractor: extract,
        ..FetchOptions::default()
    };
    let worker = Arc::new(Worker::new(outside, options));
    let worked = worker.run(std::future::pending()).await;
    Ok(worked.map_err(anyhow::Error::new)?)
}

/// Dies of one page and breaks at another.
fn extract(page: &Page<'_>, options: &Options<'_>) -> Article {
    if page.url.ends_with("/poison") {
        std::process::abort();
    }
    assert!(
        !page.url.ends_with("/broken"),
        "a page that breaks its reader"
    );
    tidings_extract::extract(page, options)
}

/// Submits for ever, and says after each batch how far it is.
async fn submit(store: Store, from: u64) -> anyhow::Result<()> {
    let mut next = from;
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
pub(super) fn numbered(number: u64) -> anyhow::Result<Submission> {
    submission(&format!("https://h{}.example/{number}", number % 50))
}

pub(super) fn submission(url: &str) -> anyhow::Result<Submission> {
    let url = FetchUrl::parse(url)?;
    let target = Target {
        key: url.canonical(&Rules::default()).key(),
        host: url.host_key(&ProxyHosts::default()),
        url,
    };
    Ok(Submission::new(target, Origin::Manual))
}
