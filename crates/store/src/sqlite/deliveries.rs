//! The outbox on SQLite. One writer: no claim ever meets another.

use rusqlite::{Connection, params};

use crate::delivery::{Delivery, DeliveryBatch, DeliveryVerdict, RetriedDeadLetters};
use crate::ids::{FrontierId, HostId, UrlId};
use crate::moment::millis;
use crate::storable::storable;

/// The longest due first, each with the size of its document, which is read from
/// the row's header and not from the document.
const DUE: &str = "SELECT host_id, url_id, revision, attempts + 1,
        coalesce((SELECT octet_length(d.body) FROM documents d WHERE d.host_id = o.host_id AND d.url_id = o.url_id), 0)
    FROM deliveries o WHERE sink = ?1 AND next_attempt_at <= ?2 ORDER BY next_attempt_at LIMIT ?3";

const LEASE: &str = "UPDATE deliveries SET next_attempt_at = ?4, attempts = attempts + 1
    WHERE sink = ?1 AND host_id = ?2 AND url_id = ?3";

const END: &str = "DELETE FROM deliveries WHERE sink = ?1 AND host_id = ?2 AND url_id = ?3 AND revision = ?4 AND attempts = ?5";

/// Earlier failures, superseded by the revision that was accepted.
const SUPERSEDE: &str =
    "DELETE FROM dead_letters WHERE sink = ?1 AND host_id = ?2 AND url_id = ?3 AND revision <= ?4";

const RETRY: &str = "UPDATE deliveries SET last_error = ?6, next_attempt_at = ?7
    WHERE sink = ?1 AND host_id = ?2 AND url_id = ?3 AND revision = ?4 AND attempts = ?5";

const BURY: &str = "INSERT INTO dead_letters (sink, host_id, url_id, revision, reason, died_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (sink, host_id, url_id) DO UPDATE SET revision = excluded.revision, reason = excluded.reason, died_at = excluded.died_at";

const QUEUE_DEAD: &str = "INSERT INTO deliveries (sink, host_id, url_id, revision, attempts, next_attempt_at, created_at)
    SELECT l.sink, l.host_id, l.url_id, l.revision, 0, ?2, ?2 FROM dead_letters l
    JOIN documents d ON d.host_id = l.host_id AND d.url_id = l.url_id WHERE l.sink = ?1
    ON CONFLICT (sink, host_id, url_id) DO NOTHING";

const MISSING_DOCUMENTS: &str = "SELECT count(*) FROM dead_letters l WHERE l.sink = ?1
    AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.host_id = l.host_id AND d.url_id = l.url_id)";

pub(super) fn claim(
    connection: &Connection,
    sink: &str,
    limit: u32,
    max_bytes: u64,
    lease_ms: i64,
    now: i64,
) -> rusqlite::Result<Vec<Delivery>> {
    let until = now.saturating_add(lease_ms);
    let mut due = connection.prepare_cached(DUE)?;
    let mut lease = connection.prepare_cached(LEASE)?;
    let mut batch = DeliveryBatch::new(max_bytes);
    let mut rows = due.query(params![sink, now, limit])?;
    while let Some(row) = rows.next()? {
        let delivery = Delivery {
            id: FrontierId {
                host: HostId(row.get(0)?),
                url: UrlId(row.get(1)?),
            },
            revision: row.get(2)?,
            attempt: row.get(3)?,
        };
        if !batch.add(delivery, row.get(4)?) {
            break;
        }
    }
    drop(rows);
    for delivery in &batch.deliveries {
        lease.execute(params![sink, delivery.id.host.0, delivery.id.url.0, until])?;
    }
    Ok(batch.deliveries)
}

pub(super) fn complete(
    connection: &Connection,
    sink: &str,
    verdicts: &[(Delivery, DeliveryVerdict)],
    now: i64,
) -> rusqlite::Result<()> {
    let mut accepted: i64 = 0;
    for (delivery, verdict) in verdicts {
        let (host, url) = (delivery.id.host.0, delivery.id.url.0);
        let (revision, attempt) = (delivery.revision, delivery.attempt);
        let held = (sink, host, url, revision, attempt);
        match verdict {
            DeliveryVerdict::Accepted => {
                // Counted only while the delivery is pending: by this completion.
                accepted += i64::from(connection.prepare_cached(END)?.execute(held)? > 0);
                connection
                    .prepare_cached(SUPERSEDE)?
                    .execute(params![sink, host, url, revision])?;
            }
            DeliveryVerdict::Retry { error, after } => {
                let due = now.saturating_add(millis(*after));
                connection.prepare_cached(RETRY)?.execute(params![
                    sink,
                    host,
                    url,
                    revision,
                    attempt,
                    storable(error),
                    due
                ])?;
            }
            DeliveryVerdict::Dead { reason } => {
                if connection.prepare_cached(END)?.execute(held)? > 0 {
                    connection.prepare_cached(BURY)?.execute(params![
                        sink,
                        host,
                        url,
                        revision,
                        storable(reason),
                        now
                    ])?;
                }
            }
        }
    }
    connection
        .prepare_cached("UPDATE sinks SET delivered = delivered + ?2 WHERE name = ?1")?
        .execute(params![sink, accepted])?;
    Ok(())
}

pub(super) fn retry_dead_letters(
    connection: &Connection,
    sink: &str,
    now: i64,
) -> rusqlite::Result<RetriedDeadLetters> {
    let missing: i64 = connection
        .prepare_cached(MISSING_DOCUMENTS)?
        .query_row([sink], |row| row.get(0))?;
    connection
        .prepare_cached(QUEUE_DEAD)?
        .execute(params![sink, now])?;
    let all = connection
        .prepare_cached("DELETE FROM dead_letters WHERE sink = ?1")?
        .execute([sink])?;
    let missing = missing.unsigned_abs();
    Ok(RetriedDeadLetters {
        retried: (all as u64).saturating_sub(missing),
        missing_documents: missing,
    })
}
