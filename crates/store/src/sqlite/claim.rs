//! Claims: hosts first, then the best URL of each, all under one lock.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tidings_url::FetchUrl;

use super::rows::{add_event, dequeue, head_of, write_counter_deltas};
use crate::counters::{CounterDeltas, stored_status};
use crate::fairness::ClaimSequence;
use crate::frontier::{Claim, ClaimRequest, Claimed, LeaseToken, Origin, PRIORITIES, Status};
use crate::ids::{FrontierId, HostId, UrlId};
use crate::moment::{Moment, millis};
use crate::queue_head::QueueHead;

const READY_HOSTS: &str = "SELECT host_id, delay_ms, max_in_flight, CASE WHEN lease_until <= ?2 THEN 0 ELSE in_flight END
    FROM hosts WHERE head_priority = ?1 AND head_priority > 0 AND ready_at <= ?2 ORDER BY ready_at LIMIT ?3";

struct ReadyHost {
    id: i64,
    delay_ms: i64,
    max_in_flight: i64,
    in_flight: i64,
}

/// The state of one claim in progress.
struct Claiming<'a> {
    connection: &'a Connection,
    request: &'a ClaimRequest,
    now: i64,
    lease_until: i64,
    deltas: CounterDeltas,
    claimed: Claimed,
}

pub(super) fn claim(
    connection: &Connection,
    request: &ClaimRequest,
    sequence: ClaimSequence,
    now: i64,
) -> rusqlite::Result<Claimed> {
    let wanted = usize::from(request.max_hosts);
    let mut claiming = Claiming {
        connection,
        request,
        now,
        lease_until: now.saturating_add(millis(request.lease)),
        deltas: CounterDeltas::default(),
        claimed: Claimed::none(now),
    };
    let hosts = ready_hosts(connection, wanted, sequence.claim_is_aging(), now)?;
    for (nth, host) in hosts.iter().enumerate() {
        claiming.claim_host(host, sequence.host_is_aging(nth))?;
    }
    let Claiming {
        deltas,
        mut claimed,
        ..
    } = claiming;
    write_counter_deltas(connection, &deltas)?;
    if claimed.claims.len() < wanted {
        claimed.next_ready = next_ready(connection, now)?;
    }
    Ok(claimed)
}

