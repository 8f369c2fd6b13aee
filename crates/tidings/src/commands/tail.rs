//! `tidings tail`: follows the event log of the frontier.

use std::time::Duration;

use clap::Args;
use tidings_store::{Event, Store};

use super::explain::details;
use crate::config::Config;
use crate::failure::Failure;
use crate::shutdown::Shutdown;
use crate::{output, stores};

/// Follow the events of URLs: fetched, failed, dead
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings tail
  tidings tail --lines 50 --no-follow
  tidings tail --json | jq 'select(.kind == \"dead\")'")]
pub(crate) struct TailArgs {
    /// Start with the last N events
    #[arg(long, value_name = "N", default_value_t = 10)]
    lines: u32,

    /// Print the last events, and exit
    #[arg(long)]
    no_follow: bool,
}

const POLL_INTERVAL: Duration = Duration::from_millis(500);
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
    let mut after = store.last_event_id().await? - i64::from(args.lines);
    loop {
        let events = store.events_after(after, PAGE).await?;
        for event in &events {
            print(store, event, json).await?;
            after = event.event_id;
        }
        if events.is_empty() {
            if args.no_follow {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

async fn print(store: &Store, event: &Event, json: bool) -> anyhow::Result<()> {
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
