//! Hosts: politeness limits, blocks and cached robots.txt.

use std::time::Duration;

use serde::Serialize;

use crate::engine::{Row, Statement, Value};
use crate::error::{Result, StoreError};
use crate::ids::{FrontierId, HostId, UrlId};
use crate::moment::{Moment, millis};
use crate::store::Store;

/// The state of one host.
#[derive(Debug, Clone, Serialize)]
pub struct Host {
    #[serde(skip)]
    pub id: HostId,
    pub host: String,
    pub delay_ms: i64,
    pub max_in_flight: i64,
    pub in_flight: i64,
    /// When the next request may start, by politeness or lease.
    pub gate_at: Moment,
    pub blocked_until: Option<Moment>,
    pub block_reason: Option<String>,
    pub last_start_at: Option<Moment>,
    pub errors: i64,
}

/// The cached robots.txt of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Robots {
    /// HTTP status; 0 when there was no response.
    pub status: u16,
    pub body: String,
    pub fetched_at: Moment,
    pub expires_at: Moment,
}

const SELECT: &str = "SELECT host_id, host_key, delay_ms, max_in_flight, in_flight, gate_at, blocked_until, block_reason, last_start_at, errors FROM hosts";

fn host(row: &Row) -> Result<Host> {
    let set = |moment: Moment| (moment.0 > 0).then_some(moment);
    Ok(Host {
        id: HostId(row.int(0)?),
        host: row.text(1)?,
        delay_ms: row.int(2)?,
        max_in_flight: row.int(3)?,
        in_flight: row.int(4)?,
        gate_at: row.moment(5)?,
        blocked_until: set(row.moment(6)?),
        block_reason: row.optional_text(7)?,
        last_start_at: set(row.moment(8)?),
        errors: row.int(9)?,
    })
}

impl Store {
    pub async fn host(&self, id: HostId) -> Result<Option<Host>> {
        let rows = self
            .rows(Statement::new(
                format!("{SELECT} WHERE host_id = $1"),
                [Value::Int(id.0)],
            ))
            .await?;
        rows.first().map(host).transpose()
    }

    /// Hosts in the order of their ids, after one of them.
    pub async fn hosts_after(&self, after: Option<HostId>, limit: u32) -> Result<Vec<Host>> {
        let after = after.map_or(i64::MIN, |id| id.0);
        let sql = format!("{SELECT} WHERE host_id > $1 ORDER BY host_id LIMIT $2");
        let rows = self
            .rows(Statement::new(
                sql,
                [Value::Int(after), Value::Int(i64::from(limit))],
            ))
            .await?;
        rows.iter().map(host).collect()
    }

    /// How long the longest overdue URL has been due. Scans every host with queued
    /// URLs.
    pub async fn longest_overdue(&self) -> Result<Option<Duration>> {
        let now = self.now().await?;
        let sql = "SELECT min(head_due) FROM hosts WHERE head_priority > 0 AND head_due <= $1";
        let rows = self.rows(Statement::new(sql, [Value::from(now)])).await?;
        let due = rows.first().map(|row| row.optional_moment(0)).transpose()?;
        Ok(due.flatten().map(|due| now.since(due)))
    }

    /// Sets the delay and the concurrency of a host.
    pub async fn set_host_limits(
        &self,
        id: HostId,
        delay: Duration,
        max_in_flight: u16,
    ) -> Result<()> {
        let sql = "UPDATE hosts SET delay_ms = $1, max_in_flight = $2 WHERE host_id = $3";
        let values = [
            Value::Int(millis(delay).min(3_600_000)),
            Value::Int(i64::from(max_in_flight.max(1))),
            Value::Int(id.0),
        ];
        self.change_host(Statement::new(sql, values)).await
    }

    /// Blocks a host: after this returns, none of its URLs is leased before `until`.
    pub async fn block_host(&self, id: HostId, until: Moment, reason: &str) -> Result<()> {
        let sql = "UPDATE hosts SET blocked_until = $1, block_reason = $2 WHERE host_id = $3";
        self.change_host(Statement::new(
            sql,
            [Value::from(until), Value::from(reason), Value::Int(id.0)],
        ))
        .await
    }

    /// Ends a block immediately.
    pub async fn unblock_host(&self, id: HostId) -> Result<()> {
        let sql = "UPDATE hosts SET blocked_until = 0, block_reason = NULL WHERE host_id = $1";
        self.change_host(Statement::new(sql, [Value::Int(id.0)]))
            .await
    }

    async fn change_host(&self, statement: Statement) -> Result<()> {
        match self.execute(statement).await? {
            0 => Err(StoreError::not_found("host of this id")),
            _ => Ok(()),
        }
    }

    /// Caches the robots.txt of a host. If it differs from before, URLs that the old
    /// rules disallowed are requeued; returns their number.
    pub async fn put_robots(&self, id: HostId, robots: &Robots) -> Result<u64> {
        let before = self.robots(id).await?;
        let sql = "INSERT INTO robots (host_id, status, body, fetched_at, expires_at) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (host_id) DO UPDATE SET status = excluded.status, body = excluded.body,
                fetched_at = excluded.fetched_at, expires_at = excluded.expires_at";
        let values = [
            Value::Int(id.0),
            Value::Int(i64::from(robots.status)),
            Value::from(crate::storable::storable(&robots.body)),
            Value::from(robots.fetched_at),
            Value::from(robots.expires_at),
        ];
        self.execute(Statement::new(sql, values)).await?;
        let rules = |robots: &Robots| (robots.status, robots.body.clone());
        match before {
            Some(before) if rules(&before) != rules(robots) => self.requeue_disallowed(id).await,
            _ => Ok(0),
        }
    }

    /// Requeues the URLs of a host that its robots.txt disallowed.
    async fn requeue_disallowed(&self, id: HostId) -> Result<u64> {
        let sql = "SELECT url_id FROM urls WHERE host_id = $1 AND status = 4 AND reason = 'robots_blocked'";
        let rows = self.rows(Statement::new(sql, [Value::Int(id.0)])).await?;
        let disallowed = |row: &Row| -> Result<FrontierId> {
            Ok(FrontierId {
                host: id,
                url: UrlId(row.half_key(0)?),
            })
        };
        let ids = rows.iter().map(disallowed).collect::<Result<Vec<_>>>()?;
        self.requeue(&ids).await
    }

    pub async fn robots(&self, id: HostId) -> Result<Option<Robots>> {
        let sql = "SELECT status, body, fetched_at, expires_at FROM robots WHERE host_id = $1";
        let rows = self.rows(Statement::new(sql, [Value::Int(id.0)])).await?;
        let robots = |row: &Row| -> Result<Robots> {
            Ok(Robots {
                status: u16::try_from(row.int(0)?).unwrap_or(0),
                body: row.text(1)?,
                fetched_at: row.moment(2)?,
                expires_at: row.moment(3)?,
            })
        };
        rows.first().map(robots).transpose()
    }
}
