//! The sources that pages belong to, remembered for a moment: a change counts
//! within seconds, and a thousand pages a second ask the store a few times.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tidings_extract::Selectors;
use tidings_store::{Result, Store};
use tracing::warn;

use crate::settings::SourceSettings;

/// How old what is remembered may be.
const FRESH: Duration = Duration::from_secs(5);
/// Sources that are remembered at once.
const MOST: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct KnownSource {
    pub(super) name: String,
    pub(super) settings: SourceSettings,
    pub(super) selectors: Selectors,
}

#[derive(Debug, Default)]
pub(super) struct Sources {
    known: Mutex<HashMap<i64, (Instant, Arc<KnownSource>)>>,
}

impl Sources {
    /// A source; one that is gone, or was never named, has the defaults.
    pub(super) async fn get(&self, store: &Store, id: i64) -> Result<Arc<KnownSource>> {
        if id == 0 {
            return Ok(Arc::default());
        }
        if let Some((at, source)) = self.known().get(&id)
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(source));
        }
        let source = Arc::new(look_up(store, id).await?);
        let mut known = self.known();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(id, (Instant::now(), Arc::clone(&source)));
        Ok(source)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<i64, (Instant, Arc<KnownSource>)>> {
        // Entries are added whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn look_up(store: &Store, id: i64) -> Result<KnownSource> {
    let Some(source) = store.source(id).await? else {
        return Ok(KnownSource::default());
    };
    // Settings are checked when they are saved; what an older version left is
    // better ignored than a reason to fetch nothing.
    let settings = SourceSettings::of(&source).unwrap_or_else(|error| {
        warn!(%error, "the settings of a source can't be read; it has the defaults");
        SourceSettings::default()
    });
    Ok(KnownSource {
        selectors: settings.selectors.parsed().unwrap_or_default(),
        name: source.name,
        settings,
    })
}
