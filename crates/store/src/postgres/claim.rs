//! Claims: ready hosts first, skipping those that another claim has locked, then the
//! best URL of each. Blocked, leased and idle hosts are never read, so the cost does
//! not grow with the backlog.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tidings_url::FetchUrl;
use tokio_postgres::Row;

use super::pool::Connection;
use super::rows::{Events, LOCK_HOSTS, hosts_of, refresh_heads, write_counter_deltas};
use crate::counters::{CounterDeltas, stored_status};
use crate::error::{Result, StoreError};
use crate::fairness::ClaimSequence;
use crate::frontier::{Claim, ClaimRequest, Claimed, LeaseToken, Origin, PRIORITIES, Status};
use crate::ids::{FrontierId, HostId, UrlId};
use crate::moment::{Moment, millis};

/// Selecting and updating are separate statements: in one, the index scan ends
/// after its own changes and can't mark dead entries (53 against 8 buffers).
const READY_HOSTS: &str = "SELECT h.host_id, h.delay_ms, h.max_in_flight, h.in_flight, h.head_priority
    FROM unnest($1::SMALLINT[]) AS level(priority)
    CROSS JOIN LATERAL (
        SELECT host_id, delay_ms, max_in_flight, CASE WHEN lease_until <= $2 THEN 0::SMALLINT ELSE in_flight END AS in_flight, head_priority
        FROM hosts WHERE head_priority = level.priority AND head_priority > 0 AND ready_at <= $2
        ORDER BY ready_at LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED) AS h
    LIMIT $4";

/// The best due URLs of each host: from its head downwards, or from the lowest
/// priority upwards for an aging host. Whose lease expired was first of its priority
/// when it was claimed, and is first again.
const BEST_URLS: &str = "SELECT h.host_id, q.url_id, q.attempt, q.owner IS NOT NULL, q.crashes
    FROM unnest($1::BIGINT[], $2::SMALLINT[], $3::BOOLEAN[]) AS h(host_id, head, aging)
    CROSS JOIN LATERAL (
        SELECT due.* FROM unnest(CASE WHEN h.aging THEN '{1,2,3,4,5,6,7,8,9,10}'::SMALLINT[] ELSE '{10,9,8,7,6,5,4,3,2,1}'::SMALLINT[] END) AS level(priority)
        CROSS JOIN LATERAL (
            (SELECT url_id, attempt, owner, crashes FROM queue
             WHERE host_id = h.host_id AND priority = -level.priority AND due_at <= $4 ORDER BY due_at LIMIT $5)
            UNION ALL
            (SELECT url_id, attempt, owner, crashes FROM queue
             WHERE host_id = h.host_id AND priority = level.priority AND due_at <= $4 ORDER BY due_at LIMIT $5)) AS due
        WHERE h.aging OR level.priority <= h.head LIMIT $5) AS q";

/// Leased rows have their priority negated: all of a host lie together in the index.
const LEASE: &str = "UPDATE queue q SET due_at = $4, owner = $5, attempt = q.attempt + 1, crashes = n.crashes, priority = -abs(q.priority)
    FROM unnest($1::BIGINT[], $2::BYTEA[], $3::SMALLINT[]) AS n(host_id, url_id, crashes)
    JOIN urls u ON u.host_id = n.host_id AND u.url_id = n.url_id
    WHERE q.host_id = n.host_id AND q.url_id = n.url_id
    RETURNING q.host_id, q.url_id, q.attempt, u.key_tail, u.url, u.source_id, u.origin, abs(q.priority), u.depth, u.retry_count,
              u.etag, u.last_modified, u.content_hash, u.item, u.status, u.last_fetched_at, u.discovered_at";

const CHECK_OUT: &str = "UPDATE hosts h SET in_flight = n.in_flight, lease_until = $3::BIGINT, last_start_at = $4::BIGINT,
        gate_at = CASE WHEN n.in_flight < h.max_in_flight THEN $4::BIGINT + h.delay_ms ELSE $3::BIGINT END
    FROM unnest($1::BIGINT[], $2::SMALLINT[]) AS n(host_id, in_flight) WHERE h.host_id = n.host_id";

