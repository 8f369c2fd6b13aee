//! The boilerplate that each site repeats on its pages, learned while pages are
//! read, so that the extractor drops it. In memory, for the hosts read recently.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidings_extract::{Article, SiteMemory};
use tidings_store::HostId;

/// Hosts in the cache, at most some 10 KB each.
const MAX_HOSTS: usize = 2000;

#[derive(Debug, Default)]
pub(super) struct SiteCache {
    known: Mutex<HashMap<HostId, Arc<SiteMemory>>>,
}

impl SiteCache {
    /// What is known of a host now.
    pub(super) fn of(&self, host: HostId) -> Arc<SiteMemory> {
        self.known().get(&host).cloned().unwrap_or_default()
    }

    /// Learns from a page that was read.
    pub(super) fn learn(&self, host: HostId, url: &str, article: &Article) {
        let mut known = self.known();
        if known.len() >= MAX_HOSTS && !known.contains_key(&host) {
            known.clear();
        }
        Arc::make_mut(known.entry(host).or_default()).learn(url, article);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<HostId, Arc<SiteMemory>>> {
        // A half-changed entry still only holds hashes.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
