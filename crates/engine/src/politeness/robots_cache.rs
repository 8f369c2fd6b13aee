//! The robots.txt cache of the HTTP client, kept in the store: what one process
//! has fetched, all others use.

use async_trait::async_trait;
use jiff::Timestamp;
use tidings_net::{RobotsCache, RobotsCacheError, RobotsRecord};
use tidings_store::{HostId, Moment, Robots, Store};
use tidings_url::HostKey;

/// Implements [`RobotsCache`] over the store's table of hosts.
#[derive(Debug, Clone)]
pub struct StoreRobotsCache(Store);

impl StoreRobotsCache {
    pub fn new(store: Store) -> Self {
        Self(store)
    }
}

#[async_trait]
impl RobotsCache for StoreRobotsCache {
    async fn get(&self, host: &HostKey) -> Result<Option<RobotsRecord>, RobotsCacheError> {
        let stored = self.0.robots(HostId::of(host)).await?;
        Ok(stored.map(|robots| RobotsRecord {
            status: robots.status,
            body: robots.body,
            fetched_at: timestamp(robots.fetched_at),
            expires_at: timestamp(robots.expires_at),
        }))
    }

    async fn put(&self, host: &HostKey, record: &RobotsRecord) -> Result<(), RobotsCacheError> {
        let robots = Robots {
            status: record.status,
            body: record.body.clone(),
            fetched_at: Moment::from(record.fetched_at),
            expires_at: Moment::from(record.expires_at),
        };
        self.0.put_robots(HostId::of(host), &robots).await?;
        Ok(())
    }
}

/// Moments beyond the calendar mean "never".
fn timestamp(moment: Moment) -> Timestamp {
    Timestamp::from_millisecond(moment.0).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use tidings_store::StoreOptions;

    use super::*;

    #[tokio::test]
    async fn a_record_comes_back_as_it_was_put_and_other_hosts_have_none() {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
        let store = Store::open(&address, &StoreOptions::default())
            .await
            .unwrap();
        let cache = StoreRobotsCache::new(store);
        let host = HostKey::from_stored("a.example");
        assert_eq!(cache.get(&host).await.unwrap(), None);
        let record = RobotsRecord {
            status: 200,
            body: "User-agent: *\nDisallow: /no\n".to_owned(),
            fetched_at: "2026-11-15T08:00:00.125Z".parse().unwrap(),
            expires_at: "2026-11-16T08:00:00.125Z".parse().unwrap(),
        };
        cache.put(&host, &record).await.unwrap();
        assert_eq!(cache.get(&host).await.unwrap(), Some(record));
        let other = HostKey::from_stored("b.example");
        assert_eq!(cache.get(&other).await.unwrap(), None);
    }
}
