//! The outbox: pending deliveries of documents to sinks. They are written with the
//! document; here they are claimed and completed, retried, or made dead letters.

use std::time::Duration;

use serde::Serialize;

use crate::engine::{Row, Statement, Value};
use crate::error::Result;
use crate::ids::{FrontierId, HostId, UrlId};
use crate::listing::Cursor;
use crate::moment::{Moment, millis};
use crate::storable::storable;
use crate::store::Store;

/// A claimed delivery of a document to a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: FrontierId,
    pub revision: i64,
    /// How often it was claimed, this time included: the fencing number.
    pub attempt: i64,
}

/// The result that a sink reported for one delivery.
#[derive(Debug, Clone)]
pub enum DeliveryVerdict {
    Accepted,
    Retry {
        error: String,
        after: Duration,
    },
    /// It can never succeed.
    Dead {
        reason: String,
    },
}

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
    /// Sets a sink's row. A process registers its sinks with `register_sink`.
    pub async fn put_sink(&self, name: &str, enabled: bool, wants_duplicates: bool) -> Result<()> {
        let now = self.now().await?;
        let sql = "INSERT INTO sinks (name, enabled, duplicates, created_at) VALUES ($1, $2, $3, $4)
            ON CONFLICT (name) DO UPDATE SET enabled = excluded.enabled, duplicates = excluded.duplicates";
        let values = [
            Value::from(name),
            Value::from(enabled),
            Value::from(wants_duplicates),
            Value::from(now),
        ];
        self.execute(Statement::new(sql, values)).await.map(drop)
    }

    /// Leases due deliveries of one sink.
    pub async fn claim_deliveries(
        &self,
        sink: &str,
        limit: u32,
        lease: Duration,
    ) -> Result<Vec<Delivery>> {
        let now = self.now().await?;
        let sql = "UPDATE deliveries SET next_attempt_at = $1, attempts = attempts + 1
            WHERE sink = $2 AND next_attempt_at <= $3 AND (host_id, url_id) IN
                (SELECT host_id, url_id FROM deliveries WHERE sink = $4 AND next_attempt_at <= $5 ORDER BY next_attempt_at LIMIT $6)
            RETURNING host_id, url_id, revision, attempts";
        let values = [
            Value::from(now.plus(lease)),
            Value::from(sink),
            Value::from(now),
            Value::from(sink),
            Value::from(now),
            Value::Int(i64::from(limit)),
        ];
        let rows = self.rows(Statement::new(sql, values)).await?;
        rows.iter()
            .map(|row| {
                Ok(Delivery {
                    id: id(row)?,
                    revision: row.int(2)?,
                    attempt: row.int(3)?,
                })
            })
            .collect()
    }

    /// Completes deliveries with the verdicts of a sink, in one transaction. A
    /// verdict about an older revision or a lost lease changes nothing.
    pub async fn complete_deliveries(
        &self,
        sink: &str,
        verdicts: &[(Delivery, DeliveryVerdict)],
    ) -> Result<()> {
        let now = self.now().await?;
        let mut statements = Vec::with_capacity(verdicts.len());
        for (delivery, verdict) in verdicts {
            let key = [
                Value::from(sink),
                Value::Int(delivery.id.host.0),
                Value::from(&delivery.id.url.0[..]),
                Value::Int(delivery.revision),
                Value::Int(delivery.attempt),
            ];
            const HELD: &str =
                "sink = $1 AND host_id = $2 AND url_id = $3 AND revision = $4 AND attempts = $5";
            match verdict {
                DeliveryVerdict::Accepted => {
                    // Counted only while the delivery is pending: by this completion.
                    let count = format!(
                        "UPDATE sinks SET delivered = delivered + (SELECT count(*) FROM deliveries WHERE {HELD}) WHERE name = $1"
                    );
                    statements.push(Statement::new(count, key.clone()));
                    statements.push(Statement::new(
                        format!("DELETE FROM deliveries WHERE {HELD}"),
                        key.clone(),
                    ));
                    // An earlier failure is superseded by this revision.
                    let superseded = "DELETE FROM dead_letters WHERE sink = $1 AND host_id = $2 AND url_id = $3 AND revision <= $4";
                    statements.push(Statement::new(superseded, key[..4].to_vec()));
                }
                DeliveryVerdict::Retry { error, after } => {
                    let sql = "UPDATE deliveries SET last_error = $1, next_attempt_at = $2
                        WHERE sink = $3 AND host_id = $4 AND url_id = $5 AND revision = $6 AND attempts = $7";
                    let set = [
                        Value::from(storable(error)),
                        Value::Int(now.0.saturating_add(millis(*after))),
                    ];
                    statements.push(Statement::new(
                        sql,
                        set.into_iter().chain(key).collect::<Vec<_>>(),
                    ));
                }
                DeliveryVerdict::Dead { reason } => {
                    let sql = "INSERT INTO dead_letters (sink, host_id, url_id, revision, reason, died_at)
                        SELECT sink, host_id, url_id, revision, $1, $2 FROM deliveries
                        WHERE sink = $3 AND host_id = $4 AND url_id = $5 AND revision = $6 AND attempts = $7
                        ON CONFLICT (sink, host_id, url_id) DO UPDATE SET revision = excluded.revision, reason = excluded.reason, died_at = excluded.died_at";
                    let set = [Value::from(storable(reason)), Value::from(now)];
                    statements.push(Statement::new(
                        sql,
                        set.into_iter().chain(key.clone()).collect::<Vec<_>>(),
                    ));
                    statements.push(Statement::new(
                        format!("DELETE FROM deliveries WHERE {HELD}"),
                        key,
                    ));
                }
            }
        }
        self.run(statements).await.map(drop)
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

    /// Queues the dead letters of a sink for delivery again; returns the number.
    pub async fn retry_dead_letters(&self, sink: &str) -> Result<u64> {
        let now = self.now().await?;
        let requeue = "INSERT INTO deliveries (sink, host_id, url_id, revision, attempts, next_attempt_at, created_at)
            SELECT l.sink, l.host_id, l.url_id, l.revision, 0, $1, $1 FROM dead_letters l
            JOIN documents d ON d.host_id = l.host_id AND d.url_id = l.url_id WHERE l.sink = $2
            ON CONFLICT (sink, host_id, url_id) DO NOTHING";
        let delete = "DELETE FROM dead_letters WHERE sink = $1";
        let statements = vec![
            Statement::new(requeue, [Value::from(now), Value::from(sink)]),
            Statement::new(delete, [Value::from(sink)]),
        ];
        let results = self.run(statements).await?;
        Ok(results.first().map_or(0, |result| result.changed))
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
