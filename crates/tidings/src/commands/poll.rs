//! `tidings poll`: polls what is due, once or until it is asked to end.

use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use tidings_engine::{FetchContext, PollOptions, PollOutcome, PollReport, Poller};
use tidings_net::Client;

use crate::config::Config;
use crate::failure::Failure;
use crate::shutdown::Shutdown;
use crate::{output, stores};

/// Poll the feeds that are due, and submit what is new
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings poll --once            poll what is due now, and end
  tidings poll                   poll on, until Ctrl-C; any number of machines may
  tidings poll --once --json")]
pub(crate) struct PollArgs {
    /// Poll what is due now, and end
    #[arg(long)]
    once: bool,

    /// Feeds polled at once
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=500))]
    at_once: u16,
}

#[derive(Default)]
struct Sum {
    polls: usize,
    new: usize,
    failed: usize,
}

pub(crate) fn run(args: &PollArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let net = config.net.options()?;
    stores::with_store(config, async |store| {
        let shutdown = Shutdown::listen()?;
        let client = Client::new(net).context("the network can't be used")?;
        let options = PollOptions {
            concurrency: usize::from(args.at_once),
            ..PollOptions::default()
        };
        let poller = Arc::new(Poller::new(FetchContext::new(client, store), options));
        let mut sum = Sum::default();
        let mut ended = |poll: &PollReport| {
            sum.polls += 1;
            sum.new += poll.items_new;
            sum.failed += usize::from(poll.outcome == PollOutcome::Failed);
            // A closed pipe ends the program; nothing else can go wrong here.
            let _ = tell(poll, json);
        };
        if args.once {
            poller
                .poll_due(&mut ended)
                .await
                .context("feeds can't be polled")?;
        } else {
            poller
                .run(shutdown.requested(), &mut ended)
                .await
                .context("feeds can't be polled")?;
        }
        if !json {
            let Sum { polls, new, failed } = sum;
            output::line(&format!("{polls} polled, {new} new, {failed} failed"))?;
        }
        Ok(())
    })
}

fn tell(poll: &PollReport, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(poll);
    }
    let what = match (&poll.error, poll.outcome) {
        (Some(error), _) => format!("failed: {error}"),
        (None, PollOutcome::Ok) => format!("{} items, {} new", poll.items_seen, poll.items_new),
        (None, PollOutcome::NotModified) => "not modified".to_owned(),
        (None, PollOutcome::SameBody) => "the same body".to_owned(),
        (None, PollOutcome::Found) => "its feed was found".to_owned(),
        (None, _) => "the same items".to_owned(),
    };
    let minutes = poll.next_poll_in.as_secs().div_ceil(60);
    output::line(&format!("{}  {what}; again in {minutes} min", poll.url))
}
