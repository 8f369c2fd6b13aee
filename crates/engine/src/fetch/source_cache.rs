//! The sources of the pages in flight, cached for seconds: a change applies soon,
//! and a thousand pages per second need few queries.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tidings_extract::Selectors;
use tidings_store::{Result, Store};
use tracing::warn;

use crate::sources::SourceSettings;

const TTL: Duration = Duration::from_secs(5);
const MAX_SOURCES: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct CachedSource {
    pub(super) name: String,
    pub(super) settings: SourceSettings,
    pub(super) selectors: Selectors,
}

#[derive(Debug, Default)]
pub(super) struct SourceCache {
    known: Mutex<HashMap<i64, (Instant, Arc<CachedSource>)>>,
}

impl SourceCache {
    /// A source; one that was removed, or id 0, has the defaults.
    pub(super) async fn get(&self, store: &Store, id: i64) -> Result<Arc<CachedSource>> {
        if id == 0 {
            return Ok(Arc::default());
        }
        if let Some((at, source)) = self.known().get(&id)
            && at.elapsed() < TTL
        {
            return Ok(Arc::clone(source));
        }
        let source = Arc::new(load(store, id).await?);
        let mut known = self.known();
        if known.len() >= MAX_SOURCES {
            known.clear();
        }
        known.insert(id, (Instant::now(), Arc::clone(&source)));
        Ok(source)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<i64, (Instant, Arc<CachedSource>)>> {
        // Entries are added whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn load(store: &Store, id: i64) -> Result<CachedSource> {
    let Some(source) = store.source(id).await? else {
        return Ok(CachedSource::default());
    };
    // Settings are validated when they are saved; those of an older version must not
    // stop the fetching.
    let settings = SourceSettings::of(&source).unwrap_or_else(|error| {
        warn!(%error, "invalid source settings; defaults used");
        SourceSettings::default()
    });
    Ok(CachedSource {
        selectors: settings.selectors.parsed().unwrap_or_default(),
        name: source.name,
        settings,
    })
}
