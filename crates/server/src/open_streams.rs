//! The live streams that are open: how many, and the signal that ends them all when
//! the server stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

#[derive(Debug)]
pub(crate) struct OpenStreams {
    max: usize,
    count: AtomicUsize,
    stopping: watch::Sender<bool>,
}

impl OpenStreams {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            count: AtomicUsize::new(0),
            stopping: watch::Sender::new(false),
        }
    }

    /// Counts a stream for as long as the permit lives; `None` when there are too many.
    pub(crate) fn open(self: &Arc<Self>) -> Option<StreamPermit> {
        let permit = StreamPermit(Arc::clone(self));
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        (before < self.max).then_some(permit)
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn stop_all(&self) {
        // Without receivers there is no stream to stop.
        self.stopping.send_replace(true);
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }
}

/// One open stream.
#[derive(Debug)]
pub(crate) struct StreamPermit(Arc<OpenStreams>);

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}
