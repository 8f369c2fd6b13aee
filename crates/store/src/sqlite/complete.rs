//! Completes claims: queue, URL, document, deliveries, events and host in the
//! transaction of the group commit.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::HostDefaults;
use super::near_duplicates;
use super::rows::{add_event, dequeue, enqueue, head_of, write_counter_deltas};
use super::submit::ensure_host;
use crate::complete::{Fetched, PreparedCompletion, PreparedHostChange, Retries};
use crate::counters::{CounterDeltas, stored_status};
use crate::frontier::Status;
use crate::ids::FrontierId;
use crate::new_document::PreparedDocument;
use crate::queue_head::QueueHead;
use crate::submission::Prepared;

/// The completions of one host.
#[derive(Default)]
struct HostCompletions {
    /// Those whose lease was still live. After an expired one another claim may hold
    /// the host now.
    in_time: i64,
    changes: Vec<PreparedHostChange>,
}

pub(super) fn complete(
    connection: &Connection,
    batch: &[PreparedCompletion],
    defaults: HostDefaults,
    now: i64,
) -> rusqlite::Result<Vec<bool>> {
    let mut deltas = CounterDeltas::default();
    let mut hosts: BTreeMap<i64, HostCompletions> = BTreeMap::new();
    let mut accepted = Vec::with_capacity(batch.len());
    for completion in batch {
        let id = completion.lease_token.id;
        let ended = end_lease(connection, completion, now)?;
        let Some(in_time) = ended else {
            accepted.push(is_stored(connection, completion)?);
            continue;
        };
        accepted.push(true);
        let (source_id, origin, status) = update_url(connection, completion, now)?;
        deltas.add(source_id, origin, Status::Fetching, -1);
        deltas.add(source_id, origin, status, 1);
        add_event(connection, id, now, completion.event, &completion.detail)?;
        let host = hosts.entry(id.host.0).or_default();
        host.in_time += i64::from(in_time);
        host.changes.push(completion.host);
        if let Some((row, fetched)) = &completion.moved_to {
            record_redirect_target(connection, id, row, fetched, defaults, now, &mut deltas)?;
            hosts.entry(row.id.host.0).or_default();
        }
        if let Some(document) = &completion.document {
            let page = completion.moved_to.as_ref().map_or(id, |(row, _)| row.id);
            write_document(connection, page, document, now)?;
        }
    }
    for (host, completions) in &hosts {
        apply_cooldown(connection, *host, completions, now)?;
    }
    write_counter_deltas(connection, &deltas)?;
    Ok(accepted)
}

/// Whether a completion was stored before.
fn is_stored(connection: &Connection, completion: &PreparedCompletion) -> rusqlite::Result<bool> {
    let token = completion.lease_token;
    connection
        .prepare_cached("SELECT 1 FROM events WHERE host_id = ?1 AND url_id = ?2 AND kind = ?3 AND detail = ?4 AND at >= ?5")?
        .exists(params![token.id.host.0, token.id.url.0, completion.event, completion.detail, token.discovered_at.0])
}

/// Ends the lease and dequeues the URL, or queues it with its next due time. True if
/// the lease was still live; `None` if it was lost.
fn end_lease(
    connection: &Connection,
    completion: &PreparedCompletion,
    now: i64,
) -> rusqlite::Result<Option<bool>> {
    let id = completion.lease_token.id;
    let ended = connection
        .prepare_cached(
            "DELETE FROM leases WHERE host_id = ?1 AND url_id = ?2 AND attempt = ?3
                AND EXISTS (SELECT 1 FROM urls WHERE host_id = ?1 AND url_id = ?2 AND discovered_at = ?4)
             RETURNING priority, queued_at, due_at",
        )?
        .query_row(
            params![id.host.0, id.url.0, completion.lease_token.attempt, completion.lease_token.discovered_at.0],
            |row| {
                let until: i64 = row.get(2)?;
                Ok((QueueHead { priority: row.get(0)?, due: row.get(1)? }, until > now))
            },
        )
        .optional()?;
    let Some((position, in_time)) = ended else {
        return Ok(None);
    };
    dequeue(connection, id, position)?;
    if let Some(due) = due_at(completion, now) {
        enqueue(connection, id, QueueHead { due, ..position })?;
    }
    Ok(Some(in_time))
}

fn due_at(completion: &PreparedCompletion, now: i64) -> Option<i64> {
    completion.due_in.map(|wait| now.saturating_add(wait))
}

