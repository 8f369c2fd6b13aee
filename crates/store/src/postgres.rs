//! The shared engine: PostgreSQL, used by any number of machines. Few connections,
//! batches, plain statements. Everybody locks in one order, so that submits, claims and
//! completions can't deadlock: titles, hosts, rows of their URLs, texts, documents.

mod address;
mod claim;
mod complete;
mod deliveries;
mod documents;
mod near_duplicates;
mod pool;
mod rows;
mod submit;
mod tls;

use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use tidings_document::Sketch;

use crate::clock::{ClockJump, StoreClock};
use crate::complete::PreparedCompletion;
use crate::delivery::{Delivery, DeliveryVerdict, RetriedDeadLetters};
use crate::engine::{Durability, Engine, LeaseSql, QueryResult, QueueSql, Statement, Value};
use crate::error::{Result, StoreError};
use crate::fairness::ClaimSequence;
use crate::frontier::{ClaimRequest, Claimed, LeaseToken, Verdict};
use crate::ids::FrontierId;
use crate::moment::Moment;
use crate::near_duplicates::NearDuplicate;
use crate::options::{ConnectionCounts, StoreOptions};
use crate::schema::{MIGRATIONS, SCHEMA_VERSION, VERSION_TABLE};
use crate::submission::Prepared;

use address::Address;
use pool::{Connection, Pool, Sessions};

/// The advisory lock of schema migrations: an arbitrary number, unique to Tidings.
const MIGRATION_LOCK: i64 = 0x7469_6469_6e67_7301;

/// Change ids are those of transactions, and go on where another server ended: every
/// later transaction has an id of at least xmax. The offset never falls.
const CONTINUE_CHANGES: &str = "INSERT INTO marks (name, value, n, at)
    SELECT 'change_offset', '', max(change_id) + 1 - pg_snapshot_xmax(pg_current_snapshot())::text::BIGINT, 0 FROM documents
    HAVING max(change_id) >= pg_snapshot_xmax(pg_current_snapshot())::text::BIGINT
    ON CONFLICT (name) DO UPDATE SET n = greatest(marks.n, excluded.n)";

#[derive(Debug)]
pub(crate) struct PostgresEngine {
    pool: Pool,
    clock: StoreClock,
    delay_ms: i32,
    max_in_flight: i16,
}

/// The version of the schema, if there is a store; read-only.
pub(crate) async fn schema_version(address: &str) -> Result<Option<i64>> {
    // There may be a pooler, and two statements need nothing of their session.
    let pool = Pool::new(Address::parse(address)?, 1, Sessions::Pooled)?;
    let mut connection = pool.get().await?;
    let known = "SELECT CAST(to_regclass('schema_version') AS TEXT)";
    let rows = connection.query(known, &[]).await?;
    let is_known = rows.first().and_then(|row| row.get::<_, Option<String>>(0));
    if is_known.is_none() {
        return Ok(None);
    }
    let rows = connection
        .query("SELECT max(version) FROM schema_version", &[])
        .await?;
    Ok(rows.first().and_then(|row| row.get(0)))
}

impl PostgresEngine {
    pub(crate) async fn open(address: &str, options: &StoreOptions) -> Result<Self> {
        let sessions = match options.pooler {
            true => Sessions::Pooled,
            false => Sessions::Own,
        };
        let address = Address::parse(address)?;
        let engine = Self {
            pool: Pool::new(address, options.connections, sessions)?,
            clock: StoreClock::new(options.clock.clone()),
            delay_ms: i32::try_from(options.host_delay.as_millis()).unwrap_or(i32::MAX),
            max_in_flight: i16::try_from(options.max_per_host.max(1)).unwrap_or(i16::MAX),
        };
        let version = options.migrate_to.unwrap_or(SCHEMA_VERSION);
        engine.migrate(version).await?;
        if version > 0 {
            engine.advance_past_last_event().await?;
        }
        if version == SCHEMA_VERSION {
            engine.advance_past_last_change().await?;
        }
        Ok(engine)
    }

    /// A store that was restored on another server has changes that are ahead of
    /// its transactions.
    async fn advance_past_last_change(&self) -> Result<()> {
        let mut connection = self.pool.get().await?;
        connection.execute(CONTINUE_CHANGES, &[]).await.map(drop)
    }

