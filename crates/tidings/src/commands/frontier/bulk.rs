//! `tidings frontier retry` and `rm`: one URL, some, or all that match.

use anyhow::Context as _;
use clap::Args;
use tidings_store::{FrontierId, Order, Store};

use super::add::target;
use super::{Changed, FilterArgs};
use crate::output;
use crate::progress::Progress;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Retry,
    Remove,
}

/// Change URLs of the frontier: the given ones, or all that match
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings frontier retry --status dead --reason max_retries --dry-run
  tidings frontier retry https://example.com/story
  tidings frontier rm --host example.com")]
pub(crate) struct BulkArgs {
    /// URLs
    #[arg(value_name = "URL")]
    urls: Vec<String>,

    #[command(flatten)]
    filter: FilterArgs,

    /// Every URL of the frontier
    #[arg(long)]
    all: bool,

    /// Print how many would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

const PAGE: u32 = 1000;

pub(super) async fn run(
    store: &Store,
    action: Action,
    args: &BulkArgs,
    json: bool,
) -> anyhow::Result<()> {
    anyhow::ensure!(
        !args.urls.is_empty() || !args.filter.is_empty() || args.all,
        "nothing selected: give URLs, a filter such as --status dead, or --all"
    );
    let (matched, changed) = if args.urls.is_empty() {
        matching(store, action, args).await?
    } else {
        anyhow::ensure!(args.filter.is_empty(), "give URLs or a filter, not both");
        named(store, action, args).await?
    };
    if json {
        return output::json(&Changed { matched, changed });
    }
    let done = match action {
        Action::Retry => "requeued",
        Action::Remove => "removed",
    };
    match args.dry_run {
        true => output::line(&format!("{matched} would be {done}")),
        false => output::line(&format!("{changed} {done}")),
    }
}

async fn apply(store: &Store, action: Action, ids: &[FrontierId]) -> anyhow::Result<u64> {
    Ok(match action {
        Action::Retry => store.requeue(ids).await?,
        Action::Remove => store.remove(ids).await?,
    })
}

async fn named(store: &Store, action: Action, args: &BulkArgs) -> anyhow::Result<(u64, u64)> {
    let mut ids = Vec::with_capacity(args.urls.len());
    for text in &args.urls {
        let id = target(text, store.proxy_hosts())?.id();
        store
            .url(id)
            .await?
            .with_context(|| format!("{text} is not in the frontier"))?;
        ids.push(id);
    }
    let matched = ids.len() as u64;
    let changed = if args.dry_run {
        0
    } else {
        apply(store, action, &ids).await?
    };
    Ok((matched, changed))
}

/// Page by page, so that a million rows need no more memory than a thousand.
async fn matching(store: &Store, action: Action, args: &BulkArgs) -> anyhow::Result<(u64, u64)> {
    let filter = args.filter.filter();
    let matched = store.count(&filter).await?;
    if args.dry_run {
        return Ok((matched, 0));
    }
    let mut progress = Progress::new("URLs", Some(matched));
    let (mut changed, mut after) = (0, None);
    loop {
        let page = store.list(&filter, Order::Id, after, PAGE).await?;
        let ids: Vec<_> = page.rows.iter().map(|row| row.id).collect();
        changed += apply(store, action, &ids).await?;
        progress.advance(ids.len() as u64);
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    progress.finish();
    Ok((matched, changed))
}
