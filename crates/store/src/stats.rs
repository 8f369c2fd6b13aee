//! URL totals by status and origin without counting rows: every batch updates the
//! counters.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::engine::Statement;
use crate::error::Result;
use crate::frontier::{Origin, Status};
use crate::ids::HostId;
use crate::store::Store;

/// The frontier in numbers.
#[derive(Debug, Serialize)]
pub struct Stats {
    pub by_status: BTreeMap<&'static str, i64>,
    pub by_origin: BTreeMap<&'static str, i64>,
    /// Counts by source, origin and status; zeros are left out.
    pub rows: Vec<CountRow>,
    pub hosts: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CountRow {
    pub source_id: i64,
    pub origin: Origin,
    pub status: Status,
    pub count: i64,
}

/// The URLs of one host in numbers.
#[derive(Debug, Serialize)]
pub struct HostStats {
    pub by_status: BTreeMap<&'static str, i64>,
    /// The host has more URLs than were counted: these are a sample.
    pub has_more: bool,
}

/// A host with more URLs is described by this many of them. Ids are hashes, so
/// they are a fair sample.
const MAX_COUNTED_PER_HOST: u32 = 100_000;

impl Store {
    /// URL counts of one host by status. Hosts have no counters of their own, so
    /// this counts rows, and stops at a number that takes a fraction of a second.
    pub async fn host_stats(&self, host: HostId) -> Result<HostStats> {
        let mut by_status = zeros();
        for (status, n) in self.count_host(host, MAX_COUNTED_PER_HOST + 1).await? {
            by_status.insert(status.as_str(), n);
        }
        let counted: i64 = by_status.values().sum();
        Ok(HostStats {
            by_status,
            has_more: counted > i64::from(MAX_COUNTED_PER_HOST),
        })
    }

    /// Cheap at any size. `fetching` includes expired leases until their URL is
    /// claimed again.
    pub async fn stats(&self) -> Result<Stats> {
        let statements = vec![
            Statement::new(
                "SELECT source_id, origin, status, CAST(sum(n) AS BIGINT) FROM all_counts GROUP BY source_id, origin, status
                 ORDER BY source_id, origin, status",
                [],
            ),
            Statement::new("SELECT n FROM host_count", []),
        ];
        let results = self.run(statements).await?;
        let mut rows = Vec::new();
        for row in &results[0].rows {
            rows.push(CountRow {
                source_id: row.int(0)?,
                origin: Origin::from_code(row.int(1)?)?,
                status: Status::from_code(row.int(2)?)?,
                count: row.int(3)?,
            });
        }
        rows.retain(|row| row.count != 0);
        let mut by_status = zeros();
        let mut by_origin = BTreeMap::new();
        for row in &rows {
            *by_status.entry(row.status.as_str()).or_insert(0) += row.count;
            *by_origin.entry(row.origin.as_str()).or_insert(0) += row.count;
        }
        let hosts = results[1]
            .rows
            .first()
            .map(|row| row.int(0))
            .transpose()?
            .unwrap_or(0);
        Ok(Stats {
            by_status,
            by_origin,
            rows,
            hosts,
        })
    }
}

fn zeros() -> BTreeMap<&'static str, i64> {
    Status::ALL
        .iter()
        .map(|status| (status.as_str(), 0))
        .collect()
}
