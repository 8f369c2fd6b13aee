//! Adds, deletes and requeues frontier rows. The order of locks: titles, hosts (new
//! ones first, each by id), and only then rows of `urls` and `queue`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::pool::Connection;
use super::rows::{Events, LOCK_HOSTS, hosts_of, refresh_heads, write_counter_deltas};
use crate::counters::{CounterDeltas, stored_status};
use crate::error::Result;
use crate::frontier::{Status, TitleHash, Verdict};
use crate::ids::FrontierId;
use crate::queue_head::QueueHead;
use crate::submission::Prepared;

/// Known URLs, by position in the batch. `waiting`: pending the first fetch, neither
/// leased nor deferred.
const KNOWN: &str = "SELECT k.at::INTEGER, u.host_id IS NOT NULL AND u.status = 0 AND u.reason IS NULL AND q.owner IS NULL AND q.host_id IS NOT NULL AS waiting,
        q.priority, q.due_at
    FROM unnest($1::BIGINT[], $2::BYTEA[]) WITH ORDINALITY AS k(host_id, url_id, at)
    LEFT JOIN urls u ON u.host_id = k.host_id AND u.url_id = k.url_id
    LEFT JOIN queue q ON q.host_id = u.host_id AND q.url_id = u.url_id
    LEFT JOIN aliases a ON a.host_id = k.host_id AND a.url_id = k.url_id
    WHERE u.host_id IS NOT NULL OR a.host_id IS NOT NULL";

const ADD_TITLES: &str = "INSERT INTO seen_titles (source_id, title_hash, seen_at)
    SELECT source_id, title_hash, $3 FROM unnest($1::BIGINT[], $2::BYTEA[]) AS t(source_id, title_hash)
    ON CONFLICT DO NOTHING RETURNING source_id, title_hash";

pub(super) const ADD_HOSTS: &str = "INSERT INTO hosts (host_id, host_key, delay_ms, max_in_flight)
    SELECT host_id, host_key, $3, $4 FROM unnest($1::BIGINT[], $2::TEXT[]) AS h(host_id, host_key) ORDER BY host_id
    ON CONFLICT DO NOTHING";

const ADD_URLS: &str = "INSERT INTO urls (host_id, url_id, key_tail, url, source_id, origin, priority, depth, norm_v, parent_url, item, status, discovered_at, updated_at)
    SELECT host_id, url_id, key_tail, url, source_id, origin, priority, depth, norm_v, parent_url, item, 0, $12, $12
    FROM unnest($1::BIGINT[], $2::BYTEA[], $3::BYTEA[], $4::TEXT[], $5::BIGINT[], $6::SMALLINT[], $7::SMALLINT[], $8::SMALLINT[], $9::SMALLINT[], $10::TEXT[], $11::TEXT[])
        AS n(host_id, url_id, key_tail, url, source_id, origin, priority, depth, norm_v, parent_url, item)
    ON CONFLICT DO NOTHING RETURNING host_id, url_id";

const ADD_QUEUE: &str = "INSERT INTO queue (host_id, url_id, priority, due_at, attempt)
    SELECT host_id, url_id, priority, due_at, 0 FROM unnest($1::BIGINT[], $2::BYTEA[], $3::SMALLINT[], $4::BIGINT[]) AS n(host_id, url_id, priority, due_at)";

/// A host's head becomes the better of its current head and the new one.
const IMPROVE_HEADS: &str = "UPDATE hosts SET head_priority = n.priority, head_due = n.due_at
    FROM unnest($1::BIGINT[], $2::SMALLINT[], $3::BIGINT[]) AS n(host_id, priority, due_at)
    WHERE hosts.host_id = n.host_id
      AND (hosts.head_priority = 0
           OR (n.due_at <= $4 AND (hosts.head_due > $4 OR hosts.head_priority < n.priority))
           OR (n.due_at > $4 AND hosts.head_due > n.due_at))";