fn ready_hosts(
    connection: &Connection,
    wanted: usize,
    aging: bool,
    now: i64,
) -> rusqlite::Result<Vec<ReadyHost>> {
    let mut statement = connection.prepare_cached(READY_HOSTS)?;
    let mut hosts = Vec::new();
    for (priority, limit) in levels(wanted, aging) {
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

/// The priorities in the order in which a claim scans them, and the number of hosts
/// that each may contribute.
fn levels(wanted: usize, aging: bool) -> impl Iterator<Item = (i16, usize)> {
    let share = if aging { wanted / 10 + 1 } else { wanted };
    let order: Vec<_> = if aging {
        PRIORITIES.collect()
    } else {
        PRIORITIES.rev().collect()
    };
    order
        .into_iter()
        .map(move |priority| (i16::from(priority), share))
}

struct Queued {
    position: QueueHead,
    url: [u8; 16],
    /// Attempt and crashes of an expired lease.
    expired: Option<(i32, i16)>,
}

/// The earliest URL of a host's highest priority below ?2, without live leases.
const BEST_BELOW: &str = "SELECT q.priority, q.due_at, q.url_id, l.attempt, l.crashes
    FROM queue q LEFT JOIN leases l ON l.host_id = q.host_id AND l.url_id = q.url_id
    WHERE q.host_id = ?1 AND q.priority < ?2 AND (l.due_at IS NULL OR l.due_at <= ?3)
    ORDER BY q.priority DESC, q.due_at LIMIT 1";
/// The next priority of a host above ?2: the index read backwards, where the URLs of
/// a priority come in the wrong order.
const PRIORITY_ABOVE: &str =
    "SELECT priority FROM queue WHERE host_id = ?1 AND priority > ?2 ORDER BY priority LIMIT 1";
/// The earliest URL of one priority, without live leases.
const BEST_OF: &str = "SELECT q.priority, q.due_at, q.url_id, l.attempt, l.crashes
    FROM queue q LEFT JOIN leases l ON l.host_id = q.host_id AND l.url_id = q.url_id
    WHERE q.host_id = ?1 AND q.priority = ?2 AND (l.due_at IS NULL OR l.due_at <= ?3)
    ORDER BY q.due_at LIMIT 1";

/// The best due URL of a host: of the highest priority, or the lowest if aging.
/// Live leases are skipped; a host has only a few.
fn best_due(
    connection: &Connection,
    host: i64,
    aging: bool,
    now: i64,
) -> rusqlite::Result<Option<Queued>> {
    match aging {
        false => highest_due(connection, host, now),
        true => lowest_due(connection, host, now),
    }
}

fn highest_due(connection: &Connection, host: i64, now: i64) -> rusqlite::Result<Option<Queued>> {
    let mut statement = connection.prepare_cached(BEST_BELOW)?;
    let mut below = i16::MAX;
    loop {
        let found = statement
            .query_row(params![host, below, now], queued)
            .optional()?;
        match found {
            Some(row) if row.position.due <= now => return Ok(Some(row)),
            Some(row) => below = row.position.priority,
            None => return Ok(None),
        }
    }
}

fn lowest_due(connection: &Connection, host: i64, now: i64) -> rusqlite::Result<Option<Queued>> {
    let mut next_priority = connection.prepare_cached(PRIORITY_ABOVE)?;
    let mut best = connection.prepare_cached(BEST_OF)?;
    let mut above = 0_i16;
    while let Some(priority) = next_priority
        .query_row(params![host, above], |row| row.get::<_, i16>(0))
        .optional()?
    {
        let found = best
            .query_row(params![host, priority, now], queued)
            .optional()?;
        if let Some(row) = found.filter(|row| row.position.due <= now) {
            return Ok(Some(row));
        }
        above = priority;
    }
    Ok(None)
}

fn queued(row: &Row<'_>) -> rusqlite::Result<Queued> {
    let (attempt, crashes): (Option<i32>, Option<i16>) = (row.get(3)?, row.get(4)?);
    Ok(Queued {
        position: QueueHead {
            priority: row.get(0)?,
            due: row.get(1)?,
        },
        url: row.get(2)?,
        expired: attempt.zip(crashes),
    })
}

impl Claiming<'_> {
    /// Leases the best URL of a host, or several where its limits allow that.
    fn claim_host(&mut self, host: &ReadyHost, aging: bool) -> rusqlite::Result<()> {
        let free = (host.max_in_flight - host.in_flight).max(1);
        // Only a host without a delay may start several concurrently.
        let wanted = match host.delay_ms {
            0 => free.min(i64::from(self.request.per_host)),
            _ => 1,
        };
        let mut leased = 0;
        while leased < wanted && self.lease_best(host, aging)? {
            leased += 1;
        }
        check_out(self.connection, host, leased, self.lease_until, self.now)
    }

    /// Leases the best due URL; false when there is none.
    fn lease_best(&mut self, host: &ReadyHost, aging: bool) -> rusqlite::Result<bool> {
        while let Some(best) = best_due(self.connection, host.id, aging, self.now)? {
            let id = FrontierId {
                host: HostId(host.id),
                url: UrlId(best.url),
            };
            let crashes = best.expired.map_or(0, |(_, crashes)| crashes + 1);
            if let Some((attempt, _)) = best.expired {
                let detail =
                    serde_json::json!({ "attempt": attempt, "crashes": crashes }).to_string();
                add_event(self.connection, id, self.now, "lease_expired", &detail)?;
                if i32::from(crashes) >= i32::from(self.request.quarantine_after) {
                    self.quarantine(id, best.position, attempt)?;
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
        let expired_attempt = best.expired.map_or(0, |(attempt, _)| attempt);
        let (claim, status) = read_claim(self.connection, id, expired_attempt, delay_ms)?;
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
                claim.lease_token.attempt,
                crashes,
                best.position.priority,
                best.position.due
            ])?;
        // One whose lease had expired was still counted as being fetched.
        if best.expired.is_none() {
            self.deltas
                .add(claim.source_id, claim.origin.code(), status, -1);
            self.deltas
                .add(claim.source_id, claim.origin.code(), Status::Fetching, 1);
        }
        self.claimed.claims.push(claim);
        Ok(())
    }

    /// Quarantines a URL that may have crashed its workers.
    fn quarantine(
        &mut self,
        id: FrontierId,
        position: QueueHead,
        attempt: i32,
    ) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("DELETE FROM leases WHERE host_id = ?1 AND url_id = ?2")?
            .execute(params![id.host.0, id.url.0])?;
        dequeue(self.connection, id, position)?;
        let (source_id, origin): (i64, i16) = self
            .connection
            .prepare_cached(
                "UPDATE urls SET status = 4, reason = 'quarantined', attempts = ?3, due_at = NULL, updated_at = ?4
                 WHERE host_id = ?1 AND url_id = ?2 RETURNING source_id, origin",
            )?
            .query_row(params![id.host.0, id.url.0, attempt, self.now], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.deltas.add(source_id, origin, Status::Fetching, -1);
        self.deltas.add(source_id, origin, Status::Dead, 1);
        self.claimed.quarantined += 1;
        add_event(self.connection, id, self.now, "quarantined", "{}")
    }
}

fn read_claim(
    connection: &Connection,
    id: FrontierId,
    expired_attempt: i32,
    delay_ms: i64,
) -> rusqlite::Result<(Claim, Status)> {
    connection
        .prepare_cached(
            "SELECT url, key_tail, source_id, origin, priority, depth, retry_count, etag, last_modified, content_hash, item, status, attempts, last_fetched_at, discovered_at
             FROM urls WHERE host_id = ?1 AND url_id = ?2",
        )?
        .query_row(params![id.host.0, id.url.0], |row| {
            let attempts: i32 = row.get(12)?;
            let claim = Claim {
                lease_token: LeaseToken {
                    id,
                    attempt: attempts.max(expired_attempt) + 1,
                    discovered_at: Moment(row.get(14)?),
                },
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

/// Marks a host as not ready until its lease ends, or until its delay is over while
/// it allows more in flight. A host without a due URL gets its true head.
fn check_out(
    connection: &Connection,
    host: &ReadyHost,
    leased: i64,
    lease_until: i64,
    now: i64,
) -> rusqlite::Result<()> {
    if leased == 0 {
        let head = head_of(connection, host.id, now)?;
        connection
            .prepare_cached(
                "UPDATE hosts SET head_priority = ?2, head_due = ?3 WHERE host_id = ?1",
            )?
            .execute(params![host.id, head.priority, head.due])?;
        return Ok(());
    }
    let in_flight = host.in_flight + leased;
    let gate_at = if in_flight < host.max_in_flight {
        now + host.delay_ms
    } else {
        lease_until
    };
    connection
        .prepare_cached("UPDATE hosts SET gate_at = ?2, in_flight = ?3, lease_until = ?4, last_start_at = ?5 WHERE host_id = ?1")?
        .execute(params![host.id, gate_at, in_flight, lease_until, now])?;
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

pub(super) fn extend_leases(
    connection: &Connection,
    lease_tokens: &[LeaseToken],
    lease_ms: i64,
    now: i64,
) -> rusqlite::Result<Vec<bool>> {
    let until = now.saturating_add(lease_ms);
    let mut extended = Vec::with_capacity(lease_tokens.len());
    for lease_token in lease_tokens {
        let (host, url) = (lease_token.id.host.0, lease_token.id.url.0);
        let held = connection
            .prepare_cached(
                "UPDATE leases SET due_at = ?4 WHERE host_id = ?1 AND url_id = ?2 AND attempt = ?3 AND due_at > ?5
                    AND EXISTS (SELECT 1 FROM urls WHERE host_id = ?1 AND url_id = ?2 AND discovered_at = ?6)",
            )?
            .execute(params![host, url, lease_token.attempt, until, now, lease_token.discovered_at.0])?;
        if held > 0 {
            connection
                .prepare_cached(
                    "UPDATE hosts SET lease_until = max(lease_until, ?2),
                            gate_at = CASE WHEN in_flight >= max_in_flight THEN max(gate_at, ?2) ELSE gate_at END
                     WHERE host_id = ?1",
                )?
                .execute(params![host, until])?;
        }
        extended.push(held > 0);
    }
    Ok(extended)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rusqlite::StatementStatus;

    use super::super::rows::NEXT_LEVEL;
    use super::*;
    use crate::schema::SCHEMA_VERSION;

    const HOST: i64 = 7;
    const NOW: i64 = 1_000_000;

    /// A host with URLs of one priority that are due, and one of another.
    fn waiting(urls: u32) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        super::super::migrate(&connection, "sqlite:test", SCHEMA_VERSION, NOW).unwrap();
        let mut insert = connection
            .prepare(
                "INSERT INTO queue (host_id, priority, due_at, url_id) VALUES (?1, ?2, ?3, ?4)",
            )
            .unwrap();
        let mut add = |priority: i16, number: u32| {
            let mut url = [0; 16];
            url[..4].copy_from_slice(&number.to_be_bytes());
            let row = params![HOST, priority, i64::from(number), url];
            insert.execute(row).unwrap();
        };
        (1..=urls).for_each(|number| add(5, number));
        add(8, 0);
        drop(insert);
        connection
    }

    #[test]
    fn the_head_of_a_queue_costs_the_same_however_long_it_is() {
        let steps = |urls, sql: &str, bound: i16| {
            let connection = waiting(urls);
            let mut statement = connection.prepare(sql).unwrap();
            let parameters = [HOST, i64::from(bound), NOW];
            let parameters = &parameters[..statement.parameter_count()];
            statement
                .query_row(rusqlite::params_from_iter(parameters), |_| Ok(()))
                .unwrap();
            statement.get_status(StatementStatus::VmStep)
        };
        let rows = [
            (BEST_BELOW, i16::MAX),
            (BEST_BELOW, 6),
            (PRIORITY_ABOVE, 0),
            (PRIORITY_ABOVE, 5),
            (BEST_OF, 5),
            (NEXT_LEVEL, i16::MAX),
            (NEXT_LEVEL, 6),
        ];
        for (sql, bound) in rows {
            let (few, many) = (steps(10, sql, bound), steps(10_000, sql, bound));
            assert!(few > 0 && few == many, "{few} and {many} steps: {sql}");
        }
    }

    #[test]
    fn hot_statements_sort_nothing() {
        let connection = waiting(1);
        for sql in [READY_HOSTS, BEST_BELOW, PRIORITY_ABOVE, BEST_OF, NEXT_LEVEL] {
            let mut plan = connection
                .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
                .unwrap();
            let steps: Vec<String> = plan
                .raw_query()
                .mapped(|row| row.get(3))
                .collect::<rusqlite::Result<_>>()
                .unwrap();
            let is_sort = |step: &String| step.contains("TEMP B-TREE");
            assert!(
                !steps.is_empty() && !steps.iter().any(is_sort),
                "{sql}: {steps:?}"
            );
        }
    }

    #[test]
    fn an_aging_claim_takes_the_lowest_priority_that_is_due() {
        let connection = waiting(3);
        let due = |aging, now| {
            let found = best_due(&connection, HOST, aging, now).unwrap();
            found.map(|row| (row.position.priority, row.position.due))
        };
        assert_eq!(due(false, NOW), Some((8, 0)));
        assert_eq!(due(true, NOW), Some((5, 1)));
        // Nothing of the lowest is due yet.
        assert_eq!(due(true, 0), Some((8, 0)));
        assert_eq!(due(true, -1), None);
    }
}
