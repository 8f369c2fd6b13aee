//! `tidings frontier ls`: rows of the frontier, page by page.

use clap::Args;
use tidings_store::{Cursor, Order, Store, UrlRow};

use super::FilterArgs;
use crate::output;

/// List URLs of the frontier
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings frontier ls --status failed --host example.com
  tidings frontier ls --status dead --sort recent
  tidings frontier ls --reason not_found --limit 1000 --json
  tidings frontier ls --all --json > frontier.jsonl")]
pub(crate) struct LsArgs {
    #[command(flatten)]
    filter: FilterArgs,

    /// Max number of URLs
    #[arg(long, default_value_t = 50)]
    limit: u32,

    /// List all matches
    #[arg(long, conflicts_with = "limit")]
    all: bool,

    /// id, newest, recent, due or priority; all but id scan every match
    #[arg(
        long,
        value_name = "ORDER",
        default_value = "id",
        hide_default_value = true
    )]
    sort: Order,

    /// Continue after this cursor, in the same order
    #[arg(long, value_name = "CURSOR", allow_hyphen_values = true)]
    after: Option<Cursor>,
}

const PAGE: u32 = 1000;

pub(super) async fn ls(store: &Store, args: &LsArgs, json: bool) -> anyhow::Result<()> {
    let filter = args.filter.filter();
    let mut left = if args.all { u32::MAX } else { args.limit };
    let mut after = args.after;
    loop {
        let page = store
            .list(&filter, args.sort, after, left.min(PAGE))
            .await?;
        left = left.saturating_sub(page.rows.len() as u32);
        print(&page.rows, json)?;
        match page.next {
            Some(next) if left > 0 => after = Some(next),
            Some(next) if !json => {
                return output::line(&format!("… more: add --after {next}"));
            }
            _ => return Ok(()),
        }
    }
}

fn print(rows: &[UrlRow], json: bool) -> anyhow::Result<()> {
    if json {
        return rows.iter().try_for_each(output::json);
    }
    let cells = |row: &UrlRow| {
        let why = row
            .reason
            .clone()
            .or_else(|| row.last_error.clone())
            .unwrap_or_default();
        let due = row
            .next_fetch_at
            .map(|at| at.to_string())
            .unwrap_or_default();
        [
            row.status.to_string(),
            format!("p{}", row.priority),
            row.origin.to_string(),
            due,
            row.url.clone(),
            why,
        ]
    };
    output::columns(&rows.iter().map(cells).collect::<Vec<_>>())
}
