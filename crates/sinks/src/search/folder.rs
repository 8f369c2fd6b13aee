//! The folder of an index: one sub-folder for each generation, named by its
//! number; the highest is the one that counts. A new generation is made beside
//! the old one and takes its place by one rename. One process at a time writes.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use tantivy::directory::MmapDirectory;
use tantivy::{Index, IndexSettings};

use super::SearchError;
use super::schema::{Fields, schema};
use super::words::{WORDS, analyzer};

const UNFINISHED: &str = "unfinished";
const LOCK: &str = "writer.lock";

/// The right to write; ends with the process that has it, however that ends.
#[derive(Debug)]
pub(crate) struct WriteLock(#[allow(dead_code)] File);

pub(crate) fn lock(folder: &Path) -> Result<WriteLock, SearchError> {
    fs::create_dir_all(folder)?;
    let file = File::create(folder.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => Ok(WriteLock(file)),
        Err(TryLockError::WouldBlock) => Err(SearchError::Locked(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// The generation that counts.
pub(crate) fn current(folder: &Path) -> io::Result<Option<u64>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut highest = None;
    for entry in entries {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        highest = highest.max(number);
    }
    Ok(highest)
}

pub(crate) fn path_of(folder: &Path, generation: u64) -> PathBuf {
    folder.join(generation.to_string())
}

/// Opens a generation that exists.
pub(crate) fn open(folder: &Path, generation: u64) -> Result<(Index, Fields), SearchError> {
    let index = Index::open_in_dir(path_of(folder, generation))?;
    let (schema, fields) = schema();
    if index.schema() != schema {
        return Err(SearchError::Outdated(folder.to_owned()));
    }
    index.tokenizers().register(WORDS, analyzer());
    Ok((index, fields))
}

/// An empty index that does not count yet. What a dead process left is removed.
pub(crate) fn unfinished(folder: &Path, _lock: &WriteLock) -> Result<Index, SearchError> {
    let path = folder.join(UNFINISHED);
    match fs::remove_dir_all(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir_all(&path)?,
    }
    let directory = MmapDirectory::open(&path).map_err(tantivy::TantivyError::from)?;
    let index = Index::create(directory, schema().0, IndexSettings::default())?;
    index.tokenizers().register(WORDS, analyzer());
    Ok(index)
}

/// Makes the unfinished index the one that counts, and removes the older ones.
pub(crate) fn finish(folder: &Path, _lock: &WriteLock) -> Result<u64, SearchError> {
    let old = current(folder)?;
    let generation = old.map_or(1, |old| old + 1);
    fs::rename(folder.join(UNFINISHED), path_of(folder, generation))?;
    File::open(folder)?.sync_all()?;
    if let Some(old) = old {
        // Readers keep what they have open; what stays behind does not count.
        let _ = fs::remove_dir_all(path_of(folder, old));
    }
    Ok(generation)
}
