//! The embedded engine: one SQLite file in WAL mode, one writer thread with group
//! commit, and separate reader connections. Several processes may share the file;
//! SQLite's lock serialises their writers.

mod checkpoint;
mod claim;
mod complete;
mod deliveries;
mod near_duplicates;
mod read;
mod rows;
mod submit;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tidings_document::Sketch;

use crate::clock::{ClockJump, StoreClock};
use crate::complete::PreparedCompletion;
use crate::delivery::{Delivery, DeliveryVerdict, RetriedDeadLetters};
use crate::engine::{Durability, Engine, LeaseSql, QueryResult, QueueSql, Statement};
use crate::error::{Result, StoreError};
use crate::fairness::ClaimSequence;
use crate::frontier::{ClaimRequest, Claimed, LeaseToken, Verdict};
use crate::ids::FrontierId;
use crate::moment::Moment;
use crate::near_duplicates::NearDuplicate;
use crate::options::StoreOptions;
use crate::schema::{MIGRATIONS, SCHEMA_VERSION, VERSION_TABLE};
use crate::submission::Prepared;

use read::Readers;
use writer::{SyncLevel, Writer};

/// Page cache per connection. The operating system caches the file anyway.
const WRITER_CACHE_MIB: u32 = 64;
const READER_CACHE_MIB: u32 = 8;

/// How long a writer waits for another process.
const BUSY_TIMEOUT_MS: u64 = 10_000;

#[derive(Debug)]
pub(crate) struct SqliteEngine {
    location: Arc<str>,
    clock: Arc<StoreClock>,
    defaults: HostDefaults,
    writer: Writer,
    readers: Readers,
}

/// The limits of a new host row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostDefaults {
    pub(crate) delay_ms: i64,
    pub(crate) max_in_flight: i64,
}

impl SqliteEngine {
    pub(crate) fn open(path: &Path, options: &StoreOptions) -> Result<Self> {
        let location: Arc<str> = format!("sqlite:{}", path.display()).into();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| StoreError::Failed {
                location: location.to_string(),
                why: format!("cannot create the directory {}: {error}", folder.display()),
            })?;
        }
        let clock = Arc::new(StoreClock::new(options.clock.clone()));
        let mut connection =
            connect(path, WRITER_CACHE_MIB).map_err(|error| translate(&location, &error))?;
        migrate(
            &connection,
            &location,
            options.migrate_to.unwrap_or(SCHEMA_VERSION),
            now(&clock),
        )?;
        checkpoint::start(&mut connection, path, &location, checkpoint::LOG_PAGES)
            .map_err(|error| translate(&location, &error))?;
        if let Some(moment) = last_event(&connection) {
            clock.advance_to(moment);
        }
        Ok(Self {
            writer: Writer::start(connection, Arc::clone(&location), Arc::clone(&clock)),
            readers: Readers::new(PathBuf::from(path), Arc::clone(&location)),
            location,
            clock,
            defaults: HostDefaults {
                delay_ms: crate::moment::millis(options.host_delay),
                max_in_flight: i64::from(options.max_per_host),
            },
        })
    }
}

/// The version of the schema, if there is a store; read-only.
pub(crate) fn schema_version(path: &Path) -> Result<Option<i64>> {
    if !path.exists() {
        return Ok(None);
    }
    let read = || -> rusqlite::Result<Option<i64>> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(std::time::Duration::from_millis(BUSY_TIMEOUT_MS))?;
        let known = "SELECT count(*) FROM sqlite_master WHERE name = 'schema_version'";
        if connection.query_row(known, [], |row| row.get::<_, i64>(0))? == 0 {
            return Ok(None);
        }
        connection.query_row("SELECT max(version) FROM schema_version", [], |row| {
            row.get(0)
        })
    };
    read().map_err(|error| translate(&format!("sqlite:{}", path.display()), &error))
}

fn connect(path: &Path, cache_mib: u32) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_millis(BUSY_TIMEOUT_MS))?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = NORMAL;
         PRAGMA temp_store = MEMORY;
         PRAGMA wal_autocheckpoint = 16384;",
    )?;
    connection.pragma_update(None, "cache_size", -1024 * i64::from(cache_mib))?;
    // Without it every new value for a column of a partial index makes SQLite
    // plan the statement again: a fifth of all time.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(connection)
}

fn read_clock(clock: &StoreClock) -> std::result::Result<i64, ClockJump> {
    match clock.manual() {
        Some(now) => Ok(now),
        None => {
            let requested = Instant::now();
            clock.read(Timestamp::now().as_millisecond(), requested)
        }
    }
}

/// The time, without a clock jump that was not applied yet.
fn now(clock: &StoreClock) -> i64 {
    read_clock(clock).unwrap_or_else(|jump| jump.from.0)
}

/// Shifts leases and deadlines by a clock jump, unless another process has done so.
fn shift_deadlines(connection: &Connection, jump: &ClockJump) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let shift = || -> rusqlite::Result<()> {
        let claimed = rows::run(connection, &[jump.claim()])?;
        if claimed.iter().any(|result| result.changed > 0) {
            rows::run(connection, &jump.shift_deadlines("leases"))?;
        }
        connection.execute_batch("COMMIT")
    };
    let done = shift();
    if done.is_err() && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    done
}