    async fn migrate(&self, target: i64) -> Result<()> {
        let mut connection = self.pool.get().await?;
        connection.begin("BEGIN").await?;
        connection
            .query("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK])
            .await?;
        connection.batch(VERSION_TABLE).await?;
        let row = connection
            .query("SELECT coalesce(max(version), 0) FROM schema_version", &[])
            .await?;
        let found: i64 = row.first().map_or(0, |row| row.get(0));
        if found > SCHEMA_VERSION {
            return Err(StoreError::TooNew {
                location: self.pool.location().to_owned(),
                found,
                known: SCHEMA_VERSION,
            });
        }
        let now = Timestamp::now().as_millisecond();
        for step in MIGRATIONS
            .iter()
            .filter(|step| step.version > found && step.version <= target)
        {
            for sql in step.postgres_up {
                connection.migrate(sql).await?;
            }
            connection
                .execute(
                    "INSERT INTO schema_version VALUES ($1, $2)",
                    &[&step.version, &now],
                )
                .await?;
        }
        for step in MIGRATIONS
            .iter()
            .rev()
            .filter(|step| step.version <= found && step.version > target)
        {
            connection.migrate(step.postgres_down).await?;
            connection
                .execute(
                    "DELETE FROM schema_version WHERE version = $1",
                    &[&step.version],
                )
                .await?;
        }
        connection.commit().await
    }

    /// Starts a transaction and reads the clock that all machines share.
    async fn begin(&self, how: &str) -> Result<(Connection<'_>, i64)> {
        let mut connection = self.pool.get().await?;
        loop {
            connection.begin(how).await?;
            match self.read_clock(&mut connection).await? {
                Ok(now) => return Ok((connection, now)),
                Err(jump) => {
                    connection.commit().await?;
                    self.apply_jump(&mut connection, &jump).await?;
                }
            }
        }
    }

    /// Commits, and looks for the proof when the response is lost: a repetition
    /// would find its own rows.
    async fn commit(&self, mut connection: Connection<'_>, proof: Option<Proof>) -> Result<()> {
        let Err(error) = connection.commit().await else {
            return Ok(());
        };
        drop(connection);
        let Some(proof) = proof.filter(|_| error.is_transient()) else {
            return Err(error);
        };
        for attempt in 1..=MAX_PROOF_ATTEMPTS {
            match self.find(&proof).await {
                Ok(true) => return Ok(()),
                Ok(false) => break,
                Err(_) => tokio::time::sleep(Duration::from_millis(20 << (2 * attempt))).await,
            }
        }
        Err(error)
    }

    /// Whether the row is there, once the transaction that may write it has ended:
    /// it holds the lock of the host until then.
    async fn find(&self, proof: &Proof) -> Result<bool> {
        let mut connection = self.pool.get().await?;
        connection.begin(VOLATILE).await?;
        connection
            .query(rows::LOCK_HOSTS, &[&vec![proof.host]])
            .await?;
        let found = rows::run(&mut connection, std::slice::from_ref(&proof.row)).await?;
        connection.commit().await?;
        Ok(found.iter().any(|result| !result.rows.is_empty()))
    }

    async fn read_clock(
        &self,
        connection: &mut Connection<'_>,
    ) -> Result<std::result::Result<i64, ClockJump>> {
        if let Some(now) = self.clock.manual() {
            return Ok(Ok(now));
        }
        let requested = Instant::now();
        let rows = connection.query("SELECT tidings_now()", &[]).await?;
        let time = rows.first().map_or(0, |row| row.get(0));
        Ok(self.clock.read(time, requested))
    }

    /// Shifts leases and deadlines by a clock jump, unless another process has done
    /// so, or kept running while this one was suspended.
    async fn apply_jump(&self, connection: &mut Connection<'_>, jump: &ClockJump) -> Result<()> {
        connection.begin(DURABLE).await?;
        let claimed = rows::run(connection, &[jump.claim()]).await?;
        let is_first = claimed.iter().any(|result| result.changed > 0);
        if is_first && last_event(connection).await? <= Some(jump.from.0) {
            // Elsewhere rows are locked in order; here whole tables.
            connection
                .batch("LOCK TABLE hosts, queue, feeds, deliveries IN EXCLUSIVE MODE")
                .await?;
            rows::run(connection, &jump.shift_deadlines("queue")).await?;
        }
        connection.commit().await?;
        self.clock.apply(jump);
        Ok(())
    }

    /// Keeps the clock from reading earlier than the last event, whatever the
    /// server's clock reads.
    async fn advance_past_last_event(&self) -> Result<()> {
        let mut connection = self.pool.get().await?;
        let last = last_event(&mut connection).await?;
        if let (Ok(_), Some(last)) = (self.read_clock(&mut connection).await?, last) {
            self.clock.advance_to(last);
        }
        Ok(())
    }
}

/// Attempts to find out whether a transaction was committed.
const MAX_PROOF_ATTEMPTS: u32 = 4;

/// A row that only one transaction can have written, of a host that it has locked.
struct Proof {
    host: i64,
    row: Statement,
}

/// The proof of a submit: a new URL.
fn submit_proof(batch: &[Prepared], verdicts: &[Option<Verdict>], now: i64) -> Option<Proof> {
    let is_new = |verdict: &Option<Verdict>| *verdict == Some(Verdict::New);
    let id = batch[verdicts.iter().position(is_new)?].id;
    let sql = "SELECT 1 FROM urls WHERE host_id = $1 AND url_id = $2 AND discovered_at = $3";
    let values = [
        Value::Int(id.host.0),
        Value::from(&id.url.0[..]),
        Value::Int(now),
    ];
    Some(Proof {
        host: id.host.0,
        row: Statement::new(sql, values),
    })
}

/// The proof of a claim: a lease.
fn claim_proof(claimed: &Claimed, owner: i64) -> Option<Proof> {
    let token = claimed.claims.first()?.lease_token;
    let sql =
        "SELECT 1 FROM queue WHERE host_id = $1 AND url_id = $2 AND attempt = $3 AND owner = $4";
    let values = [
        Value::Int(token.id.host.0),
        Value::from(&token.id.url.0[..]),
        Value::Int(i64::from(token.attempt)),
        Value::Int(owner),
    ];
    Some(Proof {
        host: token.id.host.0,
        row: Statement::new(sql, values),
    })
}

/// The time of the last event, if there is one.
async fn last_event(connection: &mut Connection<'_>) -> Result<Option<i64>> {
    // No index of the table leads to its end.
    let last = "SELECT max(at) FROM events WHERE event_id > (SELECT last_value - 1000 FROM events_event_id_seq)";
    let rows = connection.query(last, &[]).await?;
    Ok(rows.first().and_then(|row| row.get(0)))
}

/// For changes that a crash of the server may lose: the end of a lease, for one,
/// which then expires.
const VOLATILE: &str = "BEGIN; SET LOCAL synchronous_commit = off";
const DURABLE: &str = "BEGIN";

#[async_trait]
impl Engine for PostgresEngine {
    async fn now(&self) -> Result<Moment> {
        let mut connection = self.pool.get().await?;
        loop {
            match self.read_clock(&mut connection).await? {
                Ok(now) => return Ok(Moment(now)),
                Err(jump) => match self.apply_jump(&mut connection, &jump).await {
                    Ok(()) => {}
                    // The server may be read-only: the clock continues without the jump.
                    Err(error) if error.is_transient() => return Ok(jump.from),
                    Err(error) => return Err(error),
                },
            }
        }
    }