/// Updates the URL; returns its source, its origin, and its new status.
fn update_url(
    connection: &Connection,
    completion: &PreparedCompletion,
    now: i64,
) -> rusqlite::Result<(i64, i16, Status)> {
    let id = completion.lease_token.id;
    let fetched = completion.fetched.as_ref();
    connection
        .prepare_cached(
            "UPDATE urls SET status = coalesce(?3, status), reason = ?4, last_error = coalesce(?5, last_error), attempts = ?6,
                    fetch_count = fetch_count + ?7, last_fetched_at = CASE WHEN ?7 THEN ?8 ELSE last_fetched_at END,
                    retry_count = CASE WHEN ?9 THEN 0 ELSE retry_count + ?10 END, updated_at = ?8,
                    etag = CASE WHEN ?11 THEN ?12 ELSE etag END,
                    last_modified = CASE WHEN ?11 THEN ?13 ELSE last_modified END,
                    content_hash = CASE WHEN ?11 THEN ?14 ELSE content_hash END, due_at = ?15
             WHERE host_id = ?1 AND url_id = ?2 RETURNING source_id, origin, status",
        )?
        .query_row(
            params![
                id.host.0,
                id.url.0,
                completion.status.map(Status::code),
                completion.reason,
                completion.error,
                completion.lease_token.attempt,
                completion.was_fetched,
                now,
                completion.retries == Retries::Reset,
                completion.retries == Retries::Count,
                fetched.is_some(),
                fetched.and_then(|fetched| fetched.etag.as_deref()),
                fetched.and_then(|fetched| fetched.last_modified.as_deref()),
                fetched.and_then(|fetched| fetched.content_hash.as_deref()),
                due_at(completion, now),
            ],
            |row| Ok((row.get(0)?, row.get(1)?, stored_status(row.get(2)?))),
        )
}

fn store_validators(
    connection: &Connection,
    id: FrontierId,
    fetched: &Fetched,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE urls SET etag = ?3, last_modified = ?4, content_hash = ?5 WHERE host_id = ?1 AND url_id = ?2")?
        .execute(params![id.host.0, id.url.0, fetched.etag, fetched.last_modified, fetched.content_hash])?;
    Ok(())
}

/// Records the final URL of a redirect as fetched, whatever its status, unless it is
/// being fetched right now.
fn record_redirect_target(
    connection: &Connection,
    from: FrontierId,
    row: &Prepared,
    fetched: &Fetched,
    defaults: HostDefaults,
    now: i64,
    deltas: &mut CounterDeltas,
) -> rusqlite::Result<()> {
    let (host, url) = (row.id.host.0, row.id.url.0);
    connection
        .prepare_cached(
            "INSERT INTO aliases VALUES (?1, ?2, ?3, ?4, 'redirect', ?5)
             ON CONFLICT (host_id, url_id) DO UPDATE SET target_host_id = excluded.target_host_id, target_url_id = excluded.target_url_id",
        )?
        .execute(params![from.host.0, from.url.0, host, url, now])?;
    ensure_host(connection, row, defaults)?;
    let before: Option<(i64, i16, i16, bool, i16, Option<i64>)> = connection
        .prepare_cached(
            "SELECT u.source_id, u.origin, u.status, l.owner IS NOT NULL, u.priority, u.due_at FROM urls u
             LEFT JOIN leases l ON l.host_id = u.host_id AND l.url_id = u.url_id WHERE u.host_id = ?1 AND u.url_id = ?2",
        )?
        .query_row(params![host, url], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
        })
        .optional()?;
    match before {
        Some((_, _, _, true, ..)) => return Ok(()),
        Some((source_id, origin, status, false, priority, due)) => {
            if let Some(due) = due {
                dequeue(connection, row.id, QueueHead { priority, due })?;
            }
            connection
                .prepare_cached(
                    "UPDATE urls SET status = 2, reason = NULL, retry_count = 0, fetch_count = fetch_count + 1, last_fetched_at = ?3, updated_at = ?3, due_at = NULL
                     WHERE host_id = ?1 AND url_id = ?2",
                )?
                .execute(params![host, url, now])?;
            deltas.add(source_id, origin, stored_status(status), -1);
            deltas.add(source_id, origin, Status::Fetched, 1);
        }
        None => {
            connection
                .prepare_cached(
                    "INSERT INTO urls (host_id, url_id, discovered_at, updated_at, last_fetched_at, source_id, key_tail, fetch_count, status,
                                       origin, priority, depth, norm_v, url, parent_url, item)
                     VALUES (?1, ?2, ?3, ?3, ?3, ?4, ?5, 1, 2, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                )?
                .execute(params![
                    host, url, now, row.source_id, row.key_tail, row.origin, row.priority, row.depth, row.norm_v, row.url, row.parent_url, row.item,
                ])?;
            deltas.add(row.source_id, row.origin, Status::Fetched, 1);
        }
    }
    store_validators(connection, row.id, fetched)?;
    add_event(connection, row.id, now, "fetched", "{\"by\":\"redirect\"}")
}

