//! The contract: every operation on persistent state that the rest of Tidings
//! uses. This file has the operations of the frontier; other subjects have files
//! of their own.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidings_document::Sketch;
use tidings_url::ProxyHosts;
use tracing::debug;

use crate::complete::prepare_completion;
use crate::engine::{Engine, LeaseSql, QueryResult, QueueSql, Row, Statement, Value};
use crate::error::{Result, StoreError};
use crate::event_horizon::EventHorizon;
use crate::fairness::ClaimSequence;
use crate::frontier::{ClaimRequest, Claimed, Completion, LeaseToken, Submission, Verdict};
use crate::ids::{FrontierId, skip_ids};
use crate::moment::{Moment, millis};
use crate::near_duplicates::NearDuplicate;
use crate::options::{ConnectionCounts, StoreOptions};
use crate::postgres::{self, PostgresEngine};
use crate::sqlite::{self, SqliteEngine};
use crate::submission::{BATCH, Plan, Position};

/// Attempts of a call that met a deadlock or a lost connection.
const MAX_ATTEMPTS: u32 = 4;

/// A handle on the persistent state. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
    claims: Arc<AtomicU64>,
    event_horizon: Arc<Mutex<EventHorizon>>,
    /// Delay in milliseconds and concurrency of a new host.
    host_defaults: (i64, i64),
    pub(crate) proxy_hosts: Arc<ProxyHosts>,
}

