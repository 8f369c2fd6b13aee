//! `tidings sim`: serves the simulated web, for a browser or a crawler.

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
    after_help = "The same seed generates the same web. Open the printed address in a browser: it
lists the sites, the ledger of what was published, and the log of requests.

Examples:
  tidings sim --sites 200 --seed 7
  tidings sim --sites 20 --defects 50 --faults 30     half of the feeds broken
  tidings sim --pace 100                              new articles every few seconds"
)]
pub(crate) struct SimArgs {
    #[command(flatten)]
    pub(crate) world: WorldArgs,

    /// Port on 127.0.0.1; 0 for any free one
    #[arg(long, default_value_t = 8420)]
    port: u16,
}

/// Parameters of the simulated web; the command line wins over `demo.*` settings.
#[derive(Debug, Args)]
pub(crate) struct WorldArgs {
    /// Number of sites [setting: demo.sites]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    sites: Option<u32>,

    /// Articles that each site starts with [setting: demo.articles]
    #[arg(long, value_name = "N")]
    articles: Option<u32>,

    /// Seed of the random numbers [setting: demo.seed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Speed-up of publication
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pace: f64,

    /// Percentage of feeds with defects
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u8).range(0..=100))]
    defects: u8,

    /// Percentage of sites with temporary faults; 30 without a number
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
            // A feed lists everything, so that every article can be discovered.
            feed_window: Some(u64::from(articles) * 10 + 100),
            ..WorldConfig::new(self.seed.unwrap_or(demo.seed))
        })
    }
}

pub(crate) fn run(args: &SimArgs, config: &Config) -> Result<(), Failure> {
    let world = args.world.world(&config.demo)?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    Ok(runtime.block_on(serve(world, args.port))?)
}

async fn serve(world: WorldConfig, port: u16) -> anyhow::Result<()> {
    let shutdown = Shutdown::listen()?;
    let clock = SimClock::running(world.start, 1.0);
    let sim = start(world, clock, port).await?;
    output::line(&format!("Simulated web: http://{}/", sim.address()))?;
    output::line(&format!("One of its sites: {}", sim.world().site(0).home()))?;
    output::line("Press Ctrl-C to stop.")?;
    shutdown.requested().await;
    output::line(&format!("{} requests served.", sim.log().total()))
}

pub(crate) async fn start(
    world: WorldConfig,
    clock: SimClock,
    port: u16,
) -> anyhow::Result<SimServer> {
    let sim = SimServer::start(world, clock, ("127.0.0.1", port))
        .await
        .with_context(|| format!("cannot bind port {port} on 127.0.0.1; try another --port"))?;
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
    fn the_percentage_of_faults_may_be_omitted() {
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
