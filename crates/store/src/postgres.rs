//! The shared engine: PostgreSQL, used by any number of machines. Few
//! connections, batches, plain statements; hosts are always locked first and in
//! order, so that submits, claims and completions can't deadlock.

mod claim;
mod documents;
mod near;
mod pool;
mod rows;
mod settle;
mod submit;

use std::time::Instant;

use async_trait::async_trait;
use jiff::Timestamp;
use tidings_document::Sketch;
use tokio_postgres::Config;

use crate::clock::{Leap, StoreClock};
use crate::engine::{Answer, Engine, Outlives, Statement};
use crate::error::{Result, StoreError};
use crate::frontier::{ClaimRequest, Claimed, LeaseToken, Verdict};
use crate::ids::FrontierId;
use crate::listing::Waiting;
use crate::migrate_store::QueueSql;
use crate::moment::Moment;
use crate::near::NearDuplicate;
use crate::schema::{MIGRATIONS, SCHEMA_VERSION, VERSION_TABLE};
use crate::settle::Settlement;
use crate::store::StoreOptions;
use crate::submission::Prepared;
use crate::turn::Turn;

use pool::{Connection, Pool};

/// Held while the schema changes: any number works, as long as it is ours.
const MIGRATION_LOCK: i64 = 0x7469_6469_6e67_7301;

#[derive(Debug)]
pub(crate) struct PostgresEngine {
    place: String,
    pool: Pool,
    clock: StoreClock,
    delay_ms: i32,
    max_in_flight: i16,
}

fn read_address(address: &str) -> Result<Config> {
    let wrong = |error: tokio_postgres::Error| StoreError::Address {
        address: without_password(address),
        why: error.to_string(),
    };
    address.parse().map_err(wrong)
}

/// The version of the schema, if there is a store; changes nothing.
pub(crate) async fn schema_version(address: &str) -> Result<Option<i64>> {
    let pool = Pool::new(read_address(address)?, without_password(address), 1);
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
        let config = read_address(address)?;
        let place = without_password(address);
        let engine = Self {
            pool: Pool::new(config, place.clone(), options.connections.max(1)),
            place,
            clock: StoreClock::new(options.clock.clone()),
            delay_ms: i32::try_from(options.host_delay.as_millis()).unwrap_or(i32::MAX),
            max_in_flight: i16::try_from(options.max_per_host.max(1)).unwrap_or(i16::MAX),
        };
        let version = options.migrate_to.unwrap_or(SCHEMA_VERSION);
        engine.migrate(version).await?;
        if version > 0 {
            engine.look_back().await?;
        }
        Ok(engine)
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
                place: self.place.clone(),
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
                connection.batch(sql).await?;
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
            connection.batch(step.postgres_down).await?;
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
            match self.look(&mut connection).await? {
                Ok(now) => return Ok((connection, now)),
                Err(leap) => {
                    connection.commit().await?;
                    self.follow(&mut connection, &leap).await?;
                }
            }
        }
    }

    async fn look(
        &self,
        connection: &mut Connection<'_>,
    ) -> Result<std::result::Result<i64, Leap>> {
        if let Some(now) = self.clock.manual() {
            return Ok(Ok(now));
        }
        let asked = Instant::now();
        let rows = connection.query("SELECT tidings_now()", &[]).await?;
        let time = rows.first().map_or(0, |row| row.get(0));
        Ok(self.clock.read(time, asked))
    }

    /// Carries along what is held, unless another process has done so or has
    /// lived through the time that this one slept.
    async fn follow(&self, connection: &mut Connection<'_>, leap: &Leap) -> Result<()> {
        connection.begin(DURABLE).await?;
        let claimed = rows::run(connection, &[leap.claim()]).await?;
        let is_first = claimed.iter().any(|answer| answer.changed > 0);
        if is_first && last_event(connection).await? <= Some(leap.from.0) {
            // Rows are locked in order elsewhere; here all at once.
            connection
                .batch("LOCK TABLE hosts, queue, feeds, deliveries IN EXCLUSIVE MODE")
                .await?;
            rows::run(connection, &leap.carry("queue")).await?;
        }
        connection.commit().await?;
        self.clock.land(leap);
        Ok(())
    }

    /// The time of the last event: whatever the server's clock says, it is later.
    async fn look_back(&self) -> Result<()> {
        let mut connection = self.pool.get().await?;
        let last = last_event(&mut connection).await?;
        if let (Ok(_), Some(last)) = (self.look(&mut connection).await?, last) {
            self.clock.has_been(last);
        }
        Ok(())
    }
}

/// When the last thing happened, if anything did.
async fn last_event(connection: &mut Connection<'_>) -> Result<Option<i64>> {
    // The table has no index that knows its end.
    let last = "SELECT max(at) FROM events WHERE event_id > (SELECT last_value - 1000 FROM events_event_id_seq)";
    let rows = connection.query(last, &[]).await?;
    Ok(rows.first().and_then(|row| row.get(0)))
}

/// Of what a crash of the server may forget: the end of a lease, for one, which
/// then ends by itself.
const PASSING: &str = "BEGIN; SET LOCAL synchronous_commit = off";
const DURABLE: &str = "BEGIN";

