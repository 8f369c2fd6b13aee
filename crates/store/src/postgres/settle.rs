//! The end of claims: queue, URLs, documents, deliveries, events and hosts in
//! one transaction, a statement each for the whole batch.

use std::collections::BTreeMap;

use tokio_postgres::Row;

use super::documents::write_documents;
use super::pool::Connection;
use super::rows::{Events, HEADS, LOCK_HOSTS, hosts_of, write_moves};
use crate::error::Result;
use crate::frontier::Status;
use crate::ids::FrontierId;
use crate::moves::{Moves, stored_status};
use crate::settle::{Fetched, HostRest, Retries, Settlement};
use crate::submission::Prepared;

const LEAVE_QUEUE: &str = "DELETE FROM queue q
    USING unnest($1::BIGINT[], $2::BYTEA[], $3::INTEGER[], $4::INTEGER[]) AS n(host_id, url_id, attempt, at)
    WHERE q.host_id = n.host_id AND q.url_id = n.url_id AND q.attempt = n.attempt AND q.owner IS NOT NULL RETURNING n.at, q.due_at";

// The host is locked: nobody else changes its queue between the two looks.
const WAIT_IN_QUEUE: &str = "UPDATE queue q SET due_at = n.due_at, owner = NULL, crashes = 0
    FROM unnest($1::BIGINT[], $2::BYTEA[], $3::INTEGER[], $4::INTEGER[], $5::BIGINT[]) AS n(host_id, url_id, attempt, at, due_at)
    JOIN queue before ON before.host_id = n.host_id AND before.url_id = n.url_id
    WHERE q.host_id = n.host_id AND q.url_id = n.url_id AND q.attempt = n.attempt AND q.owner IS NOT NULL RETURNING n.at, before.due_at";

const UPDATE_URLS: &str = "UPDATE urls u SET status = coalesce(n.status, u.status), reason = n.reason, last_error = coalesce(n.error, u.last_error),
        attempts = n.attempt, fetch_count = u.fetch_count + n.fetched,
        last_fetched_at = CASE WHEN n.fetched = 1 THEN $13 ELSE u.last_fetched_at END,
        retry_count = CASE WHEN n.retries < 0 THEN 0 ELSE u.retry_count + n.retries END,
        etag = CASE WHEN n.remember THEN n.etag ELSE u.etag END,
        last_modified = CASE WHEN n.remember THEN n.last_modified ELSE u.last_modified END,
        content_hash = CASE WHEN n.remember THEN n.content_hash ELSE u.content_hash END,
        updated_at = $13
    FROM unnest($1::BIGINT[], $2::BYTEA[], $3::SMALLINT[], $4::TEXT[], $5::TEXT[], $6::INTEGER[], $7::INTEGER[], $8::SMALLINT[],
                $9::BOOLEAN[], $10::TEXT[], $11::TEXT[], $12::BYTEA[])
        AS n(host_id, url_id, status, reason, error, attempt, fetched, retries, remember, etag, last_modified, content_hash)
    WHERE u.host_id = n.host_id AND u.url_id = n.url_id RETURNING u.source_id, u.origin, u.status";

/// Free again after the delay, with the head that the queue has now. One whose
/// lease had ended may have been followed by another, which holds the host now.
fn rest_sql() -> String {
    format!(
        "UPDATE hosts h SET head_priority = coalesce(head.priority, 0), head_due = coalesce(head.due_at, {never}),
            in_flight = greatest(h.in_flight - n.in_time, 0), delay_ms = coalesce(n.delay_ms, h.delay_ms),
            gate_at = CASE WHEN n.in_time > 0 THEN greatest(h.last_start_at + coalesce(n.delay_ms, h.delay_ms), n.rest_until)
                WHEN n.rest_until IS NULL THEN h.gate_at ELSE greatest(h.gate_at, n.rest_until) END,
            blocked_until = greatest(h.blocked_until, n.blocked_until),
            errors = CASE n.errors WHEN 1 THEN h.errors + 1 WHEN 0 THEN 0 ELSE h.errors END
         FROM unnest($1::BIGINT[], $3::SMALLINT[], $4::INTEGER[], $5::BIGINT[], $6::BIGINT[], $7::SMALLINT[])
            AS n(host_id, in_time, delay_ms, rest_until, blocked_until, errors)
         LEFT JOIN ({HEADS}) AS head USING (host_id)
         WHERE h.host_id = n.host_id",
        never = i64::MAX
    )
}

