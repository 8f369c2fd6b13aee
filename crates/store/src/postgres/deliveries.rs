//! The outbox on PostgreSQL: several deliverers share it without waiting for each
//! other, and a batch costs a few statements, whatever its size.

use super::pool::Connection;
use crate::delivery::{Delivery, DeliveryBatch, DeliveryVerdict, RetriedDeadLetters};
use crate::error::{Result, StoreError};
use crate::ids::{FrontierId, HostId, UrlId};
use crate::moment::millis;
use crate::storable::storable;

/// The longest due first, each with the size of its document, which needs no look at
/// the document; what another claim has locked is skipped.
const DUE: &str = "SELECT host_id, url_id, revision, attempts,
        (SELECT octet_length(d.body) FROM documents d WHERE d.host_id = o.host_id AND d.url_id = o.url_id)
    FROM deliveries o
    WHERE sink = $1 AND next_attempt_at <= $2 ORDER BY next_attempt_at LIMIT $3 FOR UPDATE OF o SKIP LOCKED";

const LEASE: &str = "UPDATE deliveries d SET next_attempt_at = $4, attempts = d.attempts + 1
    FROM unnest($2::BIGINT[], $3::BYTEA[]) AS v(host_id, url_id)
    WHERE d.sink = $1 AND d.host_id = v.host_id AND d.url_id = v.url_id";

/// The deliveries of a batch in the order in which documents lock them, too.
const LOCK: &str = "SELECT 1 FROM deliveries d
    JOIN unnest($2::BIGINT[], $3::BYTEA[]) AS v(host_id, url_id) ON d.host_id = v.host_id AND d.url_id = v.url_id
    WHERE d.sink = $1 ORDER BY d.host_id, d.url_id FOR UPDATE OF d";

const RETRY: &str = "UPDATE deliveries d SET last_error = v.error, next_attempt_at = v.due_at
    FROM unnest($2::BIGINT[], $3::BYTEA[], $4::BIGINT[], $5::BIGINT[], $6::TEXT[], $7::BIGINT[]) AS v(host_id, url_id, revision, attempts, error, due_at)
    WHERE d.sink = $1 AND d.host_id = v.host_id AND d.url_id = v.url_id AND d.revision = v.revision AND d.attempts = v.attempts";

const BURY: &str = "WITH dead AS (
        DELETE FROM deliveries d
        USING unnest($2::BIGINT[], $3::BYTEA[], $4::BIGINT[], $5::BIGINT[], $6::TEXT[]) AS v(host_id, url_id, revision, attempts, reason)
        WHERE d.sink = $1 AND d.host_id = v.host_id AND d.url_id = v.url_id AND d.revision = v.revision AND d.attempts = v.attempts
        RETURNING d.sink, d.host_id, d.url_id, d.revision, v.reason)
    INSERT INTO dead_letters (sink, host_id, url_id, revision, reason, died_at)
    SELECT sink, host_id, url_id, revision, reason, $7 FROM dead ORDER BY host_id, url_id
    ON CONFLICT (sink, host_id, url_id) DO UPDATE SET revision = excluded.revision, reason = excluded.reason, died_at = excluded.died_at";

/// Earlier failures, superseded by the revision that was accepted.
const SUPERSEDE: &str = "DELETE FROM dead_letters l
    USING unnest($2::BIGINT[], $3::BYTEA[], $4::BIGINT[]) AS v(host_id, url_id, revision)
    WHERE l.sink = $1 AND l.host_id = v.host_id AND l.url_id = v.url_id AND l.revision <= v.revision";

/// Counted only while they are pending: by this completion. All deliverers of a sink
/// share its row, so it is locked last.
const ACCEPT: &str = "WITH accepted AS (
        DELETE FROM deliveries d
        USING unnest($2::BIGINT[], $3::BYTEA[], $4::BIGINT[], $5::BIGINT[]) AS v(host_id, url_id, revision, attempts)
        WHERE d.sink = $1 AND d.host_id = v.host_id AND d.url_id = v.url_id AND d.revision = v.revision AND d.attempts = v.attempts
        RETURNING 1)
    UPDATE sinks SET delivered = delivered + (SELECT count(*) FROM accepted) WHERE name = $1";

/// One statement: a letter that is buried meanwhile stays.
const RETRY_DEAD: &str = "WITH gone AS (
        DELETE FROM dead_letters WHERE sink = $1 RETURNING sink, host_id, url_id, revision),
    found AS (
        SELECT g.* FROM gone g JOIN documents d ON d.host_id = g.host_id AND d.url_id = g.url_id),
    queued AS (
        INSERT INTO deliveries (sink, host_id, url_id, revision, attempts, next_attempt_at, created_at)
        SELECT sink, host_id, url_id, revision, 0, $2, $2 FROM found ORDER BY host_id, url_id
        ON CONFLICT (sink, host_id, url_id) DO NOTHING)
    SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM found)";