/// The time of the last event; none in a store without tables.
fn last_event(connection: &Connection) -> Option<i64> {
    let last = "SELECT at FROM events ORDER BY event_id DESC LIMIT 1";
    connection.query_row(last, [], |row| row.get(0)).ok()
}

/// Migrates the schema to `target`. The version is read inside the transaction that
/// changes it, so two starting processes can't both apply a step.
fn migrate(connection: &Connection, location: &str, target: i64, now: i64) -> Result<()> {
    let run = || -> rusqlite::Result<Result<()>> {
        connection.execute_batch("BEGIN EXCLUSIVE")?;
        connection.execute_batch(VERSION_TABLE)?;
        let found: i64 = connection.query_row(
            "SELECT coalesce(max(version), 0) FROM schema_version",
            [],
            |row| row.get(0),
        )?;
        if found > SCHEMA_VERSION {
            connection.execute_batch("ROLLBACK")?;
            return Ok(Err(StoreError::TooNew {
                location: location.to_owned(),
                found,
                known: SCHEMA_VERSION,
            }));
        }
        for step in MIGRATIONS
            .iter()
            .filter(|step| step.version > found && step.version <= target)
        {
            step.sqlite_up
                .iter()
                .try_for_each(|sql| connection.execute_batch(sql))?;
            connection.execute(
                "INSERT INTO schema_version VALUES (?1, ?2)",
                [step.version, now],
            )?;
        }
        for step in MIGRATIONS
            .iter()
            .rev()
            .filter(|step| step.version <= found && step.version > target)
        {
            connection.execute_batch(step.sqlite_down)?;
            connection.execute(
                "DELETE FROM schema_version WHERE version = ?1",
                [step.version],
            )?;
        }
        connection.execute_batch("COMMIT")?;
        Ok(Ok(()))
    };
    run().map_err(|error| translate(location, &error))?
}

/// Maps SQLite's errors to those of the contract.
fn translate(location: &str, error: &rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, DiskFull, ReadOnly, SystemIoFailure};
    use rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY;
    let transient = matches!(
        error.sqlite_error_code(),
        Some(DatabaseBusy | DatabaseLocked | DiskFull | ReadOnly | SystemIoFailure)
    );
    let (location, why) = (location.to_owned(), error.to_string());
    let extended = error.sqlite_error().map(|error| error.extended_code);
    if extended == Some(SQLITE_CONSTRAINT_PRIMARYKEY) {
        StoreError::IdTaken { location, why }
    } else if transient {
        StoreError::Unavailable { location, why }
    } else {
        StoreError::Failed { location, why }
    }
}

#[async_trait]
impl Engine for SqliteEngine {
    async fn now(&self) -> Result<Moment> {
        if read_clock(&self.clock).is_err() {
            // The writer applies the clock jump before its next transaction.
            self.writer.write(SyncLevel::Normal, |_| Ok(())).await?;
        }
        Ok(Moment(now(&self.clock)))
    }

