//! The only writer: a thread that collects queued jobs, runs them in one
//! transaction, commits once, and only then replies to all of them (group commit).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rusqlite::{Connection, ffi};
use tokio::sync::oneshot;
use tracing::{debug, error};

use super::{read_clock, shift_deadlines, translate};
use crate::clock::StoreClock;
use crate::error::{Result, StoreError};

/// Jobs of one commit: a bound on how long the first one waits for the others.
const MAX_GROUP_JOBS: usize = 64;

/// The `synchronous` level of a commit: what it survives once acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SyncLevel {
    /// A crash of any process.
    Normal,
    /// A power cut as well.
    Full,
}

/// Work for the writer. It may be run again after its transaction was rolled back,
/// and gets one reply, when the last transaction has committed or failed.
trait Job: Send {
    fn level(&self) -> SyncLevel;
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()>;
    fn reply(self: Box<Self>, error: Option<&rusqlite::Error>);
}

struct Work<T, F> {
    level: SyncLevel,
    work: F,
    result: Option<T>,
    sender: oneshot::Sender<Result<T>>,
    location: Arc<str>,
}

impl<T: Send, F: Fn(&Connection) -> rusqlite::Result<T> + Send> Job for Work<T, F> {
    fn level(&self) -> SyncLevel {
        self.level
    }

    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.result = Some((self.work)(connection)?);
        Ok(())
    }

    fn reply(self: Box<Self>, error: Option<&rusqlite::Error>) {
        let result = match (error, self.result) {
            (Some(error), _) => Err(translate(&self.location, error)),
            (None, Some(result)) => Ok(result),
            (None, None) => unreachable!("a job without an error has a result"),
        };
        // An error here means that the caller was dropped meanwhile.
        let _ = self.sender.send(result);
    }
}

#[derive(Debug)]
pub(super) struct Writer {
    jobs: Sender<Box<dyn Job>>,
    location: Arc<str>,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        location: Arc<str>,
        clock: Arc<StoreClock>,
    ) -> Self {
        let (jobs, receiver) = channel();
        let thread = thread::Builder::new().name("tidings-sqlite".to_owned());
        let spawned = thread.spawn(move || {
            // Jobs are caught one by one; a panic outside of them costs its group.
            let run = || write_groups(&connection, &clock, &receiver);
            while let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
                let why = panic_message(panic.as_ref());
                error!(
                    why,
                    "SQLite writer panicked; it continues with the next group"
                );
                roll_back(&connection);
            }
        });
        // If no thread could be started, the first job returns an error.
        drop(spawned);
        Self { jobs, location }
    }

    /// Runs `work` inside the next commit. An error rolls back this job alone.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        level: SyncLevel,
        work: impl Fn(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = oneshot::channel();
        let location = Arc::clone(&self.location);
        let job = Work {
            level,
            work,
            result: None,
            sender,
            location,
        };
        let closed = || StoreError::Unavailable {
            location: self.location.to_string(),
            why: "the writer thread has ended".to_owned(),
        };
        self.jobs.send(Box::new(job)).map_err(|_| closed())?;
        receiver.await.map_err(|_| closed())?
    }
}

fn write_groups(connection: &Connection, clock: &StoreClock, jobs: &Receiver<Box<dyn Job>>) {
    let mut level = SyncLevel::Normal;
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        group.extend(jobs.try_iter().take(MAX_GROUP_JOBS - 1));
        if let Err(jump) = read_clock(clock) {
            // On failure it is retried with the next group; until then the clock
            // continues without the jump.
            match shift_deadlines(connection, &jump) {
                Ok(()) => clock.apply(&jump),
                Err(error) => debug!(%error, "clock jump not applied; retried with the next write"),
            }
        }
        if group.len() > 1 && transact(connection, &mut level, &mut group).is_ok() {
            group.into_iter().for_each(|job| job.reply(None));
            continue;
        }
        // A single job, or one of the group failed and rolled back all: one by one.
        for job in group {
            let mut alone = [job];
            let result = transact(connection, &mut level, &mut alone);
            let [job] = alone;
            job.reply(result.as_ref().err());
        }
    }
}

/// Runs a job; a panic inside is its error, which a retry would only repeat.
fn run_caught(job: &mut dyn Job, connection: &Connection) -> rusqlite::Result<()> {
    let run = AssertUnwindSafe(|| job.run(connection));
    catch_unwind(run).unwrap_or_else(|panic| {
        let why = panic_message(panic.as_ref());
        error!(why, "job of the SQLite writer panicked; rolled back");
        let why = format!("panic in the writer: {why}; please report this bug");
        let code = ffi::Error::new(ffi::SQLITE_INTERNAL);
        Err(rusqlite::Error::SqliteFailure(code, Some(why)))
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

fn roll_back(connection: &Connection) {
    if !connection.is_autocommit()
        && let Err(error) = connection.execute_batch("ROLLBACK")
    {
        debug!(%error, "cannot roll back");
    }
}

fn transact(
    connection: &Connection,
    level: &mut SyncLevel,
    jobs: &mut [Box<dyn Job>],
) -> rusqlite::Result<()> {
    let wanted = jobs.iter().map(|job| job.level()).max().unwrap_or(*level);
    if *level != wanted {
        let pragma = match wanted {
            SyncLevel::Normal => "PRAGMA synchronous = NORMAL",
            SyncLevel::Full => "PRAGMA synchronous = FULL",
        };
        connection.execute_batch(pragma)?;
        *level = wanted;
    }
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let done = jobs
        .iter_mut()
        .try_for_each(|job| run_caught(job.as_mut(), connection))
        .and_then(|()| connection.prepare_cached("COMMIT")?.execute([]).map(drop));
    if done.is_err() && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    done
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn writer() -> Writer {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE t (n INTEGER)")
            .unwrap();
        let clock = Arc::new(StoreClock::new(crate::options::Clock::Database));
        Writer::start(connection, "sqlite:test".into(), clock)
    }

    async fn insert(writer: &Writer, n: i64) -> Result<usize> {
        let work = move |connection: &Connection| {
            let inserted = connection.execute("INSERT INTO t VALUES (?1)", [n])?;
            assert!(n != 13, "thirteen is a defect");
            Ok(inserted)
        };
        writer.write(SyncLevel::Normal, work).await
    }

    #[tokio::test]
    async fn a_panic_fails_its_own_call_and_the_writer_lives_on() {
        let writer = writer();
        for _ in 0..3 {
            // All in one group, or one after the other.
            let (one, bad, two) =
                tokio::join!(insert(&writer, 1), insert(&writer, 13), insert(&writer, 2));
            assert_eq!((one.unwrap(), two.unwrap()), (1, 1));
            let error = bad.unwrap_err();
            assert!(!error.is_transient(), "a retry would panic again: {error}");
            assert!(
                error.to_string().contains("thirteen is a defect"),
                "{error}"
            );
        }
        let sum = |connection: &Connection| {
            connection.query_row("SELECT sum(n) FROM t", [], |row| row.get::<_, i64>(0))
        };
        let sum = writer.write(SyncLevel::Normal, sum).await.unwrap();
        assert_eq!(sum, 9, "the panicking jobs were rolled back");
    }
}
