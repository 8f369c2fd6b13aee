//! Checkpoints: the log is copied back into the file by a thread with a connection of
//! its own, so that no commit waits for megabytes to be copied.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use tracing::warn;

use super::connect;

/// Pages in the log at which it is copied: 64 MiB, so that hot pages are copied once
/// for many commits.
pub(super) const LOG_PAGES: i32 = 16_384;

/// At this many times that a commit copies it after all: a writer that never pauses
/// may keep the thread from ending a checkpoint, and the log must not grow for ever.
const MAX_LOG_FACTOR: i32 = 4;

/// It copies pages, it does not read them twice.
const CACHE_MIB: u32 = 1;

/// How long the end of a checkpoint waits for the writer and for readers of an older
/// state, while it keeps the writer out. It is tried again with one of the next commits.
const END_TIMEOUT: Duration = Duration::from_millis(100);

/// Lets the log of a writer be copied by a thread when it has `log_pages`. Without a
/// thread it stays with SQLite's own checkpoints.
pub(super) fn start(
    writer: &mut Connection,
    path: &Path,
    location: &Arc<str>,
    log_pages: i32,
) -> rusqlite::Result<()> {
    let Some(thread) = start_thread(path, location)? else {
        return Ok(());
    };
    writer.wal_hook(Some(move |log: &mut rusqlite::hooks::Wal, pages| {
        if pages >= log_pages.saturating_mul(MAX_LOG_FACTOR) {
            // Busy when the thread is at it. The commit itself is done: it must not fail.
            let _ = log.checkpoint();
        }
        if pages >= log_pages {
            // It is at work already when there is no room.
            let _ = thread.try_send(());
        }
        Ok(())
    }))
}

/// The thread ends when the sender is dropped.
fn start_thread(path: &Path, location: &Arc<str>) -> rusqlite::Result<Option<SyncSender<()>>> {
    let connection = connect(path, CACHE_MIB)?;
    connection.busy_timeout(END_TIMEOUT)?;
    let (sender, wanted) = sync_channel(1);
    let location = Arc::clone(location);
    let run = move || {
        while wanted.recv().is_ok() {
            if let Err(error) = checkpoint(&connection) {
                warn!(%location, %error, "checkpoint failed; it is tried again");
            }
        }
    };
    let spawned = thread::Builder::new()
        .name("tidings-checkpoint".to_owned())
        .spawn(run);
    if let Err(error) = &spawned {
        warn!(%error, "no thread for checkpoints; commits do them");
    }
    Ok(spawned.is_ok().then_some(sender))
}

fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    // Most of it beside the writer; then what it has added meanwhile, so that the next
    // commit begins the log anew.
    for mode in ["PASSIVE", "RESTART"] {
        let pragma = format!("PRAGMA wal_checkpoint({mode})");
        connection.query_row(&pragma, [], |_| Ok(()))?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const PAGE_BYTES: u64 = 4096;

    /// The size of the log after `commits` of some pages each.
    fn log_bytes(commits: u32, log_pages: Option<i32>) -> u64 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let mut connection = connect(&path, 1).unwrap();
        match log_pages {
            Some(pages) => start(&mut connection, &path, &"sqlite:a".into(), pages).unwrap(),
            None => connection
                .wal_hook(None::<fn(&mut rusqlite::hooks::Wal, i32) -> _>)
                .unwrap(),
        }
        connection
            .execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY, x BLOB)")
            .unwrap();
        for n in 0..commits {
            let row = rusqlite::params![n, vec![7_u8; 20_000]];
            connection
                .execute("INSERT INTO t VALUES (?1, ?2)", row)
                .unwrap();
            // A reader as lists are: it ends.
            let count: u32 = connection
                .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
                .unwrap();
            assert_eq!(count, n + 1);
        }
        std::fs::metadata(folder.path().join("a.db-wal"))
            .unwrap()
            .len()
    }

    #[test]
    fn the_log_is_used_again_and_does_not_grow_for_ever() {
        let written = 4000 * 5 * PAGE_BYTES;
        assert!(log_bytes(4000, None) >= written, "nothing copies it");
        let log = log_bytes(4000, Some(200));
        assert!(log < written / 4, "{log} of {written} bytes");
    }
}
