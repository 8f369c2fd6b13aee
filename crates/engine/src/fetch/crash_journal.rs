//! The crash journal: which pages are being read right now, in a file that
//! outlives the process, so that the next process on this machine can blame the
//! page that crashed it. One small file per process, locked while it lives.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidings_store::{LeaseToken, Moment};

/// Bytes of one entry: an id, an attempt, a time, blanks, and a newline.
const ENTRY_LEN: usize = 96;

#[derive(Debug)]
pub(super) struct CrashJournal {
    file: File,
    path: PathBuf,
    /// Which lines are in use.
    used: Mutex<Vec<bool>>,
}

/// A page is being read while this exists.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    journal: &'a CrashJournal,
    line: usize,
}

impl CrashJournal {
    /// Opens a journal, and returns what crashed processes were reading.
    pub(super) fn open(folder: &Path) -> io::Result<(Self, Vec<LeaseToken>)> {
        fs::create_dir_all(folder)?;
        let blamed = take_journals_of_crashed(folder)?;
        let name = format!(
            "{:016x}.reading",
            getrandom::u64().map_err(io::Error::other)?
        );
        let path = folder.join(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)?;
        file.lock()?;
        let journal = Self {
            file,
            path,
            used: Mutex::default(),
        };
        Ok((journal, blamed))
    }

    /// Records that a page is being read.
    pub(super) fn enter(&self, lease_token: LeaseToken) -> Entry<'_> {
        let line = {
            let mut used = self.used();
            let free = used.iter().position(|is_used| !is_used);
            let line = free.unwrap_or(used.len());
            if line == used.len() {
                used.push(true);
            }
            used[line] = true;
            line
        };
        let LeaseToken {
            id,
            attempt,
            discovered_at,
        } = lease_token;
        self.write(line, &format!("{id} {attempt} {}", discovered_at.0));
        Entry {
            journal: self,
            line,
        }
    }

    fn write(&self, line: usize, text: &str) {
        let text = format!("{text:width$}\n", width = ENTRY_LEN - 1);
        // Without an entry the page is read all the same.
        let _ = self
            .file
            .write_all_at(text.as_bytes(), (line * ENTRY_LEN) as u64);
    }

    fn used(&self) -> MutexGuard<'_, Vec<bool>> {
        // Flags only: a panic elsewhere leaves them usable.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CrashJournal {
    fn drop(&mut self) {
        // A process that ends normally leaves no journal.
        let _ = fs::remove_file(&self.path);
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.journal.write(self.line, "");
        self.journal.used()[self.line] = false;
    }
}

/// Reads and removes the journals of crashed processes.
fn take_journals_of_crashed(folder: &Path) -> io::Result<Vec<LeaseToken>> {
    let mut blamed = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "reading") {
            continue;
        }
        // Another process may have been faster.
        let Ok(file) = File::open(&path) else {
            continue;
        };
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        blamed.extend(text.lines().filter_map(parse));
        fs::remove_file(&path)?;
    }
    Ok(blamed)
}

fn parse(line: &str) -> Option<LeaseToken> {
    let mut fields = line.split_whitespace();
    Some(LeaseToken {
        id: fields.next()?.parse().ok()?,
        attempt: fields.next()?.parse().ok()?,
        discovered_at: Moment(fields.next()?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease_token(attempt: i32) -> LeaseToken {
        let id = "00000000000000ff000000000000000000000000000000aa";
        LeaseToken {
            id: id.parse().unwrap(),
            attempt,
            discovered_at: Moment(1_800_000_000_000),
        }
    }

    #[test]
    fn only_pages_that_crashed_processes_were_reading_are_blamed() {
        let folder = tempfile::tempdir().unwrap();
        let (alive, blamed) = CrashJournal::open(folder.path()).unwrap();
        assert!(blamed.is_empty());
        let _reading = alive.enter(lease_token(1));

        let (dead, _) = CrashJournal::open(folder.path()).unwrap();
        let done = dead.enter(lease_token(2));
        let last = dead.enter(lease_token(3));
        drop(done);
        std::mem::forget(last);
        // As if the process had ended: the lock is gone, the file is not.
        dead.file.unlock().unwrap();
        std::mem::forget(dead);

        let (_next, blamed) = CrashJournal::open(folder.path()).unwrap();
        assert_eq!(blamed, [lease_token(3)]);
        let (_third, blamed) = CrashJournal::open(folder.path()).unwrap();
        assert!(blamed.is_empty());
    }

    #[test]
    fn a_normal_end_leaves_no_journal() {
        let folder = tempfile::tempdir().unwrap();
        drop(CrashJournal::open(folder.path()).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
