//! The fault scenarios: one row each with its name, the engines it runs on, the
//! function that plays it, and what is expected of Tidings.

use crate::scenario::Scenario;
use crate::setting::Engine;
use crate::{
    backup, clocks, configurations, connections, crashes, database, embedded, hostile_input,
    hostile_sources, index, machines, memory, peers, queue,
};

const BOTH: &[Engine] = &[Engine::Sqlite, Engine::Postgres];
const SQLITE: &[Engine] = &[Engine::Sqlite];
const POSTGRES: &[Engine] = &[Engine::Postgres];

macro_rules! scenario {
    ($name:literal, $engines:ident, $run:path, $expected:literal) => {
        Scenario {
            name: $name,
            expected: $expected,
            engines: $engines,
            run: |setting| Box::pin($run(setting)),
        }
    };
}

/// In the order in which they run; those that need no store run once.
pub(crate) static SCENARIOS: &[Scenario] = &[
    scenario!(
        "worker killed after claim",
        BOTH,
        crashes::killed_after_claim,
        "another worker claims its URLs within the lease and 5 s; nothing lost or duplicated"
    ),
    scenario!(
        "worker killed after fetch",
        BOTH,
        crashes::killed_after_fetch,
        "nothing lost or duplicated; no page fetched more than once more per killed worker"
    ),
    scenario!(
        "deliverer killed after the index stored its batch",
        BOTH,
        crashes::killed_after_delivery,
        "each document is in the index exactly once"
    ),
    scenario!(
        "worker stopped beyond its lease",
        BOTH,
        crashes::paused_beyond_its_lease,
        "its writes after it resumes are rejected; nothing duplicated, no politeness violations"
    ),
    scenario!(
        "worker receives SIGTERM",
        BOTH,
        crashes::terminated,
        "exits with 0 within 30 s and leaves no lease"
    ),
    scenario!(
        "page that crashes the extractor",
        BOTH,
        crashes::crashing_page,
        "quarantined after three crashes; a page that only panics is never lost; all others become documents"
    ),
    scenario!(
        "database killed during claims",
        POSTGRES,
        database::killed_during_claims,
        "no process exits, work resumes within 10 s, nothing lost or duplicated"
    ),
    scenario!(
        "database killed during a bulk submit",
        POSTGRES,
        database::killed_during_submit,
        "the same request retried with the same idempotency key stores every URL once"
    ),
    scenario!(
        "database restarted repeatedly",
        POSTGRES,
        database::restarted,
        "no process exits, nothing lost or duplicated"
    ),
    scenario!(
        "database connection blackholed",
        POSTGRES,
        database::blackholed,
        "work resumes within 10 s of reconnection, nothing lost or duplicated"
    ),
    scenario!(
        "database read-only",
        POSTGRES,
        database::read_only,
        "submits are rejected with 503 and not stored; work resumes afterwards"
    ),
    scenario!(
        "database that accepts TLS only",
        POSTGRES,
        connections::tls_only,
        "works with sslmode=verify-full and by default; nothing lost or duplicated"
    ),
    scenario!(
        "pooler in transaction mode",
        POSTGRES,
        connections::pooler,
        "two processes work through it; nothing lost or duplicated"
    ),
    scenario!(
        "database failover to its replica",
        POSTGRES,
        connections::failover,
        "no process exits, work resumes within 10 s, nothing lost or duplicated"
    ),
    scenario!(
        "two configurations on one store, killed twenty times",
        POSTGRES,
        configurations::killed_repeatedly,
        "each document is in each sink of either process exactly once"
    ),
    scenario!(
        "network partition and a killed fetcher",
        POSTGRES,
        machines::partition,
        "full throughput within 10 s of reconnection; nothing lost or duplicated"
    ),
    scenario!(
        "embedded store killed at random moments",
        SQLITE,
        embedded::killed_repeatedly,
        "opens every time, and holds everything that was acknowledged"
    ),
    scenario!(
        "disk full",
        SQLITE,
        embedded::disk_full,
        "rejected with 5xx and not stored; resumes by itself within 30 s of free space"
    ),
    scenario!(
        "store restored from an older backup",
        BOTH,
        backup::restored,
        "what was fetched since is fetched again, and duplicates no document"
    ),
    scenario!(
        "clock jumps of one hour",
        BOTH,
        clocks::jumps,
        "nothing lost or duplicated, no politeness violations, and no stall beyond the lease"
    ),
    scenario!(
        "index with partial failures and invalid responses",
        BOTH,
        index::partial_failures,
        "each document is in the index exactly once"
    ),
    scenario!(
        "index unavailable",
        BOTH,
        index::unavailable,
        "fetching continues; the index catches up when it is available again"
    ),
    scenario!(
        "index read-only",
        BOTH,
        index::read_only,
        "no delivery fails permanently; the index catches up when it is writable"
    ),
    scenario!(
        "concurrent submits of the same URLs",
        BOTH,
        queue::concurrent_submits,
        "each URL is stored once, no submit fails"
    ),
    scenario!(
        "two processes on one host",
        BOTH,
        queue::one_host,
        "one request at a time, and never sooner than the delay"
    ),
    scenario!(
        "one dominant host",
        BOTH,
        queue::dominant_host,
        "other hosts wait no longer than twice their delay (p99)"
    ),
    scenario!(
        "hostile sites",
        BOTH,
        peers::hostile_sites,
        "no document from them, all documents of healthy sites; under 256 MB"
    ),
    scenario!(
        "hostile responses",
        SQLITE,
        peers::hostile_responses,
        "each fails with its own error code, within its limits; under 256 MB"
    ),
    scenario!(
        "hostile sources beside honest ones",
        BOTH,
        hostile_sources::beside_honest_ones,
        "honest articles take at most 1.1 times as long as alone (in the full form); doctor names the hostile sources"
    ),
    scenario!(
        "64 slow pages of 10 MB",
        SQLITE,
        memory::slow_pages,
        "under 256 MB; small pages do not wait for them, and none is lost"
    ),
    scenario!(
        "256 slow pages of 10 MB",
        SQLITE,
        memory::more_slow_pages,
        "under 512 MB; small pages do not wait for them, and none is lost"
    ),
    scenario!(
        "feeds of empty items",
        SQLITE,
        memory::empty_items,
        "under 256 MB; no poll fails"
    ),
    scenario!(
        "huge documents that wait for a sink",
        BOTH,
        memory::waiting_documents,
        "under 256 MB; all are delivered"
    ),
    scenario!(
        "four huge bulk submits",
        SQLITE,
        memory::bulk_bodies,
        "under 256 MB; the server goes on"
    ),
    scenario!(
        "DNS and TLS failures",
        SQLITE,
        peers::dns_and_tls_failures,
        "each fails with its own error code"
    ),
    scenario!(
        "SSRF attempts",
        SQLITE,
        peers::ssrf_attempts,
        "all rejected, no connection to a canary"
    ),
    scenario!(
        "crawler traps",
        SQLITE,
        peers::crawler_traps,
        "every article found, with a bounded number of requests"
    ),
    scenario!(
        "hostile pages",
        SQLITE,
        hostile_input::hostile_pages,
        "each within 2 s of CPU time (4 s in a debug build)"
    ),
    scenario!(
        "hostile feeds",
        SQLITE,
        hostile_input::hostile_feeds,
        "each within 2 s of CPU time (4 s in a debug build)"
    ),
];
