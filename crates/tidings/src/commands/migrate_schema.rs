//! `tidings migrate-schema`: migrates the schema of the store to another version,
//! for a downgrade to an older program.

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tidings_store::{SCHEMA_VERSION, Store, StoreOptions};

use crate::config::Config;
use crate::failure::Failure;
use crate::output;

/// Migrate the schema
#[derive(Debug, Args)]
#[command(
    after_help = "A newer program migrates the schema when it starts. To downgrade to an older one, stop
every process, migrate down with the newer program, and start the older one: its error
names the version it supports. Data that only the newer version stores is lost.

Examples:
  tidings migrate-schema --to 3
  tidings migrate-schema --to 3 --store postgres://me@db/tidings"
)]
pub(crate) struct MigrateSchemaArgs {
    /// Schema version of the other program
    #[arg(long, value_name = "VERSION", value_parser = clap::value_parser!(i64).range(1..=SCHEMA_VERSION))]
    to: i64,
}

pub(crate) fn run(args: &MigrateSchemaArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    let address = config.store_address();
    if let Some(path) = address.strip_prefix("sqlite:")
        && !std::path::Path::new(path).exists()
    {
        return Err(Failure::Command(anyhow::anyhow!("{path} does not exist")));
    }
    let mut options = StoreOptions::default().at_schema_version(args.to);
    options.pooler = config.has_pooler;
    let store = runtime
        .block_on(Store::open(&address, &options))
        .context("the schema was not migrated")?;
    match json {
        true => output::json(&json!({ "store": store.location(), "schema_version": args.to }))?,
        false => output::line(&format!(
            "{} has schema version {}",
            store.location(),
            args.to
        ))?,
    }
    Ok(())
}
