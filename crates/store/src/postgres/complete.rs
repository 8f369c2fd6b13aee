//! Completes claims: queue, URLs, documents, deliveries, events and hosts in one
//! transaction, a statement each for the whole batch.

use std::collections::BTreeMap;

use tokio_postgres::Row;

use super::documents::write_documents;
use super::pool::Connection;
use super::rows::{Events, HEADS, LOCK_HOSTS, hosts_of, write_counter_deltas};
use crate::complete::{Fetched, PreparedCompletion, PreparedHostChange, Retries};
use crate::counters::{CounterDeltas, stored_status};
use crate::error::Result;
use crate::frontier::Status;
use crate::ids::FrontierId;
use crate::submission::Prepared;

const DEQUEUE: &str = "DELETE FROM queue q
    USING unnest($1::BIGINT[], $2::BYTEA[], $3::INTEGER[], $4::INTEGER[], $5::BIGINT[]) AS n(host_id, url_id, attempt, at, discovered_at)
    JOIN urls u ON u.host_id = n.host_id AND u.url_id = n.url_id AND u.discovered_at = n.discovered_at
    WHERE q.host_id = n.host_id AND q.url_id = n.url_id AND q.attempt = n.attempt AND q.owner IS NOT NULL RETURNING n.at, q.due_at";

// The host is locked: its queue can't change between the two reads.
const RESCHEDULE: &str = "UPDATE queue q SET due_at = n.due_at, owner = NULL, crashes = 0, priority = abs(q.priority)
    FROM unnest($1::BIGINT[], $2::BYTEA[], $3::INTEGER[], $4::INTEGER[], $5::BIGINT[], $6::BIGINT[]) AS n(host_id, url_id, attempt, at, discovered_at, due_at)
    JOIN urls u ON u.host_id = n.host_id AND u.url_id = n.url_id AND u.discovered_at = n.discovered_at
    JOIN queue before ON before.host_id = n.host_id AND before.url_id = n.url_id
    WHERE q.host_id = n.host_id AND q.url_id = n.url_id AND q.attempt = n.attempt AND q.owner IS NOT NULL RETURNING n.at, before.due_at";

/// Which of some completions were stored before: their events name the attempt.
const STORED: &str = "SELECT n.at FROM unnest($1::BIGINT[], $2::BYTEA[], $3::TEXT[], $4::TEXT[], $5::BIGINT[], $6::INTEGER[])
        AS n(host_id, url_id, kind, detail, discovered_at, at)
    WHERE EXISTS (SELECT 1 FROM events e WHERE e.host_id = n.host_id AND e.url_id = n.url_id AND e.kind = n.kind
        AND e.detail = n.detail AND e.at >= n.discovered_at)";

const UPDATE_URLS: &str = "UPDATE urls u SET status = coalesce(n.status, u.status), reason = n.reason, last_error = coalesce(n.error, u.last_error),
        attempts = n.attempt, fetch_count = u.fetch_count + n.fetched,
        last_fetched_at = CASE WHEN n.fetched = 1 THEN $13 ELSE u.last_fetched_at END,
        retry_count = CASE WHEN n.retries < 0 THEN 0 ELSE u.retry_count + n.retries END,
        etag = CASE WHEN n.has_validators THEN n.etag ELSE u.etag END,
        last_modified = CASE WHEN n.has_validators THEN n.last_modified ELSE u.last_modified END,
        content_hash = CASE WHEN n.has_validators THEN n.content_hash ELSE u.content_hash END,
        updated_at = $13
    FROM unnest($1::BIGINT[], $2::BYTEA[], $3::SMALLINT[], $4::TEXT[], $5::TEXT[], $6::INTEGER[], $7::INTEGER[], $8::SMALLINT[],
                $9::BOOLEAN[], $10::TEXT[], $11::TEXT[], $12::BYTEA[])
        AS n(host_id, url_id, status, reason, error, attempt, fetched, retries, has_validators, etag, last_modified, content_hash)
    WHERE u.host_id = n.host_id AND u.url_id = n.url_id RETURNING u.source_id, u.origin, u.status";

/// Ready after the delay and cooldown, with the current queue head. After an expired
/// lease another claim may hold the host now.
fn cooldown_sql() -> String {
    format!(
        "UPDATE hosts h SET head_priority = coalesce(head.priority, 0), head_due = coalesce(head.due_at, {never}),
            in_flight = greatest(h.in_flight - n.in_time, 0), delay_ms = coalesce(n.delay_ms, h.delay_ms),
            gate_at = CASE WHEN n.in_time > 0 THEN greatest(h.last_start_at + coalesce(n.delay_ms, h.delay_ms), n.cooldown_until)
                WHEN n.cooldown_until IS NULL THEN h.gate_at ELSE greatest(h.gate_at, n.cooldown_until) END,
            blocked_until = greatest(h.blocked_until, n.blocked_until),
            errors = CASE n.errors WHEN 1 THEN h.errors + 1 WHEN 0 THEN 0 ELSE h.errors END
         FROM unnest($1::BIGINT[], $3::SMALLINT[], $4::INTEGER[], $5::BIGINT[], $6::BIGINT[], $7::SMALLINT[])
            AS n(host_id, in_time, delay_ms, cooldown_until, blocked_until, errors)
         LEFT JOIN ({HEADS}) AS head USING (host_id)
         WHERE h.host_id = n.host_id",
        never = i64::MAX
    )
}

