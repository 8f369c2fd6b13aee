//! Concurrent use: in one process, in several, and when one of them, or the
//! database, crashes in the middle. Real time, real processes.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::collections::{BTreeMap, HashSet};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fixture::{fetched, id, submission};
use tidings_sim::{PostgresServer, postgres_database};
use tidings_store::{
    Claim, ClaimRequest, Completion, Event, Moment, NewDocument, Outcome, Store, StoreOptions,
    Submission, Verdict,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_postgres::Client;

/// An address on each engine; the folder lives as long as it is held.
fn addresses() -> [(String, Option<tempfile::TempDir>); 2] {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = format!("sqlite:{}", folder.path().join("tidings.db").display());
    [(sqlite, Some(folder)), (postgres_database().unwrap(), None)]
}

fn options(delay_ms: u64, max_per_host: u16) -> StoreOptions {
    let mut options = StoreOptions::default();
    options.host_delay = Duration::from_millis(delay_ms);
    options.max_per_host = max_per_host;
    options
}

async fn fill(store: &Store, hosts: usize, urls: usize) {
    let all: Vec<Submission> = (0..urls)
        .map(|n| submission(&format!("https://h{}.example/{n}", n % hosts)))
        .collect();
    store.submit(&all).await.unwrap();
}

/// Intervals in which a host was certainly leased, by the clock of the test.
type Fetches = Arc<Mutex<BTreeMap<String, Vec<(Instant, Instant)>>>>;

/// Claims, pretends to fetch and completes until nothing is left.
async fn work(store: Store, owner: i64, fetch: Duration, fetches: Fetches) {
    loop {
        let claimed = store.claim(&ClaimRequest::new(owner, 3)).await.unwrap();
        let leased = Instant::now();
        for claim in &claimed.claims {
            tokio::time::sleep(fetch).await;
            let ended = Instant::now();
            fetches
                .lock()
                .unwrap()
                .entry(claim.url.host().to_owned())
                .or_default()
                .push((leased, ended));
            store
                .complete(&[Completion::new(claim.lease_token, fetched())])
                .await
                .unwrap();
        }
        match claimed.next_ready {
            None if claimed.claims.is_empty() => return,
            Some(wait) if claimed.claims.is_empty() => {
                tokio::time::sleep(wait.min(Duration::from_millis(50))).await;
            }
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_claimers_respect_the_host_limits() {
    const DELAY: u64 = 40;
    for (address, _folder) in addresses() {
        let store = Store::open(&address, &options(DELAY, 1)).await.unwrap();
        let other = Store::open(&address, &options(DELAY, 1)).await.unwrap();
        fill(&store, 12, 240).await;
        let fetches = Fetches::default();
        let workers: Vec<_> = (0..64)
            .map(|n| {
                let store = if n % 2 == 0 {
                    store.clone()
                } else {
                    other.clone()
                };
                tokio::spawn(work(
                    store,
                    n,
                    Duration::from_millis(3),
                    Arc::clone(&fetches),
                ))
            })
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
        let fetches = fetches.lock().unwrap();
        assert_eq!(
            fetches.values().map(Vec::len).sum::<usize>(),
            240,
            "{address}: each URL once"
        );
        for (host, times) in &*fetches {
            for pair in times.windows(2) {
                let (before, after) = (pair[0], pair[1]);
                assert!(
                    after.0 >= before.1,
                    "{host}: two requests in flight on {address}"
                );
            }
        }
    }
}

/// The gap between starts, judged by the clock of the database itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn starts_are_never_closer_than_the_delay() {
    const DELAY: i64 = 30;
    for (address, _folder) in addresses() {
        let store = Store::open(&address, &options(DELAY as u64, 2))
            .await
            .unwrap();
        fill(&store, 3, 90).await;
        let starts: Arc<Mutex<BTreeMap<String, Vec<i64>>>> = Arc::default();
        let workers: Vec<_> = (0..16)
            .map(|n| {
                let (store, starts) = (store.clone(), Arc::clone(&starts));
                tokio::spawn(async move {
                    loop {
                        let claimed = store.claim(&ClaimRequest::new(n, 2)).await.unwrap();
                        for claim in &claimed.claims {
                            let host = store
                                .host(claim.lease_token.id.host)
                                .await
                                .unwrap()
                                .unwrap();
                            assert!(host.in_flight <= 2, "{}", host.host);
                            let mut starts = starts.lock().unwrap();
                            starts.entry(host.host).or_default().push(claimed.at.0);
                        }
                        for claim in &claimed.claims {
                            store
                                .complete(&[Completion::new(claim.lease_token, fetched())])
                                .await
                                .unwrap();
                        }
                        match claimed.next_ready {
                            None if claimed.claims.is_empty() => return,
                            _ => tokio::time::sleep(Duration::from_millis(1)).await,
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
        for (host, times) in &mut *starts.lock().unwrap() {
            times.sort_unstable();
            assert_eq!(times.len(), 30, "{host}");
            for pair in times.windows(2) {
                assert!(
                    pair[1] - pair[0] >= DELAY,
                    "{host}: {} ms on {address}",
                    pair[1] - pair[0]
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn submitters_in_opposite_orders_do_not_deadlock() {
    for (address, _folder) in addresses() {
        let store = Store::open(&address, &options(1000, 1)).await.unwrap();
        let urls: Vec<Submission> = (0..6000)
            .map(|n| submission(&format!("https://h{}.example/{n}", n % 500)))
            .collect();
        let submitters: Vec<_> = (0..8)
            .map(|n| {
                let (store, mut urls) = (store.clone(), urls.clone());
                match n % 3 {
                    0 => urls.reverse(),
                    1 => urls.rotate_left(n * 700),
                    _ => {}
                }
                tokio::spawn(async move { store.submit(&urls).await.unwrap() })
            })
            .collect();
        let mut new = 0;
        for submitter in submitters {
            new += submitter
                .await
                .unwrap()
                .iter()
                .filter(|verdict| **verdict == Verdict::New)
                .count();
        }
        assert_eq!(new, 6000, "{address}: each URL is new to exactly one");
        assert_eq!(store.stats().await.unwrap().by_status["pending"], 6000);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_operations_leave_the_counters_consistent() {
    for (address, _folder) in addresses() {
        let store = Store::open(&address, &options(0, 1)).await.unwrap();
        fill(&store, 40, 400).await;
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..8_usize {
            let store = store.clone();
            tasks.spawn(async move {
                for round in 0..25_usize {
                    let urls: Vec<_> = (0..20)
                        .map(|k| {
                            submission(&format!(
                                "https://h{}.example/{}",
                                (k + n) % 40,
                                round * 20 + k
                            ))
                        })
                        .collect();
                    store.submit(&urls).await.unwrap();
                    let claims = store
                        .claim(&ClaimRequest::new(n as i64, 10))
                        .await
                        .unwrap()
                        .claims;
                    let ends: Vec<_> = claims
                        .iter()
                        .enumerate()
                        .map(|(k, claim)| {
                            let outcome = match k % 4 {
                                0 => Outcome::Failed {
                                    error: "x".to_owned(),
                                    retry_in: Duration::ZERO,
                                },
                                1 => Outcome::Redirected {
                                    to: Box::new(urls[k].clone()),
                                    etag: None,
                                    last_modified: None,
                                    content_hash: None,
                                    document: None,
                                },
                                _ => fetched(),
                            };
                            Completion::new(claim.lease_token, outcome)
                        })
                        .collect();
                    store.complete(&ends).await.unwrap();
                    let some: Vec<_> = urls.iter().step_by(7).map(|one| one.target.id()).collect();
                    if round % 3 == 0 {
                        store.requeue(&some).await.unwrap();
                    } else if round % 5 == 0 {
                        store.remove(&some).await.unwrap();
                    }
                    // While others append changes and fold them, too.
                    store.fold_counts().await.unwrap();
                }
            });
        }
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
        while store.fold_counts().await.unwrap() {}
        let stats = store.stats().await.unwrap();
        for status in tidings_store::Status::ALL {
            let filter = tidings_store::Filter {
                status: Some(*status),
                ..Default::default()
            };
            assert_eq!(
                stats.by_status[status.as_str()] as u64,
                store.count(&filter).await.unwrap(),
                "{status} on {address}"
            );
        }
    }
}

/// After a block has been acknowledged, no claim of that host begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_block_is_a_fence() {
    for (address, _folder) in addresses() {
        let store = Store::open(&address, &options(0, 50)).await.unwrap();
        fill(&store, 1, 400).await;
        let host = id("https://h0.example/0").host;
        let blocked = Arc::new(Mutex::new(false));
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..6 {
            let (store, blocked) = (store.clone(), Arc::clone(&blocked));
            tasks.spawn(async move {
                for _ in 0..40 {
                    let was_blocked = *blocked.lock().unwrap();
                    let claims = store.claim(&ClaimRequest::new(n, 1)).await.unwrap().claims;
                    assert!(!was_blocked || claims.is_empty(), "claimed after the block");
                    for claim in claims {
                        store
                            .complete(&[Completion::new(claim.lease_token, fetched())])
                            .await
                            .unwrap();
                    }
                }
            });
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        store.block_host(host, Moment::NEVER, "test").await.unwrap();
        *blocked.lock().unwrap() = true;
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
        assert!(
            store.stats().await.unwrap().by_status["pending"] > 0,
            "{address}: the block came too late to matter"
        );
    }
}

/// Not a test of its own: the body of a worker process, started by the others.
#[tokio::test]
async fn worker_process() {
    let Ok(address) = std::env::var("TIDINGS_TEST_WORKER") else {
        return;
    };
    let store = Store::open(&address, &options(20, 1)).await.unwrap();
    let owner = i64::from(std::process::id());
    loop {
        let request = ClaimRequest {
            lease: Duration::from_secs(2),
            ..ClaimRequest::new(owner, 20)
        };
        let claimed = store.claim(&request).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
        let ends: Vec<_> = claimed
            .claims
            .iter()
            .map(|claim: &Claim| Completion::new(claim.lease_token, fetched()))
            .collect();
        store.complete(&ends).await.unwrap();
    }
}

/// Not a test of its own either: sixteen claimers that record when they held which
/// host, by the clock of the database, until nothing is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recording_process() {
    let (Ok(address), Ok(records)) = (
        std::env::var("TIDINGS_TEST_RECORDING"),
        std::env::var("TIDINGS_TEST_RECORDS"),
    ) else {
        return;
    };
    let store = Store::open(&address, &options(DELAY_MS, 1)).await.unwrap();
    let mut claimers = tokio::task::JoinSet::new();
    for owner in 0..16 {
        let store = store.clone();
        claimers.spawn(async move {
            let mut held = String::new();
            loop {
                let claimed = store.claim(&ClaimRequest::new(owner, 2)).await.unwrap();
                for claim in &claimed.claims {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    let until = store.now().await.unwrap();
                    held += &format!("{} {} {}\n", claim.url.host(), claimed.at.0, until.0);
                    let end = Completion::new(claim.lease_token, fetched());
                    store.complete(&[end]).await.unwrap();
                }
                match claimed.next_ready {
                    None if claimed.claims.is_empty() => return held,
                    Some(wait) if claimed.claims.is_empty() => {
                        tokio::time::sleep(wait.min(Duration::from_millis(20))).await;
                    }
                    _ => {}
                }
            }
        });
    }
    let held = claimers.join_all().await.concat();
    std::fs::write(records, held).unwrap();
}

const DELAY_MS: u64 = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_claimers_in_four_processes_respect_the_host_limits() {
    for (address, _folder) in addresses() {
        let store = Store::open(&address, &options(DELAY_MS, 1)).await.unwrap();
        fill(&store, 20, 400).await;
        let folder = tempfile::tempdir().unwrap();
        let records: Vec<_> = (0..4).map(|n| folder.path().join(format!("{n}"))).collect();
        let mut processes: Vec<Worker> = records
            .iter()
            .map(|records| {
                Worker::start(
                    "recording_process",
                    &[
                        ("TIDINGS_TEST_RECORDING", &address),
                        ("TIDINGS_TEST_RECORDS", records.to_str().unwrap()),
                    ],
                )
            })
            .collect();
        for process in &mut processes {
            assert!(process.0.wait().unwrap().success());
        }
        let mut by_host: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
        for records in &records {
            for line in std::fs::read_to_string(records).unwrap().lines() {
                let words: Vec<_> = line.split(' ').collect();
                let held = (words[1].parse().unwrap(), words[2].parse().unwrap());
                by_host.entry(words[0].to_owned()).or_default().push(held);
            }
        }
        assert_eq!(
            by_host.values().map(Vec::len).sum::<usize>(),
            400,
            "{address}: each URL once"
        );
        for (host, mut held) in by_host {
            held.sort_unstable();
            for pair in held.windows(2) {
                let (before, after) = (pair[0], pair[1]);
                assert!(
                    after.0 >= before.1,
                    "{host}: two requests in flight on {address}"
                );
                assert!(
                    after.0 - before.0 >= DELAY_MS,
                    "{host}: too soon on {address}"
                );
            }
        }
    }
}

/// A worker process that is killed with the test.
struct Worker(Child);

impl Worker {
    /// Starts one of the processes above.
    fn start(body: &str, environment: &[(&str, &str)]) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([body, "--exact", "--nocapture"])
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// `Child::kill` is SIGKILL: no graceful shutdown.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn wait_until_done(store: &Store, urls: i64) {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        let stats = store.stats().await.unwrap();
        if stats.by_status["fetched"] == urls {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "stuck with {:?}",
            stats.by_status
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_workers_lose_nothing() {
    for (address, _folder) in addresses() {
        let store = Store::open(&address, &options(20, 1)).await.unwrap();
        fill(&store, 60, 3000).await;
        let mut workers: Vec<Worker> = (0..3)
            .map(|_| Worker::start("worker_process", &[("TIDINGS_TEST_WORKER", &address)]))
            .collect();
        for victim in 0..6 {
            tokio::time::sleep(Duration::from_millis(250)).await;
            let worker = &mut workers[victim % 3];
            worker.kill();
            *worker = Worker::start("worker_process", &[("TIDINGS_TEST_WORKER", &address)]);
        }
        wait_until_done(&store, 3000).await;
        // Killed workers leave leases that expire, and that is recorded.
        let mut events = Vec::new();
        let end = store.last_event_id().await.unwrap();
        while events.last().map_or(0, |event: &Event| event.event_id) < end {
            let after = events.last().map_or(0, |event: &Event| event.event_id);
            events.extend(store.events_after(after, 100_000).await.unwrap());
        }
        let expired = events
            .iter()
            .filter(|event| event.kind == "lease_expired")
            .count();
        assert!(expired > 0, "{address}: no worker died with a lease");
        let done: Vec<_> = events
            .iter()
            .filter(|event| event.kind == "fetched")
            .map(|event| event.id)
            .collect();
        assert_eq!(done.len(), 3000);
        assert_eq!(
            done.iter().collect::<HashSet<_>>().len(),
            3000,
            "{address}: each URL was completed once"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_killed_server_loses_nothing_that_was_acknowledged() {
    let mut server = PostgresServer::start(&["fsync=off"]).unwrap();
    let address = server.create_database().unwrap();
    let store = Store::open(&address, &options(5, 1)).await.unwrap();

    let acknowledged: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..4 {
        let (submitter, acknowledged) = (store.clone(), Arc::clone(&acknowledged));
        tasks.spawn(async move {
            for round in 0..40 {
                let urls: Vec<_> = (0..300)
                    .map(|k| format!("https://h{}.example/{n}-{round}-{k}", k % 100))
                    .collect();
                let submissions: Vec<_> = urls.iter().map(|url| submission(url)).collect();
                // An error is not an acknowledgement: submit again, as a client would.
                while submitter.submit(&submissions).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                acknowledged.lock().unwrap().extend(urls);
            }
        });
        let store = store.clone();
        tasks.spawn(async move {
            let until = Instant::now() + Duration::from_secs(6);
            while Instant::now() < until {
                let request = ClaimRequest {
                    lease: Duration::from_secs(2),
                    ..ClaimRequest::new(n, 20)
                };
                let Ok(claimed) = store.claim(&request).await else {
                    continue;
                };
                let ends: Vec<_> = claimed
                    .claims
                    .iter()
                    .map(|claim| Completion::new(claim.lease_token, fetched()))
                    .collect();
                // A completion that fails is a lease that expires.
                let _ = store.complete(&ends).await;
            }
        });
    }
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        server.kill().unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.restart().unwrap();
        let back = Instant::now();
        while store.claim(&ClaimRequest::new(99, 1)).await.is_err() {
            assert!(
                back.elapsed() < Duration::from_secs(10),
                "claims resume within ten seconds"
            );
        }
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    let acknowledged = std::mem::take(&mut *acknowledged.lock().unwrap());
    assert_eq!(acknowledged.len(), 4 * 40 * 300);
    let mut stored = HashSet::new();
    let mut after = None;
    loop {
        let page = store
            .list(
                &tidings_store::Filter::default(),
                tidings_store::Order::Id,
                after,
                5000,
            )
            .await
            .unwrap();
        stored.extend(page.rows.into_iter().map(|row| row.url));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|url| !stored.contains(*url))
        .take(3)
        .collect();
    assert!(lost.is_empty(), "acknowledged and gone: {lost:?}");
    assert_eq!(stored.len(), acknowledged.len(), "only what was submitted");
}

/// A connection of another process.
async fn connect(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

/// Waits until another connection to this database waits for a lock.
async fn wait_for_a_blocked_statement(client: &Client) {
    let blocked = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let row = client.query_one(blocked, &[]).await.unwrap();
        if row.get::<_, i64>(0) > 0 {
            return;
        }
        assert!(Instant::now() < deadline, "no statement waits for a lock");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A document as a slow transaction writes it.
const SLOW_DOCUMENT: &str = "INSERT INTO documents (host_id, url_id, key_tail, revision, source_id, title, fetched_at, body, change_id)
    VALUES ($1, decode(repeat('0', 32), 'hex'), decode(repeat('0', 32), 'hex'), 1, 0, $2, 0, '{}', pg_current_xact_id()::text::BIGINT)";

#[tokio::test]
async fn a_document_that_commits_late_is_never_skipped() {
    let address = postgres_database().unwrap();
    let store = Store::open(&address, &options(0, 1)).await.unwrap();
    let (mut one, mut two) = (connect(&address).await, connect(&address).await);
    let changes = async |after| {
        let changes = store.document_changes(after, 10).await.unwrap();
        let last = changes.last().map(|(cursor, _)| *cursor).or(after);
        let titles: Vec<String> = changes
            .into_iter()
            .map(|(_, document)| document.title)
            .collect();
        (titles, last)
    };
    // Transactions of other tests on the same server delay changes as well.
    let wait_for = async |mut after, count: usize| {
        let mut seen = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(60);
        while seen.len() < count && Instant::now() < deadline {
            let (titles, last) = changes(after).await;
            seen.extend(titles);
            after = last;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        (seen, after)
    };
    // The first starts first and ends last.
    let slow = one.transaction().await.unwrap();
    slow.execute(SLOW_DOCUMENT, &[&1_i64, &"slow"])
        .await
        .unwrap();
    let quick = two.transaction().await.unwrap();
    quick
        .execute(SLOW_DOCUMENT, &[&2_i64, &"quick"])
        .await
        .unwrap();
    quick.commit().await.unwrap();
    let (seen, cursor) = changes(None).await;
    assert!(seen.is_empty(), "{seen:?}: the slow one would be skipped");
    slow.commit().await.unwrap();
    let (seen, cursor) = wait_for(cursor, 2).await;
    assert_eq!(seen, ["slow", "quick"]);
    // And the other way round.
    let slow = one.transaction().await.unwrap();
    slow.execute(SLOW_DOCUMENT, &[&3_i64, &"slower"])
        .await
        .unwrap();
    let (seen, cursor) = changes(cursor).await;
    assert!(seen.is_empty(), "{seen:?}");
    slow.commit().await.unwrap();
    assert_eq!(wait_for(cursor, 1).await.0, ["slower"]);
}

/// An event as a slow transaction writes it.
const SLOW_EVENT: &str = "INSERT INTO events (host_id, at, url_id, kind, detail)
    VALUES (1, 0, decode(repeat('0', 32), 'hex'), $1, '{}')";

/// Reads events until `count` were seen. Transactions of other tests on the same
/// server may delay those after a gap.
async fn events_until(store: &Store, after: &mut i64, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(60);
    while seen.len() < count && Instant::now() < deadline {
        for event in store.events_after(*after, 10).await.unwrap() {
            *after = event.event_id;
            seen.push(event.kind);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    seen
}

#[tokio::test]
async fn an_event_that_commits_late_is_never_skipped() {
    let address = postgres_database().unwrap();
    let store = Store::open(&address, &options(0, 1)).await.unwrap();
    let (mut one, two) = (connect(&address).await, connect(&address).await);
    two.execute(SLOW_EVENT, &[&"first"]).await.unwrap();
    // This one starts before the next and ends after it.
    let slow = one.transaction().await.unwrap();
    slow.execute(SLOW_EVENT, &[&"slow"]).await.unwrap();
    two.execute(SLOW_EVENT, &[&"quick"]).await.unwrap();
    let mut after = 0;
    assert_eq!(events_until(&store, &mut after, 1).await, ["first"]);
    for _ in 0..3 {
        let early = store.events_after(after, 10).await.unwrap();
        assert!(early.is_empty(), "{early:?}: the slow one would be skipped");
    }
    // Who starts to follow now must not miss it either.
    let mut from_now = store.last_event_id().await.unwrap();
    slow.commit().await.unwrap();
    let seen = events_until(&store, &mut after, 2).await;
    assert_eq!(seen, ["slow", "quick"]);
    let seen = events_until(&store, &mut from_now, 2).await;
    assert_eq!(seen, ["slow", "quick"]);
}

#[tokio::test]
async fn an_event_that_was_rolled_back_holds_up_no_other() {
    let address = postgres_database().unwrap();
    let store = Store::open(&address, &options(0, 1)).await.unwrap();
    let (mut one, two) = (connect(&address).await, connect(&address).await);
    let slow = one.transaction().await.unwrap();
    slow.execute(SLOW_EVENT, &[&"slow"]).await.unwrap();
    two.execute(SLOW_EVENT, &[&"quick"]).await.unwrap();
    let mut after = 0;
    assert!(store.events_after(after, 10).await.unwrap().is_empty());
    slow.rollback().await.unwrap();
    assert_eq!(events_until(&store, &mut after, 1).await, ["quick"]);
    two.execute(SLOW_EVENT, &[&"next"]).await.unwrap();
    assert_eq!(events_until(&store, &mut after, 1).await, ["next"]);
    // A reader that starts over reads across the gap.
    let again = Store::open(&address, &options(0, 1)).await.unwrap();
    let mut after = 0;
    assert_eq!(events_until(&again, &mut after, 2).await, ["quick", "next"]);
}

/// Documents 1 to n, each with a delivery to the sink `s` that is due.
const PENDING: &str = "
    INSERT INTO sinks (name, enabled, duplicates, created_at) VALUES ('s', 1, 0, 0);
    INSERT INTO documents (host_id, url_id, key_tail, revision, source_id, title, fetched_at, body)
        SELECT n, decode(repeat('0', 32), 'hex'), decode(repeat('0', 32), 'hex'), 1, 0, '', 0, '{}' FROM generate_series(1, 1000) AS n;
    INSERT INTO deliveries (sink, host_id, url_id, revision, attempts, next_attempt_at, created_at)
        SELECT 's', host_id, url_id, 1, 0, host_id, 0 FROM documents";

async fn with_pending_deliveries() -> (String, Store) {
    let address = postgres_database().unwrap();
    let store = Store::open(&address, &options(0, 1)).await.unwrap();
    let client = connect(&address).await;
    client.batch_execute(PENDING).await.unwrap();
    (address, store)
}

#[tokio::test]
async fn a_dead_letter_added_during_a_retry_is_not_lost() {
    let (address, store) = with_pending_deliveries().await;
    let (mut one, two) = (connect(&address).await, connect(&address).await);
    one.batch_execute(
        "DELETE FROM deliveries WHERE host_id <> 2;
         INSERT INTO dead_letters SELECT 's', 1, url_id, 1, 'full', 0 FROM documents WHERE host_id = 1",
    )
    .await
    .unwrap();
    // A deliverer whose transaction the retry has to wait for: its document 1 is
    // queued again, and document 2 becomes a dead letter.
    let deliverer = one.transaction().await.unwrap();
    let queue = "INSERT INTO deliveries (sink, host_id, url_id, revision, attempts, next_attempt_at, created_at)
        SELECT 's', host_id, url_id, 1, 0, 0, 0 FROM documents WHERE host_id = 1";
    deliverer.batch_execute(queue).await.unwrap();
    let retry = tokio::spawn({
        let store = store.clone();
        async move { store.retry_dead_letters("s").await }
    });
    wait_for_a_blocked_statement(&two).await;
    let fail = "INSERT INTO dead_letters SELECT sink, host_id, url_id, revision, 'full', 0 FROM deliveries WHERE host_id = 2;
        DELETE FROM deliveries WHERE host_id = 2";
    deliverer.batch_execute(fail).await.unwrap();
    deliverer.commit().await.unwrap();
    retry.await.unwrap().unwrap();
    let outbox = store.outbox().await.unwrap().remove(0);
    assert_eq!((outbox.waiting, outbox.dead), (1, 1), "none is lost");
    store.retry_dead_letters("s").await.unwrap();
    let outbox = store.outbox().await.unwrap().remove(0);
    assert_eq!((outbox.waiting, outbox.dead), (2, 0));
}

#[tokio::test]
async fn two_claims_of_deliveries_share_them_and_neither_waits() {
    let (address, store) = with_pending_deliveries().await;
    let mut other = connect(&address).await;
    // A claim that has locked the longest due ones and is not committed.
    let claim = other.transaction().await.unwrap();
    let locked = "SELECT host_id FROM deliveries ORDER BY next_attempt_at LIMIT 300 FOR UPDATE";
    assert_eq!(claim.query(locked, &[]).await.unwrap().len(), 300);
    let lease = Duration::from_secs(60);
    let (one, two) = tokio::join!(
        store.claim_deliveries("s", 300, u64::MAX, lease),
        store.claim_deliveries("s", 300, u64::MAX, lease)
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!((one.len(), two.len()), (300, 300));
    let hosts = one.iter().chain(&two).map(|delivery| delivery.id.host.0);
    let hosts: HashSet<i64> = hosts.collect();
    assert_eq!(hosts.len(), 600, "no delivery twice");
    assert!(hosts.iter().all(|host| *host > 300));
    claim.rollback().await.unwrap();
    let rest = store
        .claim_deliveries("s", 1000, u64::MAX, lease)
        .await
        .unwrap();
    assert_eq!(rest.len(), 400);
}

#[tokio::test]
async fn two_claims_of_feeds_share_them_and_neither_waits() {
    let address = postgres_database().unwrap();
    let store = Store::open(&address, &options(0, 1)).await.unwrap();
    for n in 0..9 {
        let url = format!("https://a.example/{n}");
        store.add_feed(n, "rss", &url).await.unwrap();
    }
    let mut other = connect(&address).await;
    let claim = other.transaction().await.unwrap();
    let locked = "SELECT feed_id FROM feeds ORDER BY next_poll_at, feed_id LIMIT 3 FOR UPDATE";
    assert_eq!(claim.query(locked, &[]).await.unwrap().len(), 3);
    let lease = Duration::from_secs(60);
    let (one, two) = tokio::join!(store.claim_feeds(3, lease), store.claim_feeds(3, lease));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!((one.len(), two.len()), (3, 3));
    let feeds = one.iter().chain(&two).map(|claim| claim.feed.feed_id);
    assert_eq!(feeds.collect::<HashSet<_>>().len(), 6, "no feed twice");
    claim.rollback().await.unwrap();
    assert_eq!(store.claim_feeds(9, lease).await.unwrap().len(), 3);
}

/// Waits until `count` sessions of a database wait for locks.
async fn until_waiting(client: &tokio_postgres::Client, count: i64) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while client
        .query_one(waiting, &[])
        .await
        .unwrap()
        .get::<_, i64>(0)
        < count
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The completion of a redirect locks the hosts of both URLs, and then inserts its
/// target.
#[tokio::test]
async fn a_submit_and_a_redirect_to_the_same_url_do_not_deadlock() {
    let address = postgres_database().unwrap();
    let store = Store::open(&address, &options(0, 1)).await.unwrap();
    let (known, target) = ("https://h.example/known", "https://h.example/target");
    store.submit(&[submission(known)]).await.unwrap();
    let (mut redirect, observer) = (connect(&address).await, connect(&address).await);
    // The first to detect a deadlock is its victim.
    redirect
        .batch_execute("SET deadlock_timeout = '10ms'")
        .await
        .unwrap();
    let redirect = redirect.transaction().await.unwrap();
    let (host, url) = (id(target).host.0, id(target).url.0);
    redirect
        .query(
            "SELECT host_id FROM hosts WHERE host_id = $1 FOR NO KEY UPDATE",
            &[&host],
        )
        .await
        .unwrap();
    let submitted = tokio::spawn({
        let store = store.clone();
        async move { store.submit(&[submission(target)]).await }
    });
    until_waiting(&observer, 1).await;
    redirect
        .execute(
            "INSERT INTO urls (host_id, url_id, key_tail, url, source_id, origin, priority, depth, norm_v, status, discovered_at, updated_at)
             SELECT host_id, $2, key_tail, $3, source_id, origin, priority, depth, norm_v, 2, discovered_at, updated_at FROM urls WHERE host_id = $1",
            &[&host, &&url[..], &target],
        )
        .await
        .unwrap();
    redirect.commit().await.unwrap();
    assert_eq!(submitted.await.unwrap().unwrap(), [Verdict::Known]);
}

#[tokio::test]
async fn of_two_equal_texts_stored_at_once_one_is_the_original() {
    let address = postgres_database().unwrap();
    let store = Store::open(&address, &options(0, 1)).await.unwrap();
    let urls = ["https://a.example/x", "https://b.example/x"];
    store.submit(&urls.map(submission)).await.unwrap();
    let claimed = store.claim(&ClaimRequest::new(1, 2)).await.unwrap();
    // Both look for an original before one of them commits.
    let (mut blocker, observer) = (connect(&address).await, connect(&address).await);
    let blocker = blocker.transaction().await.unwrap();
    blocker
        .batch_execute("LOCK TABLE deliveries IN EXCLUSIVE MODE")
        .await
        .unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for claim in claimed.claims {
        let store = store.clone();
        let document = NewDocument {
            key: claim.key,
            source_id: 0,
            title: "the same".to_owned(),
            content_hash: Some(b"the same".to_vec()),
            sketch: None,
            body: "{}".to_owned(),
        };
        let outcome = Outcome::Fetched {
            etag: None,
            last_modified: None,
            content_hash: None,
            document: Some(Box::new(document)),
            again_in: None,
        };
        let completion = Completion::new(claim.lease_token, outcome);
        tasks.spawn(async move { store.complete(&[completion]).await.unwrap() });
    }
    until_waiting(&observer, 2).await;
    blocker.commit().await.unwrap();
    while let Some(accepted) = tasks.join_next().await {
        assert_eq!(accepted.unwrap(), [true]);
    }
    let originals = "SELECT count(*) FILTER (WHERE duplicate_of IS NULL), count(*) FROM documents";
    let row = observer.query_one(originals, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1, 2));
}

/// Forwards connections to a server, and loses the response of one COMMIT: it closes
/// the connection instead. Which one is counted down.
async fn lossy_relay(socket: std::path::PathBuf, to_lose: Arc<AtomicI64>) -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = tokio::net::UnixStream::connect(&socket).await.unwrap();
            tokio::spawn(relay(client, server, Arc::clone(&to_lose)));
        }
    });
    port
}

async fn relay(
    mut client: tokio::net::TcpStream,
    mut server: tokio::net::UnixStream,
    to_lose: Arc<AtomicI64>,
) -> std::io::Result<()> {
    let (mut sent, mut received) = (vec![0; 65536], vec![0; 65536]);
    loop {
        tokio::select! {
            read = client.read(&mut sent) => {
                let part = &sent[..read?];
                if part.is_empty() {
                    return Ok(());
                }
                server.write_all(part).await?;
                let is_commit = part.windows(6).any(|word| word == b"COMMIT");
                if is_commit && to_lose.fetch_sub(1, Ordering::SeqCst) == 1 {
                    let _ = server.read(&mut received).await?;
                    return Ok(());
                }
            }
            read = server.read(&mut received) => {
                let part = &received[..read?];
                if part.is_empty() {
                    return Ok(());
                }
                client.write_all(part).await?;
            }
        }
    }
}

#[tokio::test]
async fn a_commit_whose_response_is_lost_counts_once() {
    let server = PostgresServer::start(&["fsync=off"]).unwrap();
    let direct = server.create_database().unwrap();
    let to_lose = Arc::new(AtomicI64::new(0));
    let port = lossy_relay(server.socket(), Arc::clone(&to_lose)).await;
    let name = direct.rsplit('/').next().unwrap();
    let address = format!("postgres://tidings@127.0.0.1:{port}/{name}");
    let store = Store::open(&address, &options(0, 1)).await.unwrap();
    let lose = |nth| to_lose.store(nth, Ordering::SeqCst);
    let assert_lost = || assert!(to_lose.load(Ordering::SeqCst) <= 0);
    let urls = ["https://a.example/x", "https://b.example/x"];

    lose(1);
    let mut items = urls.map(submission);
    for (item, n) in items.iter_mut().zip(1..) {
        (item.title, item.guid) = (Some([n; 16]), Some([n; 16]));
    }
    assert_eq!(store.submit(&items).await.unwrap(), [Verdict::New; 2]);
    assert_lost();

    lose(1);
    let claimed = store.claim(&ClaimRequest::new(1, 2)).await.unwrap();
    assert_eq!(claimed.claims.len(), 2, "the leases are not left to expire");
    assert_lost();

    let tokens: Vec<_> = claimed
        .claims
        .iter()
        .map(|claim| claim.lease_token)
        .collect();
    lose(2);
    store.blame_for_crash(&tokens, 3).await.unwrap();
    assert_lost();
    let crashes = "SELECT CAST(sum(crashes) AS BIGINT) FROM queue";
    let row = connect(&direct)
        .await
        .query_one(crashes, &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), 6);

    lose(1);
    let completions: Vec<_> = tokens
        .iter()
        .map(|token| Completion::new(*token, fetched()))
        .collect();
    assert_eq!(
        store.complete(&completions).await.unwrap(),
        [true; 2],
        "stored, not lost"
    );
    assert_lost();
    for url in urls {
        let history = store.explain(id(url)).await.unwrap();
        let kinds: Vec<_> = history.events.iter().map(|event| &*event.kind).collect();
        assert_eq!(kinds, ["discovered", "fetched"]);
    }
}

#[tokio::test]
async fn a_document_that_commits_late_is_delivered_to_an_enabled_sink() {
    let address = postgres_database().unwrap();
    let store = Store::open(&address, &options(0, 1)).await.unwrap();
    let (mut one, two) = (connect(&address).await, connect(&address).await);
    store.register_sink("s", false).await.unwrap();
    store.disable_sink("s").await.unwrap();
    // A completion that has seen it disabled.
    let slow = one.transaction().await.unwrap();
    let now = SLOW_DOCUMENT.replace(", 0, '{}'", ", 9000000000000, '{}'");
    slow.execute(&now, &[&1_i64, &"slow"]).await.unwrap();
    let enabling = {
        let store = store.clone();
        tokio::spawn(async move { store.enable_sink("s").await.unwrap() })
    };
    let waiting =
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'documents'::regclass";
    while !enabling.is_finished()
        && two.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    slow.commit().await.unwrap();
    assert_eq!(enabling.await.unwrap(), Some(1));
}
