//! The contract: everything that the rest of Tidings may ask of what lasts.
//! This file has the verbs of the frontier; the other subjects have files of
//! their own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use tidings_document::Sketch;
use tracing::debug;

use crate::engine::{Answer, Engine, Row, Statement, Value};
use crate::error::{Result, StoreError};
use crate::frontier::{ClaimRequest, Claimed, Completion, LeaseToken, Submission, Verdict};
use crate::ids::FrontierId;
use crate::moment::{Moment, millis};
use crate::near::NearDuplicate;
use crate::postgres::{self, PostgresEngine};
use crate::settle::settle;
use crate::sqlite::{self, SqliteEngine};
use crate::submission::{BATCH, Plan};
use crate::turn::Turn;

/// How often a call that met a deadlock or a lost connection is tried again.
const TRIES: u32 = 4;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The gap between two requests to a host that says nothing else.
    pub host_delay: Duration,
    /// Requests under way to one host, over all machines.
    pub max_per_host: u16,
    /// Connections to PostgreSQL of this process.
    pub connections: usize,
    pub(crate) clock: Clock,
    pub(crate) migrate_to: Option<i64>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            host_delay: Duration::from_secs(1),
            max_per_host: 1,
            connections: 6,
            clock: Clock::Database,
            migrate_to: None,
        }
    }
}

impl StoreOptions {
    /// Time stands still at `milliseconds` (since 1970) until a test moves it.
    pub fn with_manual_clock(self, milliseconds: Arc<AtomicI64>) -> Self {
        Self {
            clock: Clock::Manual(milliseconds),
            ..self
        }
    }

    /// Opens at another version of the schema: 0 takes everything away.
    pub fn at_schema_version(self, version: i64) -> Self {
        Self {
            migrate_to: Some(version),
            ..self
        }
    }
}

/// Where the time comes from.
#[derive(Debug, Clone)]
pub(crate) enum Clock {
    Database,
    Manual(Arc<AtomicI64>),
}

impl Clock {
    pub(crate) fn manual(&self) -> Option<i64> {
        match self {
            Self::Database => None,
            Self::Manual(time) => Some(time.load(Ordering::SeqCst)),
        }
    }
}

/// All that lasts. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
    claims: Arc<AtomicU64>,
    /// Delay in milliseconds and requests at once of a host that is new.
    host_defaults: (i64, i64),
}

