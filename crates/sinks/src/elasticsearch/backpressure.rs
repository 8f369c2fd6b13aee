//! The batch size that this server can handle: halved on overload, grown by an
//! eighth with every batch that succeeds. No I/O; two atomic counters.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sink::BatchLimits;

/// No real server has a lower limit.
const MIN_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Backpressure {
    max_docs: usize,
    docs: AtomicUsize,
    bytes: AtomicUsize,
}

impl Backpressure {
    pub(crate) fn new(max_docs: usize, max_bytes: usize) -> Self {
        Self {
            max_docs: max_docs.max(1),
            docs: AtomicUsize::new(max_docs.max(1)),
            bytes: AtomicUsize::new(max_bytes),
        }
    }

    pub(crate) fn limits(&self) -> BatchLimits {
        BatchLimits {
            max_docs: self.docs.load(Ordering::Relaxed),
            max_bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    /// The server was overloaded.
    pub(crate) fn record_overload(&self) {
        self.update(|docs| (docs / 2).max(1));
    }

    /// A batch succeeded.
    pub(crate) fn record_success(&self) {
        self.update(|docs| (docs + (docs / 8).max(1)).min(self.max_docs));
    }

    /// A request of this size was too large. The server's limit is a fixed
    /// setting, so the byte limit does not grow again.
    pub(crate) fn record_too_large(&self, refused: usize) {
        let half = (refused / 2).max(MIN_BYTES);
        self.bytes.fetch_min(half, Ordering::Relaxed);
    }

    fn update(&self, next: impl Fn(usize) -> usize) {
        // The closure always returns a value.
        let _ = self
            .docs
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |docs| {
                Some(next(docs))
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_halve_on_overload_and_grow_back() {
        let backpressure = Backpressure::new(100, 1 << 20);
        let docs = |backpressure: &Backpressure| backpressure.limits().max_docs;
        backpressure.record_overload();
        backpressure.record_overload();
        assert_eq!(docs(&backpressure), 25);
        for _ in 0..100 {
            backpressure.record_success();
        }
        assert_eq!(docs(&backpressure), 100);
        for _ in 0..100 {
            backpressure.record_overload();
        }
        assert_eq!(docs(&backpressure), 1);
        backpressure.record_too_large(1 << 19);
        assert_eq!(backpressure.limits().max_bytes, 1 << 18);
        backpressure.record_too_large(10);
        assert_eq!(backpressure.limits().max_bytes, MIN_BYTES);
    }
}
