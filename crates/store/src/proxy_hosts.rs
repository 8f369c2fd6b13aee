//! The gateways that serve many sites. Their list decides host keys, and with them
//! the ids of URLs, so that all machines use the one that is in the store.

use std::sync::Arc;

use tidings_url::ProxyHosts;

use crate::error::Result;
use crate::shared_values::SharedValue;
use crate::store::Store;

/// The name of the shared value.
const PROXY_HOSTS: &str = "proxy_hosts";

impl Store {
    /// The gateways whose host keys have a path segment.
    pub fn proxy_hosts(&self) -> &ProxyHosts {
        &self.proxy_hosts
    }

    /// Takes over the shared list, if there is one.
    pub(crate) async fn read_proxy_hosts(&mut self) -> Result<()> {
        if let Some(shared) = self.shared_value(PROXY_HOSTS).await? {
            self.proxy_hosts = Arc::new(parse(&shared.value));
        }
        Ok(())
    }

    /// Makes this list the shared one: of this handle and its clones, and of all
    /// processes that start later. The list that it replaces, if that was another.
    pub async fn share_proxy_hosts(&mut self, hosts: ProxyHosts) -> Result<Option<ProxyHosts>> {
        let value = hosts.to_string();
        self.proxy_hosts = Arc::new(hosts);
        loop {
            let seen = self.shared_value(PROXY_HOSTS).await?;
            if seen.as_ref().is_some_and(|seen| seen.value == value) {
                return Ok(None);
            }
            let new = SharedValue {
                value: value.clone(),
                n: seen.as_ref().map_or(0, |seen| seen.n + 1),
                at: self.now().await?,
            };
            let is_replaced = self
                .replace_shared_value(PROXY_HOSTS, seen.as_ref(), &new)
                .await?;
            if is_replaced {
                return Ok(seen.map(|seen| parse(&seen.value)));
            }
        }
    }
}

fn parse(value: &str) -> ProxyHosts {
    value.split(',').collect()
}
