//! The outbox: pending deliveries of documents to sinks. They are written with the
//! document; here they are claimed and completed, retried, or made dead letters.

use std::time::Duration;

use serde::Serialize;

use crate::delivery::{Delivery, DeliveryVerdict, RetriedDeadLetters};
use crate::engine::{Row, Statement, Value};
use crate::error::Result;
use crate::ids::{FrontierId, HostId, UrlId};
use crate::listing::Cursor;
use crate::moment::{Moment, millis};
use crate::store::Store;

/// A delivery that failed permanently.
#[derive(Debug, Clone, Serialize)]
pub struct DeadLetter {
    pub id: FrontierId,
    pub revision: i64,
    pub reason: String,
    pub died_at: Moment,
}

impl DeadLetter {
    /// The cursor after a page that ends with it.
    pub fn cursor(&self) -> Cursor {
        Cursor {
            position: -self.died_at.0,
            id: self.id,
        }
    }
}

/// The outbox of one sink in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutboxState {
    pub sink: String,
    pub enabled: bool,
    /// Deliveries that it has accepted, each revision counted.
    pub delivered: i64,
    pub waiting: i64,
    pub dead: i64,
    pub oldest: Option<Moment>,
    pub disabled_at: Option<Moment>,
    /// The node that the sink's files are on; none for a service.
    pub node: Option<String>,
    /// When a process last served it.
    pub last_seen: Option<Moment>,
}

fn id(row: &Row) -> Result<FrontierId> {
    Ok(FrontierId {
        host: HostId(row.int(0)?),
        url: UrlId(row.half_key(1)?),
    })
}

impl Store {
    /// Leases due deliveries of one sink, whose documents have at most `max_bytes`
    /// together; at least one, however large. Several deliverers share them: none
    /// gets what another has, or waits for it.
    pub async fn claim_deliveries(
        &self,
        sink: &str,
        limit: u32,
        max_bytes: u64,
        lease: Duration,
    ) -> Result<Vec<Delivery>> {
        self.with_retry("claim_deliveries", || {
            self.engine()
                .claim_deliveries(sink, limit, max_bytes, millis(lease))
        })
        .await
    }

    /// Completes deliveries with the verdicts of a sink, in one transaction. A
    /// verdict about an older revision or a lost lease changes nothing.
    pub async fn complete_deliveries(
        &self,
        sink: &str,
        verdicts: &[(Delivery, DeliveryVerdict)],
    ) -> Result<()> {
        self.with_retry("complete_deliveries", || {
            self.engine().complete_deliveries(sink, verdicts)
        })
        .await
    }

    /// Queues a delivery to a sink for every document that changed since a moment;
    /// returns the number added. Delivery is idempotent.
    pub async fn replay(&self, sink: &str, since: Option<Moment>) -> Result<u64> {
        let now = self.now().await?;
        let sql = "INSERT INTO deliveries (sink, host_id, url_id, revision, attempts, next_attempt_at, created_at)
            SELECT s.name, d.host_id, d.url_id, d.revision, 0, $1, $1 FROM documents d, sinks s
            WHERE s.name = $2 AND d.fetched_at >= $3 AND (s.duplicates = 1 OR d.duplicate_of IS NULL)
            ON CONFLICT (sink, host_id, url_id) DO NOTHING";
        let since = since.unwrap_or(Moment(i64::MIN));
        let values = [Value::from(now), Value::from(sink), Value::from(since)];
        self.execute(Statement::new(sql, values)).await
    }

    /// Queues the dead letters of a sink for delivery again. Those whose documents
    /// are gone are deleted and counted.
    pub async fn retry_dead_letters(&self, sink: &str) -> Result<RetriedDeadLetters> {
        self.with_retry("retry_dead_letters", || {
            self.engine().retry_dead_letters(sink)
        })
        .await
    }

    /// Whether some sink has more pending deliveries than this. Counts no further.
    pub async fn outbox_exceeds(&self, max_pending: u64) -> Result<bool> {
        let sql =
            "SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE sink = $1 LIMIT $2) AS counted";
        let max_pending = i64::try_from(max_pending).unwrap_or(i64::MAX);
        for sink in self.sinks().await? {
            let values = [
                Value::from(sink.as_str()),
                Value::Int(max_pending.saturating_add(1)),
            ];
            let rows = self.rows(Statement::new(sql, values)).await?;
            if rows.first().map_or(Ok(0), |row| row.int(0))? > max_pending {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The names of the enabled sinks.
    pub async fn sinks(&self) -> Result<Vec<String>> {
        let sql = "SELECT name FROM sinks WHERE enabled = 1 ORDER BY name";
        let rows = self.rows(Statement::new(sql, [])).await?;
        rows.iter().map(|row| row.text(0)).collect()
    }

    /// When the next delivery of a sink is due, if any is pending.
    pub async fn next_delivery_due(&self, sink: &str) -> Result<Option<Moment>> {
        let sql = "SELECT min(next_attempt_at) FROM deliveries WHERE sink = $1";
        let rows = self.rows(Statement::new(sql, [Value::from(sink)])).await?;
        rows.first().map_or(Ok(None), |row| row.optional_moment(0))
    }

    /// The dead letters of a sink, newest first, after the end of an earlier page.
    pub async fn dead_letters(
        &self,
        sink: &str,
        after: Option<Cursor>,
        limit: u32,
    ) -> Result<Vec<DeadLetter>> {
        let after = after.unwrap_or(Cursor::START);
        let sql = "SELECT host_id, url_id, revision, reason, died_at FROM dead_letters
            WHERE sink = $1 AND (-died_at, host_id, url_id) > ($2, $3, $4)
            ORDER BY -died_at, host_id, url_id LIMIT $5";
        let values = [
            Value::from(sink),
            Value::Int(after.position),
            Value::Int(after.id.host.0),
            Value::from(&after.id.url.0[..]),
            Value::Int(i64::from(limit)),
        ];
        let rows = self.rows(Statement::new(sql, values)).await?;
        rows.iter()
            .map(|row| {
                Ok(DeadLetter {
                    id: id(row)?,
                    revision: row.int(2)?,
                    reason: row.text(3)?,
                    died_at: row.moment(4)?,
                })
            })
            .collect()
    }

    /// The outbox of every sink in numbers.
    pub async fn outbox(&self) -> Result<Vec<OutboxState>> {
        let sql =
            "SELECT s.name, s.enabled, (SELECT count(*) FROM deliveries d WHERE d.sink = s.name),
                (SELECT count(*) FROM dead_letters l WHERE l.sink = s.name),
                (SELECT min(created_at) FROM deliveries d WHERE d.sink = s.name), s.delivered,
                s.disabled_at, s.node, s.last_seen
            FROM sinks s ORDER BY s.name";
        let rows = self.rows(Statement::new(sql, [])).await?;
        rows.iter()
            .map(|row| {
                Ok(OutboxState {
                    sink: row.text(0)?,
                    enabled: row.int(1)? != 0,
                    waiting: row.int(2)?,
                    dead: row.int(3)?,
                    oldest: row.optional_moment(4)?,
                    delivered: row.int(5)?,
                    disabled_at: row.optional_moment(6)?,
                    node: row.optional_text(7)?,
                    last_seen: row.optional_moment(8)?,
                })
            })
            .collect()
    }
}
