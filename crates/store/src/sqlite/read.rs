//! Readers: connections of their own, so that lists and stats never wait for
//! the writer. At most a handful stay open.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use super::{READER_CACHE_MIB, connect, translate};
use crate::error::{Result, StoreError};

const KEPT_OPEN: usize = 4;

#[derive(Debug, Clone)]
pub(super) struct Readers {
    path: Arc<PathBuf>,
    place: Arc<str>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf, place: Arc<str>) -> Self {
        Self {
            path: Arc::new(path),
            place,
            idle: Arc::default(),
        }
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let readers = self.clone();
        let task = tokio::task::spawn_blocking(move || readers.read_blocking(work));
        task.await.map_err(|error| StoreError::Failed {
            place: self.place.to_string(),
            why: error.to_string(),
        })?
    }

    fn read_blocking<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let connection = match idle {
            Some(connection) => connection,
            None => connect(&self.path, READER_CACHE_MIB)
                .map_err(|error| translate(&self.place, &error))?,
        };
        let result = work(&connection).map_err(|error| translate(&self.place, &error));
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT_OPEN {
            idle.push(connection);
        }
        result
    }
}
