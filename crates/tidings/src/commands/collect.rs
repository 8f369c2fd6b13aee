//! `tidings collect`: polls all sources once, now.

use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use tidings_engine::{CollectOptions, Collected, FetchContext, PollOptions, Poller};
use tidings_net::Client;

use crate::config::Config;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{output, sinks, stores};

/// Poll all sources once, due or not, and submit new items
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings collect                        all sources
  tidings collect --source hn --source guardian
  tidings collect --dry-run              count new items; writes nothing
  tidings collect --json

A source that fails is reported and does not affect the others. Runs never overlap.")]
pub(crate) struct CollectArgs {
    /// Only this source; may be repeated
    #[arg(long, value_name = "NAME")]
    source: Vec<String>,

    /// Count new items, and write nothing
    #[arg(long)]
    dry_run: bool,

    /// Sources polled concurrently [default: collect.concurrency]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=100))]
    concurrency: Option<u16>,

    /// Max new items per run, shared fairly among the sources [default: collect.max_new_items]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    max_new: Option<u32>,
}

pub(crate) fn run(args: &CollectArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let net = config.net.options()?;
    stores::with_store(config, async |store| {
        let client = Client::new(net).context("cannot create the HTTP client")?;
        let context = FetchContext::new(client, store);
        let options = PollOptions {
            run_sinks: sinks::run_sinks(config)?,
            ..config.poll_options()
        };
        let poller = Arc::new(Poller::new(context, options));
        let usual = poller.collect_options();
        let options = CollectOptions {
            sources: args.source.clone(),
            dry_run: args.dry_run,
            concurrency: args.concurrency.map_or(usual.concurrency, usize::from),
            max_new: args.max_new.map_or(usual.max_new, |max| max as usize),
            ..usual
        };
        let mut progress = Progress::new("sources", None);
        let collected = poller.collect(&options, |_| progress.advance(1)).await;
        progress.finish();
        let collected = collected.context("the run failed")?;
        match json {
            true => output::json(&collected)?,
            false => print(&collected)?,
        }
        match collected.attempted > 0 && collected.succeeded == 0 {
            true => Err(Failure::Command(anyhow::anyhow!("every source failed"))),
            false => Ok(()),
        }
    })
}

fn print(collected: &Collected) -> anyhow::Result<()> {
    let rows: Vec<[String; 4]> = collected
        .sources
        .iter()
        .map(|source| {
            let what = match (&source.error, source.items_left) {
                (Some(error), _) => format!("failed: {error}"),
                (None, 0) => format!("{} items, {} new", source.items_seen, source.items_new),
                (None, left) => format!(
                    "{} items, {} new, {left} left for the next run",
                    source.items_seen, source.items_new
                ),
            };
            let time = format!("{} ms", source.elapsed_ms);
            [source.name.clone(), source.kind.clone(), what, time]
        })
        .collect();
    output::columns(&rows)?;
    let Collected {
        attempted,
        succeeded,
        items_new,
        ..
    } = collected;
    let verb = match collected.dry_run {
        true => "would be new",
        false => "new",
    };
    output::line(&format!(
        "{succeeded} of {attempted} sources, {items_new} {verb}"
    ))
}
