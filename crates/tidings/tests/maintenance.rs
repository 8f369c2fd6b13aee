//! `tidings run` with the shipped defaults removes what has expired from its store,
//! on both engines, and `doctor` says so.

#![allow(clippy::unwrap_used)]

mod tidings;

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use tidings::command;
use tidings_store::{
    ClaimRequest, Completion, NewAuditEntry, Origin, Outcome, Role, Store, StoreOptions,
    Submission, Target,
};
use tidings_url::{FetchUrl, ProxyHosts, Rules};

const DAY: i64 = 24 * 3600 * 1000;

/// A store with rows of 400 days ago, and of yesterday.
async fn old_store(address: &str) {
    let now = jiff::Timestamp::now().as_millisecond();
    let clock = Arc::new(AtomicI64::new(0));
    let options = StoreOptions::default().with_manual_clock(Arc::clone(&clock));
    let store = Store::open(address, &options).await.unwrap();
    for (days, name) in [(400, "old"), (1, "new")] {
        clock.store(now - days * DAY, Ordering::SeqCst);
        let url = FetchUrl::parse(&format!("https://{name}.example/")).unwrap();
        let target = Target {
            key: url.canonical(&Rules::default()).key(),
            host: url.host_key(&ProxyHosts::default()),
            url,
        };
        let submission = Submission::new(target, Origin::Manual);
        store.submit(&[submission]).await.unwrap();
        let claimed = store.claim(&ClaimRequest::new(1, 1)).await.unwrap();
        let gone = Outcome::Dead {
            reason: "not_found".to_owned(),
            error: None,
        };
        let completion = Completion::new(claimed.claims[0].lease_token, gone);
        assert_eq!(store.complete(&[completion]).await.unwrap(), [true]);
        store.start_run().await.unwrap();
        let entry = NewAuditEntry {
            who: name,
            role: Role::Operator,
            action: "Try it",
            method: "POST",
            path: "/",
            status: 200,
            request_id: "7",
        };
        store.add_audit_entry(&entry).await.unwrap();
        let every = Duration::ZERO;
        store.start_task("poll", name, every).await.unwrap();
    }
}

async fn old_rows_go_away(address: &str) {
    old_store(address).await;
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "run",
        "--store",
        address,
        "--set",
        "server.bind=127.0.0.1:0",
    ];
    let running = command(&args, folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let store = Store::open(address, &StoreOptions::default())
        .await
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while store.maintenance_report().await.unwrap().is_none() {
        assert!(Instant::now() < deadline, "nothing was removed");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(tidings::terminate(running), Some(0));
    let audit = store.audit_entries(None, 9).await.unwrap();
    let who: Vec<_> = audit.iter().map(|entry| entry.who.as_str()).collect();
    assert_eq!(who, ["new"]);
    assert_eq!(store.runs(None, 9).await.unwrap().len(), 1);
    assert_eq!(store.events_after(0, 9).await.unwrap().len(), 1);
    assert!(
        store.tasks(None, 9).await.unwrap().is_empty(),
        "kept for an hour"
    );
    assert_eq!(store.stats().await.unwrap().by_status["dead"], 2);
    let doctor = command(&["doctor", "--store", address], folder.path());
    let doctor = { doctor }.output().unwrap();
    let said = String::from_utf8(doctor.stdout).unwrap();
    let line = "expired rows removed so far, 1 of audit, 1 of events, 2 of idempotency, 1 of runs, 2 of tasks";
    assert!(said.contains(line), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_rows_go_away_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    old_rows_go_away(&address).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_rows_go_away_on_postgres() {
    let address = tidings_sim::postgres_database().unwrap();
    old_rows_go_away(&address).await;
}
