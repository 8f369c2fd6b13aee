//! The contract between sinks and the deliverer: a batch in, one verdict per
//! document out. Values and the trait only; retries, backoff and dead letters
//! are the deliverer's.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tidings_document::Document;

use crate::run_report::RunReport;

/// A place where documents go.
///
/// Delivery is idempotent, and a response that cannot be parsed never counts as
/// accepted.
#[async_trait]
pub trait Sink: fmt::Debug + Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &str;

    /// Whether it writes files of this machine, so that only one node may serve it.
    fn is_local(&self) -> bool {
        false
    }

    /// The largest batch that it accepts now; smaller after the server was overloaded.
    fn limits(&self) -> BatchLimits;

    /// Delivers a batch; one verdict for each document, in batch order. A file
    /// sink uses an empty batch to close files whose day is over.
    async fn deliver(&self, batch: &[Document], now: Timestamp) -> Vec<Verdict>;

    /// Checks connection, credentials and schema. Delivers nothing, and changes
    /// nothing on the server.
    async fn check(&self, now: Timestamp) -> Report;

    /// Creates what the first delivery needs on the server, such as an index
    /// template; what exists stays. The report is empty if nothing is ever needed.
    async fn install(&self, _now: Timestamp) -> Report {
        Report::default()
    }

    /// Reports a finished collection run, where the sink shows the last one.
    async fn record_run(&self, _run: &RunReport, _now: Timestamp) -> Result<(), String> {
        Ok(())
    }
}

/// The result of delivering one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The sink holds this revision or a newer one.
    Accepted,
    /// Failed for now. `after` is the server's Retry-After, if it sent one.
    Retry {
        error: String,
        after: Option<Duration>,
    },
    /// Failed permanently: the same document can never succeed.
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

/// The largest batch that a sink accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    pub max_docs: usize,
    /// Approximate size of the documents as JSON.
    pub max_bytes: usize,
}

/// The findings of `sink test` and `sink install`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub lines: Vec<Finding>,
}

/// One check: its result, or the error and the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub what: &'static str,
    pub result: Result<String, String>,
}

impl Report {
    pub fn is_ok(&self) -> bool {
        self.lines.iter().all(|line| line.result.is_ok())
    }

    /// Records a finding; true when the check passed.
    pub(crate) fn record(&mut self, what: &'static str, result: Result<String, String>) -> bool {
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
                Err(error) => writeln!(f, "failed  {}: {error}", line.what)?,
            }
        }
        Ok(())
    }
}

/// Splits a batch into runs within both limits; a document that exceeds the byte
/// limit alone is a run of its own.
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
    fn runs_respect_both_limits() {
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
