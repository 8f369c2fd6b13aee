//! What every request needs: the store that hands out host permits, the HTTP
//! client, robots.txt, and how long to wait for a permit and hold it.

use std::sync::Arc;
use std::time::Duration;

use tidings_net::{Client, RobotsGate};
use tidings_store::Store;
use tidings_url::ProxyHosts;

use super::robots_cache::StoreRobotsCache;

/// The client and the shared state of polite requests.
#[derive(Debug)]
pub struct FetchContext {
    pub store: Store,
    pub client: Client,
    pub robots: RobotsGate,
    pub proxies: ProxyHosts,
    /// How long to wait for a host permit before the request is deferred.
    pub permit_timeout: Duration,
    /// How long a permit stays held when its holder dies.
    pub lease: Duration,
}

impl FetchContext {
    pub fn new(client: Client, store: Store) -> Self {
        let proxies = store.proxy_hosts().clone();
        let cache = Arc::new(StoreRobotsCache::new(store.clone()));
        Self {
            robots: RobotsGate::new(client.clone(), Some(cache)),
            store,
            client,
            proxies,
            permit_timeout: Duration::from_secs(15),
            lease: Duration::from_secs(60),
        }
    }
}
