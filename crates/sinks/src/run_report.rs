//! What is reported of a collection run to sinks that show it.

use std::time::Duration;

/// A finished collection run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunReport {
    pub duration: Duration,
    pub sources: Vec<SourceReport>,
}

/// What one source contributed to a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceReport {
    pub name: String,
    pub items_new: u64,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

impl RunReport {
    pub(crate) fn succeeded(&self) -> usize {
        let has_succeeded = |source: &&SourceReport| source.error.is_none();
        self.sources.iter().filter(has_succeeded).count()
    }

    pub(crate) fn items_new(&self) -> u64 {
        self.sources.iter().map(|source| source.items_new).sum()
    }
}