const NEXT_READY: &str = "SELECT min(h.ready_at) FROM unnest($1::SMALLINT[]) AS level(priority)
    CROSS JOIN LATERAL (SELECT ready_at FROM hosts WHERE head_priority = level.priority AND head_priority > 0 ORDER BY ready_at LIMIT 1) AS h";

struct ReadyHost {
    id: i64,
    delay_ms: i32,
    max_in_flight: i16,
    in_flight: i16,
    head: i16,
}

struct Best {
    host: i64,
    url: [u8; 16],
    attempt: i32,
    was_owned: bool,
    crashes: i16,
}

pub(super) async fn claim(
    connection: &mut Connection<'_>,
    request: &ClaimRequest,
    sequence: ClaimSequence,
    now: i64,
) -> Result<Claimed> {
    let wanted = i64::from(request.max_hosts);
    let share = if sequence.claim_is_aging() {
        wanted / 10 + 1
    } else {
        wanted
    };
    let mut levels: Vec<i16> = PRIORITIES.map(i16::from).collect();
    if !sequence.claim_is_aging() {
        levels.reverse();
    }
    let hosts: Vec<ReadyHost> = connection
        .query(READY_HOSTS, &[&levels, &now, &share, &wanted])
        .await?
        .iter()
        .map(ready_host)
        .collect();
    let mut claimed = Claimed::none(now);
    if !hosts.is_empty() {
        claim_urls(connection, request, &hosts, sequence, now, &mut claimed).await?;
    }
    if claimed.claims.len() < usize::from(request.max_hosts) {
        let row = connection.query(NEXT_READY, &[&levels]).await?;
        let ready: Option<i64> = row.first().and_then(|row| row.get(0));
        let wait = ready
            .filter(|at| *at < i64::MAX)
            .map(|at| at.saturating_sub(now).max(0));
        claimed.next_ready = wait.map(|wait| Duration::from_millis(wait.unsigned_abs()));
    }
    Ok(claimed)
}

fn ready_host(row: &Row) -> ReadyHost {
    ReadyHost {
        id: row.get(0),
        delay_ms: row.get(1),
        max_in_flight: row.get(2),
        in_flight: row.get(3),
        head: row.get(4),
    }
}

impl ReadyHost {
    /// Only a host without a delay may start several concurrently.
    fn may_start(&self, per_host: u16) -> usize {
        let free = (self.max_in_flight - self.in_flight).max(1);
        if self.delay_ms == 0 {
            usize::from(per_host).min(free.unsigned_abs().into())
        } else {
            1
        }
    }
}

async fn claim_urls(
    connection: &mut Connection<'_>,
    request: &ClaimRequest,
    hosts: &[ReadyHost],
    sequence: ClaimSequence,
    now: i64,
    claimed: &mut Claimed,
) -> Result<()> {
    let ids: Vec<i64> = hosts.iter().map(|host| host.id).collect();
    let heads: Vec<i16> = hosts.iter().map(|host| host.head).collect();
    let aging: Vec<bool> = (0..hosts.len())
        .map(|nth| sequence.host_is_aging(nth))
        .collect();
    let per_host = i64::from(request.per_host.max(1));
    let found = connection
        .query(BEST_URLS, &[&ids, &heads, &aging, &now, &per_host])
        .await?;
    let mut chosen: Vec<Best> = Vec::with_capacity(found.len());
    let mut poisonous: Vec<Best> = Vec::new();
    let mut leased: Vec<usize> = vec![0; hosts.len()];
    let positions: HashMap<i64, usize> = ids.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    for row in &found {
        let best = best(row)?;
        let at = positions[&best.host];
        if i32::from(best.crashes) >= i32::from(request.quarantine_after) {
            poisonous.push(best);
        } else if leased[at] < hosts[at].may_start(request.per_host) {
            leased[at] += 1;
            chosen.push(best);
        }
    }
    let mut deltas = CounterDeltas::default();
    record_expired_leases(connection, chosen.iter().chain(&poisonous), now).await?;
    claimed.quarantined = quarantine(connection, &poisonous, now, &mut deltas).await?;
    claimed.claims = lease(connection, request, hosts, &chosen, now, &mut deltas).await?;

    let until = now.saturating_add(millis(request.lease));
    let (mut out, mut in_flight, mut idle) = (Vec::new(), Vec::new(), Vec::new());
    for (host, leased) in hosts.iter().zip(leased) {
        if leased > 0 {
            out.push(host.id);
            in_flight.push(host.in_flight + leased as i16);
        } else {
            idle.push(host.id);
        }
    }
    if !out.is_empty() {
        connection
            .execute(CHECK_OUT, &[&out, &in_flight, &until, &now])
            .await?;
    }
    if !idle.is_empty() {
        refresh_heads(connection, &idle, now).await?;
    }
    write_counter_deltas(connection, &deltas).await
}

