//! `tidings migrate-schema`: brings the store to another version of the schema,
//! for the day on which an older program has to go on with it.

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tidings_store::{SCHEMA_VERSION, Store, StoreOptions};

use crate::config::Config;
use crate::failure::Failure;
use crate::output;

/// Bring the store to another version of the schema
#[derive(Debug, Args)]
#[command(
    after_help = "A newer program brings the schema up to date by itself. To go back to an older one,
stop every process, take the newest changes away with the newer program, and start the
older one: it says which version it knows. What only the newer version keeps is lost.

Examples:
  tidings migrate-schema --to 3
  tidings migrate-schema --to 3 --store postgres://me@db/tidings"
)]
pub(crate) struct MigrateSchemaArgs {
    /// The version that the other program knows
    #[arg(long, value_name = "VERSION", value_parser = clap::value_parser!(i64).range(1..=SCHEMA_VERSION))]
    to: i64,
}

pub(crate) fn run(args: &MigrateSchemaArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new().context("the runtime can't start")?;
    let address = config.store_address();
    if let Some(path) = address.strip_prefix("sqlite:")
        && !std::path::Path::new(path).exists()
    {
        return Err(Failure::Command(anyhow::anyhow!("{path} does not exist")));
    }
    let options = StoreOptions::default().at_schema_version(args.to);
    let store = runtime
        .block_on(Store::open(&address, &options))
        .context("the schema was not changed")?;
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
