//! One polite request to a host that is not for a URL of the frontier: a turn
//! at its gate, robots.txt first, the answer, and the gate told what was learned.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tidings_net::{Client, Failure, Request, Response, RobotsGate};
use tidings_store::{AcquiredHost, HostPermit, Store};
use tidings_url::ProxyHosts;
use tokio::time::{interval_at, sleep_until};
use tracing::debug;

use crate::robots_cache::StoreRobotsCache;
use crate::way::{PoliteFetch, Politeness};
use crate::work::safe_lease_window;

/// What may be asked of the outside, and by which manners.
#[derive(Debug)]
pub struct FetchContext {
    pub store: Store,
    pub client: Client,
    pub robots: RobotsGate,
    pub proxies: ProxyHosts,
    /// How long to wait for a turn before giving up for now.
    pub patience: Duration,
    /// How long a turn is held when its holder dies.
    pub lease: Duration,
}

/// A request that was made, or not.
#[derive(Debug)]
pub(crate) enum FetchResult {
    Answered(Box<Response>),
    Failed(Failure),
    /// The host has other requests; come again after this.
    NotNow(Duration),
}

impl FetchContext {
    pub fn new(client: Client, store: Store) -> Self {
        let proxies = ProxyHosts::default();
        let cache = Arc::new(StoreRobotsCache::new(store.clone()));
        Self {
            robots: RobotsGate::new(client.clone(), Some(cache), proxies.clone()),
            store,
            client,
            proxies,
            patience: Duration::from_secs(15),
            lease: Duration::from_secs(60),
        }
    }

    /// Asks, politely. An error is our own store's.
    pub(crate) async fn ask(
        &self,
        request: Request,
        manners: Politeness,
    ) -> tidings_store::Result<FetchResult> {
        let host = request.url.host_key(&self.proxies);
        let turn = self.store.wait_for_host(&host, self.lease, self.patience);
        let slot = match turn.await? {
            AcquiredHost::Now(slot) => slot,
            AcquiredHost::Later(wait) => return Ok(FetchResult::NotNow(wait)),
        };
        let way = PoliteFetch::new(self, manners, &request.url, slot.delay);
        let answer = self.while_held(&slot, way.ask(request)).await;
        // Whoever may have the turn by now must not be disturbed.
        let answer = answer.unwrap_or_else(|| {
            Err(Failure::HostBusy {
                host: host.as_str().to_owned(),
                wait: self.lease,
            })
        });
        let learned = way.leave(&answer, Timestamp::now()).await?;
        self.store.release_host(&slot, &learned).await?;
        Ok(match answer {
            Ok(response) => FetchResult::Answered(Box::new(response)),
            Err(Failure::HostBusy { wait, .. }) => FetchResult::NotNow(wait),
            Err(failure) => FetchResult::Failed(failure),
        })
    }

    /// Asks as long as the turn is certainly ours: it is kept alive, and when
    /// that fails (the store is away, or this process was stopped) nothing more
    /// is asked.
    async fn while_held<T>(&self, slot: &HostPermit, asking: impl Future<Output = T>) -> Option<T> {
        let mut asking = pin!(asking);
        let mut until = slot.asked_at + safe_lease_window(self.lease);
        let mut beat = interval_at(slot.asked_at + self.lease / 3, self.lease / 3);
        loop {
            tokio::select! {
                // First: whoever wakes up late must not ask any more.
                biased;
                () = sleep_until(until) => return None,
                answer = &mut asking => return Some(answer),
                now = beat.tick() => match self.store.extend_host_permit(slot, self.lease).await {
                    Ok(true) => until = now + safe_lease_window(self.lease),
                    Ok(false) => return None,
                    Err(error) => debug!(%error, "a turn can't be extended now"),
                },
            }
        }
    }
}
