//! What all connections of a server share: the world, the clock, the request log
//! and the counts that fault scripts go by.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::clock::SimClock;
use crate::log::RequestLog;
use crate::site::Site;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) world: World,
    pub(crate) clock: SimClock,
    pub(crate) log: RequestLog,
    /// Requests of each address of the sites that have fault scripts.
    counts: Mutex<HashMap<(u32, String), u64>>,
}

impl Shared {
    pub(crate) fn new(world: World, clock: SimClock) -> Self {
        Self {
            world,
            clock,
            log: RequestLog::new(),
            counts: Mutex::default(),
        }
    }

    /// Counts a request of this address; returns how many there were, from 1.
    pub(crate) fn count(&self, site: &Site, path: &str) -> u64 {
        if site.faults.is_empty() {
            return 1;
        }
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry((site.index, path.to_owned())).or_insert(0);
        *count += 1;
        *count
    }
}
