//! A store that runs for years: every table that grows with time stays within its
//! retention, and lists and stats read as many rows as in the beginning.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tidings_engine::{Maintenance, Retention};
use tidings_store::{
    ClaimRequest, Completion, FetchLogRow, Filter, NewAuditEntry, Order, Origin, Outcome,
    PollResult, Role, SharedValue, Status, Store, StoreOptions, Submission, Target,
};
use tidings_url::{FetchUrl, ProxyHosts, Rules};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// A time step, in days. Rows are written at its start, and then maintained.
const STEP: u64 = 5;
const HOSTS: u64 = 20;

struct Soak {
    /// Closed while rows are counted that others read.
    store: Option<Store>,
    address: String,
    clock: Arc<AtomicI64>,
    steps: u64,
    _folder: Option<tempfile::TempDir>,
}

impl Soak {
    async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
        Self::open(address, Some(folder)).await
    }

    async fn postgres() -> Self {
        Self::open(tidings_sim::postgres_database().unwrap(), None).await
    }

    async fn open(address: String, folder: Option<tempfile::TempDir>) -> Self {
        let mut soak = Self {
            store: None,
            address,
            clock: Arc::new(AtomicI64::new(1_800_000_000_000)),
            steps: 0,
            _folder: folder,
        };
        soak.store = Some(soak.reopen().await);
        soak
    }

    async fn reopen(&self) -> Store {
        let options = StoreOptions::default().with_manual_clock(Arc::clone(&self.clock));
        Store::open(&self.address, &options).await.unwrap()
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn maintenance(&self) -> Maintenance {
        Maintenance::new(self.store().clone(), Retention::default())
    }

    fn advance(&self, time: Duration) {
        let time = i64::try_from(time.as_millis()).unwrap();
        self.clock.fetch_add(time, Ordering::SeqCst);
    }

    /// The first column of the one row of a query.
    async fn number(&self, sql: &str) -> i64 {
        if let Some(file) = self.address.strip_prefix("sqlite:") {
            let connection = rusqlite::Connection::open(file).unwrap();
            return connection.query_row(sql, [], |row| row.get(0)).unwrap();
        }
        let (client, connection) = tokio_postgres::connect(&self.address, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        client.query_one(sql, &[]).await.unwrap().get(0)
    }

    async fn rows(&self, table: &str) -> i64 {
        self.number(&format!("SELECT count(*) FROM {table}")).await
    }

    /// A fixed frontier, which is fetched again and again: what grows, grows with time.
    async fn fill(&self) {
        let url = |n| format!("https://h{}.example/{n}", n % HOSTS);
        let submissions: Vec<_> = (0..10 * HOSTS).map(|n| submission(&url(n))).collect();
        self.store().submit(&submissions).await.unwrap();
        let feed = "https://h0.example/feed";
        self.store().add_feed(1, "feed", feed).await.unwrap();
    }

    /// Everything that a running system does in its tables.
    async fn work(&mut self) {
        let store = self.store().clone();
        // One claim in eight prefers low priorities, and returns fewer.
        let mut claims = Vec::new();
        while (claims.len() as u64) < HOSTS {
            let request = ClaimRequest::new(1, HOSTS as u16 - claims.len() as u16);
            let claimed = store.claim(&request).await.unwrap().claims;
            assert!(!claimed.is_empty(), "all hosts are due");
            claims.extend(claimed);
        }
        let completions: Vec<_> = claims
            .iter()
            .map(|claim| Completion::new(claim.lease_token, fetched()))
            .collect();
        store.complete(&completions).await.unwrap();
        let now = store.now().await.unwrap();
        let feed = store.claim_feeds(1, DAY).await.unwrap().remove(0);
        let poll = PollResult {
            feed: feed.feed.clone(),
            next_poll_in: DAY,
            log: FetchLogRow {
                started_at: now,
                elapsed_ms: 12,
                outcome: "ok".to_owned(),
                items_seen: 20,
                items_new: 2,
                error_class: None,
                error_message: None,
                bytes: 1000,
            },
        };
        assert!(store.complete_poll(&feed, &poll).await.unwrap());
        let mut known = submission("https://h0.example/0");
        known.title = Some([self.steps as u8; 16]);
        known.guid = known.title;
        store.submit(&[known]).await.unwrap();
        store.start_task("poll", "source:1", DAY).await.unwrap();
        let run = store.start_run().await.unwrap();
        store.finish_run(run, "{}").await.unwrap();
        let key = format!("bulk:1:{}", self.steps);
        store.begin_idempotent(&key, b"body").await.unwrap();
        store.finish_idempotent(&key, "{}").await.unwrap();
        let entry = NewAuditEntry {
            who: "ci",
            role: Role::Operator,
            action: "Submit URLs",
            method: "POST",
            path: "/api/v1/frontier/submit/bulk",
            status: 200,
            request_id: "7",
        };
        store.add_audit_entry(&entry).await.unwrap();
        self.steps += 1;
    }

    async fn run(&mut self, steps: u64) {
        let maintenance = self.maintenance();
        for _ in 0..steps {
            self.advance(DAY * STEP as u32);
            self.work().await;
            maintenance.run_if_due().await.unwrap();
        }
    }

    /// Rows that the stats and the first pages of lists read.
    async fn rows_read(&mut self) -> i64 {
        if self.address.starts_with("sqlite:") {
            // Lists read the counters, and a page of a frontier of a fixed size.
            return self.rows("all_counts").await;
        }
        self.store = None;
        let before = self.rows_read_by_all().await;
        let store = self.reopen().await;
        store.stats().await.unwrap();
        for order in [Order::Id, Order::Newest] {
            for status in [None, Some(Status::Fetched), Some(Status::Failed)] {
                let filter = Filter {
                    status,
                    ..Filter::default()
                };
                store.list(&filter, order, None, 50).await.unwrap();
            }
        }
        drop(store);
        let after = self.rows_read_by_all().await;
        self.store = Some(self.reopen().await);
        after - before
    }

    /// Rows that all sessions have read; they report it when they end.
    async fn rows_read_by_all(&self) -> i64 {
        let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
        while self.number(others).await > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let read = "SELECT CAST(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) AS BIGINT) FROM pg_stat_user_tables
            WHERE relname IN ('urls', 'hosts', 'queue', 'counts', 'count_changes')";
        self.number(read).await
    }

    /// The rows of each table that are not older than it keeps them.
    fn expected(&self) -> BTreeMap<&'static str, i64> {
        let kept = |days: u64, per_step: u64| {
            let steps = self.steps.min(days / STEP + 1);
            i64::try_from(steps * per_step).unwrap()
        };
        BTreeMap::from([
            ("events", kept(90, HOSTS)),
            ("feed_fetch_log", kept(30, 1)),
            ("seen_titles", kept(14, 1)),
            ("seen_guids", kept(30, 1)),
            ("tasks", kept(0, 1)),
            // The response, and the marker of the task.
            ("idempotency", kept(1, 2)),
            ("audit", kept(365, 1)),
            ("runs", kept(90, 1)),
        ])
    }
}

