//! Small values that all machines share, replaced by compare-and-swap: the price of
//! a poll, the number of polls.

use crate::engine::{Statement, Value};
use crate::error::Result;
use crate::moment::Moment;
use crate::store::Store;

/// One shared value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedValue {
    pub value: String,
    pub n: i64,
    pub at: Moment,
}

/// The counter that every poll of a feed increments.
pub(crate) const POLLS: &str = "polls";

/// What PostgreSQL adds to transaction ids to get change ids: a copy continues the
/// ids of its original, which may be above all transaction ids of the server.
pub(crate) const CHANGE_OFFSET: &str = "change_offset";

impl Store {
    pub async fn shared_value(&self, name: &str) -> Result<Option<SharedValue>> {
        let sql = "SELECT value, n, at FROM marks WHERE name = $1";
        let rows = self.rows(Statement::new(sql, [Value::from(name)])).await?;
        let shared_value = |row: &crate::engine::Row| -> Result<SharedValue> {
            Ok(SharedValue {
                value: row.text(0)?,
                n: row.int(1)?,
                at: row.moment(2)?,
            })
        };
        rows.first().map(shared_value).transpose()
    }

    /// Replaces a value if it is still the one that was seen; false when another
    /// machine was first.
    pub async fn replace_shared_value(
        &self,
        name: &str,
        seen: Option<&SharedValue>,
        new: &SharedValue,
    ) -> Result<bool> {
        let values = [
            Value::from(name),
            Value::from(new.value.as_str()),
            Value::Int(new.n),
            Value::from(new.at),
        ];
        // After a power cut these are leases of nobody, or values to compute again.
        let statement = match seen {
            None => Statement::volatile(
                "INSERT INTO marks (name, value, n, at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                values,
            ),
            Some(seen) => Statement::volatile(
                "UPDATE marks SET value = $2, n = $3, at = $4 WHERE name = $1 AND at = $5 AND n = $6",
                [&values[..], &[Value::from(seen.at), Value::Int(seen.n)]].concat(),
            ),
        };
        Ok(self.execute(statement).await? > 0)
    }

    /// The number of completed feed polls, over all machines.
    pub async fn polls(&self) -> Result<i64> {
        Ok(self.shared_value(POLLS).await?.map_or(0, |polls| polls.n))
    }

    /// The number of polled feeds, and their total demand on the request budget.
    pub async fn feed_demand(&self) -> Result<(u64, f64)> {
        let sql = "SELECT count(*), CAST(coalesce(sum(demand_nano), 0) AS BIGINT) FROM feeds
            WHERE kind = 'feed' AND paused_reason IS NULL
              AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.source_id = feeds.source_id AND s.enabled = 0)";
        let rows = self.rows(Statement::new(sql, [])).await?;
        match rows.first() {
            Some(row) => Ok((row.int(0)?.unsigned_abs(), row.int(1)? as f64 / 1e9)),
            None => Ok((0, 0.0)),
        }
    }
    /// Feeds and sitemaps whose last poll failed, and those that failed at least
    /// this many times in a row; without those of disabled sources.
    pub async fn failing_feeds(&self, many: i64) -> Result<(u64, u64)> {
        let sql = "SELECT count(*), CAST(coalesce(sum(CASE WHEN consecutive_errors >= $1 THEN 1 ELSE 0 END), 0) AS BIGINT) FROM feeds
            WHERE consecutive_errors > 0
              AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.source_id = feeds.source_id AND s.enabled = 0)";
        let rows = self.rows(Statement::new(sql, [Value::Int(many)])).await?;
        match rows.first() {
            Some(row) => Ok((row.int(0)?.unsigned_abs(), row.int(1)?.unsigned_abs())),
            None => Ok((0, 0)),
        }
    }
}
