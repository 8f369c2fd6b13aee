//! The one writer: a thread that takes every job that has gathered, runs them
//! in one transaction, commits once, and only then answers them all.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::translate;
use crate::error::{Result, StoreError};

/// Jobs of one commit: a bound on how long the first one waits for the others.
const GROUP: usize = 64;

/// What a commit must survive before it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Durability {
    /// The death of any process (`synchronous = NORMAL`).
    Process,
    /// A power cut as well (`synchronous = FULL`).
    Full,
}

/// Runs the job, unless there is no transaction to run it in, and says how to
/// answer once the commit is known.
type Work = Box<dyn FnOnce(Option<&Connection>) -> Reply + Send>;
type Reply = Box<dyn FnOnce(Option<&rusqlite::Error>) + Send>;

struct Job {
    durability: Durability,
    work: Work,
}

#[derive(Debug)]
pub(super) struct Writer {
    jobs: Sender<Job>,
    place: Arc<str>,
}

impl Writer {
    pub(super) fn start(connection: Connection, place: Arc<str>) -> Self {
        let (jobs, receiver) = channel();
        let thread = thread::Builder::new().name("tidings-sqlite".to_owned());
        let spawned = thread.spawn(move || write_groups(&connection, &receiver));
        // Without threads there is no program; the first job will say so.
        drop(spawned);
        Self { jobs, place }
    }

    /// Runs `work` inside the next commit. An error takes back this job alone.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let place = Arc::clone(&self.place);
        let work: Work = Box::new(move |connection| {
            let result = connection.map(|connection| in_savepoint(connection, work));
            Box::new(move |group_error| {
                let result = match (group_error, result) {
                    (Some(error), _) => Err(translate(&place, error)),
                    (None, Some(result)) => result.map_err(|error| translate(&place, &error)),
                    (None, None) => unreachable!("a job is skipped only when its group has failed"),
                };
                // An error here means that the caller was dropped meanwhile.
                let _ = answer.send(result);
            })
        });
        let closed = || StoreError::Unavailable {
            place: self.place.to_string(),
            why: "its writer has ended".to_owned(),
        };
        self.jobs
            .send(Job { durability, work })
            .map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }
}

fn in_savepoint<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    connection.prepare_cached("SAVEPOINT job")?.execute([])?;
    let result = work(connection);
    if result.is_err() {
        connection.prepare_cached("ROLLBACK TO job")?.execute([])?;
    }
    connection.prepare_cached("RELEASE job")?.execute([])?;
    result
}

fn write_groups(connection: &Connection, jobs: &Receiver<Job>) {
    let mut level = Durability::Process;
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        group.extend(jobs.try_iter().take(GROUP - 1));
        let wanted = group
            .iter()
            .map(|job| job.durability)
            .max()
            .unwrap_or(level);
        let mut replies = Vec::with_capacity(group.len());
        let committed = commit(connection, &mut level, wanted, group, &mut replies);
        for reply in replies {
            reply(committed.as_ref().err());
        }
    }
}

fn commit(
    connection: &Connection,
    level: &mut Durability,
    wanted: Durability,
    group: Vec<Job>,
    replies: &mut Vec<Reply>,
) -> rusqlite::Result<()> {
    let begun = begin(connection, level, wanted);
    let usable = begun.is_ok().then_some(connection);
    replies.extend(group.into_iter().map(|job| (job.work)(usable)));
    begun?;
    let committed = connection.prepare_cached("COMMIT")?.execute([]).map(drop);
    if committed.is_err() && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    committed
}

fn begin(
    connection: &Connection,
    level: &mut Durability,
    wanted: Durability,
) -> rusqlite::Result<()> {
    if *level != wanted {
        let pragma = match wanted {
            Durability::Process => "PRAGMA synchronous = NORMAL",
            Durability::Full => "PRAGMA synchronous = FULL",
        };
        connection.execute_batch(pragma)?;
        *level = wanted;
    }
    connection
        .prepare_cached("BEGIN IMMEDIATE")?
        .execute([])
        .map(drop)
}
