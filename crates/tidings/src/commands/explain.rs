//! `tidings explain`: the whole story of one URL.

use clap::Args;
use tidings_store::{Explanation, Store};

use super::frontier::target;
use crate::config::Config;
use crate::failure::Failure;
use crate::{output, stores};

/// Tell the story of a URL: who found it, each attempt, why it waits
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
    let story = store.explain(target(url)?.id()).await?;
    anyhow::ensure!(
        story.row.is_some() || !story.events.is_empty(),
        "{url} was never submitted; add it with: tidings frontier add {url}"
    );
    if json {
        output::json(&story)
    } else {
        print(&story)
    }
}

fn print(story: &Explanation) -> anyhow::Result<()> {
    match &story.row {
        None => output::line("It is not in the frontier any more.")?,
        Some(row) => {
            let known = [
                ("url", Some(row.url.clone())),
                ("url key", Some(row.url_key.to_string())),
                ("status", Some(row.status.to_string())),
                ("because", row.reason.clone()),
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
    if let Some(target) = story.alias_of {
        output::line(&format!("It is another name of {target}."))?;
    }
    output::line("")?;
    let events: Vec<[String; 3]> = story
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
    for delivery in &story.deliveries {
        output::line(&format!("waits for sink {}", details(delivery)))?;
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
