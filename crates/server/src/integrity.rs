//! Whether the files of this node are intact: those of an embedded store and of the
//! search index. Checked at the start and then once per day, since a check reads
//! them whole; readiness reports the last result.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidings_sinks::{SearchError, SearchIndex};
use tidings_store::Store;
use tracing::error;

const INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// What the last check found; none while everything is intact.
#[derive(Debug, Default)]
pub(crate) struct Integrity(Mutex<Option<String>>);

impl Integrity {
    pub(crate) fn damage(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, damage: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = damage;
    }
}

/// Checks for as long as the server runs.
pub(crate) async fn watch(integrity: Arc<Integrity>, store: Store, search_folder: Option<PathBuf>) {
    loop {
        let mut damage = store_damage(&store).await;
        if damage.is_none()
            && let Some(folder) = search_folder.clone()
        {
            damage = search_damage(folder).await;
        }
        if let Some(damage) = &damage {
            error!(%damage, "a file of this node is damaged");
        }
        integrity.set(damage);
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn store_damage(store: &Store) -> Option<String> {
    let error = store.check_integrity().await.err()?;
    (!error.is_transient()).then(|| error.to_string())
}

async fn search_damage(folder: PathBuf) -> Option<String> {
    let checked = tokio::task::spawn_blocking(move || SearchIndex::check_integrity(&folder));
    match checked.await {
        Ok(Ok(()) | Err(SearchError::None(_) | SearchError::Outdated(_))) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(panic) => Some(format!("the search index can't be checked: {panic}")),
    }
}
