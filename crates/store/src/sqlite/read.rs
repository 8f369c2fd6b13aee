//! Readers: separate connections, so that lists and stats never wait for the writer.
//! A small pool of them stays open.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use super::{READER_CACHE_MIB, connect, translate};
use crate::error::{Result, StoreError};

const MAX_IDLE_CONNECTIONS: usize = 4;

#[derive(Debug, Clone)]
pub(super) struct Readers {
    path: Arc<PathBuf>,
    location: Arc<str>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf, location: Arc<str>) -> Self {
        Self {
            path: Arc::new(path),
            location,
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
            location: self.location.to_string(),
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
                .map_err(|error| translate(&self.location, &error))?,
        };
        let result = work(&connection).map_err(|error| translate(&self.location, &error));
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push(connection);
        }
        result
    }
}