pub(super) async fn settle(
    connection: &mut Connection<'_>,
    batch: &[Settlement],
    delay_ms: i32,
    max_in_flight: i16,
    now: i64,
) -> Result<Vec<bool>> {
    add_final_hosts(connection, batch, delay_ms, max_in_flight).await?;
    let arrivals = batch
        .iter()
        .filter_map(|settlement| settlement.moved_to.as_ref())
        .map(|(row, _)| row.id.host.0);
    let hosts = hosts_of(
        batch
            .iter()
            .map(|settlement| settlement.ticket.id.host.0)
            .chain(arrivals),
    );
    connection.query(LOCK_HOSTS, &[&hosts]).await?;

    let mut left = vec![None; batch.len()];
    for (at, until) in leave_queue(connection, batch, now).await? {
        left[at] = Some(until > now);
    }
    let accepted: Vec<bool> = left.iter().map(Option::is_some).collect();
    let held: Vec<&Settlement> = batch
        .iter()
        .zip(&accepted)
        .filter(|(_, held)| **held)
        .map(|(settlement, _)| settlement)
        .collect();
    let in_time: Vec<bool> = left.into_iter().flatten().collect();
    if held.is_empty() {
        return Ok(accepted);
    }
    let (mut moves, mut events) = (Moves::default(), Events::default());
    let mut documents = Vec::new();
    for (source_id, origin, status) in update_urls(connection, &held, now).await? {
        moves.add(source_id, origin, Status::Fetching, -1);
        moves.add(source_id, origin, status, 1);
    }
    for settlement in &held {
        let id = &settlement.ticket.id;
        events.add(id.host.0, &id.url.0, settlement.event, &settlement.detail);
        if let Some((row, fetched)) = &settlement.moved_to
            && arrive(connection, *id, row, fetched, now, &mut moves).await?
        {
            events.add(
                row.id.host.0,
                &row.id.url.0,
                "fetched",
                "{\"by\":\"redirect\"}",
            );
        }
        if let Some(document) = &settlement.document {
            let home = settlement.moved_to.as_ref().map_or(*id, |(row, _)| row.id);
            documents.push((home, document));
        }
    }
    write_documents(connection, documents, now).await?;
    events.write(connection, now).await?;
    rest(connection, &held, &in_time, now).await?;
    write_moves(connection, &moves).await?;
    Ok(accepted)
}

