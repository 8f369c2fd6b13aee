//! The only writer: a thread that collects queued jobs, runs them in one
//! transaction, commits once, and only then replies to all of them (group commit).

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rusqlite::Connection;
use tokio::sync::oneshot;
use tracing::debug;

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
        let spawned = thread.spawn(move || write_groups(&connection, &clock, &receiver));
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
        .try_for_each(|job| job.run(connection))
        .and_then(|()| connection.prepare_cached("COMMIT")?.execute([]).map(drop));
    if done.is_err() && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    done
}