    async fn check_integrity(&self) -> Result<()> {
        let check = |connection: &Connection| {
            connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))
        };
        match self.readers.read(check).await?.as_str() {
            "ok" => Ok(()),
            damage => Err(StoreError::corrupt("file", damage)),
        }
    }

    async fn submit(&self, batch: &[Prepared]) -> Result<Vec<Option<Verdict>>> {
        let (batch, defaults, clock) = (batch.to_vec(), self.defaults, self.clock.clone());
        self.writer
            .write(SyncLevel::Full, move |connection| {
                submit::submit(connection, &batch, defaults, now(&clock))
            })
            .await
    }

    async fn claim(&self, request: &ClaimRequest, sequence: ClaimSequence) -> Result<Claimed> {
        let (request, clock) = (request.clone(), self.clock.clone());
        // A lease that a power cut loses is only claimed again.
        self.writer
            .write(SyncLevel::Normal, move |connection| {
                claim::claim(connection, &request, sequence, now(&clock))
            })
            .await
    }

    async fn complete(&self, batch: &[PreparedCompletion]) -> Result<Vec<bool>> {
        let (batch, defaults, clock) = (batch.to_vec(), self.defaults, self.clock.clone());
        let level = if batch.iter().any(|completion| completion.document.is_some()) {
            SyncLevel::Full
        } else {
            SyncLevel::Normal
        };
        self.writer
            .write(level, move |connection| {
                complete::complete(connection, &batch, defaults, now(&clock))
            })
            .await
    }

    async fn extend_leases(&self, lease_tokens: &[LeaseToken], lease_ms: i64) -> Result<Vec<bool>> {
        let (lease_tokens, clock) = (lease_tokens.to_vec(), self.clock.clone());
        self.writer
            .write(SyncLevel::Normal, move |connection| {
                claim::extend_leases(connection, &lease_tokens, lease_ms, now(&clock))
            })
            .await
    }

    async fn remove(&self, ids: &[FrontierId]) -> Result<u64> {
        let (ids, clock) = (ids.to_vec(), self.clock.clone());
        self.writer
            .write(SyncLevel::Full, move |connection| {
                submit::remove(connection, &ids, now(&clock))
            })
            .await
    }

    async fn requeue(&self, ids: &[FrontierId]) -> Result<u64> {
        let (ids, clock) = (ids.to_vec(), self.clock.clone());
        self.writer
            .write(SyncLevel::Full, move |connection| {
                submit::requeue(connection, &ids, now(&clock))
            })
            .await
    }

    async fn claim_deliveries(
        &self,
        sink: &str,
        limit: u32,
        max_bytes: u64,
        lease_ms: i64,
    ) -> Result<Vec<Delivery>> {
        let (sink, clock) = (sink.to_owned(), self.clock.clone());
        // If it is lost, documents are delivered twice, which changes nothing.
        self.writer
            .write(SyncLevel::Normal, move |connection| {
                deliveries::claim(connection, &sink, limit, max_bytes, lease_ms, now(&clock))
            })
            .await
    }

    async fn complete_deliveries(
        &self,
        sink: &str,
        verdicts: &[(Delivery, DeliveryVerdict)],
    ) -> Result<()> {
        let (sink, verdicts, clock) = (sink.to_owned(), verdicts.to_vec(), self.clock.clone());
        self.writer
            .write(SyncLevel::Full, move |connection| {
                deliveries::complete(connection, &sink, &verdicts, now(&clock))
            })
            .await
    }

    async fn retry_dead_letters(&self, sink: &str) -> Result<RetriedDeadLetters> {
        let (sink, clock) = (sink.to_owned(), self.clock.clone());
        self.writer
            .write(SyncLevel::Full, move |connection| {
                deliveries::retry_dead_letters(connection, &sink, now(&clock))
            })
            .await
    }

    async fn nearest(&self, sketch: &Sketch) -> Result<Option<NearDuplicate>> {
        let sketch = sketch.clone();
        self.readers
            .read(move |connection| near_duplicates::nearest(connection, &sketch))
            .await
    }

    async fn run(&self, statements: Vec<Statement>) -> Result<Vec<QueryResult>> {
        let only_reads = statements
            .iter()
            .all(|statement| statement.sql.trim_start().starts_with("SELECT"));
        if only_reads {
            return self
                .readers
                .read(move |connection| rows::run(connection, &statements))
                .await;
        }
        let is_durable = |statement: &Statement| statement.durability == Durability::PowerCut;
        let level = match statements.iter().any(is_durable) {
            true => SyncLevel::Full,
            false => SyncLevel::Normal,
        };
        self.writer
            .write(level, move |connection| rows::run(connection, &statements))
            .await
    }

    fn last_event(&self) -> &'static str {
        "SELECT coalesce(max(event_id), 0) FROM events"
    }

    fn change_horizon(&self) -> &'static str {
        // One writer: every change that can be read is final.
        "9223372036854775807"
    }

    fn skip_locked(&self) -> &'static str {
        // One writer: there are no locked rows.
        ""
    }

    fn open_transactions(&self) -> &'static str {
        // One writer: none is open when events are read.
        "0, 0"
    }

    fn continue_changes(&self) -> Option<&'static str> {
        // The next id is one more than the highest.
        None
    }

    fn wait_for_completions(&self) -> Option<&'static str> {
        // One writer.
        None
    }

    fn lease_sql(&self) -> &'static LeaseSql {
        &LeaseSql {
            leases: "leases",
            due: "coalesce(q.due_at, u.due_at)",
        }
    }

    fn queue_statements(&self) -> &'static QueueSql {
        &QueueSql {
            select: "SELECT u.host_id, u.url_id, u.priority, coalesce(q.due_at, u.due_at), q.owner, coalesce(q.attempt, u.attempts), coalesce(q.crashes, 0)
                 FROM urls u LEFT JOIN leases q ON q.host_id = u.host_id AND q.url_id = u.url_id
                 WHERE u.due_at IS NOT NULL AND (u.host_id, u.url_id) > ($1, $2) ORDER BY u.host_id, u.url_id LIMIT $3",
            insert: &[
                "INSERT INTO queue (host_id, url_id, priority, due_at) SELECT $1, $2, $3, $4
                 WHERE EXISTS (SELECT 1 FROM urls WHERE host_id = $1 AND url_id = $2 AND due_at IS NULL) ON CONFLICT DO NOTHING",
                "INSERT INTO leases (host_id, url_id, priority, queued_at, due_at, owner, attempt, crashes)
                 SELECT $1, $2, $3, $4, $4, $5, $6, $7 WHERE $5 IS NOT NULL ON CONFLICT DO NOTHING",
                "UPDATE urls SET due_at = $4 WHERE host_id = $1 AND url_id = $2 AND due_at IS NULL",
            ],
        }
    }

    fn fold_counts(&self) -> Option<&'static str> {
        // One writer: counters are changed in place.
        None
    }

    fn diagnostics(&self) -> &'static str {
        "SELECT page_count * page_size, NULL, NULL FROM pragma_page_count(), pragma_page_size()"
    }

    fn location(&self) -> &str {
        &self.location
    }
}
