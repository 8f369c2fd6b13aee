//! Opening the configured store for a command that needs one.

use anyhow::Context as _;
use tidings_store::{Store, StoreError, StoreOptions};
use tracing::warn;

use crate::config::Config;
use crate::failure::Failure;

/// Opens the store and runs `work` with it. A schema newer than this program is
/// an error of the configuration: it takes another program, or another store.
pub(crate) fn with_store(
    config: &Config,
    work: impl AsyncFnOnce(Store) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    runtime.block_on(async {
        let store = open(&config.store_address(), config).await?;
        work(store).await
    })
}

/// Opens a store with the configured politeness.
pub(crate) async fn open(address: &str, config: &Config) -> Result<Store, Failure> {
    let mut options = StoreOptions::default();
    options.host_delay = config.fetch.host_delay;
    options.max_per_host = config.fetch.max_per_host;
    options.connections = config.store_connections;
    options.pooler = config.has_pooler;
    options.proxy_hosts = config.net.proxy_hosts().cloned().unwrap_or_default();
    Store::open(address, &options)
        .await
        .map_err(|error| match error {
            StoreError::TooNew { .. } | StoreError::Address { .. } => {
                Failure::InvalidConfig(error.into())
            }
            error => Failure::Command(error.into()),
        })
}

/// Makes the gateways that this machine is configured with those of all machines:
/// for processes that fetch.
pub(crate) async fn share_proxy_hosts(store: &mut Store, config: &Config) -> Result<(), Failure> {
    let Some(configured) = config.net.proxy_hosts() else {
        return Ok(());
    };
    let replaced = store.share_proxy_hosts(configured.clone()).await;
    if let Some(before) = replaced.map_err(anyhow::Error::new)? {
        warn!(%before, now = %configured, "net.proxy_hosts changed for all machines; restart those that run");
    }
    Ok(())
}