fn best(row: &Row) -> Result<Best> {
    let was_owned: bool = row.get(3);
    Ok(Best {
        host: row.get(0),
        url: half_key(row.get(1))?,
        attempt: row.get(2),
        was_owned,
        // An expired lease may have ended in a crash of its process.
        crashes: row.get::<_, i16>(4) + i16::from(was_owned),
    })
}

fn half_key(bytes: &[u8]) -> Result<[u8; 16]> {
    bytes
        .try_into()
        .map_err(|error| StoreError::corrupt("url id", error))
}

async fn record_expired_leases(
    connection: &mut Connection<'_>,
    found: impl Iterator<Item = &Best>,
    now: i64,
) -> Result<()> {
    let expired: Vec<(&Best, String)> = found
        .filter(|best| best.was_owned)
        .map(|best| {
            (
                best,
                serde_json::json!({ "attempt": best.attempt, "crashes": best.crashes }).to_string(),
            )
        })
        .collect();
    let mut events = Events::default();
    for (best, detail) in &expired {
        events.add(best.host, &best.url, "lease_expired", detail);
    }
    events.write(connection, now).await
}

async fn lease(
    connection: &mut Connection<'_>,
    request: &ClaimRequest,
    hosts: &[ReadyHost],
    chosen: &[Best],
    now: i64,
    deltas: &mut CounterDeltas,
) -> Result<Vec<Claim>> {
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let host_ids: Vec<i64> = chosen.iter().map(|best| best.host).collect();
    let url_ids: Vec<&[u8]> = chosen.iter().map(|best| &best.url[..]).collect();
    let crashes: Vec<i16> = chosen.iter().map(|best| best.crashes).collect();
    let until = now.saturating_add(millis(request.lease));
    let rows = connection
        .query(
            LEASE,
            &[&host_ids, &url_ids, &crashes, &until, &request.owner],
        )
        .await?;
    let owned: HashSet<(i64, [u8; 16])> = chosen
        .iter()
        .filter(|best| best.was_owned)
        .map(|best| (best.host, best.url))
        .collect();
    let delays: HashMap<i64, i32> = hosts.iter().map(|host| (host.id, host.delay_ms)).collect();
    let mut claims = Vec::with_capacity(rows.len());
    for row in &rows {
        let (claim, status) = read_claim(row, &delays)?;
        // One whose lease had expired was still counted as being fetched.
        if !owned.contains(&(claim.lease_token.id.host.0, claim.lease_token.id.url.0)) {
            deltas.add(claim.source_id, claim.origin.code(), status, -1);
            deltas.add(claim.source_id, claim.origin.code(), Status::Fetching, 1);
        }
        claims.push(claim);
    }
    Ok(claims)
}

fn read_claim(row: &Row, delays: &HashMap<i64, i32>) -> Result<(Claim, Status)> {
    let host: i64 = row.get(0);
    let url_id = UrlId(half_key(row.get(1))?);
    let claim = Claim {
        lease_token: LeaseToken {
            id: FrontierId {
                host: HostId(host),
                url: url_id,
            },
            attempt: row.get(2),
            discovered_at: Moment(row.get(16)),
        },
        key: url_id.with_tail(half_key(row.get(3))?),
        url: FetchUrl::parse(row.get(4)).map_err(|error| StoreError::corrupt("url", error))?,
        source_id: row.get(5),
        origin: Origin::from_code(row.get::<_, i16>(6).into())?,
        priority: row.get::<_, i16>(7).unsigned_abs() as u8,
        depth: row.get::<_, i16>(8).unsigned_abs(),
        retry_count: row.get::<_, i16>(9).unsigned_abs(),
        etag: row.get(10),
        last_modified: row.get(11),
        content_hash: row.get(12),
        item: row.get(13),
        last_fetched_at: row.get::<_, Option<i64>>(15).map(Moment),
        host_delay: Duration::from_millis(u64::from(
            delays.get(&host).copied().unwrap_or(0).unsigned_abs(),
        )),
    };
    Ok((claim, stored_status(row.get(14))))
}