async fn add_final_hosts(
    connection: &mut Connection<'_>,
    batch: &[Settlement],
    delay_ms: i32,
    max_in_flight: i16,
) -> Result<()> {
    let names: BTreeMap<i64, &str> = batch
        .iter()
        .filter_map(|settlement| settlement.moved_to.as_ref())
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

/// Takes rows out of the queue, or makes them wait. The positions that nobody
/// else has, and when their leases ended or would have.
async fn leave_queue(
    connection: &mut Connection<'_>,
    batch: &[Settlement],
    now: i64,
) -> Result<Vec<(usize, i64)>> {
    let mut held = Vec::with_capacity(batch.len());
    for stays in [false, true] {
        let part: Vec<(usize, &Settlement)> = batch
            .iter()
            .enumerate()
            .filter(|(_, settlement)| settlement.due_in.is_some() == stays)
            .collect();
        if part.is_empty() {
            continue;
        }
        let hosts: Vec<i64> = part.iter().map(|(_, s)| s.ticket.id.host.0).collect();
        let urls: Vec<&[u8]> = part.iter().map(|(_, s)| &s.ticket.id.url.0[..]).collect();
        let attempts: Vec<i32> = part.iter().map(|(_, s)| s.ticket.attempt).collect();
        let places: Vec<i32> = part.iter().map(|(at, _)| *at as i32).collect();
        let rows = if stays {
            let dues: Vec<i64> = part
                .iter()
                .map(|(_, s)| now.saturating_add(s.due_in.unwrap_or(0)))
                .collect();
            connection
                .query(WAIT_IN_QUEUE, &[&hosts, &urls, &attempts, &places, &dues])
                .await?
        } else {
            connection
                .query(LEAVE_QUEUE, &[&hosts, &urls, &attempts, &places])
                .await?
        };
        let place = |row: &Row| (row.get::<_, i32>(0).unsigned_abs() as usize, row.get(1));
        held.extend(rows.iter().map(place));
    }
    Ok(held)
}

async fn update_urls(
    connection: &mut Connection<'_>,
    held: &[&Settlement],
    now: i64,
) -> Result<Vec<(i64, i16, Status)>> {
    let hosts: Vec<i64> = held.iter().map(|s| s.ticket.id.host.0).collect();
    let urls: Vec<&[u8]> = held.iter().map(|s| &s.ticket.id.url.0[..]).collect();
    let statuses: Vec<Option<i16>> = held.iter().map(|s| s.status.map(Status::code)).collect();
    let reasons: Vec<Option<&str>> = held.iter().map(|s| s.reason.as_deref()).collect();
    let errors: Vec<Option<&str>> = held.iter().map(|s| s.error.as_deref()).collect();
    let attempts: Vec<i32> = held.iter().map(|s| s.ticket.attempt).collect();
    let fetched: Vec<i32> = held.iter().map(|s| i32::from(s.was_fetched)).collect();
    let retries: Vec<i16> = held.iter().map(|s| retries(s.retries)).collect();
    let remember: Vec<bool> = held.iter().map(|s| s.fetched.is_some()).collect();
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
                &hosts, &urls, &statuses, &reasons, &errors, &attempts, &fetched, &retries,
                &remember, &etags, &modified, &hashes, &now,
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

/// The final URL of a redirect: fetched, whatever it was before, unless someone
/// is fetching it right now.
async fn arrive(
    connection: &mut Connection<'_>,
    from: FrontierId,
    row: &Prepared,
    fetched: &Fetched,
    now: i64,
    moves: &mut Moves,
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
            moves.add(known.get(0), known.get(1), stored_status(known.get(2)), -1);
            moves.add(known.get(0), known.get(1), Status::Fetched, 1);
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
            moves.add(row.source_id, row.origin, Status::Fetched, 1);
        }
    }
    Ok(true)
}

/// The hosts after their requests ended.
async fn rest(
    connection: &mut Connection<'_>,
    held: &[&Settlement],
    in_time: &[bool],
    now: i64,
) -> Result<()> {
    let mut ends: BTreeMap<i64, (i16, Vec<HostRest>)> = BTreeMap::new();
    for (settlement, in_time) in held.iter().zip(in_time) {
        let end = ends.entry(settlement.ticket.id.host.0).or_default();
        end.0 += i16::from(*in_time);
        end.1.push(settlement.host);
        if let Some((row, _)) = &settlement.moved_to {
            ends.entry(row.id.host.0).or_default();
        }
    }
    // Where only a redirect arrived, nothing ended and nothing rests.
    let are_at_rest: Vec<bool> = ends.values().map(|(_, rests)| !rests.is_empty()).collect();
    let sums: Vec<(i64, i16, HostRest)> = ends
        .into_iter()
        .map(|(host, (in_time, rests))| (host, in_time, HostRest::sum(&rests)))
        .collect();
    let hosts: Vec<i64> = sums.iter().map(|(host, ..)| *host).collect();
    let in_time: Vec<i16> = sums.iter().map(|(_, in_time, _)| *in_time).collect();
    let delays: Vec<Option<i32>> = sums.iter().map(|(.., sum)| sum.delay_ms).collect();
    let rests: Vec<Option<i64>> = sums
        .iter()
        .zip(are_at_rest)
        .map(|((.., sum), is_at_rest)| is_at_rest.then(|| now.saturating_add(sum.rest_ms)))
        .collect();
    let blocks: Vec<i64> = sums
        .iter()
        .map(|(.., sum)| sum.blocked_until(now))
        .collect();
    let errors: Vec<i16> = sums.iter().map(|(.., sum)| i16::from(sum.errors)).collect();
    connection
        .execute(
            &rest_sql(),
            &[&hosts, &now, &in_time, &delays, &rests, &blocks, &errors],
        )
        .await
        .map(drop)
}
