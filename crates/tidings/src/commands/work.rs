//! `tidings work`: the loops of this machine, on a store that others share.

use clap::Args;

use crate::config::Config;
use crate::failure::Failure;
use crate::roles::{Role, Roles};
use crate::shutdown::Shutdown;
use crate::stores;
use crate::watch::Watch;

/// Run only some of the loops, on a store that other machines share
#[derive(Debug, Args)]
#[command(
    after_help = "SIGTERM and Ctrl-C end it in order: what is under way is finished within 30
seconds or given back, and no lease is left.

Examples:
  tidings work --store postgres://me@db/tidings
  tidings work --roles fetch --store postgres://me@db/tidings
  tidings work --roles poll
  tidings work --roles serve"
)]
pub(crate) struct WorkArgs {
    /// Which loops, separated by commas
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "poll,fetch,deliver"
    )]
    roles: Vec<Role>,
}

pub(crate) fn run(args: &WorkArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let net = config.net.options()?;
    stores::with_store(config, async |store| {
        let shutdown = Shutdown::listen()?;
        let roles = Roles::new(&args.roles, &store, net, config).await?;
        roles.announce(json)?;
        let watch = Watch::new(&store, roles.worker().cloned(), json);
        Ok(watch.during(&roles, shutdown.requested()).await?)
    })
}
