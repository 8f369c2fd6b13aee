//! Claims: hosts first, then the best URL of each, all under one lock.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tidings_url::FetchUrl;

use super::rows::{add_event, dequeue, head_of, write_moves};
use crate::frontier::{Claim, ClaimRequest, Claimed, LeaseToken, Origin, PRIORITIES, Status};
use crate::head::Head;
use crate::ids::{FrontierId, HostId, UrlId};
use crate::moment::{Moment, millis};
use crate::moves::{Moves, stored_status};
use crate::turn::Turn;

const READY_HOSTS: &str = "SELECT host_id, delay_ms, max_in_flight, CASE WHEN lease_until <= ?2 THEN 0 ELSE in_flight END
    FROM hosts WHERE head_priority = ?1 AND head_priority > 0 AND ready_at <= ?2 ORDER BY ready_at LIMIT ?3";

struct ReadyHost {
    id: i64,
    delay_ms: i64,
    max_in_flight: i64,
    in_flight: i64,
}

/// One claim under way.
struct Claiming<'a> {
    connection: &'a Connection,
    request: &'a ClaimRequest,
    now: i64,
    lease_until: i64,
    moves: Moves,
    claimed: Claimed,
}

pub(super) fn claim(
    connection: &Connection,
    request: &ClaimRequest,
    turn: Turn,
    now: i64,
) -> rusqlite::Result<Claimed> {
    let wanted = usize::from(request.max_hosts);
    let mut claiming = Claiming {
        connection,
        request,
        now,
        lease_until: now.saturating_add(millis(request.lease)),
        moves: Moves::default(),
        claimed: Claimed::none(now),
    };
    let hosts = ready_hosts(connection, wanted, turn.claim_ages(), now)?;
    for (nth, host) in hosts.iter().enumerate() {
        claiming.claim_host(host, turn.host_ages(nth))?;
    }
    let Claiming {
        moves, mut claimed, ..
    } = claiming;
    write_moves(connection, &moves)?;
    if claimed.claims.len() < wanted {
        claimed.next_ready = next_ready(connection, now)?;
    }
    Ok(claimed)
}

fn ready_hosts(
    connection: &Connection,
    wanted: usize,
    ageing: bool,
    now: i64,
) -> rusqlite::Result<Vec<ReadyHost>> {
    let mut statement = connection.prepare_cached(READY_HOSTS)?;
    let mut hosts = Vec::new();
    for (priority, limit) in levels(wanted, ageing) {
        let limit = limit.min(wanted - hosts.len());
        if limit == 0 {
            break;
        }
        let rows = statement.query_map(params![priority, now, limit as i64], |row| {
            Ok(ReadyHost {
                id: row.get(0)?,
                delay_ms: row.get(1)?,
                max_in_flight: row.get(2)?,
                in_flight: row.get(3)?,
            })
        })?;
        for host in rows {
            hosts.push(host?);
        }
    }
    Ok(hosts)
}

/// The priorities in the order in which a claim asks them, and how many hosts
/// each may give.
fn levels(wanted: usize, ageing: bool) -> impl Iterator<Item = (i16, usize)> {
    let share = if ageing { wanted / 10 + 1 } else { wanted };
    let order: Vec<_> = if ageing {
        PRIORITIES.collect()
    } else {
        PRIORITIES.rev().collect()
    };
    order
        .into_iter()
        .map(move |priority| (i16::from(priority), share))
}

struct Queued {
    place: Head,
    url: [u8; 16],
    /// Attempt and crashes of a lease that ended without a word.
    lost: Option<(i32, i16)>,
}

/// The best due URL of a host: the most urgent, or the least on an ageing turn.
/// Live leases are passed over; a host has only a few.
fn best_due(
    connection: &Connection,
    host: i64,
    ageing: bool,
    now: i64,
) -> rusqlite::Result<Option<Queued>> {
    const COLUMNS: &str = "SELECT q.priority, q.due_at, q.url_id, l.attempt, l.crashes
        FROM queue q LEFT JOIN leases l ON l.host_id = q.host_id AND l.url_id = q.url_id
        WHERE q.host_id = ?1 AND (l.due_at IS NULL OR l.due_at <= ?3)";
    let sql = if ageing {
        format!("{COLUMNS} AND q.priority > ?2 ORDER BY q.priority, q.due_at LIMIT 1")
    } else {
        format!("{COLUMNS} AND q.priority < ?2 ORDER BY q.priority DESC, q.due_at LIMIT 1")
    };
    let mut statement = connection.prepare_cached(&sql)?;
    let mut beyond = if ageing { 0 } else { i16::MAX };
    loop {
        let found = statement
            .query_row(params![host, beyond, now], queued)
            .optional()?;
        match found {
            Some(row) if row.place.due <= now => return Ok(Some(row)),
            Some(row) => beyond = row.place.priority,
            None => return Ok(None),
        }
    }
}