pub(super) async fn complete(
    connection: &mut Connection<'_>,
    batch: &[PreparedCompletion],
    delay_ms: i32,
    max_in_flight: i16,
    now: i64,
) -> Result<Vec<bool>> {
    add_final_hosts(connection, batch, delay_ms, max_in_flight).await?;
    let redirect_hosts = batch
        .iter()
        .filter_map(|completion| completion.moved_to.as_ref())
        .map(|(row, _)| row.id.host.0);
    let hosts = hosts_of(
        batch
            .iter()
            .map(|completion| completion.lease_token.id.host.0)
            .chain(redirect_hosts),
    );
    connection.query(LOCK_HOSTS, &[&hosts]).await?;

    let mut ended = vec![None; batch.len()];
    for (at, until) in end_leases(connection, batch, now).await? {
        ended[at] = Some(until > now);
    }
    let mut accepted: Vec<bool> = ended.iter().map(Option::is_some).collect();
    let held: Vec<&PreparedCompletion> = batch
        .iter()
        .zip(&accepted)
        .filter(|(_, held)| **held)
        .map(|(completion, _)| completion)
        .collect();
    let in_time: Vec<bool> = ended.into_iter().flatten().collect();
    if !held.is_empty() {
        write(connection, &held, &in_time, now).await?;
    }
    accept_stored(connection, batch, &mut accepted).await?;
    Ok(accepted)
}

/// Accepts repetitions of what was stored before: the response of that COMMIT was
/// lost.
async fn accept_stored(
    connection: &mut Connection<'_>,
    batch: &[PreparedCompletion],
    accepted: &mut [bool],
) -> Result<()> {
    let refused: Vec<usize> = (0..batch.len()).filter(|at| !accepted[*at]).collect();
    if refused.is_empty() {
        return Ok(());
    }
    let (mut hosts, mut urls, mut kinds, mut details, mut discovered) =
        (vec![], vec![], vec![], vec![], vec![]);
    for completion in refused.iter().map(|at| &batch[*at]) {
        let token = &completion.lease_token;
        hosts.push(token.id.host.0);
        urls.push(&token.id.url.0[..]);
        kinds.push(completion.event);
        details.push(completion.detail.as_str());
        discovered.push(token.discovered_at.0);
    }
    let positions: Vec<i32> = refused.iter().map(|at| *at as i32).collect();
    let rows = connection
        .query(
            STORED,
            &[&hosts, &urls, &kinds, &details, &discovered, &positions],
        )
        .await?;
    for row in &rows {
        accepted[row.get::<_, i32>(0).unsigned_abs() as usize] = true;
    }
    Ok(())
}

/// Writes what follows from the completions whose lease was held.
async fn write(
    connection: &mut Connection<'_>,
    held: &[&PreparedCompletion],
    in_time: &[bool],
    now: i64,
) -> Result<()> {
    let (mut deltas, mut events) = (CounterDeltas::default(), Events::default());
    let mut documents = Vec::new();
    for (source_id, origin, status) in update_urls(connection, held, now).await? {
        deltas.add(source_id, origin, Status::Fetching, -1);
        deltas.add(source_id, origin, status, 1);
    }
    for completion in held {
        let id = &completion.lease_token.id;
        events.add(id.host.0, &id.url.0, completion.event, &completion.detail);
        if let Some((row, fetched)) = &completion.moved_to
            && record_redirect_target(connection, *id, row, fetched, now, &mut deltas).await?
        {
            events.add(
                row.id.host.0,
                &row.id.url.0,
                "fetched",
                "{\"by\":\"redirect\"}",
            );
        }
        if let Some(document) = &completion.document {
            let page = completion.moved_to.as_ref().map_or(*id, |(row, _)| row.id);
            documents.push((page, document));
        }
    }
    write_documents(connection, documents, now).await?;
    events.write(connection, now).await?;
    apply_cooldown(connection, held, in_time, now).await?;
    write_counter_deltas(connection, &deltas).await
}

