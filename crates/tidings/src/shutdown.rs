//! The one way in which long-running commands are asked to end: Ctrl-C or
//! SIGTERM. They finish what they do and exit with 0.

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens from the moment it is made: make it before saying that you run.
#[derive(Debug)]
pub(crate) struct Shutdown {
    interrupt: Signal,
    terminate: Signal,
}

impl Shutdown {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("signals can't be listened for");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Returns when the process is asked to end.
    pub(crate) async fn requested(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