/// Submits the URLs whose titles are new; `None` for the others.
pub(super) async fn submit(
    connection: &mut Connection<'_>,
    batch: &[Prepared],
    delay_ms: i32,
    max_in_flight: i16,
    now: i64,
) -> Result<Vec<Option<Verdict>>> {
    if batch.iter().all(|row| row.title.is_none()) {
        let verdicts = submit_all(connection, batch, delay_ms, max_in_flight, now).await?;
        return Ok(verdicts.into_iter().map(Some).collect());
    }
    let new = record_titles(connection, batch, now).await?;
    let is_wanted = |row: &&Prepared| {
        row.title
            .is_none_or(|title| new.contains(&(row.source_id, title)))
    };
    let wanted: Vec<Prepared> = batch.iter().filter(is_wanted).cloned().collect();
    let verdicts = submit_all(connection, &wanted, delay_ms, max_in_flight, now).await?;
    let mut verdicts = verdicts.into_iter();
    Ok(batch
        .iter()
        .map(|row| is_wanted(&row).then(|| verdicts.next()).flatten())
        .collect())
}

/// Records titles, in order; returns those that are new to their source.
async fn record_titles(
    connection: &mut Connection<'_>,
    batch: &[Prepared],
    now: i64,
) -> Result<HashSet<(i64, TitleHash)>> {
    let titles: BTreeSet<(i64, TitleHash)> = batch
        .iter()
        .filter_map(|row| Some((row.source_id, row.title?)))
        .collect();
    let (sources, hashes): (Vec<i64>, Vec<&[u8]>) =
        titles.iter().map(|(id, hash)| (*id, &hash[..])).unzip();
    let rows = connection
        .query(ADD_TITLES, &[&sources, &hashes, &now])
        .await?;
    let new =
        |row: &tokio_postgres::Row| Some((row.get(0), row.get::<_, &[u8]>(1).try_into().ok()?));
    Ok(rows.iter().filter_map(new).collect())
}

async fn submit_all(
    connection: &mut Connection<'_>,
    batch: &[Prepared],
    delay_ms: i32,
    max_in_flight: i16,
    now: i64,
) -> Result<Vec<Verdict>> {
    let hosts: Vec<i64> = batch.iter().map(|row| row.id.host.0).collect();
    let urls: Vec<&[u8]> = batch.iter().map(|row| &row.id.url.0[..]).collect();
    let mut verdicts = vec![Verdict::New; batch.len()];
    let mut raised: Vec<(usize, QueueHead)> = Vec::new();
    for row in connection.query(KNOWN, &[&hosts, &urls]).await? {
        let at = row.get::<_, i32>(0).unsigned_abs() as usize - 1;
        verdicts[at] = Verdict::Known;
        if row.get(1) {
            let current = QueueHead {
                priority: row.get(2),
                due: row.get(3),
            };
            let wanted = QueueHead {
                priority: batch[at].priority.max(current.priority),
                due: batch[at].not_before.max(now).min(current.due),
            };
            if wanted != current {
                raised.push((at, wanted));
            }
        }
    }
    let new: Vec<usize> = (0..batch.len())
        .filter(|at| verdicts[*at] == Verdict::New)
        .collect();
    if new.is_empty() && raised.is_empty() {
        return Ok(verdicts);
    }
    add_hosts(connection, batch, &new, delay_ms, max_in_flight).await?;
    let touched = new.iter().chain(raised.iter().map(|(at, _)| at));
    let touched = hosts_of(touched.map(|at| batch[*at].id.host.0));
    connection.query(LOCK_HOSTS, &[&touched]).await?;
    let mut heads: BTreeMap<i64, QueueHead> = BTreeMap::new();
    let mut improve_head = |host: i64, head: QueueHead| {
        let best = heads.entry(host).or_insert(QueueHead::EMPTY);
        *best = best.better(head, now);
    };
    let mut deltas = CounterDeltas::default();
    for at in add(connection, batch, &new, now, &mut verdicts).await? {
        let row = &batch[at];
        improve_head(
            row.id.host.0,
            QueueHead {
                priority: row.priority,
                due: row.not_before.max(now),
            },
        );
        deltas.add(row.source_id, row.origin, Status::Pending, 1);
    }
    for (at, head) in raise(connection, batch, &raised, now).await? {
        verdicts[at] = Verdict::Raised;
        let best = heads.entry(batch[at].id.host.0).or_insert(QueueHead::EMPTY);
        *best = best.better(head, now);
    }
    let ids: Vec<i64> = heads.keys().copied().collect();
    let priorities: Vec<i16> = heads.values().map(|head| head.priority).collect();
    let dues: Vec<i64> = heads.values().map(|head| head.due).collect();
    connection
        .execute(IMPROVE_HEADS, &[&ids, &priorities, &dues, &now])
        .await?;
    write_counter_deltas(connection, &deltas).await?;
    Ok(verdicts)
}

