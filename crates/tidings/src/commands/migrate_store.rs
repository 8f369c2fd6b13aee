//! `tidings migrate-store`: from the embedded store to PostgreSQL, or back.

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tidings_store::copy_store;

use crate::config::Config;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{output, stores};

/// Copy everything from one store to another, and verify it
#[derive(Debug, Args)]
#[command(
    after_help = "Stop everything that uses either store first. An interrupted copy resumes
when it is started again. Events are history of the old store and are not copied.

Examples:
  tidings migrate-store --from sqlite:tidings-data/tidings.db --to postgres://me@db/tidings"
)]
pub(crate) struct MigrateStoreArgs {
    /// The store to read
    #[arg(long, value_name = "ADDRESS")]
    from: String,

    /// The store to write
    #[arg(long, value_name = "ADDRESS")]
    to: String,
}

pub(crate) fn run(args: &MigrateStoreArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    runtime.block_on(copy(args, config, json))
}

async fn copy(args: &MigrateStoreArgs, config: &Config, json: bool) -> Result<(), Failure> {
    if let Some(path) = args.from.strip_prefix("sqlite:")
        && !std::path::Path::new(path).exists()
    {
        return Err(Failure::Command(anyhow::anyhow!("{path} does not exist")));
    }
    let (from, to) = (
        stores::open(&args.from, config).await?,
        stores::open(&args.to, config).await?,
    );
    let mut copied: Vec<(&'static str, u64)> = Vec::new();
    let mut progress: Option<Progress> = None;
    copy_store(&from, &to, |state| {
        if copied.last().is_none_or(|(table, _)| *table != state.table) {
            if let Some(done) = progress.take() {
                done.finish();
            }
            progress = Some(Progress::new(
                &format!("rows of {}", state.table),
                Some(state.total),
            ));
            copied.push((state.table, 0));
        }
        if let (Some(progress), Some((_, count))) = (&mut progress, copied.last_mut()) {
            progress.advance(state.copied - *count);
            *count = state.copied;
        }
    })
    .await
    .context("the copy did not finish; start it again to resume")?;
    if let Some(done) = progress.take() {
        done.finish();
    }
    let rows: u64 = copied.iter().map(|(_, count)| count).sum();
    if json {
        let tables: serde_json::Map<_, _> = copied
            .iter()
            .map(|(table, count)| ((*table).to_owned(), json!(count)))
            .collect();
        return Ok(output::json(
            &json!({ "from": from.place(), "to": to.place(), "rows": rows, "tables": tables, "verified": true }),
        )?);
    }
    Ok(output::line(&format!(
        "{rows} rows copied from {} to {}, counts and checksums agree",
        from.place(),
        to.place()
    ))?)
}
