//! Concurrent use: in one process, in several, and when one of them, or the
//! database, crashes in the middle. Real time, real processes.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::collections::{BTreeMap, HashSet};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fixture::{fetched, id, submission};
use tidings_sim::{PostgresServer, postgres_database};
use tidings_store::{
    Claim, ClaimRequest, Completion, Moment, Outcome, Store, StoreOptions, Submission, Verdict,
};

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
                }
            });
        }
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
        store.maintain(Duration::from_secs(1000)).await.unwrap();
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
        let events = store.events_after(0, 100_000).await.unwrap();
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

/// A document as a slow transaction writes it.
const SLOW_DOCUMENT: &str = "INSERT INTO documents (host_id, url_id, key_tail, revision, source_id, title, fetched_at, body, change_id)
    VALUES ($1, decode(repeat('0', 32), 'hex'), decode(repeat('0', 32), 'hex'), 1, 0, $2, 0, '{}', pg_current_xact_id()::text::BIGINT)";

#[tokio::test]
async fn a_document_that_commits_late_is_never_skipped() {
    let address = postgres_database().unwrap();
    let store = Store::open(&address, &options(0, 1)).await.unwrap();
    let connect = async || {
        let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        client
    };
    let (mut one, mut two) = (connect().await, connect().await);
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

#[tokio::test]
async fn a_document_that_commits_late_is_delivered_to_an_enabled_sink() {
    let address = postgres_database().unwrap();
    let store = Store::open(&address, &options(0, 1)).await.unwrap();
    let connect = async || {
        let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        client
    };
    let (mut one, two) = (connect().await, connect().await);
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
