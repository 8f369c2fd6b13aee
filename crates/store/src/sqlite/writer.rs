//! The one writer: a thread that takes every job that has gathered, runs them
//! in one transaction, commits once, and only then answers them all.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rusqlite::Connection;
use tokio::sync::oneshot;
use tracing::debug;

use super::{carry, look, translate};
use crate::clock::StoreClock;
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

/// Work for the writer. It may be run again after its transaction was taken
/// back, and is answered once, when the fate of the last one is known.
trait Job: Send {
    fn durability(&self) -> Durability;
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()>;
    fn answer(self: Box<Self>, error: Option<&rusqlite::Error>);
}

struct Work<T, F> {
    durability: Durability,
    work: F,
    result: Option<T>,
    waiting: oneshot::Sender<Result<T>>,
    place: Arc<str>,
}

impl<T: Send, F: Fn(&Connection) -> rusqlite::Result<T> + Send> Job for Work<T, F> {
    fn durability(&self) -> Durability {
        self.durability
    }

    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.result = Some((self.work)(connection)?);
        Ok(())
    }

    fn answer(self: Box<Self>, error: Option<&rusqlite::Error>) {
        let result = match (error, self.result) {
            (Some(error), _) => Err(translate(&self.place, error)),
            (None, Some(result)) => Ok(result),
            (None, None) => unreachable!("a job without an error has a result"),
        };
        // An error here means that the caller was dropped meanwhile.
        let _ = self.waiting.send(result);
    }
}

#[derive(Debug)]
pub(super) struct Writer {
    jobs: Sender<Box<dyn Job>>,
    place: Arc<str>,
}

impl Writer {
    pub(super) fn start(connection: Connection, place: Arc<str>, clock: Arc<StoreClock>) -> Self {
        let (jobs, receiver) = channel();
        let thread = thread::Builder::new().name("tidings-sqlite".to_owned());
        let spawned = thread.spawn(move || write_groups(&connection, &clock, &receiver));
        // Without threads there is no program; the first job will say so.
        drop(spawned);
        Self { jobs, place }
    }

    /// Runs `work` inside the next commit. An error takes back this job alone.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl Fn(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (waiting, answered) = oneshot::channel();
        let place = Arc::clone(&self.place);
        let job = Work {
            durability,
            work,
            result: None,
            waiting,
            place,
        };
        let closed = || StoreError::Unavailable {
            place: self.place.to_string(),
            why: "its writer has ended".to_owned(),
        };
        self.jobs.send(Box::new(job)).map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }
}

fn write_groups(connection: &Connection, clock: &StoreClock, jobs: &Receiver<Box<dyn Job>>) {
    let mut level = Durability::Process;
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        group.extend(jobs.try_iter().take(GROUP - 1));
        if let Err(leap) = look(clock) {
            // When it can't be done now it is tried again; until then time goes
            // on as if nothing had happened.
            match carry(connection, &leap) {
                Ok(()) => clock.land(&leap),
                Err(error) => debug!(%error, "a leap of the clock can't be followed yet"),
            }
        }
        if group.len() > 1 && transact(connection, &mut level, &mut group).is_ok() {
            group.into_iter().for_each(|job| job.answer(None));
            continue;
        }
        // Alone, or one of them failed and took the others with it: one by one.
        for job in group {
            let mut alone = [job];
            let result = transact(connection, &mut level, &mut alone);
            let [job] = alone;
            job.answer(result.as_ref().err());
        }
    }
}

fn transact(
    connection: &Connection,
    level: &mut Durability,
    jobs: &mut [Box<dyn Job>],
) -> rusqlite::Result<()> {
    let wanted = jobs
        .iter()
        .map(|job| job.durability())
        .max()
        .unwrap_or(*level);
    if *level != wanted {
        let pragma = match wanted {
            Durability::Process => "PRAGMA synchronous = NORMAL",
            Durability::Full => "PRAGMA synchronous = FULL",
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