async fn add_hosts(
    connection: &mut Connection<'_>,
    batch: &[Prepared],
    new: &[usize],
    delay_ms: i32,
    max_in_flight: i16,
) -> Result<()> {
    let names: BTreeMap<i64, &str> = new
        .iter()
        .map(|at| (batch[*at].id.host.0, batch[*at].host_key.as_str()))
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let (ids, keys): (Vec<i64>, Vec<&str>) = names.into_iter().unzip();
    connection
        .execute(ADD_HOSTS, &[&ids, &keys, &delay_ms, &max_in_flight])
        .await
        .map(drop)
}

/// Inserts URLs and queue rows; returns the positions that were really new. The
/// hosts are locked.
async fn add(
    connection: &mut Connection<'_>,
    batch: &[Prepared],
    new: &[usize],
    now: i64,
    verdicts: &mut [Verdict],
) -> Result<Vec<usize>> {
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<&Prepared> = new.iter().map(|at| &batch[*at]).collect();
    let column = |of: fn(&Prepared) -> i16| rows.iter().map(|row| of(row)).collect::<Vec<_>>();
    let hosts: Vec<i64> = rows.iter().map(|row| row.id.host.0).collect();
    let urls: Vec<&[u8]> = rows.iter().map(|row| &row.id.url.0[..]).collect();
    let tails: Vec<&[u8]> = rows.iter().map(|row| &row.key_tail[..]).collect();
    let texts: Vec<&str> = rows.iter().map(|row| row.url.as_str()).collect();
    let sources: Vec<i64> = rows.iter().map(|row| row.source_id).collect();
    let parents: Vec<Option<&str>> = rows.iter().map(|row| row.parent_url.as_deref()).collect();
    let items: Vec<Option<&str>> = rows.iter().map(|row| row.item.as_deref()).collect();
    let inserted = connection
        .query(
            ADD_URLS,
            &[
                &hosts,
                &urls,
                &tails,
                &texts,
                &sources,
                &column(|row| row.origin),
                &column(|row| row.priority),
                &column(|row| row.depth),
                &column(|row| row.norm_v),
                &parents,
                &items,
                &now,
            ],
        )
        .await?;
    // Another transaction may have inserted some of them before the hosts were locked.
    let mut position: HashMap<(i64, &[u8]), usize> = rows
        .iter()
        .zip(new)
        .map(|(row, at)| ((row.id.host.0, &row.id.url.0[..]), *at))
        .collect();
    let mut added: Vec<usize> = Vec::with_capacity(inserted.len());
    for row in &inserted {
        added.extend(position.remove(&(row.get(0), row.get(1))));
    }
    for at in position.into_values() {
        verdicts[at] = Verdict::Known;
    }
    let hosts: Vec<i64> = added.iter().map(|at| batch[*at].id.host.0).collect();
    let urls: Vec<&[u8]> = added.iter().map(|at| &batch[*at].id.url.0[..]).collect();
    let priorities: Vec<i16> = added.iter().map(|at| batch[*at].priority).collect();
    let dues: Vec<i64> = added
        .iter()
        .map(|at| batch[*at].not_before.max(now))
        .collect();
    connection
        .execute(ADD_QUEUE, &[&hosts, &urls, &priorities, &dues])
        .await?;
    Ok(added)
}

