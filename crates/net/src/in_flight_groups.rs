//! How many requests are in flight to one owner or to one machine, whatever their
//! host names are: by registrable domain and by address, in this process. Politeness
//! per host is the engine's.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidings_url::FetchUrl;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::failure::Failure;

/// A request that waits longer is put back, so that it holds nothing meanwhile.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// When a request that was put back may be tried again.
const RETRY_AFTER: Duration = Duration::from_secs(15);

/// Groups in memory; when there are more, unused ones are dropped.
const MAX_GROUPS: usize = 10_000;

/// Both kinds of groups. `None` is no limit.
pub(crate) struct InFlightGroups {
    domains: Groups<String>,
    addresses: Groups<IpAddr>,
}

struct Groups<K> {
    max: Option<usize>,
    groups: Mutex<HashMap<K, Arc<Semaphore>>>,
}

/// A place in a group, until it is dropped.
pub(crate) type Place = Option<OwnedSemaphorePermit>;

impl InFlightGroups {
    pub(crate) fn new(max_per_domain: Option<usize>, max_per_address: Option<usize>) -> Self {
        Self {
            domains: Groups::new(max_per_domain),
            addresses: Groups::new(max_per_address),
        }
    }

    pub(crate) async fn enter_domain(&self, url: &FetchUrl) -> Result<Place, Failure> {
        let domain = url.registrable_domain();
        let entered = self.domains.enter(domain.to_owned(), MAX_WAIT).await;
        entered.ok_or_else(|| busy(domain))
    }

    /// This machine's own addresses are no group: what is behind them was allowed by
    /// the operator, and may be any number of servers.
    pub(crate) async fn enter_address(&self, address: IpAddr) -> Result<Place, Failure> {
        if address.is_loopback() {
            return Ok(None);
        }
        let entered = self.addresses.enter(address, MAX_WAIT).await;
        entered.ok_or_else(|| busy(&address.to_string()))
    }
}

fn busy(group: &str) -> Failure {
    Failure::HostBusy {
        host: group.to_owned(),
        wait: RETRY_AFTER,
    }
}

impl<K: Eq + Hash> Groups<K> {
    fn new(max: Option<usize>) -> Self {
        Self {
            max,
            groups: Mutex::default(),
        }
    }

    /// `None` when the group is full for too long.
    async fn enter(&self, key: K, max_wait: Duration) -> Option<Place> {
        let Some(max) = self.max else {
            return Some(None);
        };
        let group = {
            // Groups are added and removed whole.
            let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
            if groups.len() >= MAX_GROUPS {
                groups.retain(|_, group| Arc::strong_count(group) > 1);
            }
            let group = groups.entry(key);
            Arc::clone(group.or_insert_with(|| Arc::new(Semaphore::new(max))))
        };
        let entered = tokio::time::timeout(max_wait, group.acquire_owned()).await;
        // The semaphore is never closed.
        entered.ok()?.ok().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_group_is_busy_until_a_place_is_free() {
        let groups: Groups<IpAddr> = Groups::new(Some(2));
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        let first = groups.enter(one, MAX_WAIT).await.unwrap();
        let _second = groups.enter(one, MAX_WAIT).await.unwrap();
        assert!(groups.enter(one, Duration::ZERO).await.is_none());
        assert!(groups.enter(other, Duration::ZERO).await.is_some());
        drop(first);
        assert!(groups.enter(one, Duration::ZERO).await.is_some());
        let unlimited: Groups<IpAddr> = Groups::new(None);
        let places = [
            unlimited.enter(one, MAX_WAIT),
            unlimited.enter(one, MAX_WAIT),
        ];
        for place in places {
            assert!(place.await.unwrap().is_none());
        }
    }

    #[tokio::test]
    async fn loopback_is_no_group() {
        let groups = InFlightGroups::new(Some(1), Some(1));
        for address in ["127.0.0.1", "127.0.0.1", "::1"] {
            let place = groups.enter_address(address.parse().unwrap()).await;
            assert!(place.unwrap().is_none(), "{address}");
        }
        let place = groups.enter_address("192.0.2.1".parse().unwrap()).await;
        assert!(place.unwrap().is_some());
    }
}