    async fn submit(&self, batch: &[Prepared]) -> Result<Vec<Option<Verdict>>> {
        let (mut connection, now) = self.begin(DURABLE).await?;
        let verdicts = submit::submit(
            &mut connection,
            batch,
            self.delay_ms,
            self.max_in_flight,
            now,
        )
        .await?;
        let proof = submit_proof(batch, &verdicts, now);
        self.commit(connection, proof).await?;
        Ok(verdicts)
    }

    async fn claim(&self, request: &ClaimRequest, sequence: ClaimSequence) -> Result<Claimed> {
        // If it were lost while its holder is alive, two workers would fetch from
        // the host concurrently.
        let (mut connection, now) = self.begin(DURABLE).await?;
        let claimed = claim::claim(&mut connection, request, sequence, now).await?;
        let proof = claim_proof(&claimed, request.owner);
        self.commit(connection, proof).await?;
        Ok(claimed)
    }

    async fn complete(&self, batch: &[PreparedCompletion]) -> Result<Vec<bool>> {
        let how = if batch.iter().any(|completion| completion.document.is_some()) {
            DURABLE
        } else {
            VOLATILE
        };
        let (mut connection, now) = self.begin(how).await?;
        let accepted = complete::complete(
            &mut connection,
            batch,
            self.delay_ms,
            self.max_in_flight,
            now,
        )
        .await?;
        connection.commit().await?;
        Ok(accepted)
    }

    async fn extend_leases(&self, lease_tokens: &[LeaseToken], lease_ms: i64) -> Result<Vec<bool>> {
        // The holder relies on an extended lease.
        let (mut connection, now) = self.begin(DURABLE).await?;
        let extended = claim::extend_leases(&mut connection, lease_tokens, lease_ms, now).await?;
        connection.commit().await?;
        Ok(extended)
    }

    async fn remove(&self, ids: &[FrontierId]) -> Result<u64> {
        let (mut connection, now) = self.begin(DURABLE).await?;
        let removed = submit::remove(&mut connection, ids, now).await?;
        connection.commit().await?;
        Ok(removed)
    }

    async fn requeue(&self, ids: &[FrontierId]) -> Result<u64> {
        let (mut connection, now) = self.begin(DURABLE).await?;
        let requeued = submit::requeue(&mut connection, ids, now).await?;
        connection.commit().await?;
        Ok(requeued)
    }