async fn add_final_hosts(
    connection: &mut Connection<'_>,
    batch: &[PreparedCompletion],
    delay_ms: i32,
    max_in_flight: i16,
) -> Result<()> {
    let names: BTreeMap<i64, &str> = batch
        .iter()
        .filter_map(|completion| completion.moved_to.as_ref())
        .map(|(row, _)| (row.id.host.0, row.host_key.as_str()))
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let (ids, keys): (Vec<i64>, Vec<&str>) = names.into_iter().unzip();
    connection
        .execute(
            super::submit::ADD_HOSTS,
            &[&ids, &keys, &delay_ms, &max_in_flight],
        )
        .await
        .map(drop)
}

/// Dequeues rows, or reschedules them. Returns the positions whose lease was not
/// lost, and when their leases end.
async fn end_leases(
    connection: &mut Connection<'_>,
    batch: &[PreparedCompletion],
    now: i64,
) -> Result<Vec<(usize, i64)>> {
    let mut held = Vec::with_capacity(batch.len());
    for is_rescheduled in [false, true] {
        let part: Vec<(usize, &PreparedCompletion)> = batch
            .iter()
            .enumerate()
            .filter(|(_, completion)| completion.due_in.is_some() == is_rescheduled)
            .collect();
        if part.is_empty() {
            continue;
        }
        let hosts: Vec<i64> = part.iter().map(|(_, s)| s.lease_token.id.host.0).collect();
        let urls: Vec<&[u8]> = part
            .iter()
            .map(|(_, s)| &s.lease_token.id.url.0[..])
            .collect();
        let attempts: Vec<i32> = part.iter().map(|(_, s)| s.lease_token.attempt).collect();
        let discovered: Vec<i64> = part
            .iter()
            .map(|(_, s)| s.lease_token.discovered_at.0)
            .collect();
        let positions: Vec<i32> = part.iter().map(|(at, _)| *at as i32).collect();
        let rows = if is_rescheduled {
            let dues: Vec<i64> = part
                .iter()
                .map(|(_, s)| now.saturating_add(s.due_in.unwrap_or(0)))
                .collect();
            connection
                .query(
                    RESCHEDULE,
                    &[&hosts, &urls, &attempts, &positions, &discovered, &dues],
                )
                .await?
        } else {
            connection
                .query(
                    DEQUEUE,
                    &[&hosts, &urls, &attempts, &positions, &discovered],
                )
                .await?
        };
        let position = |row: &Row| (row.get::<_, i32>(0).unsigned_abs() as usize, row.get(1));
        held.extend(rows.iter().map(position));
    }
    Ok(held)
}

async fn update_urls(
    connection: &mut Connection<'_>,
    held: &[&PreparedCompletion],
    now: i64,
) -> Result<Vec<(i64, i16, Status)>> {
    let hosts: Vec<i64> = held.iter().map(|s| s.lease_token.id.host.0).collect();
    let urls: Vec<&[u8]> = held.iter().map(|s| &s.lease_token.id.url.0[..]).collect();
    let statuses: Vec<Option<i16>> = held.iter().map(|s| s.status.map(Status::code)).collect();
    let reasons: Vec<Option<&str>> = held.iter().map(|s| s.reason.as_deref()).collect();
    let errors: Vec<Option<&str>> = held.iter().map(|s| s.error.as_deref()).collect();
    let attempts: Vec<i32> = held.iter().map(|s| s.lease_token.attempt).collect();
    let fetched: Vec<i32> = held.iter().map(|s| i32::from(s.was_fetched)).collect();
    let retries: Vec<i16> = held.iter().map(|s| retries(s.retries)).collect();
    let has_validators: Vec<bool> = held.iter().map(|s| s.fetched.is_some()).collect();
    let of = |get: fn(&Fetched) -> Option<&str>| {
        held.iter()
            .map(|s| s.fetched.as_ref().and_then(get))
            .collect::<Vec<_>>()
    };
    let etags = of(|fetched| fetched.etag.as_deref());
    let modified = of(|fetched| fetched.last_modified.as_deref());
    let hashes: Vec<Option<&[u8]>> = held
        .iter()
        .map(|s| s.fetched.as_ref().and_then(|f| f.content_hash.as_deref()))
        .collect();
    let rows = connection
        .query(
            UPDATE_URLS,
            &[
                &hosts,
                &urls,
                &statuses,
                &reasons,
                &errors,
                &attempts,
                &fetched,
                &retries,
                &has_validators,
                &etags,
                &modified,
                &hashes,
                &now,
            ],
        )
        .await?;
    Ok(rows
        .iter()
        .map(|row| (row.get(0), row.get(1), stored_status(row.get(2))))
        .collect())
}

fn retries(retries: Retries) -> i16 {
    match retries {
        Retries::Reset => -1,
        Retries::Keep => 0,
        Retries::Count => 1,
    }
}