fn queued(row: &Row<'_>) -> rusqlite::Result<Queued> {
    let (attempt, crashes): (Option<i32>, Option<i16>) = (row.get(3)?, row.get(4)?);
    Ok(Queued {
        place: Head {
            priority: row.get(0)?,
            due: row.get(1)?,
        },
        url: row.get(2)?,
        lost: attempt.zip(crashes),
    })
}

impl Claiming<'_> {
    /// Leases the best URL of a host, or several where that is polite.
    fn claim_host(&mut self, host: &ReadyHost, ageing: bool) -> rusqlite::Result<()> {
        let free = (host.max_in_flight - host.in_flight).max(1);
        // Only a host without a delay may have several started at once.
        let wanted = match host.delay_ms {
            0 => free.min(i64::from(self.request.per_host)),
            _ => 1,
        };
        let mut taken = 0;
        while taken < wanted && self.take_best(host, ageing)? {
            taken += 1;
        }
        check_out(self.connection, host, taken, self.lease_until, self.now)
    }

    /// Leases the best due URL; false when there is none.
    fn take_best(&mut self, host: &ReadyHost, ageing: bool) -> rusqlite::Result<bool> {
        while let Some(best) = best_due(self.connection, host.id, ageing, self.now)? {
            let id = FrontierId {
                host: HostId(host.id),
                url: UrlId(best.url),
            };
            let crashes = best.lost.map_or(0, |(_, crashes)| crashes + 1);
            if let Some((attempt, _)) = best.lost {
                let detail =
                    serde_json::json!({ "attempt": attempt, "crashes": crashes }).to_string();
                add_event(self.connection, id, self.now, "lease_expired", &detail)?;
                if i32::from(crashes) >= i32::from(self.request.quarantine_after) {
                    self.quarantine(id, best.place, attempt)?;
                    continue;
                }
            }
            self.lease(id, &best, crashes, host.delay_ms)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn lease(
        &mut self,
        id: FrontierId,
        best: &Queued,
        crashes: i16,
        delay_ms: i64,
    ) -> rusqlite::Result<()> {
        let lost_attempt = best.lost.map_or(0, |(attempt, _)| attempt);
        let (claim, status) = read_claim(self.connection, id, lost_attempt, delay_ms)?;
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO leases (host_id, url_id, due_at, owner, attempt, crashes, priority, queued_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                id.host.0,
                best.url,
                self.lease_until,
                self.request.owner,
                claim.ticket.attempt,
                crashes,
                best.place.priority,
                best.place.due
            ])?;
        // One whose lease had expired was still counted as being fetched.
        if best.lost.is_none() {
            self.moves
                .add(claim.source_id, claim.origin.code(), status, -1);
            self.moves
                .add(claim.source_id, claim.origin.code(), Status::Fetching, 1);
        }
        self.claimed.claims.push(claim);
        Ok(())
    }

    /// Puts aside a URL that may have killed its workers.
    fn quarantine(&mut self, id: FrontierId, place: Head, attempt: i32) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("DELETE FROM leases WHERE host_id = ?1 AND url_id = ?2")?
            .execute(params![id.host.0, id.url.0])?;
        dequeue(self.connection, id, place)?;
        let (source_id, origin): (i64, i16) = self
            .connection
            .prepare_cached(
                "UPDATE urls SET status = 4, reason = 'quarantined', attempts = ?3, due_at = NULL, updated_at = ?4
                 WHERE host_id = ?1 AND url_id = ?2 RETURNING source_id, origin",
            )?
            .query_row(params![id.host.0, id.url.0, attempt, self.now], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.moves.add(source_id, origin, Status::Fetching, -1);
        self.moves.add(source_id, origin, Status::Dead, 1);
        self.claimed.quarantined += 1;
        add_event(self.connection, id, self.now, "quarantined", "{}")
    }
}

