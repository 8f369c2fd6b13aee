//! `tidings config`: every setting, its value, and which layer set it.

use clap::Args;
use serde::Serialize;

use crate::config::{Origin, Settings};
use crate::failure::Failure;
use crate::output;

/// Print every setting with its value and where the value comes from
#[derive(Debug, Args)]
#[command(
    after_help = "Later wins: default < tidings.toml < environment < flags.

Examples:
  tidings config
  tidings config --json
  TIDINGS_LOG_LEVEL=debug tidings config --set demo.sites=50"
)]
pub(crate) struct ConfigArgs {}

#[derive(Serialize)]
struct Row<'a> {
    key: &'a str,
    value: String,
    origin: &'a Origin,
    about: &'a str,
}

pub(crate) fn run(_args: &ConfigArgs, settings: &Settings, json: bool) -> Result<(), Failure> {
    let rows: Vec<_> = settings
        .iter()
        .map(|resolved| Row {
            key: resolved.setting.key,
            value: resolved.masked(),
            origin: &resolved.origin,
            about: resolved.setting.about,
        })
        .collect();
    if json {
        return Ok(output::json(&rows)?);
    }
    let cells = |row: &Row<'_>| {
        [
            row.key.to_owned(),
            row.value.clone(),
            row.origin.to_string(),
            row.about.to_owned(),
        ]
    };
    let heading = ["SETTING", "VALUE", "FROM", ""].map(str::to_owned);
    let table: Vec<_> = std::iter::once(heading)
        .chain(rows.iter().map(cells))
        .collect();
    Ok(output::columns(&table)?)
}
