//! The one way in which long-running commands are asked to end: Ctrl-C or
//! SIGTERM. They finish what they do and exit with 0.

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

/// Returns when the process is asked to end.
pub(crate) async fn requested() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM can't be listened for")?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.context("Ctrl-C can't be listened for"),
        _ = terminate.recv() => Ok(()),
    }
}
