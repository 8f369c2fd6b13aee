//! Turns at a host for requests that are no URLs of the frontier: feeds,
//! sitemaps, robots.txt, probes. They wait for the same gate as the workers, so
//! there is one politeness, over all machines.

use std::time::Duration;

use tidings_url::HostKey;
use tokio::time::Instant;

use crate::engine::{Statement, Value};
use crate::error::Result;
use crate::frontier::{HostChange, Outcome};
use crate::ids::HostId;
use crate::moment::Moment;
use crate::settle::host_rest;
use crate::store::Store;

/// The right to make one request to a host, until the lease ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostPermit {
    pub host: HostId,
    /// Before this moment it was not ours, by the clock of this process.
    pub asked_at: Instant,
    started_at: Moment,
    /// The gap that this host wants between two requests.
    pub delay: Duration,
}

/// Whether it is one's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcquiredHost {
    Now(HostPermit),
    /// Ask again after this.
    Later(Duration),
}

/// How often someone who waits looks whether it is their turn.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

impl Store {
    /// Takes a turn at a host, if it may be asked now.
    pub async fn acquire_host(&self, host: &HostKey, lease: Duration) -> Result<AcquiredHost> {
        let asked_at = Instant::now();
        let now = self.now().await?;
        let id = HostId::of(host);
        let add = "INSERT INTO hosts (host_id, host_key, delay_ms, max_in_flight) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
        let (delay_ms, max_in_flight) = self.host_defaults();
        let add = Statement::passing(
            add,
            [
                Value::Int(id.0),
                Value::from(host.as_str()),
                Value::Int(delay_ms),
                Value::Int(max_in_flight),
            ],
        );
        // As a claim does it: gated for the lease, or for the delay while more
        // requests may be under way. Leases that ended are not counted.
        let take = "UPDATE hosts SET
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
        let take = Statement::turn(take, values);
        let see = Statement::passing(
            "SELECT gate_at, blocked_until FROM hosts WHERE host_id = $1",
            [Value::Int(id.0)],
        );
        let answers = self.run(vec![add, take, see]).await?;
        if let Some(row) = answers[1].rows.first() {
            return Ok(AcquiredHost::Now(HostPermit {
                host: id,
                asked_at,
                started_at: now,
                delay: Duration::from_millis(row.int(0)?.unsigned_abs()),
            }));
        }
        let ready = match answers[2].rows.first() {
            Some(row) => row.int(0)?.max(row.int(1)?),
            None => now.0,
        };
        let wait = ready.saturating_sub(now.0).max(1);
        Ok(AcquiredHost::Later(Duration::from_millis(
            wait.unsigned_abs(),
        )))
    }

    /// Gives a turn back, with what was learned of the host. One whose lease has
    /// ended, and whose place another has taken, changes nothing.
    pub async fn release_host(&self, slot: &HostPermit, change: &HostChange) -> Result<()> {
        let now = self.now().await?;
        let rest = host_rest(change, &Outcome::NotModified { again_in: None });
        let sql = "UPDATE hosts SET in_flight = CASE WHEN in_flight > 0 THEN in_flight - 1 ELSE 0 END,
                delay_ms = coalesce($1, delay_ms),
                gate_at = CASE WHEN last_start_at + coalesce($1, delay_ms) > $2 THEN last_start_at + coalesce($1, delay_ms) ELSE $2 END,
                blocked_until = CASE WHEN blocked_until > $3 THEN blocked_until ELSE $3 END,
                errors = CASE WHEN CAST($4 AS BIGINT) = 1 THEN errors + 1 ELSE 0 END
            WHERE host_id = $5 AND (max_in_flight > 1 OR last_start_at = $6)";
        let values = [
            rest.delay_ms
                .map_or(Value::Null, |ms| Value::Int(i64::from(ms))),
            Value::Int(now.0.saturating_add(rest.rest_ms)),
            Value::Int(rest.blocked_until(now.0)),
            Value::Int(i64::from(rest.errors)),
            Value::Int(slot.host.0),
            Value::from(slot.started_at),
        ];
        self.execute(Statement::passing(sql, values))
            .await
            .map(drop)
    }

    /// Waits for a turn, at most so long.
    pub async fn wait_for_host(
        &self,
        host: &HostKey,
        lease: Duration,
        patience: Duration,
    ) -> Result<AcquiredHost> {
        let deadline = Instant::now() + patience;
        loop {
            match self.acquire_host(host, lease).await? {
                AcquiredHost::Later(wait) if Instant::now() < deadline => {
                    // Whoever is at it may be done long before its lease ends.
                    tokio::time::sleep(wait.min(LOOK_AGAIN)).await;
                }
                turn => return Ok(turn),
            }
        }
    }

    /// Extends a lease by its length from now; false when it is another's.
    pub async fn extend_host_permit(&self, slot: &HostPermit, lease: Duration) -> Result<bool> {
        let until = self.now().await?.plus(lease);
        let sql = "UPDATE hosts SET lease_until = $1, gate_at = CASE WHEN in_flight >= max_in_flight THEN $1 ELSE gate_at END
            WHERE host_id = $2 AND (max_in_flight > 1 OR last_start_at = $3)";
        let values = [
            Value::from(until),
            Value::Int(slot.host.0),
            Value::from(slot.started_at),
        ];
        let changed = self.execute(Statement::turn(sql, values)).await?;
        Ok(changed > 0)
    }
}
