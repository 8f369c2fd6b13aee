//! What is being read right now, written where it outlives the process: a page
//! that kills its reader can be named by the next process on this machine. One
//! small file for each process, locked while it lives.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidings_store::LeaseToken;

/// One note: an id, an attempt, blanks, and the end of the line.
const NOTE: usize = 64;

#[derive(Debug)]
pub(super) struct Recorder {
    file: File,
    path: PathBuf,
    /// Which lines are taken.
    taken: Mutex<Vec<bool>>,
}

/// A page is being read as long as this exists.
#[derive(Debug)]
pub(super) struct Note<'a> {
    recorder: &'a Recorder,
    line: usize,
}

impl Recorder {
    /// Starts a record, and says what processes that died were reading.
    pub(super) fn open(folder: &Path) -> io::Result<(Self, Vec<LeaseToken>)> {
        fs::create_dir_all(folder)?;
        let accused = collect(folder)?;
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
        let recorder = Self {
            file,
            path,
            taken: Mutex::default(),
        };
        Ok((recorder, accused))
    }

    /// Writes down that a page is being read.
    pub(super) fn note(&self, ticket: LeaseToken) -> Note<'_> {
        let line = {
            let mut taken = self.taken();
            let free = taken.iter().position(|is_taken| !is_taken);
            let line = free.unwrap_or(taken.len());
            if line == taken.len() {
                taken.push(true);
            }
            taken[line] = true;
            line
        };
        self.write(line, &format!("{} {}", ticket.id, ticket.attempt));
        Note {
            recorder: self,
            line,
        }
    }

    fn write(&self, line: usize, text: &str) {
        let text = format!("{text:width$}\n", width = NOTE - 1);
        // What can't be recorded is read all the same.
        let _ = self
            .file
            .write_all_at(text.as_bytes(), (line * NOTE) as u64);
    }

    fn taken(&self) -> MutexGuard<'_, Vec<bool>> {
        // Flags only: a panic elsewhere leaves them usable.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Whoever ends in order leaves nothing behind.
        let _ = fs::remove_file(&self.path);
    }
}

impl Drop for Note<'_> {
    fn drop(&mut self) {
        self.recorder.write(self.line, "");
        self.recorder.taken()[self.line] = false;
    }
}

/// Reads and removes the records of processes that are no more.
fn collect(folder: &Path) -> io::Result<Vec<LeaseToken>> {
    let mut accused = Vec::new();
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
        accused.extend(text.lines().filter_map(parse));
        fs::remove_file(&path)?;
    }
    Ok(accused)
}

fn parse(line: &str) -> Option<LeaseToken> {
    let (id, attempt) = line.trim().split_once(' ')?;
    Some(LeaseToken {
        id: id.parse().ok()?,
        attempt: attempt.trim().parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(attempt: i32) -> LeaseToken {
        let id = "00000000000000ff000000000000000000000000000000aa";
        LeaseToken {
            id: id.parse().unwrap(),
            attempt,
        }
    }

    #[test]
    fn only_what_was_read_by_the_dead_is_accused() {
        let folder = tempfile::tempdir().unwrap();
        let (alive, accused) = Recorder::open(folder.path()).unwrap();
        assert!(accused.is_empty());
        let _reading = alive.note(ticket(1));

        let (dead, _) = Recorder::open(folder.path()).unwrap();
        let done = dead.note(ticket(2));
        let last = dead.note(ticket(3));
        drop(done);
        std::mem::forget(last);
        // As if the process had ended: the lock is gone, the file is not.
        dead.file.unlock().unwrap();
        std::mem::forget(dead);

        let (_next, accused) = Recorder::open(folder.path()).unwrap();
        assert_eq!(accused, [ticket(3)]);
        let (_third, accused) = Recorder::open(folder.path()).unwrap();
        assert!(accused.is_empty());
    }

    #[test]
    fn an_end_in_order_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        drop(Recorder::open(folder.path()).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