/// The address as it may be shown.
fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            let name = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}@{host}")
        }
        None => address.to_owned(),
    }
}

#[async_trait]
impl Engine for PostgresEngine {
    async fn now(&self) -> Result<Moment> {
        let mut connection = self.pool.get().await?;
        loop {
            match self.look(&mut connection).await? {
                Ok(now) => return Ok(Moment(now)),
                Err(leap) => match self.follow(&mut connection, &leap).await {
                    Ok(()) => {}
                    // It may only be read now; then time goes on as if nothing had happened.
                    Err(error) if error.is_transient() => return Ok(leap.from),
                    Err(error) => return Err(error),
                },
            }
        }
    }

    async fn submit(&self, batch: &[Prepared]) -> Result<Vec<Verdict>> {
        let (mut connection, now) = self.begin(DURABLE).await?;
        let verdicts = submit::submit(
            &mut connection,
            batch,
            self.delay_ms,
            self.max_in_flight,
            now,
        )
        .await?;
        connection.commit().await?;
        Ok(verdicts)
    }

    async fn claim(&self, request: &ClaimRequest, turn: Turn) -> Result<Claimed> {
        // Were it forgotten while its holder lives, two would ask at once.
        let (mut connection, now) = self.begin(DURABLE).await?;
        let claimed = claim::claim(&mut connection, request, turn, now).await?;
        connection.commit().await?;
        Ok(claimed)
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<bool>> {
        let how = if batch.iter().any(|settlement| settlement.document.is_some()) {
            DURABLE
        } else {
            PASSING
        };
        let (mut connection, now) = self.begin(how).await?;
        let accepted = settle::settle(
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

    async fn renew(&self, tickets: &[LeaseToken], lease_ms: i64) -> Result<Vec<bool>> {
        // Whoever extended a lease relies on it.
        let (mut connection, now) = self.begin(DURABLE).await?;
        let renewed = claim::renew(&mut connection, tickets, lease_ms, now).await?;
        connection.commit().await?;
        Ok(renewed)
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

    async fn nearest(&self, sketch: &Sketch) -> Result<Option<NearDuplicate>> {
        let mut connection = self.pool.get().await?;
        near::nearest(&mut connection, sketch).await
    }

    async fn maintain(&self, keep_events_since: Moment) -> Result<()> {
        let (mut connection, _) = self.begin(PASSING).await?;
        connection
            .execute(
                "WITH gone AS (DELETE FROM count_changes RETURNING source_id, origin, status, n)
                 INSERT INTO counts (source_id, origin, status, n)
                 SELECT source_id, origin, status, sum(n) FROM gone GROUP BY source_id, origin, status ORDER BY source_id, origin, status
                 ON CONFLICT (source_id, origin, status) DO UPDATE SET n = counts.n + excluded.n",
                &[],
            )
            .await?;
        connection
            .execute("DELETE FROM events WHERE at < $1", &[&keep_events_since.0])
            .await?;
        connection.commit().await
    }

    async fn run(&self, statements: Vec<Statement>) -> Result<Vec<Answer>> {
        let mut connection = self.pool.get().await?;
        if statements.len() == 1 {
            return rows::run(&mut connection, &statements).await;
        }
        let passes = |statement: &Statement| statement.outlives == Outlives::Process;
        let is_durable = !statements.iter().all(passes);
        connection
            .begin(if is_durable { DURABLE } else { PASSING })
            .await?;
        let answers = rows::run(&mut connection, &statements).await?;
        connection.commit().await?;
        Ok(answers)
    }

    fn last_event(&self) -> &'static str {
        // The table has no index that knows its end.
        "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM events_event_id_seq"
    }

    fn change_horizon(&self) -> &'static str {
        // Transactions that are still open may commit documents with their number.
        "pg_snapshot_xmin(pg_current_snapshot())::text::BIGINT"
    }

    fn waiting(&self) -> &'static Waiting {
        &Waiting {
            leases: "queue",
            due: "q.due_at",
        }
    }

    fn queue_statements(&self) -> &'static QueueSql {
        &QueueSql {
            select: "SELECT host_id, url_id, priority, due_at, owner, attempt, crashes FROM queue
                 WHERE (host_id, url_id) > ($1, $2) ORDER BY host_id, url_id LIMIT $3",
            insert: &[
                "INSERT INTO queue (host_id, url_id, priority, due_at, owner, attempt, crashes)
                 VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
            ],
        }
    }

    fn diagnostics(&self) -> &'static str {
        "SELECT pg_database_size(current_database()), (SELECT CAST(sum(numbackends) AS BIGINT) FROM pg_stat_database),
            CAST(current_setting('max_connections') AS BIGINT)"
    }

    fn place(&self) -> &str {
        &self.place
    }
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn a_password_is_never_shown() {
        let rows = [
            (
                "postgres://me:secret@db/tidings",
                "postgres://me@db/tidings",
            ),
            ("postgres://me@db/tidings", "postgres://me@db/tidings"),
            ("postgres://db/tidings", "postgres://db/tidings"),
        ];
        for (address, shown) in rows {
            assert_eq!(without_password(address), shown);
        }
    }
}
