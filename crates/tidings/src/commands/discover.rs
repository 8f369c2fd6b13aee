//! `tidings discover`: which feeds and sitemaps a site has, the best first.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use tidings_engine::discover;
use tidings_feed::discovery::{CandidateKind, Origin, Ranked};
use tidings_net::{Client, RobotsGate};
use tidings_url::{FetchUrl, ProxyHosts};

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
    pause: u64,
}

pub(crate) fn run(args: &DiscoverArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let options = config.net.options()?;
    let runtime = tokio::runtime::Runtime::new().context("the runtime can't start")?;
    let found = runtime.block_on(async {
        let client = Client::new(options).context("the network can't be used")?;
        let robots = RobotsGate::new(client.clone(), None, ProxyHosts::default());
        let mut progress = Progress::new("addresses tried", None);
        let pause = Duration::from_millis(args.pause);
        let found = discover(&client, &robots, &args.url, pause, Timestamp::now(), |_| {
            progress.advance(1);
        })
        .await;
        progress.finish();
        found.with_context(|| format!("{} was not searched", args.url))
    })?;
    if json {
        output::json(&found)?;
    } else {
        output::columns(&rows(&found))?;
    }
    if found.is_empty() {
        let nothing = anyhow::anyhow!("{} has no feed and no sitemap that we can find", args.url);
        return Err(Failure::Command(nothing));
    }
    Ok(())
}

pub(crate) fn rows(found: &[Ranked]) -> Vec<[String; 6]> {
    let row = |ranked: &Ranked| {
        let kind = match ranked.candidate.kind {
            CandidateKind::Feed => "feed",
            CandidateKind::Sitemap => "sitemap",
        };
        let how = match ranked.candidate.origin {
            Origin::Given => "given",
            Origin::LinkElement => "linked",
            Origin::Platform => "by platform",
            Origin::Robots => "robots.txt",
            Origin::Anchor => "link on the page",
            Origin::Guess => "usual place",
        };
        let rate = ranked.items_per_day.map(|rate| format!("{rate:.1} a day"));
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
            how.to_owned(),
        ]
    };
    found.iter().map(row).collect()
}