async fn quarantine(
    connection: &mut Connection<'_>,
    poisonous: &[Best],
    now: i64,
    deltas: &mut CounterDeltas,
) -> Result<u32> {
    if poisonous.is_empty() {
        return Ok(0);
    }
    let hosts: Vec<i64> = poisonous.iter().map(|best| best.host).collect();
    let urls: Vec<&[u8]> = poisonous.iter().map(|best| &best.url[..]).collect();
    let attempts: Vec<i32> = poisonous.iter().map(|best| best.attempt).collect();
    connection
        .execute(
            "DELETE FROM queue q USING unnest($1::BIGINT[], $2::BYTEA[]) AS n(host_id, url_id) WHERE q.host_id = n.host_id AND q.url_id = n.url_id",
            &[&hosts, &urls],
        )
        .await?;
    let rows = connection
        .query(
            "UPDATE urls u SET status = 4, reason = 'quarantined', attempts = n.attempt, updated_at = $4
             FROM unnest($1::BIGINT[], $2::BYTEA[], $3::INTEGER[]) AS n(host_id, url_id, attempt)
             WHERE u.host_id = n.host_id AND u.url_id = n.url_id RETURNING u.source_id, u.origin",
            &[&hosts, &urls, &attempts, &now],
        )
        .await?;
    for row in &rows {
        deltas.add(row.get(0), row.get(1), Status::Fetching, -1);
        deltas.add(row.get(0), row.get(1), Status::Dead, 1);
    }
    let mut events = Events::default();
    for best in poisonous {
        events.add(best.host, &best.url, "quarantined", "{}");
    }
    events.write(connection, now).await?;
    Ok(rows.len() as u32)
}

pub(super) async fn extend_leases(
    connection: &mut Connection<'_>,
    lease_tokens: &[LeaseToken],
    lease_ms: i64,
    now: i64,
) -> Result<Vec<bool>> {
    let until = now.saturating_add(lease_ms);
    connection
        .query(
            LOCK_HOSTS,
            &[&hosts_of(
                lease_tokens.iter().map(|lease_token| lease_token.id.host.0),
            )],
        )
        .await?;
    let hosts: Vec<i64> = lease_tokens
        .iter()
        .map(|lease_token| lease_token.id.host.0)
        .collect();
    let urls: Vec<&[u8]> = lease_tokens
        .iter()
        .map(|lease_token| &lease_token.id.url.0[..])
        .collect();
    let attempts: Vec<i32> = lease_tokens
        .iter()
        .map(|lease_token| lease_token.attempt)
        .collect();
    let discovered: Vec<i64> = lease_tokens
        .iter()
        .map(|lease_token| lease_token.discovered_at.0)
        .collect();
    let rows = connection
        .query(
            "UPDATE queue q SET due_at = $4
             FROM unnest($1::BIGINT[], $2::BYTEA[], $3::INTEGER[], $6::BIGINT[]) WITH ORDINALITY AS n(host_id, url_id, attempt, discovered_at, at)
             JOIN urls u ON u.host_id = n.host_id AND u.url_id = n.url_id AND u.discovered_at = n.discovered_at
             WHERE q.host_id = n.host_id AND q.url_id = n.url_id AND q.attempt = n.attempt AND q.owner IS NOT NULL
                AND q.due_at > $5
             RETURNING n.at::INTEGER, q.host_id",
            &[&hosts, &urls, &attempts, &until, &now, &discovered],
        )
        .await?;
    let mut extended = vec![false; lease_tokens.len()];
    for row in &rows {
        extended[row.get::<_, i32>(0).unsigned_abs() as usize - 1] = true;
    }
    let held = hosts_of(rows.iter().map(|row| row.get(1)));
    connection
        .execute(
            "UPDATE hosts SET lease_until = greatest(lease_until, $2),
                    gate_at = CASE WHEN in_flight >= max_in_flight THEN greatest(gate_at, $2) ELSE gate_at END
             WHERE host_id = ANY($1)",
            &[&held, &until],
        )
        .await?;
    Ok(extended)
}
