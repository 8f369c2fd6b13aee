//! What keeps a store from growing with time: expired rows are deleted in batches,
//! so that other work interleaves, and counter changes are folded into the counters.
//! The report says when that was last done. How long rows are kept is the caller's
//! decision.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::engine::{Statement, Value};
use crate::error::{Result, StoreError};
use crate::moment::{Moment, millis};
use crate::shared_values::SharedValue;
use crate::store::Store;

/// Rows that one batch looks at. Rows of one moment are deleted together, so a batch
/// can be as much larger as one transaction has written at that moment.
const PRUNE_BATCH: i64 = 1000;
/// Counter changes that are folded in one transaction.
const FOLD_BATCH: i64 = 10_000;

/// The shared value that holds the report.
const REPORT_KEY: &str = "maintenance_report";

/// A table whose rows expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpiringTable {
    Events,
    FetchLog,
    SeenTitles,
    SeenGuids,
    Tasks,
    Idempotency,
    Audit,
    Runs,
}

impl ExpiringTable {
    pub fn as_str(self) -> &'static str {
        self.columns().0
    }

    /// The table, the indexed column by which its rows are in the order of their
    /// age, and the column of their age.
    fn columns(self) -> (&'static str, &'static str, &'static str) {
        match self {
            // No index on the time: this is the table with the most inserts.
            Self::Events => ("events", "event_id", "at"),
            Self::FetchLog => ("feed_fetch_log", "started_at", "started_at"),
            Self::SeenTitles => ("seen_titles", "seen_at", "seen_at"),
            Self::SeenGuids => ("seen_guids", "seen_at", "seen_at"),
            Self::Tasks => ("tasks", "created_at", "created_at"),
            Self::Idempotency => ("idempotency", "created_at", "created_at"),
            Self::Audit => ("audit", "at", "at"),
            Self::Runs => ("runs", "started_at", "started_at"),
        }
    }
}

/// The deletion of the expired rows of one table, batch by batch.
#[derive(Debug)]
pub struct Pruning {
    table: ExpiringTable,
    before: Moment,
    /// Nothing that has expired is left up to here. Deleted rows stay in the index
    /// for a while, and are not read again.
    after: i64,
}

impl Pruning {
    /// Of rows that are older than `ttl` at a moment.
    pub fn new(table: ExpiringTable, now: Moment, ttl: Duration) -> Self {
        Self {
            table,
            before: Moment(now.0.saturating_sub(millis(ttl))),
            after: i64::MIN,
        }
    }
}

/// When maintenance last ran, and how many rows it has removed since the store was
/// created, by table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaintenanceReport {
    pub at: Moment,
    pub removed: BTreeMap<String, u64>,
}

impl Store {
    /// Deletes the next batch of expired rows; returns their number, 0 at the end.
    pub async fn prune(&self, pruning: &mut Pruning) -> Result<u64> {
        let (table, order, age) = pruning.table.columns();
        let (after, before) = (Value::Int(pruning.after), Value::from(pruning.before));
        let oldest = format!(
            "SELECT max(place) FROM
                (SELECT {order} AS place, {age} AS age FROM {table} WHERE {order} > $1 ORDER BY {order} LIMIT $3) AS oldest
            WHERE age < $2"
        );
        let values = [after.clone(), before.clone(), Value::Int(PRUNE_BATCH)];
        let rows = self.rows(Statement::new(oldest, values)).await?;
        let last = rows.first().map(|row| row.optional_int(0)).transpose()?;
        let Some(last) = last.flatten() else {
            return Ok(0);
        };
        let delete =
            format!("DELETE FROM {table} WHERE {order} > $1 AND {order} <= $3 AND {age} < $2");
        let values = [after, before, Value::Int(last)];
        let removed = self.execute(Statement::volatile(delete, values)).await?;
        pruning.after = last;
        Ok(removed)
    }

    /// Folds a batch of counter changes into the counters; true when more are left.
    pub async fn fold_counts(&self) -> Result<bool> {
        let Some(sql) = self.engine().fold_counts() else {
            return Ok(false);
        };
        let fold = Statement::volatile(sql, [Value::Int(FOLD_BATCH)]);
        let rows = self.rows(fold).await?;
        let folded = rows.first().map_or(Ok(0), |row| row.int(0))?;
        Ok(folded >= FOLD_BATCH)
    }

    /// When maintenance last ran, if it ever did.
    pub async fn maintenance_report(&self) -> Result<Option<MaintenanceReport>> {
        let report = self.shared_value(REPORT_KEY).await?;
        report.as_ref().map(read_report).transpose()
    }

    /// Records that maintenance has run, and the rows that it removed. For the holder
    /// of the lease: of two that record at a time, one counts.
    pub async fn record_maintenance(&self, removed: &BTreeMap<&str, u64>) -> Result<()> {
        let seen = self.shared_value(REPORT_KEY).await?;
        let mut totals = match &seen {
            Some(seen) => read_report(seen)?.removed,
            None => BTreeMap::new(),
        };
        for (table, count) in removed {
            *totals.entry((*table).to_owned()).or_insert(0) += count;
        }
        let new = SharedValue {
            value: serde_json::to_string(&totals)
                .map_err(|error| StoreError::corrupt("maintenance report", error))?,
            n: seen.as_ref().map_or(0, |seen| seen.n) + 1,
            at: self.now().await?,
        };
        self.replace_shared_value(REPORT_KEY, seen.as_ref(), &new)
            .await
            .map(drop)
    }
}

fn read_report(value: &SharedValue) -> Result<MaintenanceReport> {
    Ok(MaintenanceReport {
        at: value.at,
        removed: serde_json::from_str(&value.value)
            .map_err(|error| StoreError::corrupt("maintenance report", error))?,
    })
}
