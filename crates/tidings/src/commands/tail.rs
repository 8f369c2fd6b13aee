//! `tidings tail`: what happens to URLs, as it happens.

use std::time::Duration;

use clap::Args;
use tidings_store::{Event, Store};

use super::explain::details;
use crate::config::Config;
use crate::failure::Failure;
use crate::shutdown::Shutdown;
use crate::{output, stores};

/// Follow what happens to URLs: fetched, failed, given up
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings tail
  tidings tail --last 50 --once
  tidings tail --json | jq 'select(.kind == \"dead\")'")]
pub(crate) struct TailArgs {
    /// Start with so many events of the past
    #[arg(long, value_name = "N", default_value_t = 10)]
    last: u32,

    /// Print the past, and end
    #[arg(long)]
    once: bool,
}

const EVERY: Duration = Duration::from_millis(500);
const PAGE: u32 = 1000;

pub(crate) fn run(args: &TailArgs, config: &Config, json: bool) -> Result<(), Failure> {
    stores::with_store(config, async |store| {
        let shutdown = Shutdown::listen()?;
        let following = follow(&store, args, json);
        tokio::select! {
            ended = following => Ok(ended?),
            () = shutdown.requested() => Ok(()),
        }
    })
}

async fn follow(store: &Store, args: &TailArgs, json: bool) -> anyhow::Result<()> {
    let mut after = store.last_event_id().await? - i64::from(args.last);
    loop {
        let events = store.events_after(after, PAGE).await?;
        for event in &events {
            tell(store, event, json).await?;
            after = event.event_id;
        }
        if events.is_empty() {
            if args.once {
                return Ok(());
            }
            tokio::time::sleep(EVERY).await;
        }
    }
}

async fn tell(store: &Store, event: &Event, json: bool) -> anyhow::Result<()> {
    let url = store.url(event.id).await?.map(|row| row.url);
    if json {
        #[derive(serde::Serialize)]
        struct WithUrl<'a> {
            #[serde(flatten)]
            event: &'a Event,
            url: Option<String>,
        }
        return output::json(&WithUrl { event, url });
    }
    let url = url.unwrap_or_else(|| event.id.to_string());
    let line = format!(
        "{}  {:<12}  {url}  {}",
        event.at,
        event.kind,
        details(&event.detail)
    );
    output::line(line.trim_end())
}
