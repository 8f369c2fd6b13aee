//! `tidings explain`: the status and history of one URL.

use clap::Args;
use tidings_store::{Explanation, Store};

use super::frontier::target;
use crate::config::Config;
use crate::failure::Failure;
use crate::{output, stores};

/// Show the history of a URL: its origin, each attempt, its status and why
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings explain https://example.com/story
  tidings explain --json https://example.com/story")]
pub(crate) struct ExplainArgs {
    url: String,
}

pub(crate) fn run(args: &ExplainArgs, config: &Config, json: bool) -> Result<(), Failure> {
    stores::with_store(config, async |store| {
        Ok(explain(&store, &args.url, json).await?)
    })
}

async fn explain(store: &Store, url: &str, json: bool) -> anyhow::Result<()> {
    let explanation = store
        .explain(target(url, store.proxy_hosts())?.id())
        .await?;
    anyhow::ensure!(
        explanation.row.is_some()
            || explanation.alias_of.is_some()
            || !explanation.events.is_empty(),
        "{url} was never submitted; add it with: tidings frontier add {url}"
    );
    if json {
        output::json(&explanation)
    } else {
        print(&explanation)
    }
}

fn print(explanation: &Explanation) -> anyhow::Result<()> {
    match &explanation.row {
        None if explanation.alias_of.is_some() => {}
        None => output::line("It is no longer in the frontier.")?,
        Some(row) => {
            let known = [
                ("url", Some(row.url.clone())),
                ("url key", Some(row.url_key.to_string())),
                ("status", Some(row.status.to_string())),
                ("reason", row.reason.clone()),
                ("host", Some(row.host.clone())),
                ("priority", Some(row.priority.to_string())),
                ("last error", row.last_error.clone()),
                ("next fetch", row.next_fetch_at.map(|at| at.to_string())),
            ];
            let rows: Vec<[String; 2]> = known
                .into_iter()
                .filter_map(|(name, value)| Some([name.to_owned(), value?]))
                .collect();
            output::columns(&rows)?;
        }
    }
    if let Some(target) = explanation.alias_of {
        let verb = match explanation.row {
            Some(_) => "Redirects to",
            None => "Alias of",
        };
        output::line(&format!("{verb} {target}."))?;
    }
    output::line("")?;
    let events: Vec<[String; 3]> = explanation
        .events
        .iter()
        .map(|event| {
            [
                event.at.to_string(),
                event.kind.clone(),
                details(&event.detail),
            ]
        })
        .collect();
    output::columns(&events)?;
    for delivery in &explanation.deliveries {
        output::line(&format!("pending for sink {}", details(delivery)))?;
    }
    Ok(())
}

/// `attempt 2, error reset` instead of JSON; what is null is left out.
pub(crate) fn details(detail: &serde_json::Value) -> String {
    let fields = detail
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, value)| !value.is_null());
    let words = fields.map(|(name, value)| match value {
        serde_json::Value::String(text) => format!("{name} {text}"),
        other => format!("{name} {other}"),
    });
    words.collect::<Vec<_>>().join(", ")
}