/// Raises pending URLs. The hosts are locked now, so the rows are read again.
async fn raise(
    connection: &mut Connection<'_>,
    batch: &[Prepared],
    raised: &[(usize, QueueHead)],
    now: i64,
) -> Result<Vec<(usize, QueueHead)>> {
    if raised.is_empty() {
        return Ok(Vec::new());
    }
    let hosts: Vec<i64> = raised.iter().map(|(at, _)| batch[*at].id.host.0).collect();
    let urls: Vec<&[u8]> = raised
        .iter()
        .map(|(at, _)| &batch[*at].id.url.0[..])
        .collect();
    let priorities: Vec<i16> = raised.iter().map(|(_, head)| head.priority).collect();
    let dues: Vec<i64> = raised.iter().map(|(_, head)| head.due).collect();
    let rows = connection
        .query(
            "UPDATE queue q SET priority = greatest(q.priority, n.priority), due_at = least(q.due_at, n.due_at)
             FROM unnest($1::BIGINT[], $2::BYTEA[], $3::SMALLINT[], $4::BIGINT[]) WITH ORDINALITY AS n(host_id, url_id, priority, due_at, at)
             WHERE q.host_id = n.host_id AND q.url_id = n.url_id AND q.owner IS NULL
             RETURNING n.at::INTEGER, q.priority, q.due_at",
            &[&hosts, &urls, &priorities, &dues],
        )
        .await?;
    connection
        .execute(
            "UPDATE urls u SET priority = greatest(u.priority, n.priority), updated_at = $4
             FROM unnest($1::BIGINT[], $2::BYTEA[], $3::SMALLINT[]) AS n(host_id, url_id, priority)
             WHERE u.host_id = n.host_id AND u.url_id = n.url_id",
            &[&hosts, &urls, &priorities, &now],
        )
        .await?;
    let done: Vec<(usize, QueueHead)> = rows
        .iter()
        .map(|row| {
            (
                raised[row.get::<_, i32>(0).unsigned_abs() as usize - 1].0,
                QueueHead {
                    priority: row.get(1),
                    due: row.get(2),
                },
            )
        })
        .collect();
    let details: Vec<String> = done
        .iter()
        .map(|(_, head)| serde_json::json!({ "to": head.priority }).to_string())
        .collect();
    let mut events = Events::default();
    for ((at, _), detail) in done.iter().zip(&details) {
        events.add(batch[*at].id.host.0, &batch[*at].id.url.0, "raised", detail);
    }
    events.write(connection, now).await?;
    Ok(done)
}

/// A row of a bulk action.
struct Found {
    source_id: i64,
    origin: i16,
    counted_as: Status,
    host: i64,
    url: Vec<u8>,
}

fn found(row: &tokio_postgres::Row) -> Found {
    Found {
        source_id: row.get(0),
        origin: row.get(1),
        counted_as: if row.get(3) {
            Status::Fetching
        } else {
            stored_status(row.get(2))
        },
        host: row.get(4),
        url: row.get(5),
    }
}

const FIND: &str =
    "SELECT u.source_id, u.origin, u.status, q.owner IS NOT NULL, u.host_id, u.url_id
    FROM unnest($1::BIGINT[], $2::BYTEA[]) AS k(host_id, url_id)
    JOIN urls u ON u.host_id = k.host_id AND u.url_id = k.url_id
    LEFT JOIN queue q ON q.host_id = u.host_id AND q.url_id = u.url_id";

