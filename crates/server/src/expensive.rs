//! Operations that make requests to other sites for their caller, and how often one
//! token may start each.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::problem::Problem;
use crate::rate_limit::RateLimit;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Expensive {
    /// Looks for the feeds of a site.
    Discover,
    /// Tests selectors, or previews a source.
    Test,
    /// A run over sources.
    Collect,
}

impl Expensive {
    fn per_minute(self) -> u32 {
        match self {
            Self::Discover => 10,
            Self::Test => 30,
            Self::Collect => 10,
        }
    }
}

/// The operations that were started, by token.
#[derive(Debug, Default)]
pub(crate) struct ExpensiveLimit(Mutex<RateLimit<(i64, Expensive)>>);

impl ExpensiveLimit {
    pub(crate) fn start(
        &self,
        token_id: i64,
        operation: Expensive,
        now: Instant,
    ) -> Result<(), Problem> {
        let (key, max) = ((token_id, operation), operation.per_minute());
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seconds) = started.retry_after(&key, max, now) {
            let why = format!("a token may do this {max} times per minute");
            return Err(Problem::too_many(seconds, &why));
        }
        started.count(key, now);
        Ok(())
    }
}