pub(super) async fn claim(
    connection: &mut Connection<'_>,
    sink: &str,
    limit: u32,
    max_bytes: u64,
    lease_ms: i64,
    now: i64,
) -> Result<Vec<Delivery>> {
    let limit = i64::from(limit);
    let rows = connection.query(DUE, &[&sink, &now, &limit]).await?;
    let delivery = |row: &tokio_postgres::Row| {
        let url: &[u8] = row.get(1);
        let url = url
            .try_into()
            .map_err(|_| StoreError::corrupt("url id", url.len()))?;
        Ok(Delivery {
            id: FrontierId {
                host: HostId(row.get(0)),
                url: UrlId(url),
            },
            revision: i64::from(row.get::<_, i32>(2)),
            attempt: i64::from(row.get::<_, i32>(3)) + 1,
        })
    };
    let mut batch = DeliveryBatch::new(max_bytes);
    for row in &rows {
        let bytes = row.get::<_, Option<i32>>(4).unwrap_or(0);
        if !batch.add(delivery(row)?, i64::from(bytes)) {
            break;
        }
    }
    let claimed = batch.deliveries;
    let mut columns = Columns::default();
    for delivery in &claimed {
        columns.add(delivery);
    }
    if !columns.is_empty() {
        let until = now.saturating_add(lease_ms);
        connection
            .execute(LEASE, &[&sink, &columns.hosts, &columns.urls, &until])
            .await?;
    }
    Ok(claimed)
}

/// The deliveries with one kind of verdict, column by column.
#[derive(Debug, Default)]
struct Columns<'a> {
    hosts: Vec<i64>,
    urls: Vec<&'a [u8]>,
    revisions: Vec<i64>,
    attempts: Vec<i64>,
    texts: Vec<String>,
    due: Vec<i64>,
}

impl<'a> Columns<'a> {
    fn add(&mut self, delivery: &'a Delivery) {
        self.hosts.push(delivery.id.host.0);
        self.urls.push(&delivery.id.url.0);
        self.revisions.push(delivery.revision);
        self.attempts.push(delivery.attempt);
    }

    fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }
}

pub(super) async fn complete(
    connection: &mut Connection<'_>,
    sink: &str,
    verdicts: &[(Delivery, DeliveryVerdict)],
    now: i64,
) -> Result<()> {
    let (mut all, mut accepted) = (Columns::default(), Columns::default());
    let (mut retried, mut dead) = (Columns::default(), Columns::default());
    for (delivery, verdict) in verdicts {
        all.add(delivery);
        match verdict {
            DeliveryVerdict::Accepted => accepted.add(delivery),
            DeliveryVerdict::Retry { error, after } => {
                retried.add(delivery);
                retried.texts.push(storable(error));
                retried.due.push(now.saturating_add(millis(*after)));
            }
            DeliveryVerdict::Dead { reason } => {
                dead.add(delivery);
                dead.texts.push(storable(reason));
            }
        }
    }
    connection
        .query(LOCK, &[&sink, &all.hosts, &all.urls])
        .await?;
    if !retried.is_empty() {
        let Columns {
            hosts,
            urls,
            revisions,
            attempts,
            texts,
            due,
        } = &retried;
        connection
            .execute(
                RETRY,
                &[&sink, hosts, urls, revisions, attempts, texts, due],
            )
            .await?;
    }
    if !dead.is_empty() {
        let Columns {
            hosts,
            urls,
            revisions,
            attempts,
            texts,
            ..
        } = &dead;
        connection
            .execute(
                BURY,
                &[&sink, hosts, urls, revisions, attempts, texts, &now],
            )
            .await?;
    }
    if !accepted.is_empty() {
        let Columns {
            hosts,
            urls,
            revisions,
            attempts,
            ..
        } = &accepted;
        connection
            .execute(SUPERSEDE, &[&sink, hosts, urls, revisions])
            .await?;
        connection
            .execute(ACCEPT, &[&sink, hosts, urls, revisions, attempts])
            .await?;
    }
    Ok(())
}

pub(super) async fn retry_dead_letters(
    connection: &mut Connection<'_>,
    sink: &str,
    now: i64,
) -> Result<RetriedDeadLetters> {
    let rows = connection.query(RETRY_DEAD, &[&sink, &now]).await?;
    let (all, found) = rows
        .first()
        .map_or((0_i64, 0_i64), |row| (row.get(0), row.get(1)));
    Ok(RetriedDeadLetters {
        retried: found.unsigned_abs(),
        missing_documents: (all - found).unsigned_abs(),
    })
}
