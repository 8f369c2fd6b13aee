//! What each site repeats on its pages, learned while pages are read, so that it
//! is not taken for their text. Of the hosts that were read last; forgotten with
//! the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidings_extract::{Article, SiteMemory};
use tidings_store::HostId;

/// Hosts that are remembered at once, at most some 10 KB each.
const MOST: usize = 2000;

#[derive(Debug, Default)]
pub(super) struct Sites {
    known: Mutex<HashMap<HostId, Arc<SiteMemory>>>,
}

impl Sites {
    /// What is known of a host now.
    pub(super) fn of(&self, host: HostId) -> Arc<SiteMemory> {
        self.known().get(&host).cloned().unwrap_or_default()
    }

    /// Learns from a page that was read with what was known.
    pub(super) fn learn(&self, host: HostId, url: &str, article: &Article) {
        let mut known = self.known();
        if known.len() >= MOST && !known.contains_key(&host) {
            known.clear();
        }
        Arc::make_mut(known.entry(host).or_default()).learn(url, article);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<HostId, Arc<SiteMemory>>> {
        // A memory that was half changed still only holds hashes.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