async fn locked(
    connection: &mut Connection<'_>,
    ids: &[FrontierId],
    only_unleased_at: Option<i64>,
) -> Result<(Vec<i64>, Vec<Found>)> {
    let hosts = hosts_of(ids.iter().map(|id| id.host.0));
    connection.query(LOCK_HOSTS, &[&hosts]).await?;
    let host_ids: Vec<i64> = ids.iter().map(|id| id.host.0).collect();
    let url_ids: Vec<&[u8]> = ids.iter().map(|id| &id.url.0[..]).collect();
    let rows = match only_unleased_at {
        Some(now) => {
            let sql = format!("{FIND} WHERE q.owner IS NULL OR q.due_at <= $3");
            connection.query(&sql, &[&host_ids, &url_ids, &now]).await?
        }
        None => connection.query(FIND, &[&host_ids, &url_ids]).await?,
    };
    Ok((hosts, rows.iter().map(found).collect()))
}

pub(super) async fn remove(
    connection: &mut Connection<'_>,
    ids: &[FrontierId],
    now: i64,
) -> Result<u64> {
    let (hosts, rows) = locked(connection, ids, None).await?;
    let (host_ids, url_ids): (Vec<i64>, Vec<&[u8]>) =
        rows.iter().map(|row| (row.host, &row.url[..])).unzip();
    for table in ["queue", "urls"] {
        let sql = format!(
            "DELETE FROM {table} t USING unnest($1::BIGINT[], $2::BYTEA[]) AS k(host_id, url_id) WHERE t.host_id = k.host_id AND t.url_id = k.url_id"
        );
        connection.execute(&sql, &[&host_ids, &url_ids]).await?;
    }
    let (mut deltas, mut events) = (CounterDeltas::default(), Events::default());
    for row in &rows {
        deltas.add(row.source_id, row.origin, row.counted_as, -1);
        events.add(row.host, &row.url, "removed", "{}");
    }
    events.write(connection, now).await?;
    refresh_heads(connection, &hosts, now).await?;
    write_counter_deltas(connection, &deltas).await?;
    Ok(rows.len() as u64)
}

pub(super) async fn requeue(
    connection: &mut Connection<'_>,
    ids: &[FrontierId],
    now: i64,
) -> Result<u64> {
    let (hosts, rows) = locked(connection, ids, Some(now)).await?;
    let (host_ids, url_ids): (Vec<i64>, Vec<&[u8]>) =
        rows.iter().map(|row| (row.host, &row.url[..])).unzip();
    connection
        .execute(
            "INSERT INTO queue (host_id, url_id, priority, due_at, attempt)
             SELECT u.host_id, u.url_id, u.priority, $3, u.attempts
             FROM unnest($1::BIGINT[], $2::BYTEA[]) AS k(host_id, url_id) JOIN urls u ON u.host_id = k.host_id AND u.url_id = k.url_id
             ON CONFLICT (host_id, url_id) DO UPDATE SET due_at = excluded.due_at, owner = NULL, crashes = 0, priority = abs(queue.priority)",
            &[&host_ids, &url_ids, &now],
        )
        .await?;
    connection
        .execute(
            "UPDATE urls u SET status = 0, retry_count = 0, reason = NULL, attempts = q.attempt, updated_at = $3
             FROM unnest($1::BIGINT[], $2::BYTEA[]) AS k(host_id, url_id) JOIN queue q ON q.host_id = k.host_id AND q.url_id = k.url_id
             WHERE u.host_id = k.host_id AND u.url_id = k.url_id",
            &[&host_ids, &url_ids, &now],
        )
        .await?;
    let details: Vec<String> = rows
        .iter()
        .map(|row| serde_json::json!({ "was": row.counted_as }).to_string())
        .collect();
    let (mut deltas, mut events) = (CounterDeltas::default(), Events::default());
    for (row, detail) in rows.iter().zip(&details) {
        deltas.add(row.source_id, row.origin, row.counted_as, -1);
        deltas.add(row.source_id, row.origin, Status::Pending, 1);
        events.add(row.host, &row.url, "retried", detail);
    }
    events.write(connection, now).await?;
    refresh_heads(connection, &hosts, now).await?;
    write_counter_deltas(connection, &deltas).await?;
    Ok(rows.len() as u64)
}