fn read_claim(
    connection: &Connection,
    id: FrontierId,
    lost_attempt: i32,
    delay_ms: i64,
) -> rusqlite::Result<(Claim, Status)> {
    connection
        .prepare_cached(
            "SELECT url, key_tail, source_id, origin, priority, depth, retry_count, etag, last_modified, content_hash, item, status, attempts, last_fetched_at
             FROM urls WHERE host_id = ?1 AND url_id = ?2",
        )?
        .query_row(params![id.host.0, id.url.0], |row| {
            let attempts: i32 = row.get(12)?;
            let claim = Claim {
                ticket: LeaseToken { id, attempt: attempts.max(lost_attempt) + 1 },
                url: stored_url(&row.get::<_, String>(0)?)?,
                key: id.url.with_tail(row.get(1)?),
                source_id: row.get(2)?,
                origin: Origin::from_code(row.get(3)?).unwrap_or(Origin::Manual),
                priority: row.get(4)?,
                depth: row.get(5)?,
                retry_count: row.get(6)?,
                etag: row.get(7)?,
                last_modified: row.get(8)?,
                content_hash: row.get(9)?,
                item: row.get(10)?,
                last_fetched_at: row.get::<_, Option<i64>>(13)?.map(Moment),
                host_delay: Duration::from_millis(u64::try_from(delay_ms).unwrap_or(0)),
            };
            Ok((claim, stored_status(row.get(11)?)))
        })
}

fn stored_url(text: &str) -> rusqlite::Result<FetchUrl> {
    FetchUrl::parse(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })
}

/// The host is gated for the lease, or for its delay while it may have more
/// requests under way. One that had nothing to give gets its true head.
fn check_out(
    connection: &Connection,
    host: &ReadyHost,
    taken: i64,
    lease_until: i64,
    now: i64,
) -> rusqlite::Result<()> {
    if taken == 0 {
        let head = head_of(connection, host.id, now)?;
        connection
            .prepare_cached(
                "UPDATE hosts SET head_priority = ?2, head_due = ?3 WHERE host_id = ?1",
            )?
            .execute(params![host.id, head.priority, head.due])?;
        return Ok(());
    }
    let in_flight = host.in_flight + taken;
    let gate = if in_flight < host.max_in_flight {
        now + host.delay_ms
    } else {
        lease_until
    };
    connection
        .prepare_cached("UPDATE hosts SET gate_at = ?2, in_flight = ?3, lease_until = ?4, last_start_at = ?5 WHERE host_id = ?1")?
        .execute(params![host.id, gate, in_flight, lease_until, now])?;
    Ok(())
}

fn next_ready(connection: &Connection, now: i64) -> rusqlite::Result<Option<Duration>> {
    let mut statement =
        connection.prepare_cached("SELECT ready_at FROM hosts WHERE head_priority = ?1 AND head_priority > 0 ORDER BY ready_at LIMIT 1")?;
    let mut earliest = None;
    for priority in PRIORITIES {
        let ready: Option<i64> = statement
            .query_row([priority], |row| row.get(0))
            .optional()?;
        earliest = earliest.into_iter().chain(ready).min();
    }
    let wait = earliest
        .filter(|at| *at < i64::MAX)
        .map(|at| at.saturating_sub(now).max(0));
    Ok(wait.map(|wait| Duration::from_millis(wait.unsigned_abs())))
}

pub(super) fn renew(
    connection: &Connection,
    tickets: &[LeaseToken],
    lease_ms: i64,
    now: i64,
) -> rusqlite::Result<Vec<bool>> {
    let until = now.saturating_add(lease_ms);
    let mut renewed = Vec::with_capacity(tickets.len());
    for ticket in tickets {
        let (host, url) = (ticket.id.host.0, ticket.id.url.0);
        let held = connection
            .prepare_cached(
                "UPDATE leases SET due_at = ?4 WHERE host_id = ?1 AND url_id = ?2 AND attempt = ?3 AND due_at > ?5",
            )?
            .execute(params![host, url, ticket.attempt, until, now])?;
        if held > 0 {
            connection
                .prepare_cached(
                    "UPDATE hosts SET lease_until = max(lease_until, ?2),
                            gate_at = CASE WHEN in_flight >= max_in_flight THEN max(gate_at, ?2) ELSE gate_at END
                     WHERE host_id = ?1",
                )?
                .execute(params![host, until])?;
        }
        renewed.push(held > 0);
    }
    Ok(renewed)
}
