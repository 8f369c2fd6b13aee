//! Expired rows are deleted in batches, counters stay right while they are folded,
//! and the report adds up what was removed.

use std::collections::BTreeMap;

use tidings_store::{ExpiringTable, MAX_STORED_RESPONSE, NewAuditEntry, Pruning, Role, Submission};

use crate::fixture::{Fixture, MINUTE, SECOND, fetched, submission};

on_both_engines!(
    only_what_has_expired_is_deleted,
    a_backlog_is_deleted_in_batches,
    counters_are_folded_and_stats_stay_the_same,
    the_report_adds_up_what_was_removed,
    a_long_response_is_not_stored,
);

/// Adds one row to each table that expires.
async fn add_rows(t: &Fixture, nth: u32) {
    let store = &t.store;
    let url = format!("https://h{nth}.example/");
    let hash = Some([nth as u8; 16]);
    let item = Submission {
        title: hash,
        guid: hash,
        ..submission(&url)
    };
    store.submit(&[item]).await.unwrap();
    let claim = t.claim_one().await;
    assert!(t.complete(&claim, fetched()).await);
    let subject = format!("source:{nth}");
    store.start_task("poll", &subject, MINUTE).await.unwrap();
    store.start_run().await.unwrap();
    let entry = NewAuditEntry {
        who: "ci",
        role: Role::Operator,
        action: "Try it",
        method: "POST",
        path: "/",
        status: 200,
        request_id: "7",
    };
    store.add_audit_entry(&entry).await.unwrap();
    let at = store.now().await.unwrap().0;
    t.sql(&format!(
        "INSERT INTO feed_fetch_log (feed_id, started_at, elapsed_ms, outcome, items_seen, items_new, bytes)
         VALUES ({nth}, {at}, 1, 'ok', 0, 0, 0)"
    ))
    .await;
}

async fn only_what_has_expired_is_deleted(t: Fixture) {
    let tables = [
        ExpiringTable::Events,
        ExpiringTable::FetchLog,
        ExpiringTable::SeenTitles,
        ExpiringTable::SeenGuids,
        ExpiringTable::Tasks,
        // The marker of a task.
        ExpiringTable::Idempotency,
        ExpiringTable::Audit,
        ExpiringTable::Runs,
    ];
    for nth in 0..4 {
        add_rows(&t, nth).await;
        t.advance(MINUTE);
    }
    for table in tables {
        let name = table.as_str();
        assert_eq!(t.rows(name).await, 4, "{name}");
        // One is exactly as old as it may be.
        assert_eq!(t.prune(table, MINUTE * 3).await, 1, "{name}");
        assert_eq!(t.prune(table, MINUTE * 3).await, 0, "{name}");
        assert_eq!(t.rows(name).await, 3, "{name}");
        assert_eq!(t.prune(table, SECOND).await, 3, "{name}");
    }
    assert_eq!(t.rows("urls").await, 4, "what was found stays");
    t.assert_counters_match().await;
}

async fn a_backlog_is_deleted_in_batches(t: Fixture) {
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)";
    for insert in [
        "INSERT INTO events (host_id, at, url_id, kind, detail)",
        "INSERT INTO seen_titles (source_id, seen_at, title_hash)",
    ] {
        // PostgreSQL has the CTE after the target, SQLite before or after.
        let row = match insert.contains("events") {
            true => "SELECT 1, 1000 + i, CAST('u' AS BYTEA), 'fetched', '{}' FROM n",
            false => "SELECT i, 1000 + i, CAST('t' AS BYTEA) FROM n",
        };
        t.sql(&format!("{insert} {numbers} {row}")).await;
    }
    for table in [ExpiringTable::Events, ExpiringTable::SeenTitles] {
        let now = t.store.now().await.unwrap();
        let mut pruning = Pruning::new(table, now, MINUTE);
        let mut batches = Vec::new();
        loop {
            match t.store.prune(&mut pruning).await.unwrap() {
                0 => break,
                removed => batches.push(removed),
            }
        }
        assert_eq!(batches, [1000, 1000, 500], "{}", table.as_str());
    }
}

async fn counters_are_folded_and_stats_stay_the_same(t: Fixture) {
    for nth in 0..40 {
        let url = format!("https://h{nth}.example/");
        t.submit(&[&url]).await;
    }
    for claim in t.claim(30).await {
        assert!(t.complete(&claim, fetched()).await);
    }
    let before = t.store.stats().await.unwrap();
    assert_eq!(before.by_status["fetched"], 30);
    assert!(!t.store.fold_counts().await.unwrap(), "nothing is left");
    let after = t.store.stats().await.unwrap();
    assert_eq!(before.rows, after.rows);
    // One for each source, origin and status.
    assert!(t.rows("all_counts").await <= 3, "few rows are read");
    t.submit(&["https://later.example/"]).await;
    t.assert_counters_match().await;
}

async fn the_report_adds_up_what_was_removed(t: Fixture) {
    assert_eq!(t.store.maintenance_report().await.unwrap(), None);
    for (removed, total) in [(3, 3), (4, 7)] {
        t.advance(SECOND);
        let removed = BTreeMap::from([("events", removed)]);
        t.store.record_maintenance(&removed).await.unwrap();
        let report = t.store.maintenance_report().await.unwrap().unwrap();
        assert_eq!(report.at, t.store.now().await.unwrap());
        assert_eq!(
            report.removed,
            BTreeMap::from([("events".to_owned(), total)])
        );
    }
}

async fn a_long_response_is_not_stored(t: Fixture) {
    t.store.begin_idempotent("k", b"body").await.unwrap();
    let long = "x".repeat(MAX_STORED_RESPONSE + 1);
    let error = t.store.finish_idempotent("k", &long).await.unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
    t.store.finish_idempotent("k", &long[1..]).await.unwrap();
}
