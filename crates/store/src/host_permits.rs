//! Host permits for requests outside the frontier: feeds, sitemaps, robots.txt,
//! probes. They share delay, concurrency and blocks with the workers' claims, so
//! politeness holds per host over all machines.

use std::time::Duration;

use tidings_url::HostKey;
use tokio::time::Instant;

use crate::complete::prepare_host_change;
use crate::engine::{Statement, Value};
use crate::error::Result;
use crate::frontier::{HostChange, Outcome};
use crate::ids::HostId;
use crate::moment::Moment;
use crate::store::Store;

/// The right to make one request to a host, until the lease ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostPermit {
    pub host: HostId,
    /// When it was requested, by the clock of this process; it was not held before.
    pub requested_at: Instant,
    started_at: Moment,
    /// The delay between two requests to this host.
    pub delay: Duration,
}

/// The result of an attempt to acquire a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcquiredHost {
    Now(HostPermit),
    /// Try again after this.
    Later(Duration),
}

/// How often a waiting caller tries to acquire the host.
const ACQUIRE_INTERVAL: Duration = Duration::from_millis(250);

impl Store {
    /// Acquires a permit for one request to a host, if it may be fetched now.
    pub async fn acquire_host(&self, host: &HostKey, lease: Duration) -> Result<AcquiredHost> {
        let requested_at = Instant::now();
        let now = self.now().await?;
        let id = HostId::of(host);
        let add = "INSERT INTO hosts (host_id, host_key, delay_ms, max_in_flight) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
        let (delay_ms, max_in_flight) = self.host_defaults();
        let add = Statement::volatile(
            add,
            [
                Value::Int(id.0),
                Value::from(host.as_str()),
                Value::Int(delay_ms),
                Value::Int(max_in_flight),
            ],
        );
        // As in a claim: not ready until the lease ends, or until the delay is over
        // while the host allows more in flight. Expired leases are not counted.
        let acquire = "UPDATE hosts SET
                gate_at = CASE WHEN (CASE WHEN lease_until <= $1 THEN 0 ELSE in_flight END) + 1 < max_in_flight
                    THEN CAST($1 AS BIGINT) + delay_ms ELSE $2 END,
                in_flight = (CASE WHEN lease_until <= $1 THEN 0 ELSE in_flight END) + 1,
                lease_until = CASE WHEN lease_until > $2 THEN lease_until ELSE $2 END,
                last_start_at = $1
            WHERE host_id = $3 AND gate_at <= $1 AND blocked_until <= $1
                AND (lease_until <= $1 OR in_flight < max_in_flight)
            RETURNING delay_ms";
        let values = [
            Value::from(now),
            Value::from(now.plus(lease)),
            Value::Int(id.0),
        ];
        let acquire = Statement::server_durable(acquire, values);
        let state = Statement::volatile(
            "SELECT gate_at, blocked_until FROM hosts WHERE host_id = $1",
            [Value::Int(id.0)],
        );
        let results = self.run(vec![add, acquire, state]).await?;
        if let Some(row) = results[1].rows.first() {
            return Ok(AcquiredHost::Now(HostPermit {
                host: id,
                requested_at,
                started_at: now,
                delay: Duration::from_millis(row.int(0)?.unsigned_abs()),
            }));
        }
        let ready = match results[2].rows.first() {
            Some(row) => row.int(0)?.max(row.int(1)?),
            None => now.0,
        };
        let wait = ready.saturating_sub(now.0).max(1);
        Ok(AcquiredHost::Later(Duration::from_millis(
            wait.unsigned_abs(),
        )))
    }

    /// Releases a permit and applies what the request revealed about the host. One
    /// whose lease has expired, and whose host another holder has acquired, changes
    /// nothing.
    pub async fn release_host(&self, permit: &HostPermit, change: &HostChange) -> Result<()> {
        let now = self.now().await?;
        let change = prepare_host_change(change, &Outcome::NotModified { again_in: None });
        let sql = "UPDATE hosts SET in_flight = CASE WHEN in_flight > 0 THEN in_flight - 1 ELSE 0 END,
                delay_ms = coalesce($1, delay_ms),
                gate_at = CASE WHEN last_start_at + coalesce($1, delay_ms) > $2 THEN last_start_at + coalesce($1, delay_ms) ELSE $2 END,
                blocked_until = CASE WHEN blocked_until > $3 THEN blocked_until ELSE $3 END,
                errors = CASE WHEN CAST($4 AS BIGINT) = 1 THEN errors + 1 ELSE 0 END
            WHERE host_id = $5 AND (max_in_flight > 1 OR last_start_at = $6)";
        let values = [
            change
                .delay_ms
                .map_or(Value::Null, |ms| Value::Int(i64::from(ms))),
            Value::Int(now.0.saturating_add(change.cooldown_ms)),
            Value::Int(change.blocked_until(now.0)),
            Value::Int(i64::from(change.errors)),
            Value::Int(permit.host.0),
            Value::from(permit.started_at),
        ];
        self.execute(Statement::volatile(sql, values))
            .await
            .map(drop)
    }

    /// Waits for a permit, at most until `timeout`.
    pub async fn wait_for_host(
        &self,
        host: &HostKey,
        lease: Duration,
        timeout: Duration,
    ) -> Result<AcquiredHost> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.acquire_host(host, lease).await? {
                AcquiredHost::Later(wait) if Instant::now() < deadline => {
                    // The holder may be done long before its lease ends.
                    tokio::time::sleep(wait.min(ACQUIRE_INTERVAL)).await;
                }
                acquired => return Ok(acquired),
            }
        }
    }

    /// Extends a permit to `lease` from now; false when another holder has the host.
    pub async fn extend_host_permit(&self, permit: &HostPermit, lease: Duration) -> Result<bool> {
        let until = self.now().await?.plus(lease);
        let sql = "UPDATE hosts SET lease_until = $1, gate_at = CASE WHEN in_flight >= max_in_flight THEN $1 ELSE gate_at END
            WHERE host_id = $2 AND (max_in_flight > 1 OR last_start_at = $3)";
        let values = [
            Value::from(until),
            Value::Int(permit.host.0),
            Value::from(permit.started_at),
        ];
        let changed = self.execute(Statement::server_durable(sql, values)).await?;
        Ok(changed > 0)
    }
}