/// Records the final URL of a redirect as fetched, whatever its status, unless it is
/// being fetched right now.
async fn record_redirect_target(
    connection: &mut Connection<'_>,
    from: FrontierId,
    row: &Prepared,
    fetched: &Fetched,
    now: i64,
    deltas: &mut CounterDeltas,
) -> Result<bool> {
    let (host, url) = (row.id.host.0, &row.id.url.0[..]);
    connection
        .execute(
            "INSERT INTO aliases (host_id, url_id, target_host_id, target_url_id, kind, created_at) VALUES ($1, $2, $3, $4, 'redirect', $5)
             ON CONFLICT (host_id, url_id) DO UPDATE SET target_host_id = excluded.target_host_id, target_url_id = excluded.target_url_id",
            &[&from.host.0, &&from.url.0[..], &host, &url, &now],
        )
        .await?;
    let before = connection
        .query(
            "SELECT u.source_id, u.origin, u.status, q.owner IS NOT NULL FROM urls u
             LEFT JOIN queue q ON q.host_id = u.host_id AND q.url_id = u.url_id WHERE u.host_id = $1 AND u.url_id = $2",
            &[&host, &url],
        )
        .await?;
    match before.first() {
        Some(known) if known.get(3) => return Ok(false),
        Some(known) => {
            connection
                .execute(
                    "DELETE FROM queue WHERE host_id = $1 AND url_id = $2",
                    &[&host, &url],
                )
                .await?;
            connection
                .execute(
                    "UPDATE urls SET status = 2, reason = NULL, retry_count = 0, fetch_count = fetch_count + 1, last_fetched_at = $3, updated_at = $3,
                            etag = $4, last_modified = $5, content_hash = $6 WHERE host_id = $1 AND url_id = $2",
                    &[&host, &url, &now, &fetched.etag, &fetched.last_modified, &fetched.content_hash],
                )
                .await?;
            deltas.add(known.get(0), known.get(1), stored_status(known.get(2)), -1);
            deltas.add(known.get(0), known.get(1), Status::Fetched, 1);
        }
        None => {
            connection
                .execute(
                    "INSERT INTO urls (host_id, url_id, key_tail, url, source_id, origin, priority, depth, norm_v, parent_url, item, status, fetch_count,
                                       discovered_at, updated_at, last_fetched_at, etag, last_modified, content_hash)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 2, 1, $12, $12, $12, $13, $14, $15)",
                    &[
                        &host,
                        &url,
                        &&row.key_tail[..],
                        &row.url,
                        &row.source_id,
                        &row.origin,
                        &row.priority,
                        &row.depth,
                        &row.norm_v,
                        &row.parent_url,
                        &row.item,
                        &now,
                        &fetched.etag,
                        &fetched.last_modified,
                        &fetched.content_hash,
                    ],
                )
                .await?;
            deltas.add(row.source_id, row.origin, Status::Fetched, 1);
        }
    }
    Ok(true)
}

/// Updates the hosts after their requests ended.
async fn apply_cooldown(
    connection: &mut Connection<'_>,
    held: &[&PreparedCompletion],
    in_time: &[bool],
    now: i64,
) -> Result<()> {
    let mut by_host: BTreeMap<i64, (i16, Vec<PreparedHostChange>)> = BTreeMap::new();
    for (completion, in_time) in held.iter().zip(in_time) {
        let host = by_host.entry(completion.lease_token.id.host.0).or_default();
        host.0 += i16::from(*in_time);
        host.1.push(completion.host);
        if let Some((row, _)) = &completion.moved_to {
            by_host.entry(row.id.host.0).or_default();
        }
    }
    // A host that is only the target of a redirect has no request and no cooldown.
    let had_requests: Vec<bool> = by_host
        .values()
        .map(|(_, changes)| !changes.is_empty())
        .collect();
    let merged: Vec<(i64, i16, PreparedHostChange)> = by_host
        .into_iter()
        .map(|(host, (in_time, changes))| (host, in_time, PreparedHostChange::merge(&changes)))
        .collect();
    let hosts: Vec<i64> = merged.iter().map(|(host, ..)| *host).collect();
    let in_time: Vec<i16> = merged.iter().map(|(_, in_time, _)| *in_time).collect();
    let delays: Vec<Option<i32>> = merged.iter().map(|(.., change)| change.delay_ms).collect();
    let cooldowns: Vec<Option<i64>> = merged
        .iter()
        .zip(had_requests)
        .map(|((.., change), had_requests)| {
            had_requests.then(|| now.saturating_add(change.cooldown_ms))
        })
        .collect();
    let blocks: Vec<i64> = merged
        .iter()
        .map(|(.., change)| change.blocked_until(now))
        .collect();
    let errors: Vec<i16> = merged
        .iter()
        .map(|(.., change)| i16::from(change.errors))
        .collect();
    connection
        .execute(
            &cooldown_sql(),
            &[
                &hosts, &now, &in_time, &delays, &cooldowns, &blocks, &errors,
            ],
        )
        .await
        .map(drop)
}
