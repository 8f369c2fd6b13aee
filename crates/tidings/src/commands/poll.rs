//! `tidings poll`: polls due feeds, once or until a shutdown is requested.

use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use tidings_engine::{FetchContext, PollOptions, PollOutcome, PollReport, Poller};
use tidings_net::Client;

use crate::config::Config;
use crate::failure::Failure;
use crate::shutdown::Shutdown;
use crate::{output, stores};

/// Poll due feeds, and submit new items
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings poll --once            poll what is due now, and exit
  tidings poll                   poll until Ctrl-C, on any number of machines
  tidings poll --once --json")]
pub(crate) struct PollArgs {
    /// Poll what is due now, and exit
    #[arg(long)]
    once: bool,

    /// Feeds polled concurrently
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=500))]
    concurrency: u16,
}

#[derive(Default)]
struct Totals {
    polls: usize,
    new: usize,
    failed: usize,
}

pub(crate) fn run(args: &PollArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let net = config.net.options()?;
    stores::with_store(config, async |store| {
        let shutdown = Shutdown::listen()?;
        let client = Client::new(net).context("cannot create the HTTP client")?;
        let options = PollOptions {
            concurrency: usize::from(args.concurrency),
            ..config.poll_options()
        };
        let poller = Arc::new(Poller::new(FetchContext::new(client, store), options));
        let mut totals = Totals::default();
        let mut report = |poll: &PollReport| {
            totals.polls += 1;
            totals.new += poll.items_new;
            totals.failed += usize::from(poll.outcome == PollOutcome::Failed);
            // A closed pipe ends the program; other errors of the output are ignored.
            let _ = print(poll, json);
        };
        if args.once {
            poller
                .poll_due(&mut report)
                .await
                .context("cannot poll feeds")?;
        } else {
            poller
                .run(shutdown.requested(), &mut report)
                .await
                .context("cannot poll feeds")?;
        }
        if !json {
            let Totals { polls, new, failed } = totals;
            output::line(&format!("{polls} polled, {new} new, {failed} failed"))?;
        }
        Ok(())
    })
}

fn print(poll: &PollReport, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(poll);
    }
    let remark = poll.error.as_deref().unwrap_or_default();
    let what = match poll.outcome {
        PollOutcome::Failed => format!("failed: {remark}"),
        PollOutcome::Ok => format!("{} items, {} new", poll.items_seen, poll.items_new),
        PollOutcome::NotModified => "not modified".to_owned(),
        PollOutcome::SameBody => "unchanged body".to_owned(),
        PollOutcome::Found => "feed discovered".to_owned(),
        PollOutcome::Redundant => "unchanged items".to_owned(),
    };
    let what = match poll.outcome {
        PollOutcome::Failed => what,
        _ if remark.is_empty() => what,
        _ => format!("{what}; {remark}"),
    };
    let minutes = poll.next_poll_in.as_secs().div_ceil(60);
    output::line(&format!("{}  {what}; next poll in {minutes} min", poll.url))
}
