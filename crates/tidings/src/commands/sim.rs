//! `tidings sim`: serves the simulated web, for a person to look at or for a
//! program to crawl.

use anyhow::Context as _;
use clap::Args;
use tidings_sim::{SimClock, SimServer, WorldConfig};
use tracing::info;

use crate::config::{Config, DemoConfig};
use crate::failure::Failure;
use crate::output;
use crate::shutdown::Shutdown;

/// Serve a simulated web on this machine until Ctrl-C
#[derive(Debug, Args)]
#[command(
    after_help = "The same seed makes the same web. Open the printed address in a browser: it
lists the sites, the ledger of what was published, and the log of requests.

Examples:
  tidings sim --sites 200 --seed 7
  tidings sim --sites 20 --defects 50 --faults 30     half of the feeds broken
  tidings sim --pace 100                              news every few seconds"
)]
pub(crate) struct SimArgs {
    #[command(flatten)]
    pub(crate) world: WorldArgs,

    /// Port on 127.0.0.1; 0 takes any free one
    #[arg(long, default_value_t = 8420)]
    port: u16,
}

/// What kind of web to simulate; the command line wins over `demo.*` settings.
#[derive(Debug, Args)]
pub(crate) struct WorldArgs {
    /// Number of sites [setting: demo.sites]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    sites: Option<u32>,

    /// Articles that each site starts with [setting: demo.articles]
    #[arg(long, value_name = "N")]
    articles: Option<u32>,

    /// Everything follows from it [setting: demo.seed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Publish this many times as fast
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pace: f64,

    /// How many of a hundred feeds are broken in some way
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u8).range(0..=100))]
    defects: u8,

    /// How many of a hundred sites have passing faults; 30 if no number is given
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_value_t = 0, default_missing_value = "30",
        value_parser = clap::value_parser!(u8).range(0..=100))]
    faults: u8,
}

impl WorldArgs {
    pub(crate) fn world(&self, demo: &DemoConfig) -> anyhow::Result<WorldConfig> {
        anyhow::ensure!(
            self.pace.is_finite() && self.pace > 0.0,
            "--pace {} is not a positive number",
            self.pace
        );
        let articles = self.articles.unwrap_or(demo.articles);
        Ok(WorldConfig {
            sites: self.sites.unwrap_or(demo.sites),
            articles_per_site: articles,
            pace: self.pace,
            defect_percent: self.defects,
            fault_percent: self.faults,
            latency: true,
            // A feed shows everything, so that the ledger can add up.
            feed_window: Some(u64::from(articles) * 10 + 100),
            ..WorldConfig::new(self.seed.unwrap_or(demo.seed))
        })
    }
}

pub(crate) fn run(args: &SimArgs, config: &Config) -> Result<(), Failure> {
    let world = args.world.world(&config.demo)?;
    let runtime = tokio::runtime::Runtime::new().context("the runtime can't start")?;
    Ok(runtime.block_on(serve(world, args.port))?)
}

async fn serve(world: WorldConfig, port: u16) -> anyhow::Result<()> {
    let shutdown = Shutdown::listen()?;
    let clock = SimClock::running(world.start, 1.0);
    let sim = start(world, clock, port).await?;
    output::line(&format!("Simulated web: http://{}/", sim.address()))?;
    output::line(&format!("One of its sites: {}", sim.world().site(0).home()))?;
    output::line("Ctrl-C ends it.")?;
    shutdown.requested().await;
    output::line(&format!("{} requests answered.", sim.log().total()))
}

pub(crate) async fn start(
    world: WorldConfig,
    clock: SimClock,
    port: u16,
) -> anyhow::Result<SimServer> {
    let sim = SimServer::start(world, clock, ("127.0.0.1", port))
        .await
        .with_context(|| format!("port {port} on 127.0.0.1 can't be used; try another --port"))?;
    info!(address = %sim.address(), sites = sim.world().len(), "simulated web started");
    Ok(sim)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        world: WorldArgs,
    }

    #[test]
    fn the_share_of_faults_may_be_left_out() {
        let rows: [(&[&str], Option<u8>); 5] = [
            (&[], Some(0)),
            (&["--faults"], Some(30)),
            (&["--faults", "--sites", "3"], Some(30)),
            (&["--faults", "20"], Some(20)),
            (&["--faults", "101"], None),
        ];
        for (args, faults) in rows {
            let line = Line::try_parse_from(["line"].iter().chain(args));
            assert_eq!(line.ok().map(|line| line.world.faults), faults, "{args:?}");
        }
    }
}
