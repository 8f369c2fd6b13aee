//! How large a batch this server can take: halved when it says that it has too
//! much, larger again by an eighth with every batch that went well. Pure but
//! for its two numbers.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sink::BatchLimits;

/// A limit on bytes below this would be no limit of a real server.
const LEAST_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Pace {
    most_docs: usize,
    docs: AtomicUsize,
    bytes: AtomicUsize,
}

impl Pace {
    pub(crate) fn new(max_docs: usize, max_bytes: usize) -> Self {
        Self {
            most_docs: max_docs.max(1),
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

    /// The server had too much to do.
    pub(crate) fn overrun(&self) {
        self.change(|docs| (docs / 2).max(1));
    }

    /// A batch went well.
    pub(crate) fn well(&self) {
        self.change(|docs| (docs + (docs / 8).max(1)).min(self.most_docs));
    }

    /// So many bytes were refused. The server's limit is a setting of its own,
    /// so this doesn't grow again.
    pub(crate) fn too_large(&self, refused: usize) {
        let half = (refused / 2).max(LEAST_BYTES);
        self.bytes.fetch_min(half, Ordering::Relaxed);
    }

    fn change(&self, next: impl Fn(usize) -> usize) {
        // The closure always gives a value.
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
    fn it_halves_and_grows_back() {
        let pace = Pace::new(100, 1 << 20);
        let docs = |pace: &Pace| pace.limits().max_docs;
        pace.overrun();
        pace.overrun();
        assert_eq!(docs(&pace), 25);
        for _ in 0..100 {
            pace.well();
        }
        assert_eq!(docs(&pace), 100);
        for _ in 0..100 {
            pace.overrun();
        }
        assert_eq!(docs(&pace), 1);
        pace.too_large(1 << 19);
        assert_eq!(pace.limits().max_bytes, 1 << 18);
        pace.too_large(10);
        assert_eq!(pace.limits().max_bytes, LEAST_BYTES);
    }
}
