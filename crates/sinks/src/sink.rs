//! What every sink is to the deliverer: it takes a batch and says of each
//! document what became of it. Values and the trait only; retrying, waiting and
//! burying are the deliverer's.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tidings_document::Document;

/// A place where documents go.
///
/// Sending a document again is harmless, and a reply that can't be understood
/// is never taken for a yes.
#[async_trait]
pub trait Sink: fmt::Debug + Send + Sync {
    /// The name that the configuration gives it.
    fn name(&self) -> &str;

    /// How much it wants at once; less after it was overrun.
    fn limits(&self) -> BatchLimits;

    /// Delivers a batch; one verdict for each document, in their order. A file
    /// sink uses an empty batch to finish files whose day is over.
    async fn deliver(&self, batch: &[Document], now: Timestamp) -> Vec<Verdict>;

    /// Tries everything but delivering.
    async fn check(&self, now: Timestamp) -> Report;
}

/// What became of one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is there, or something newer is.
    Accepted,
    /// Not now. `after` is what the server asked for, if it did.
    Retry {
        error: String,
        after: Option<Duration>,
    },
    /// It can never succeed.
    Dead { reason: String },
}

impl Verdict {
    pub(crate) fn retry(error: impl Into<String>) -> Self {
        Self::Retry {
            error: error.into(),
            after: None,
        }
    }

    pub(crate) fn dead(reason: impl Into<String>) -> Self {
        Self::Dead {
            reason: reason.into(),
        }
    }
}

/// The largest batch that a sink takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    pub max_docs: usize,
    /// Of the documents as JSON, about.
    pub max_bytes: usize,
}

/// What `sink test` shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub lines: Vec<Finding>,
}

/// One thing that was tried: what was found, or what is wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub what: &'static str,
    pub result: Result<String, String>,
}

impl Report {
    pub fn is_ok(&self) -> bool {
        self.lines.iter().all(|line| line.result.is_ok())
    }

    /// Notes a finding; true when it is a good one.
    pub(crate) fn note(&mut self, what: &'static str, result: Result<String, String>) -> bool {
        let is_ok = result.is_ok();
        self.lines.push(Finding { what, result });
        is_ok
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            match &line.result {
                Ok(found) => writeln!(f, "ok      {}: {found}", line.what)?,
                Err(wrong) => writeln!(f, "failed  {}: {wrong}", line.what)?,
            }
        }
        Ok(())
    }
}

/// Cuts a batch into runs of at most so many documents and bytes; a document
/// that is too large on its own is a run of its own.
pub(crate) fn runs<T>(
    items: &[T],
    limits: BatchLimits,
    bytes: impl Fn(&T) -> usize,
) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        if start == items.len() {
            return None;
        }
        let mut end = start;
        let mut sum = 0;
        while end < items.len() && end - start < limits.max_docs.max(1) {
            sum += bytes(&items[end]);
            if sum > limits.max_bytes && end > start {
                break;
            }
            end += 1;
        }
        let run = start..end;
        start = end;
        Some(run)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_keep_to_both_limits() {
        let cut = |sizes: &[usize], max_docs, max_bytes| {
            let limits = BatchLimits {
                max_docs,
                max_bytes,
            };
            runs(sizes, limits, |size| *size)
                .map(|run| run.len())
                .collect::<Vec<_>>()
        };
        assert_eq!(cut(&[1, 1, 1, 1, 1], 2, 100), [2, 2, 1]);
        assert_eq!(cut(&[40, 40, 40], 10, 100), [2, 1]);
        assert_eq!(cut(&[400, 1, 400], 10, 100), [1, 1, 1]);
        assert_eq!(cut(&[], 10, 100), [0; 0]);
        assert_eq!(cut(&[1, 1], 0, 0), [1, 1]);
    }
}
