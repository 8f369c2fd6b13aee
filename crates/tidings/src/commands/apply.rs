//! `tidings apply`: syncs the sources with a file.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use tidings_engine::{Applied, apply, read_sources};

use crate::config::Config;
use crate::failure::Failure;
use crate::{output, stores};

/// Sync sources from a TOML file
#[derive(Debug, Args)]
#[command(
    after_help = "Sources in the file are added or changed; other sources stay as they are, or are
removed with --prune. Nothing is written if anything in the file is invalid.

A file:
  [[source]]
  name = \"Example\"
  url = \"https://example.com/\"
  feed_url = \"https://example.com/feed.xml\"   # without it the feed is discovered
  tags = [\"local\"]
  priority = 8                                # 1 to 10, default 5
  rate_limit = 0.5                            # max requests per second

Examples:
  tidings apply sources.toml --dry-run
  tidings apply sources.toml"
)]
pub(crate) struct ApplyArgs {
    file: PathBuf,

    /// Remove sources that the file does not name
    #[arg(long)]
    prune: bool,

    /// Print the changes, and write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &ApplyArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let place = args.file.display();
    let text =
        std::fs::read_to_string(&args.file).with_context(|| format!("{place} can't be read"))?;
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| anyhow::anyhow!("{place}: {error}"))?;
    let file = serde_json::to_value(table).context("the file can't be read")?;
    let drafts = read_sources(&file).map_err(|error| anyhow::anyhow!("{place}:\n{error}"))?;
    stores::with_store(config, async |store| {
        let applied = apply(&store, &drafts, args.prune, args.dry_run)
            .await
            .with_context(|| format!("{place} was not applied"))?;
        match json {
            true => output::json(&applied)?,
            false => print(&applied, args.dry_run)?,
        }
        Ok(())
    })
}

fn print(applied: &Applied, dry_run: bool) -> anyhow::Result<()> {
    let verbs = match dry_run {
        true => ["would be added", "would be changed", "would be removed"],
        false => ["added", "changed", "removed"],
    };
    let lists = [&applied.added, &applied.changed, &applied.removed];
    for (verb, names) in verbs.iter().zip(lists) {
        for name in names {
            output::line(&format!("{verb}  {name}"))?;
        }
    }
    let [added, changed, removed] = lists.map(Vec::len);
    output::line(&format!(
        "{added} {}, {changed} {}, {removed} {}, {} unchanged",
        verbs[0], verbs[1], verbs[2], applied.unchanged
    ))
}