impl Store {
    /// Opens `sqlite:FILE` or `postgres://…`, migrating its schema to this version.
    pub async fn open(address: &str, options: &StoreOptions) -> Result<Self> {
        let engine: Arc<dyn Engine> = match address.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => {
                Arc::new(SqliteEngine::open(Path::new(path), options)?)
            }
            Some(("postgres" | "postgresql", _)) => {
                Arc::new(PostgresEngine::open(address, options).await?)
            }
            _ => return Err(invalid_address(address)),
        };
        let mut store = Self {
            engine,
            claims: Arc::default(),
            event_horizon: Arc::default(),
            host_defaults: (millis(options.host_delay), i64::from(options.max_per_host)),
            proxy_hosts: Arc::new(options.proxy_hosts.clone()),
        };
        // Older schemas have no shared values.
        if options.migrate_to.is_none() {
            store.read_proxy_hosts().await?;
        }
        Ok(store)
    }

    /// The version of the schema at an address, if there is a store. Read-only,
    /// where opening would migrate it.
    pub async fn schema_version(address: &str) -> Result<Option<i64>> {
        match address.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => sqlite::schema_version(Path::new(path)),
            Some(("postgres" | "postgresql", _)) => postgres::schema_version(address).await,
            _ => Err(invalid_address(address)),
        }
    }

    /// Where the data is, without any password.
    pub fn location(&self) -> &str {
        self.engine.location()
    }

    /// The connections of this process, where there is a server.
    pub fn connections(&self) -> Option<ConnectionCounts> {
        self.engine.connections()
    }

    /// The delay between two requests to a host that specifies none.
    pub fn host_delay(&self) -> Duration {
        Duration::from_millis(self.host_defaults.0.unsigned_abs())
    }

    /// The current time by the clock that all users of this store share.
    pub async fn now(&self) -> Result<Moment> {
        self.engine.now().await
    }

    /// Whether the stored data is intact. Reads the whole file of an embedded store;
    /// a server checks its own pages.
    pub async fn check_integrity(&self) -> Result<()> {
        self.engine.check_integrity().await
    }

    /// Adds URLs to the frontier, and records the title and the guid of each in the
    /// same transaction. One verdict for each, in order; when this returns, they are
    /// durable. Idempotent. A URL whose title its source has listed before is known.
    pub async fn submit(&self, submissions: &[Submission]) -> Result<Vec<Verdict>> {
        let verdicts = self.submit_plan(&Plan::of(submissions)).await?;
        let known = |verdict: Option<Verdict>| verdict.unwrap_or(Verdict::Known);
        Ok(verdicts.into_iter().map(known).collect())
    }

    async fn submit_plan(&self, plan: &Plan) -> Result<Vec<Option<Verdict>>> {
        let mut verdicts = Vec::with_capacity(plan.batches.len());
        for batch in &plan.batches {
            verdicts.push(
                self.with_retry("submit", || self.engine.submit(batch))
                    .await?,
            );
        }
        let verdict = |position: &Position| match *position {
            Position::Row(batch, row) => verdicts[batch][row],
            Position::Repeated => Some(Verdict::Known),
            Position::TitleSeen => None,
        };
        Ok(plan.positions.iter().map(verdict).collect())
    }

    /// Leases URLs of hosts that may be fetched now: within the concurrency and
    /// the delay of each host.
    pub async fn claim(&self, request: &ClaimRequest) -> Result<Claimed> {
        let sequence = ClaimSequence(self.claims.fetch_add(1, Ordering::Relaxed));
        self.with_retry("claim", || self.engine.claim(request, sequence))
            .await
    }

    /// Ends claims: document, deliveries, frontier, host and events in one
    /// transaction. False where the lease was lost meanwhile; nothing is
    /// written for those. Idempotent: a repetition of what was stored is true.
    pub async fn complete(&self, completions: &[Completion]) -> Result<Vec<bool>> {
        let prepared: Vec<_> = completions.iter().map(prepare_completion).collect();
        let mut accepted = Vec::with_capacity(prepared.len());
        for batch in prepared.chunks(BATCH) {
            accepted.extend(
                self.with_retry("complete", || self.engine.complete(batch))
                    .await?,
            );
        }
        Ok(accepted)
    }

    /// Extends leases while the work continues; false where one was lost.
    pub async fn extend_leases(
        &self,
        lease_tokens: &[LeaseToken],
        lease: Duration,
    ) -> Result<Vec<bool>> {
        self.with_retry("extend_leases", || {
            self.engine.extend_leases(lease_tokens, millis(lease))
        })
        .await
    }

    /// Blames URLs for the crash of a process that was working on them: each lease
    /// that is still held counts `weight` more crashes.
    pub async fn blame_for_crash(&self, lease_tokens: &[LeaseToken], weight: u16) -> Result<()> {
        let leases = self.lease_sql().leases;
        let held = format!(
            "SELECT q.crashes FROM {leases} q JOIN urls u ON u.host_id = q.host_id AND u.url_id = q.url_id
             WHERE q.host_id = $1 AND q.url_id = $2 AND q.attempt = $3 AND q.owner IS NOT NULL AND u.discovered_at = $4"
        );
        // A repetition finds the count changed.
        let count = format!(
            "UPDATE {leases} SET crashes = $5 WHERE host_id = $1 AND url_id = $2 AND attempt = $3 AND owner IS NOT NULL AND crashes = $4"
        );
        let key = |lease_token: &LeaseToken| {
            [
                Value::Int(lease_token.id.host.0),
                Value::from(&lease_token.id.url.0[..]),
                Value::Int(i64::from(lease_token.attempt)),
            ]
        };
        let read = |lease_token: &LeaseToken| {
            let discovered_at = [Value::from(lease_token.discovered_at)];
            Statement::new(
                held.clone(),
                [&key(lease_token)[..], &discovered_at].concat(),
            )
        };
        let found = self.run(lease_tokens.iter().map(read).collect()).await?;
        let mut counted = Vec::new();
        for (lease_token, result) in lease_tokens.iter().zip(&found) {
            for row in &result.rows {
                let crashes = row.int(0)?;
                let raised = (crashes + i64::from(weight)).min(i64::from(i16::MAX));
                let values = [Value::Int(crashes), Value::Int(raised)];
                counted.push(Statement::new(
                    count.clone(),
                    [&key(lease_token)[..], &values].concat(),
                ));
            }
        }
        self.run(counted).await.map(drop)
    }

    /// Deletes URLs from the frontier; returns the number deleted. A worker that is
    /// fetching one of them finds its lease lost.
    pub async fn remove(&self, ids: &[FrontierId]) -> Result<u64> {
        let mut removed = 0;
        for batch in sorted_unique(ids).chunks(BATCH) {
            removed += self
                .with_retry("remove", || self.engine.remove(batch))
                .await?;
        }
        Ok(removed)
    }

    /// Makes URLs due now, whatever their status; returns the number requeued.
    /// Those that are being fetched are skipped.
    pub async fn requeue(&self, ids: &[FrontierId]) -> Result<u64> {
        let mut requeued = 0;
        for batch in sorted_unique(ids).chunks(BATCH) {
            requeued += self
                .with_retry("requeue", || self.engine.requeue(batch))
                .await?;
        }
        Ok(requeued)
    }

    /// The document most similar to a text, if one is a near-duplicate.
    pub async fn nearest(&self, sketch: &Sketch) -> Result<Option<NearDuplicate>> {
        self.with_retry("nearest", || self.engine.nearest(sketch))
            .await
    }

    /// For tests of programs that open a store with a newer schema.
    #[doc(hidden)]
    pub async fn pretend_schema_version(&self, version: i64) -> Result<()> {
        let sql = "INSERT INTO schema_version (version, applied_at) VALUES ($1, 0)";
        self.execute(Statement::new(sql, [Value::Int(version)]))
            .await
            .map(drop)
    }

    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    pub(crate) fn host_defaults(&self) -> (i64, i64) {
        self.host_defaults
    }

    pub(crate) fn change_horizon(&self) -> &'static str {
        self.engine.change_horizon()
    }

    pub(crate) fn continue_changes_sql(&self) -> Option<&'static str> {
        self.engine.continue_changes()
    }

    pub(crate) fn event_horizon(&self) -> MutexGuard<'_, EventHorizon> {
        // Replaced whole: a panic elsewhere leaves it usable.
        self.event_horizon
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait_for_completions_sql(&self) -> Option<&'static str> {
        self.engine.wait_for_completions()
    }

    pub(crate) fn diagnostics_sql(&self) -> &'static str {
        self.engine.diagnostics()
    }

    pub(crate) fn lease_sql(&self) -> &'static LeaseSql {
        self.engine.lease_sql()
    }

    pub(crate) fn queue_statements(&self) -> &'static QueueSql {
        self.engine.queue_statements()
    }

    /// Runs statements in one transaction.
    pub(crate) async fn run(&self, statements: Vec<Statement>) -> Result<Vec<QueryResult>> {
        self.with_retry("statement", || self.engine.run(statements.clone()))
            .await
    }

    pub(crate) async fn rows(&self, statement: Statement) -> Result<Vec<Row>> {
        Ok(self
            .run(vec![statement])
            .await?
            .pop()
            .unwrap_or_default()
            .rows)
    }

    pub(crate) async fn execute(&self, statement: Statement) -> Result<u64> {
        Ok(self
            .run(vec![statement])
            .await?
            .pop()
            .unwrap_or_default()
            .changed)
    }

    /// Runs statements with new ids in one transaction. The ids are drawn again when
    /// another process has drawn the same.
    pub(crate) async fn run_with_new_ids<T>(
        &self,
        draw: impl Fn() -> (T, Vec<Statement>),
    ) -> Result<(T, Vec<QueryResult>)> {
        let mut attempt = 1;
        loop {
            let (drawn, statements) = draw();
            match self.run(statements).await {
                Err(StoreError::IdTaken { .. }) if attempt < MAX_ATTEMPTS => {
                    skip_ids();
                    attempt += 1;
                }
                result => return Ok((drawn, result?)),
            }
        }
    }

    /// Retries deadlocks, serialisation failures and broken connections. Every
    /// engine call is one transaction, and one whose COMMIT lost only its response
    /// is not repeated, or can be: see [`Engine`].
    pub(crate) async fn with_retry<T, F: Future<Output = Result<T>>>(
        &self,
        operation: &str,
        mut call: impl FnMut() -> F,
    ) -> Result<T> {
        let mut attempt = 1;
        loop {
            match call().await {
                Err(error) if error.is_transient() && attempt < MAX_ATTEMPTS => {
                    debug!(%error, operation, attempt, "store call retried");
                    tokio::time::sleep(Duration::from_millis(20 << (2 * attempt))).await;
                    attempt += 1;
                }
                result => return result,
            }
        }
    }
}

fn invalid_address(address: &str) -> StoreError {
    StoreError::Address {
        address: address.to_owned(),
        why: "it must start with sqlite: or postgres://".to_owned(),
    }
}

/// Ids as the engines expect them: sorted, without duplicates.
fn sorted_unique(ids: &[FrontierId]) -> Vec<FrontierId> {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}