    async fn claim_deliveries(
        &self,
        sink: &str,
        limit: u32,
        max_bytes: u64,
        lease_ms: i64,
    ) -> Result<Vec<Delivery>> {
        // If it is lost, documents are delivered twice, which changes nothing.
        let (mut connection, now) = self.begin(VOLATILE).await?;
        let claimed =
            deliveries::claim(&mut connection, sink, limit, max_bytes, lease_ms, now).await?;
        connection.commit().await?;
        Ok(claimed)
    }

    async fn complete_deliveries(
        &self,
        sink: &str,
        verdicts: &[(Delivery, DeliveryVerdict)],
    ) -> Result<()> {
        let (mut connection, now) = self.begin(DURABLE).await?;
        deliveries::complete(&mut connection, sink, verdicts, now).await?;
        connection.commit().await
    }

    async fn retry_dead_letters(&self, sink: &str) -> Result<RetriedDeadLetters> {
        let (mut connection, now) = self.begin(DURABLE).await?;
        let retried = deliveries::retry_dead_letters(&mut connection, sink, now).await?;
        connection.commit().await?;
        Ok(retried)
    }

    async fn nearest(&self, sketch: &Sketch) -> Result<Option<NearDuplicate>> {
        let mut connection = self.pool.get().await?;
        near_duplicates::nearest(&mut connection, sketch).await
    }

    async fn run(&self, statements: Vec<Statement>) -> Result<Vec<QueryResult>> {
        let mut connection = self.pool.get().await?;
        if statements.len() == 1 {
            return rows::run(&mut connection, &statements).await;
        }
        let is_volatile = |statement: &Statement| statement.durability == Durability::Process;
        let is_durable = !statements.iter().all(is_volatile);
        connection
            .begin(if is_durable { DURABLE } else { VOLATILE })
            .await?;
        let results = rows::run(&mut connection, &statements).await?;
        connection.commit().await?;
        Ok(results)
    }

    fn last_event(&self) -> &'static str {
        // No index of the table leads to its end.
        "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM events_event_id_seq"
    }

    fn change_horizon(&self) -> &'static str {
        // Open transactions may still commit documents with their id.
        "pg_snapshot_xmin(pg_current_snapshot())::text::BIGINT"
    }

    fn skip_locked(&self) -> &'static str {
        "FOR UPDATE SKIP LOCKED"
    }

    fn open_transactions(&self) -> &'static str {
        "pg_snapshot_xmin(pg_current_snapshot())::text::BIGINT, pg_snapshot_xmax(pg_current_snapshot())::text::BIGINT"
    }

    fn continue_changes(&self) -> Option<&'static str> {
        Some(CONTINUE_CHANGES)
    }

    fn wait_for_completions(&self) -> Option<&'static str> {
        // Conflicts with the lock of every writer, and is released at once.
        Some("LOCK TABLE documents IN SHARE MODE")
    }

    fn lease_sql(&self) -> &'static LeaseSql {
        &LeaseSql {
            leases: "queue",
            due: "q.due_at",
        }
    }

    fn queue_statements(&self) -> &'static QueueSql {
        &QueueSql {
            // A leased row has its priority negated.
            select: "SELECT host_id, url_id, abs(priority), due_at, owner, attempt, crashes FROM queue
                 WHERE (host_id, url_id) > ($1, $2) ORDER BY host_id, url_id LIMIT $3",
            insert: &[
                "INSERT INTO queue (host_id, url_id, priority, due_at, owner, attempt, crashes)
                 VALUES ($1, $2, CAST($3 AS SMALLINT) * CASE WHEN $5::BIGINT IS NULL THEN 1 ELSE -1 END, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
            ],
        }
    }

    fn fold_counts(&self) -> Option<&'static str> {
        // Changes are only ever inserted and deleted, and readers sum up both tables in
        // one snapshot. Counters are locked in one order.
        Some(
            "WITH gone AS (
                DELETE FROM count_changes WHERE ctid = ANY (ARRAY(SELECT ctid FROM count_changes LIMIT $1 FOR UPDATE SKIP LOCKED))
                RETURNING source_id, origin, status, n),
             folded AS (
                INSERT INTO counts (source_id, origin, status, n)
                SELECT source_id, origin, status, sum(n) FROM gone GROUP BY source_id, origin, status ORDER BY source_id, origin, status
                ON CONFLICT (source_id, origin, status) DO UPDATE SET n = counts.n + excluded.n)
             SELECT count(*) FROM gone",
        )
    }

    fn diagnostics(&self) -> &'static str {
        "SELECT pg_database_size(current_database()), (SELECT CAST(sum(numbackends) AS BIGINT) FROM pg_stat_database),
            CAST(current_setting('max_connections') AS BIGINT)"
    }

    fn location(&self) -> &str {
        self.pool.location()
    }

    fn connections(&self) -> Option<ConnectionCounts> {
        Some(self.pool.counts())
    }
}