fn submission(url: &str) -> Submission {
    let url = FetchUrl::parse(url).unwrap();
    let target = Target {
        key: url.canonical(&Rules::default()).key(),
        host: url.host_key(&ProxyHosts::default()),
        url,
    };
    Submission::new(target, Origin::Manual)
}

fn fetched() -> Outcome {
    Outcome::Fetched {
        etag: None,
        last_modified: None,
        content_hash: None,
        document: None,
        again_in: Some(DAY),
    }
}

async fn years_pass(mut soak: Soak) {
    soak.fill().await;
    soak.run(4).await;
    let at_first = soak.rows_read().await;
    soak.run(96).await;
    for (table, expected) in soak.expected() {
        assert_eq!(soak.rows(table).await, expected, "{table}");
    }
    // Nothing else has grown: URLs, hosts, shared values, counters.
    for (table, bound) in [
        ("urls", 10 * HOSTS),
        ("hosts", HOSTS),
        ("marks", 5),
        ("all_counts", 8),
    ] {
        assert!(soak.rows(table).await <= bound as i64, "{table}");
    }
    let at_last = soak.rows_read().await;
    assert!(
        at_last * 10 <= at_first * 12,
        "{at_first} rows were read at first, {at_last} at last"
    );
    let stats = soak.store().stats().await.unwrap();
    assert_eq!(stats.by_status.values().sum::<i64>(), 10 * HOSTS as i64);
    let report = soak.store().maintenance_report().await.unwrap().unwrap();
    assert_eq!(report.at, soak.store().now().await.unwrap());
    let kept = soak.expected();
    for (table, per_step) in [("events", HOSTS), ("seen_titles", 1), ("runs", 1)] {
        let removed = soak.steps * per_step - kept[table] as u64;
        assert_eq!(report.removed[table], removed, "{table}");
    }
}

#[tokio::test]
async fn years_pass_on_sqlite() {
    years_pass(Soak::sqlite().await).await;
}

#[tokio::test]
async fn years_pass_on_postgres() {
    years_pass(Soak::postgres().await).await;
}

async fn one_process_at_a_time(soak: Soak) {
    soak.fill().await;
    let is_done = async || soak.store().maintenance_report().await.unwrap().is_some();
    // A process that died while it held the lease.
    let now = soak.store().now().await.unwrap();
    let lease = SharedValue {
        value: String::new(),
        n: 1,
        at: now.plus(Duration::from_secs(30)),
    };
    let taken = soak
        .store()
        .replace_shared_value("maintenance", None, &lease);
    assert!(taken.await.unwrap());
    let maintenance = soak.maintenance();
    soak.advance(Duration::from_secs(29));
    let pause = maintenance.run_if_due().await.unwrap();
    assert_eq!(pause, Duration::from_secs(1), "until the lease expires");
    assert!(!is_done().await);
    soak.advance(pause);
    maintenance.run_if_due().await.unwrap();
    assert!(is_done().await);
    // The next pass is due for everybody at the same time.
    let pause = soak.maintenance().run_if_due().await.unwrap();
    assert_eq!(pause, Duration::from_secs(5));
}

#[tokio::test]
async fn one_process_at_a_time_on_sqlite() {
    one_process_at_a_time(Soak::sqlite().await).await;
}

#[tokio::test]
async fn one_process_at_a_time_on_postgres() {
    one_process_at_a_time(Soak::postgres().await).await;
}