impl Store {
    /// Opens `sqlite:FILE` or `postgres://…`, bringing its schema up to date.
    pub async fn open(address: &str, options: &StoreOptions) -> Result<Self> {
        let engine: Arc<dyn Engine> = match address.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => {
                Arc::new(SqliteEngine::open(Path::new(path), options)?)
            }
            Some(("postgres" | "postgresql", _)) => {
                Arc::new(PostgresEngine::open(address, options).await?)
            }
            _ => return Err(no_address(address)),
        };
        Ok(Self {
            engine,
            claims: Arc::default(),
            host_defaults: (millis(options.host_delay), i64::from(options.max_per_host)),
        })
    }

    /// The version of the schema at an address, if there is a store. Changes
    /// nothing, where opening would bring it up to date.
    pub async fn schema_version(address: &str) -> Result<Option<i64>> {
        match address.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => sqlite::schema_version(Path::new(path)),
            Some(("postgres" | "postgresql", _)) => postgres::schema_version(address).await,
            _ => Err(no_address(address)),
        }
    }

    /// Where the data is, without any password.
    pub fn place(&self) -> &str {
        self.engine.place()
    }

    /// The gap between two requests to a host that says nothing else.
    pub fn host_delay(&self) -> Duration {
        Duration::from_millis(self.host_defaults.0.unsigned_abs())
    }

    /// The time that all users of this store share.
    pub async fn now(&self) -> Result<Moment> {
        self.engine.now().await
    }

    /// Puts URLs into the frontier. One verdict for each, in order; when this
    /// returns, they are durable. Submitting again is harmless.
    pub async fn submit(&self, submissions: &[Submission]) -> Result<Vec<Verdict>> {
        let plan = Plan::of(submissions);
        let mut verdicts = Vec::with_capacity(plan.batches.len());
        for batch in &plan.batches {
            verdicts.push(self.retried("submit", || self.engine.submit(batch)).await?);
        }
        let verdict = |(batch, row, repeated): &(usize, usize, bool)| match repeated {
            true => Verdict::Known,
            false => verdicts[*batch][*row],
        };
        Ok(plan.places.iter().map(verdict).collect())
    }

    /// Leases URLs of hosts that may be fetched now: never more than a host
    /// allows at once, never sooner than its delay.
    pub async fn claim(&self, request: &ClaimRequest) -> Result<Claimed> {
        let turn = Turn(self.claims.fetch_add(1, Ordering::Relaxed));
        self.retried("claim", || self.engine.claim(request, turn))
            .await
    }

    /// Ends claims: document, deliveries, frontier, host and events in one
    /// transaction. False where the lease was lost meanwhile; nothing is
    /// written for those.
    pub async fn complete(&self, completions: &[Completion]) -> Result<Vec<bool>> {
        let settlements: Vec<_> = completions.iter().map(settle).collect();
        let mut accepted = Vec::with_capacity(settlements.len());
        for batch in settlements.chunks(BATCH) {
            accepted.extend(
                self.retried("complete", || self.engine.settle(batch))
                    .await?,
            );
        }
        Ok(accepted)
    }

    /// Extends leases while the work goes on; false where one was lost.
    pub async fn extend_leases(
        &self,
        tickets: &[LeaseToken],
        lease: Duration,
    ) -> Result<Vec<bool>> {
        self.retried("heartbeat", || self.engine.renew(tickets, millis(lease)))
            .await
    }

    /// Holds the end of a process against what it was doing: each lease that is
    /// still held counts as if it had ended so many times more without a word.
    pub async fn blame_for_crash(&self, tickets: &[LeaseToken], weight: u16) -> Result<()> {
        let sql = format!(
            "UPDATE {} SET crashes = crashes + $1 WHERE host_id = $2 AND url_id = $3 AND attempt = $4 AND owner IS NOT NULL",
            self.waiting().leases
        );
        let accused = |ticket: &LeaseToken| {
            let values = [
                Value::Int(i64::from(weight)),
                Value::Int(ticket.id.host.0),
                Value::from(&ticket.id.url.0[..]),
                Value::Int(i64::from(ticket.attempt)),
            ];
            Statement::new(sql.clone(), values)
        };
        self.run(tickets.iter().map(accused).collect())
            .await
            .map(drop)
    }

    /// Takes URLs out of the frontier; says how many there were. A worker that
    /// is fetching one of them finds its lease lost.
    pub async fn remove(&self, ids: &[FrontierId]) -> Result<u64> {
        let mut removed = 0;
        for batch in in_order(ids).chunks(BATCH) {
            removed += self.retried("remove", || self.engine.remove(batch)).await?;
        }
        Ok(removed)
    }

    /// Makes URLs due now, whatever became of them; says how many. Those that
    /// are being fetched are left alone.
    pub async fn requeue(&self, ids: &[FrontierId]) -> Result<u64> {
        let mut requeued = 0;
        for batch in in_order(ids).chunks(BATCH) {
            requeued += self
                .retried("requeue", || self.engine.requeue(batch))
                .await?;
        }
        Ok(requeued)
    }

    /// The document most like a text, if one is alike.
    pub async fn nearest(&self, sketch: &Sketch) -> Result<Option<NearDuplicate>> {
        self.retried("nearest", || self.engine.nearest(sketch))
            .await
    }

    /// What should be done now and then: sums up counters, forgets old events.
    pub async fn maintain(&self, keep_events: Duration) -> Result<()> {
        let now = self.now().await?;
        let since = Moment(now.0.saturating_sub(millis(keep_events)));
        self.retried("maintain", || self.engine.maintain(since))
            .await?;
        self.prune_audit_log(now).await
    }

    /// For tests of programs that meet a store from the future.
    #[doc(hidden)]
    pub async fn pretend_schema_version(&self, version: i64) -> Result<()> {
        let sql = "INSERT INTO schema_version (version, applied_at) VALUES ($1, 0)";
        self.execute(Statement::new(sql, [Value::Int(version)]))
            .await
            .map(drop)
    }

    pub(crate) fn host_defaults(&self) -> (i64, i64) {
        self.host_defaults
    }

    pub(crate) fn change_horizon(&self) -> &'static str {
        self.engine.change_horizon()
    }

    pub(crate) fn last_event_sql(&self) -> &'static str {
        self.engine.last_event()
    }

    pub(crate) fn vitals_sql(&self) -> &'static str {
        self.engine.diagnostics()
    }

    pub(crate) fn waiting(&self) -> &'static crate::listing::Waiting {
        self.engine.waiting()
    }

    pub(crate) fn queue_statements(&self) -> &'static crate::migrate_store::QueueSql {
        self.engine.queue_statements()
    }

    /// Runs statements in one transaction.
    pub(crate) async fn run(&self, statements: Vec<Statement>) -> Result<Vec<Answer>> {
        self.retried("statement", || self.engine.run(statements.clone()))
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

    /// Deadlocks, serialisation failures and broken connections are ours to
    /// try again; every engine call is one transaction, so that is safe.
    async fn retried<T, F: Future<Output = Result<T>>>(
        &self,
        what: &str,
        mut call: impl FnMut() -> F,
    ) -> Result<T> {
        let mut tries = 1;
        loop {
            match call().await {
                Err(error) if error.is_transient() && tries < TRIES => {
                    debug!(%error, what, tries, "trying again");
                    tokio::time::sleep(Duration::from_millis(20 << (2 * tries))).await;
                    tries += 1;
                }
                result => return result,
            }
        }
    }
}

fn no_address(address: &str) -> StoreError {
    StoreError::Address {
        address: address.to_owned(),
        why: "it starts neither with sqlite: nor with postgres://".to_owned(),
    }
}

/// Ids as the engines want them: sorted, none twice.
fn in_order(ids: &[FrontierId]) -> Vec<FrontierId> {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}
