//! `tidings frontier`: the URL frontier of the configured store.

mod add;
mod bulk;
mod ls;

pub(crate) use add::target;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use tidings_store::{Filter, HostId, Origin, Stats, Status, Store};
use tidings_url::HostKey;

use crate::config::Config;
use crate::failure::Failure;
use crate::format::number;
use crate::{output, stores};

/// List and change URLs of the frontier
#[derive(Debug, Args)]
pub(crate) struct FrontierArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Add(add::AddArgs),
    Ls(ls::LsArgs),
    Stats(StatsArgs),
    Retry(bulk::BulkArgs),
    Rm(bulk::BulkArgs),
}

/// Which URLs; all filters must match.
#[derive(Debug, Args)]
pub(crate) struct FilterArgs {
    /// pending, fetching, fetched, failed or dead
    #[arg(long)]
    status: Option<Status>,

    /// Host key, for example example.com or example.com:8080
    #[arg(long)]
    host: Option<String>,

    /// Id of their source
    #[arg(long, value_name = "ID")]
    source: Option<i64>,

    /// feed, sitemap, spider, manual, api or agent
    #[arg(long)]
    origin: Option<Origin>,

    /// Reason of their status, for example not_found
    #[arg(long)]
    reason: Option<String>,

    /// Part of the URL
    #[arg(short, long, value_name = "TEXT")]
    query: Option<String>,
}

impl FilterArgs {
    fn filter(&self) -> Filter {
        Filter {
            status: self.status,
            source_id: self.source,
            host: self.host.as_deref().map(host_id),
            origin: self.origin,
            reason: self.reason.clone(),
            text: self.query.clone(),
        }
    }

    fn is_empty(&self) -> bool {
        let Self {
            status,
            host,
            source,
            origin,
            reason,
            query,
        } = self;
        status.is_none()
            && host.is_none()
            && source.is_none()
            && origin.is_none()
            && reason.is_none()
            && query.is_none()
    }
}

fn host_id(host: &str) -> HostId {
    HostId::of(&HostKey::from_stored(host.to_lowercase()))
}

/// Count URLs by status
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings frontier stats
  tidings frontier stats --json --store postgres://me@db/tidings")]
struct StatsArgs {
    /// Also by source or by origin
    #[arg(long)]
    by: Option<By>,

    /// Only the URLs of this host (at most 100,000 are counted)
    #[arg(long, conflicts_with = "by")]
    host: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum By {
    Source,
    Origin,
}

pub(crate) fn run(args: &FrontierArgs, config: &Config, json: bool) -> Result<(), Failure> {
    stores::with_store(config, async |store| match &args.what {
        What::Add(args) => add::add(&store, args, json).await,
        What::Ls(args) => Ok(ls::ls(&store, args, json).await?),
        What::Stats(args) => Ok(stats(&store, args, json).await?),
        What::Retry(args) => Ok(bulk::run(&store, bulk::Action::Retry, args, json).await?),
        What::Rm(args) => Ok(bulk::run(&store, bulk::Action::Remove, args, json).await?),
    })
}

async fn stats(store: &Store, args: &StatsArgs, json: bool) -> anyhow::Result<()> {
    if let Some(host) = &args.host {
        let stats = store.host_stats(host_id(host)).await?;
        if json {
            return output::json(&stats);
        }
        let rows: Vec<[String; 2]> = stats
            .by_status
            .iter()
            .map(|(status, n)| [(*status).to_owned(), number(*n)])
            .collect();
        output::columns(&rows)?;
        if stats.has_more {
            output::line("The host has more URLs; this is a sample.")?;
        }
        return Ok(());
    }
    let stats = store.stats().await?;
    if json {
        return output::json(&stats);
    }
    let mut rows: Vec<[String; 2]> = Status::ALL
        .iter()
        .map(|status| [status.to_string(), number(stats.by_status[status.as_str()])])
        .collect();
    rows.push(["hosts".to_owned(), number(stats.hosts)]);
    output::columns(&rows)?;
    match args.by {
        None => Ok(()),
        Some(by) => grouped(&stats, by),
    }
}

fn grouped(stats: &Stats, by: By) -> anyhow::Result<()> {
    output::line("")?;
    let rows: Vec<[String; 3]> = match by {
        By::Origin => stats
            .by_origin
            .iter()
            .map(|(origin, n)| [(*origin).to_owned(), String::new(), number(*n)])
            .collect(),
        By::Source => stats
            .rows
            .iter()
            .map(|row| {
                [
                    format!("source {}", row.source_id),
                    format!("{} {}", row.origin, row.status),
                    number(row.count),
                ]
            })
            .collect(),
    };
    output::columns(&rows)
}

/// The result of a bulk command, as JSON.
#[derive(Debug, Serialize)]
struct Changed {
    matched: u64,
    changed: u64,
}
