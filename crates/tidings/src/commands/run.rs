//! `tidings run`: the engine. At this stage there is the simulated web and
//! nothing that reads it yet, so the demo serves it and keeps its ledger.

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tidings_sim::{SimServer, WorldConfig};
use tracing::info;

use crate::commands::sim::{self, WorldArgs};
use crate::config::Config;
use crate::failure::Failure;
use crate::output;
use crate::shutdown::Shutdown;

/// Run Tidings until Ctrl-C
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings run --demo
  tidings run --demo --sites 20 --pace 100")]
pub(crate) struct RunArgs {
    /// Run on a simulated web, offline
    #[arg(long, required = true)]
    demo: bool,

    /// Port of the simulated web; 0 takes any free one
    #[arg(long, default_value_t = 0)]
    sim_port: u16,

    #[command(flatten)]
    world: WorldArgs,
}

pub(crate) fn run(args: &RunArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let world = args.world.world(&config.demo)?;
    let runtime = tokio::runtime::Runtime::new().context("the runtime can't start")?;
    Ok(runtime.block_on(demo(world, args.sim_port, json))?)
}

async fn demo(world: WorldConfig, port: u16, json: bool) -> anyhow::Result<()> {
    let shutdown = Shutdown::listen()?;
    let sim = sim::start(world, port).await?;
    if json {
        output::json(
            &json!({ "sim": format!("http://{}/", sim.address()), "published": sim.ledger().published() }),
        )?;
    } else {
        output::line(&format!("Simulated web: http://{}/", sim.address()))?;
        output::line(&format!(
            "{} sites have published {} articles. Ctrl-C ends it.",
            sim.world().len(),
            sim.ledger().published()
        ))?;
    }
    tokio::select! {
        () = shutdown.requested() => {}
        () = tell(&sim) => {}
    }
    if json {
        return output::json(
            &json!({ "published": sim.ledger().published(), "requests": sim.log().total() }),
        );
    }
    output::line(&format!(
        "{} articles published, {} requests answered.",
        sim.ledger().published(),
        sim.log().total()
    ))
}

async fn tell(sim: &SimServer) {
    loop {
        tokio::time::sleep(sim::PROGRESS_EVERY).await;
        info!(
            published = sim.ledger().published(),
            requests = sim.log().total(),
            "simulated web"
        );
    }
}
