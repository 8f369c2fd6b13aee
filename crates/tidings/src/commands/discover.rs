//! `tidings discover`: the feeds and sitemaps of a site, the best first.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use tidings_engine::discover;
use tidings_feed::discovery::{CandidateKind, Origin, Ranked};
use tidings_net::{Client, RobotsGate};
use tidings_url::FetchUrl;

use crate::config::Config;
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;

/// Find the feeds and sitemaps of a site, the best first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings discover https://example.com/
  tidings discover https://example.com/some/story --json")]
pub(crate) struct DiscoverArgs {
    /// Any page of the site
    url: FetchUrl,

    /// Milliseconds between two requests
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    delay: u64,
}

pub(crate) fn run(args: &DiscoverArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let options = config.net.options()?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    let found = runtime.block_on(async {
        let client = Client::new(options).context("cannot create the HTTP client")?;
        let robots = RobotsGate::new(client.clone(), None);
        let mut progress = Progress::new("URLs probed", None);
        let delay = Duration::from_millis(args.delay);
        let found = discover(&client, &robots, &args.url, delay, Timestamp::now(), |_| {
            progress.advance(1);
        })
        .await;
        progress.finish();
        found.with_context(|| format!("feed discovery failed on {}", args.url))
    })?;
    if json {
        output::json(&found)?;
    } else {
        output::columns(&rows(&found))?;
    }
    if found.is_empty() {
        let not_found = anyhow::anyhow!("no feed or sitemap found on {}", args.url);
        return Err(Failure::Command(not_found));
    }
    Ok(())
}

pub(crate) fn rows(found: &[Ranked]) -> Vec<[String; 6]> {
    let row = |ranked: &Ranked| {
        let kind = match ranked.candidate.kind {
            CandidateKind::Feed => "feed",
            CandidateKind::Sitemap => "sitemap",
        };
        let origin = match ranked.candidate.origin {
            Origin::Given => "the URL itself",
            Origin::LinkElement => "link element",
            Origin::Platform => "platform default",
            Origin::Robots => "robots.txt",
            Origin::Anchor => "link on the page",
            Origin::Guess => "common path",
        };
        let rate = ranked
            .items_per_day
            .map(|rate| format!("{rate:.1} per day"));
        let newest = ranked
            .newest
            .map(|newest| format!("newest {}", newest.strftime("%Y-%m-%d %H:%M")));
        let full = format!("{:.0} % full text", ranked.full_text_share * 100.0);
        [
            kind.to_owned(),
            ranked.candidate.url.clone(),
            format!("{} items", ranked.items),
            [rate, newest]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(", "),
            if kind == "feed" { full } else { String::new() },
            origin.to_owned(),
        ]
    };
    found.iter().map(row).collect()
}
