//! Diagnostics for `tidings doctor`: size, overdue hosts and why, expired leases,
//! permanent failures. Read-only, and bounded so that an operator need not wait.

use std::time::Duration;

use crate::engine::{Row, Statement, Value};
use crate::error::Result;
use crate::ids::HostId;
use crate::moment::Moment;
use crate::store::Store;

/// Size and connections of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    pub bytes: u64,
    /// Open connections and their limit, where there is a server.
    pub connections: Option<(u64, u64)>,
}

/// Why the most urgent due URL of a host was not fetched yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Overdue {
    /// No worker has claimed it.
    Ready,
    /// The host has a request in flight, or its delay is not over.
    Gated,
    /// The host is blocked: Retry-After, errors, or an operator.
    Blocked,
}

/// The hosts that are overdue for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverdueHosts {
    pub late: Overdue,
    pub hosts: u64,
    /// The longest overdue of them: how long its URL has been due.
    pub overdue: Duration,
    /// How long it has been ready to be fetched; zero while it is not.
    pub ready_for: Duration,
    pub id: HostId,
    pub host: String,
    pub delay: Duration,
    pub block_reason: Option<String>,
    pub blocked_until: Option<Moment>,
}

/// Leases on URLs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leases {
    pub live: u64,
    /// Expired without completion: their workers are gone.
    pub ended: u64,
    pub longest_ended: Duration,
}

/// URLs that failed permanently for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermanentFailures {
    pub reason: String,
    pub urls: u64,
    pub example: String,
}

/// A sample of this size describes any larger number of dead URLs.
const MAX_SAMPLED_URLS: i64 = 100_000;

impl Store {
    pub async fn diagnostics(&self) -> Result<Diagnostics> {
        let rows = self
            .rows(Statement::new(self.diagnostics_sql(), []))
            .await?;
        let Some(row) = rows.first() else {
            return Err(crate::StoreError::corrupt(
                "query result",
                "no diagnostics row",
            ));
        };
        let (used, max) = (row.optional_int(1)?, row.optional_int(2)?);
        Ok(Diagnostics {
            bytes: row.int(0)?.unsigned_abs(),
            connections: used
                .zip(max)
                .map(|(used, max)| (used.unsigned_abs(), max.unsigned_abs())),
        })
    }

    /// The hosts whose URLs are due, by the reason for the wait. Scans every host
    /// with queued URLs.
    pub async fn overdue_hosts(&self) -> Result<Vec<OverdueHosts>> {
        let now = self.now().await?;
        let mut found = Vec::new();
        for (late, condition, first) in [
            (
                Overdue::Ready,
                "gate_at <= $1 AND blocked_until <= $1",
                "ready_at",
            ),
            (
                Overdue::Gated,
                "gate_at > $1 AND blocked_until <= $1",
                "head_due",
            ),
            (Overdue::Blocked, "blocked_until > $1", "head_due"),
        ] {
            let which =
                format!("FROM hosts WHERE head_priority > 0 AND head_due <= $1 AND {condition}");
            let count = Statement::new(format!("SELECT count(*) {which}"), [Value::from(now)]);
            let oldest = format!(
                "SELECT head_due, ready_at, host_key, delay_ms, block_reason, blocked_until, host_id {which}
                 ORDER BY {first} LIMIT 1"
            );
            let results = self
                .run(vec![count, Statement::new(oldest, [Value::from(now)])])
                .await?;
            let (Some(count), Some(row)) = (results[0].rows.first(), results[1].rows.first())
            else {
                continue;
            };
            let blocked_until = row.moment(5)?;
            found.push(OverdueHosts {
                late,
                hosts: count.int(0)?.unsigned_abs(),
                overdue: now.since(row.moment(0)?),
                ready_for: now.since(row.moment(1)?),
                id: HostId(row.int(6)?),
                host: row.text(2)?,
                delay: Duration::from_millis(row.int(3)?.unsigned_abs()),
                block_reason: row.optional_text(4)?,
                blocked_until: (blocked_until > now).then_some(blocked_until),
            });
        }
        Ok(found)
    }

    /// Counts the leases on URLs.
    pub async fn leases(&self) -> Result<Leases> {
        let now = self.now().await?;
        let sql = format!(
            "SELECT CASE WHEN due_at > $1 THEN 1 ELSE 0 END, count(*), min(due_at) FROM {} WHERE owner IS NOT NULL GROUP BY 1",
            self.lease_sql().leases
        );
        let mut leases = Leases::default();
        for row in self.rows(Statement::new(sql, [Value::from(now)])).await? {
            let count = row.int(1)?.unsigned_abs();
            match row.int(0)? {
                1 => leases.live = count,
                _ => {
                    leases.ended = count;
                    leases.longest_ended = now.since(row.moment(2)?);
                }
            }
        }
        Ok(leases)
    }

    /// Dead URLs by their reason, the most frequent first. Where there are more
    /// than 100,000, these are the first of them, and a fair sample.
    pub async fn permanent_failures(&self, reasons: u32) -> Result<Vec<PermanentFailures>> {
        let sql = "SELECT reason, count(*), min(url) FROM
                (SELECT coalesce(reason, 'unknown') AS reason, url FROM urls WHERE status = 4 ORDER BY host_id, url_id LIMIT $1) AS some_urls
            GROUP BY reason ORDER BY 2 DESC, 1 LIMIT $2";
        let values = [Value::Int(MAX_SAMPLED_URLS), Value::Int(i64::from(reasons))];
        let permanent_failures = |row: &Row| -> Result<PermanentFailures> {
            Ok(PermanentFailures {
                reason: row.text(0)?,
                urls: row.int(1)?.unsigned_abs(),
                example: row.text(2)?,
            })
        };
        let rows = self.rows(Statement::new(sql, values)).await?;
        rows.iter().map(permanent_failures).collect()
    }
}
