//! Adds, deletes and requeues frontier rows.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::HostDefaults;
use super::rows::{add_event, dequeue, enqueue, head_of, write_counter_deltas};
use crate::counters::{CounterDeltas, stored_status};
use crate::frontier::{Status, Verdict};
use crate::ids::{FrontierId, HostId, UrlId};
use crate::queue_head::QueueHead;
use crate::submission::{ALIAS_EVENT, GUID_REFRESH_MS, Prepared, alias_detail};

const INSERT_URL: &str = "INSERT INTO urls
    (host_id, url_id, discovered_at, updated_at, source_id, key_tail, status, origin, priority, depth, norm_v, url, parent_url, item, due_at)
    VALUES (?1, ?2, ?3, ?3, ?4, ?5, 0, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
    ON CONFLICT DO NOTHING";

/// A host's head becomes the better of its current head and the new one.
const IMPROVE_HEAD: &str = "UPDATE hosts SET head_priority = ?2, head_due = ?3 WHERE host_id = ?1
    AND (head_priority = 0
         OR (?3 <= ?4 AND (head_due > ?4 OR head_priority < ?2))
         OR (?3 > ?4 AND head_due > ?3))";

pub(super) fn submit(
    connection: &Connection,
    batch: &[Prepared],
    defaults: HostDefaults,
    now: i64,
) -> rusqlite::Result<Vec<Option<Verdict>>> {
    let has_aliases = connection
        .prepare_cached("SELECT 1 FROM aliases LIMIT 1")?
        .exists([])?;
    let mut is_alias =
        connection.prepare_cached("SELECT 1 FROM aliases WHERE host_id = ?1 AND url_id = ?2")?;
    let mut insert_url = connection.prepare_cached(INSERT_URL)?;
    let mut heads: HashMap<i64, QueueHead> = HashMap::new();
    let mut deltas = CounterDeltas::default();
    let mut verdicts = Vec::with_capacity(batch.len());
    for row in batch {
        let (host, url) = (row.id.host.0, row.id.url.0);
        let guid = judge_guid(connection, row, now)?;
        if let GuidVerdict::AliasOf(target) = guid {
            add_guid_alias(connection, row, target, now)?;
            verdicts.push(Some(Verdict::Known));
            continue;
        }
        if !title_is_new(connection, row, now)? {
            verdicts.push(None);
            continue;
        }
        record_guid(connection, row, guid, now)?;
        if has_aliases && is_alias.exists(params![host, url])? {
            verdicts.push(Some(Verdict::Known));
            continue;
        }
        let candidate = QueueHead {
            priority: row.priority,
            due: row.not_before.max(now),
        };
        let inserted = insert_url.execute(params![
            host,
            url,
            now,
            row.source_id,
            row.key_tail,
            row.origin,
            row.priority,
            row.depth,
            row.norm_v,
            row.url,
            row.parent_url,
            row.item,
            candidate.due,
        ])?;
        if inserted == 0 {
            let verdict = raise(connection, row, candidate, &mut heads, now)?;
            verdicts.push(Some(verdict));
            continue;
        }
        enqueue(connection, row.id, candidate)?;
        deltas.add(row.source_id, row.origin, Status::Pending, 1);
        if !heads.contains_key(&host) {
            ensure_host(connection, row, defaults)?;
        }
        improve_head(&mut heads, host, candidate, now);
        verdicts.push(Some(Verdict::New));
    }
    improve_heads(connection, &heads, now)?;
    write_counter_deltas(connection, &deltas)?;
    Ok(verdicts)
}

/// Records the title of a URL; false if its source has listed it before.
fn title_is_new(connection: &Connection, row: &Prepared, now: i64) -> rusqlite::Result<bool> {
    let Some(title) = row.title else {
        return Ok(true);
    };
    let recorded = connection
        .prepare_cached("INSERT INTO seen_titles (source_id, title_hash, seen_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
        .execute(params![row.source_id, title, now])?;
    Ok(recorded > 0)
}

/// What the guid of a URL says about it.
#[derive(Clone, Copy)]
enum GuidVerdict {
    /// No guid, or the same URL as before.
    Same,
    New,
    /// The URL that had it failed permanently, or is gone.
    Replaced,
    AliasOf(FrontierId),
}

fn judge_guid(connection: &Connection, row: &Prepared, now: i64) -> rusqlite::Result<GuidVerdict> {
    let Some(guid) = row.guid else {
        return Ok(GuidVerdict::Same);
    };
    // The document is that of the page which the first URL redirects to.
    let found = connection
        .prepare_cached(
            "SELECT g.seen_at, g.host_id, g.url_id, coalesce(a.target_host_id, g.host_id), coalesce(a.target_url_id, g.url_id), u.status
             FROM seen_guids g
             LEFT JOIN aliases a ON a.host_id = g.host_id AND a.url_id = g.url_id
             LEFT JOIN urls u ON u.host_id = coalesce(a.target_host_id, g.host_id) AND u.url_id = coalesce(a.target_url_id, g.url_id)
             WHERE g.source_id = ?1 AND g.guid_hash = ?2",
        )?
        .query_row(params![row.source_id, guid], |found| {
            let id = |host, url| -> rusqlite::Result<FrontierId> {
                Ok(FrontierId {
                    host: HostId(found.get(host)?),
                    url: UrlId(found.get(url)?),
                })
            };
            Ok((
                found.get::<_, i64>(0)?,
                id(1, 2)?,
                id(3, 4)?,
                found.get::<_, Option<i16>>(5)?,
            ))
        })
        .optional()?;
    let Some((seen_at, first, target, status)) = found else {
        return Ok(GuidVerdict::New);
    };
    if seen_at <= now - GUID_REFRESH_MS {
        connection
            .prepare_cached(
                "UPDATE seen_guids SET seen_at = ?3 WHERE source_id = ?1 AND guid_hash = ?2",
            )?
            .execute(params![row.source_id, guid, now])?;
    }
    if first == row.id {
        return Ok(GuidVerdict::Same);
    }
    match status.map(stored_status) {
        None | Some(Status::Dead) => Ok(GuidVerdict::Replaced),
        Some(_) if target == row.id => Ok(GuidVerdict::Replaced),
        Some(_) => Ok(GuidVerdict::AliasOf(target)),
    }
}

fn record_guid(
    connection: &Connection,
    row: &Prepared,
    verdict: GuidVerdict,
    now: i64,
) -> rusqlite::Result<()> {
    if matches!(verdict, GuidVerdict::Same | GuidVerdict::AliasOf(_)) {
        return Ok(());
    }
    let (host, url) = (row.id.host.0, row.id.url.0);
    connection
        .prepare_cached(
            "INSERT INTO seen_guids (source_id, guid_hash, host_id, url_id, seen_at) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (source_id, guid_hash) DO UPDATE SET host_id = excluded.host_id, url_id = excluded.url_id, seen_at = excluded.seen_at",
        )?
        .execute(params![row.source_id, row.guid, host, url, now])?;
    if matches!(verdict, GuidVerdict::Replaced) {
        connection
            .prepare_cached(
                "DELETE FROM aliases WHERE host_id = ?1 AND url_id = ?2 AND kind = 'guid'",
            )?
            .execute(params![host, url])?;
    }
    Ok(())
}

/// Makes a URL an alias of the page that has its guid, unless it is known itself.
fn add_guid_alias(
    connection: &Connection,
    row: &Prepared,
    target: FrontierId,
    now: i64,
) -> rusqlite::Result<()> {
    let (host, url) = (row.id.host.0, row.id.url.0);
    let added = connection
        .prepare_cached(
            "INSERT INTO aliases (host_id, url_id, target_host_id, target_url_id, kind, created_at)
             SELECT ?1, ?2, ?3, ?4, 'guid', ?5 WHERE NOT EXISTS (SELECT 1 FROM urls WHERE host_id = ?1 AND url_id = ?2)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![host, url, target.host.0, target.url.0, now])?;
    if added > 0 {
        add_event(connection, target, now, ALIAS_EVENT, &alias_detail(row))?;
    }
    Ok(())
}

pub(super) fn ensure_host(
    connection: &Connection,
    row: &Prepared,
    defaults: HostDefaults,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO hosts (host_id, host_key, delay_ms, max_in_flight) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")?
        .execute(params![row.id.host.0, row.host_key, defaults.delay_ms, defaults.max_in_flight])?;
    Ok(())
}

fn improve_head(heads: &mut HashMap<i64, QueueHead>, host: i64, candidate: QueueHead, now: i64) {
    let head = heads.entry(host).or_insert(QueueHead::EMPTY);
    *head = head.better(candidate, now);
}

fn improve_heads(
    connection: &Connection,
    heads: &HashMap<i64, QueueHead>,
    now: i64,
) -> rusqlite::Result<()> {
    let mut improve = connection.prepare_cached(IMPROVE_HEAD)?;
    for (host, head) in heads {
        improve.execute(params![host, head.priority, head.due, now])?;
    }
    Ok(())
}

/// A known URL that is pending its first fetch may become more urgent; one that is
/// pending a retry keeps its backoff.
fn raise(
    connection: &Connection,
    row: &Prepared,
    wanted: QueueHead,
    heads: &mut HashMap<i64, QueueHead>,
    now: i64,
) -> rusqlite::Result<Verdict> {
    let (host, url) = (row.id.host.0, row.id.url.0);
    let current = connection
        .prepare_cached(
            "SELECT priority, due_at FROM urls WHERE host_id = ?1 AND url_id = ?2 AND status = 0 AND reason IS NULL AND due_at IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM leases WHERE host_id = ?1 AND url_id = ?2)",
        )?
        .query_row(params![host, url], |found| Ok(QueueHead { priority: found.get(0)?, due: found.get(1)? }))
        .optional()?;
    let Some(current) = current else {
        return Ok(Verdict::Known);
    };
    if wanted.priority <= current.priority && wanted.due >= current.due {
        return Ok(Verdict::Known);
    }
    let raised = QueueHead {
        priority: wanted.priority.max(current.priority),
        due: wanted.due.min(current.due),
    };
    dequeue(connection, row.id, current)?;
    enqueue(connection, row.id, raised)?;
    connection
        .prepare_cached("UPDATE urls SET priority = ?3, due_at = ?4, updated_at = ?5 WHERE host_id = ?1 AND url_id = ?2")?
        .execute(params![host, url, raised.priority, raised.due, now])?;
    let detail = serde_json::json!({ "from": current.priority, "to": raised.priority }).to_string();
    add_event(connection, row.id, now, "raised", &detail)?;
    improve_head(heads, host, raised, now);
    Ok(Verdict::Raised)
}

struct Known {
    source_id: i64,
    origin: i16,
    status: i16,
    priority: i16,
    attempts: i32,
    due: Option<i64>,
    leased_until: Option<i64>,
}

fn known(connection: &Connection, id: FrontierId) -> rusqlite::Result<Option<Known>> {
    connection
        .prepare_cached(
            "SELECT u.source_id, u.origin, u.status, u.priority, max(u.attempts, coalesce(l.attempt, 0)), u.due_at, l.due_at
             FROM urls u LEFT JOIN leases l ON l.host_id = u.host_id AND l.url_id = u.url_id
             WHERE u.host_id = ?1 AND u.url_id = ?2",
        )?
        .query_row(params![id.host.0, id.url.0], |row| {
            Ok(Known {
                source_id: row.get(0)?,
                origin: row.get(1)?,
                status: row.get(2)?,
                priority: row.get(3)?,
                attempts: row.get(4)?,
                due: row.get(5)?,
                leased_until: row.get(6)?,
            })
        })
        .optional()
}

impl Known {
    fn counted_as(&self) -> Status {
        match self.leased_until {
            Some(_) => Status::Fetching,
            None => stored_status(self.status),
        }
    }
}

pub(super) fn remove(
    connection: &Connection,
    ids: &[FrontierId],
    now: i64,
) -> rusqlite::Result<u64> {
    let mut deltas = CounterDeltas::default();
    let mut removed = 0;
    for id in ids {
        let Some(row) = known(connection, *id)? else {
            continue;
        };
        unschedule(connection, *id, &row)?;
        connection
            .prepare_cached("DELETE FROM urls WHERE host_id = ?1 AND url_id = ?2")?
            .execute(params![id.host.0, id.url.0])?;
        add_event(connection, *id, now, "removed", "{}")?;
        deltas.add(row.source_id, row.origin, row.counted_as(), -1);
        removed += 1;
    }
    refresh_heads(connection, ids, now)?;
    write_counter_deltas(connection, &deltas)?;
    Ok(removed)
}

pub(super) fn requeue(
    connection: &Connection,
    ids: &[FrontierId],
    now: i64,
) -> rusqlite::Result<u64> {
    let mut deltas = CounterDeltas::default();
    let mut requeued = 0;
    for id in ids {
        let Some(row) = known(connection, *id)? else {
            continue;
        };
        if row.leased_until.is_some_and(|until| until > now) {
            continue;
        }
        unschedule(connection, *id, &row)?;
        enqueue(
            connection,
            *id,
            QueueHead {
                priority: row.priority,
                due: now,
            },
        )?;
        connection
            .prepare_cached(
                "UPDATE urls SET status = 0, retry_count = 0, reason = NULL, attempts = ?3, due_at = ?4, updated_at = ?4
                 WHERE host_id = ?1 AND url_id = ?2",
            )?
            .execute(params![id.host.0, id.url.0, row.attempts, now])?;
        let detail = serde_json::json!({ "was": row.counted_as() }).to_string();
        add_event(connection, *id, now, "retried", &detail)?;
        deltas.add(row.source_id, row.origin, row.counted_as(), -1);
        deltas.add(row.source_id, row.origin, Status::Pending, 1);
        requeued += 1;
    }
    refresh_heads(connection, ids, now)?;
    write_counter_deltas(connection, &deltas)?;
    Ok(requeued)
}

/// Deletes the lease and the queue row of a URL, if any.
fn unschedule(connection: &Connection, id: FrontierId, row: &Known) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM leases WHERE host_id = ?1 AND url_id = ?2")?
        .execute(params![id.host.0, id.url.0])?;
    match row.due {
        Some(due) => dequeue(
            connection,
            id,
            QueueHead {
                priority: row.priority,
                due,
            },
        ),
        None => Ok(()),
    }
}

fn refresh_heads(connection: &Connection, ids: &[FrontierId], now: i64) -> rusqlite::Result<()> {
    let mut hosts: Vec<_> = ids.iter().map(|id| id.host.0).collect();
    hosts.sort_unstable();
    hosts.dedup();
    for host in hosts {
        let head = head_of(connection, host, now)?;
        connection
            .prepare_cached(
                "UPDATE hosts SET head_priority = ?2, head_due = ?3 WHERE host_id = ?1",
            )?
            .execute(params![host, head.priority, head.due])?;
    }
    Ok(())
}
