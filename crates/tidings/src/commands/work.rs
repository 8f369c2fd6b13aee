//! `tidings work`: some roles in this process, on a store that others share.

use clap::Args;

use crate::config::Config;
use crate::failure::Failure;
use crate::roles::{Role, Roles};
use crate::run_status::StatusReporter;
use crate::shutdown::Shutdown;
use crate::stores;

/// Run only some roles, on a store that other machines share
#[derive(Debug, Args)]
#[command(
    after_help = "SIGTERM and Ctrl-C shut it down gracefully: what is in flight is finished within 30
seconds or released, and no lease is left.

Examples:
  tidings work --store postgres://me@db/tidings
  tidings work --roles fetch --store postgres://me@db/tidings
  tidings work --roles poll
  tidings work --roles serve"
)]
pub(crate) struct WorkArgs {
    /// Roles to run, comma separated
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
    stores::with_store(config, async |mut store| {
        let shutdown = Shutdown::listen()?;
        stores::share_proxy_hosts(&mut store, config).await?;
        let roles = Roles::new(&args.roles, &store, net, config).await?;
        roles.announce(json)?;
        let reporter = StatusReporter::new(&store, roles.worker().cloned(), json);
        Ok(reporter.run(&roles, shutdown.requested()).await?)
    })
}