/// A new document, a new revision, or nothing when the text is the same. Deliveries
/// to every enabled sink are added in the same transaction.
fn write_document(
    connection: &Connection,
    id: FrontierId,
    document: &PreparedDocument,
    now: i64,
) -> rusqlite::Result<()> {
    let (host, url) = (id.host.0, id.url.0);
    let before: Option<(i32, Option<Vec<u8>>)> = connection
        .prepare_cached(
            "SELECT revision, content_hash FROM documents WHERE host_id = ?1 AND url_id = ?2",
        )?
        .query_row(params![host, url], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if before
        .as_ref()
        .is_some_and(|(_, hash)| hash.is_some() && *hash == document.content_hash)
    {
        return Ok(());
    }
    if before.is_some() {
        near_duplicates::delete_sketch(connection, id)?;
    }
    let sketch = document.sketch.as_ref();
    let cluster = sketch.map(|sketch| near_duplicates::insert_sketch(connection, id, sketch));
    let cluster = cluster.transpose()?.flatten().map(FrontierId::to_bytes);
    let revision = before.map_or(1, |(revision, _)| revision + 1);
    let duplicate_of: Option<Vec<u8>> = connection
        .prepare_cached(
            "SELECT url_id, key_tail FROM documents WHERE content_hash = ?1 AND content_hash IS NOT NULL
                AND NOT (host_id = ?2 AND url_id = ?3) ORDER BY fetched_at LIMIT 1",
        )?
        .query_row(params![document.content_hash, host, url], |row| {
            let (id, tail): (Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?);
            Ok([id, tail].concat())
        })
        .optional()?;
    connection
        .prepare_cached(
            "INSERT INTO documents (host_id, url_id, key_tail, revision, source_id, title, content_hash, duplicate_of, cluster, fetched_at, body, change_id)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, (SELECT coalesce(max(change_id), 0) + 1 FROM documents))
             ON CONFLICT (host_id, url_id) DO UPDATE SET revision = excluded.revision, source_id = excluded.source_id,
                title = excluded.title, content_hash = excluded.content_hash, duplicate_of = excluded.duplicate_of,
                cluster = excluded.cluster, fetched_at = excluded.fetched_at, body = excluded.body, change_id = excluded.change_id",
        )?
        .execute(params![
            host, url, document.key_tail, revision, document.source_id, document.title, document.content_hash, duplicate_of, cluster, now, document.body,
        ])?;
    connection
        .prepare_cached(
            "INSERT INTO deliveries (sink, host_id, url_id, revision, attempts, next_attempt_at, created_at)
             SELECT name, ?1, ?2, ?3, 0, ?4, ?4 FROM sinks WHERE enabled = 1 AND (duplicates = 1 OR ?5)
             ON CONFLICT (sink, host_id, url_id) DO UPDATE SET revision = excluded.revision, attempts = 0, next_attempt_at = excluded.next_attempt_at",
        )?
        .execute(params![host, url, revision, now, duplicate_of.is_none()])?;
    Ok(())
}

/// Updates a host after its requests ended: ready after its delay and cooldown,
/// with its new queue head.
fn apply_cooldown(
    connection: &Connection,
    host: i64,
    completions: &HostCompletions,
    now: i64,
) -> rusqlite::Result<()> {
    let head = head_of(connection, host, now)?;
    if completions.changes.is_empty() {
        connection
            .prepare_cached(
                "UPDATE hosts SET head_priority = ?2, head_due = ?3 WHERE host_id = ?1",
            )?
            .execute(params![host, head.priority, head.due])?;
        return Ok(());
    }
    let merged = PreparedHostChange::merge(&completions.changes);
    connection
        .prepare_cached(
            "UPDATE hosts SET head_priority = ?2, head_due = ?3, in_flight = max(in_flight - ?4, 0), delay_ms = coalesce(?5, delay_ms),
                    gate_at = max(CASE WHEN ?4 > 0 THEN last_start_at + coalesce(?5, delay_ms) ELSE gate_at END, ?6), blocked_until = max(blocked_until, ?7),
                    errors = CASE ?8 WHEN 1 THEN errors + 1 WHEN 0 THEN 0 ELSE errors END
             WHERE host_id = ?1",
        )?
        .execute(params![host, head.priority, head.due, completions.in_time, merged.delay_ms, now + merged.cooldown_ms, merged.blocked_until(now), merged.errors])?;
    Ok(())
}
