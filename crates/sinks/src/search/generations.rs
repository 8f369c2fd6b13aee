//! The folder of an index: one sub-folder per generation, named by its number;
//! the highest is current. A new generation is built beside the old one and
//! replaces it by one rename. One process at a time writes.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use tantivy::directory::MmapDirectory;
use tantivy::{Index, IndexSettings};

use super::SearchError;
use super::schema::{Fields, schema};
use super::tokenizer::{TOKENIZER, analyzer};

const UNFINISHED: &str = "unfinished";
const LOCK: &str = "writer.lock";

/// The write lock; released when its process ends, however it ends.
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

/// The current generation.
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
    index.tokenizers().register(TOKENIZER, analyzer());
    Ok((index, fields))
}

/// Creates an empty index that is not current yet. Removes the one that a killed
/// process left.
pub(crate) fn create_unfinished(folder: &Path, _lock: &WriteLock) -> Result<Index, SearchError> {
    let path = folder.join(UNFINISHED);
    match fs::remove_dir_all(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir_all(&path)?,
    }
    let directory = MmapDirectory::open(&path).map_err(tantivy::TantivyError::from)?;
    let index = Index::create(directory, schema().0, IndexSettings::default())?;
    index.tokenizers().register(TOKENIZER, analyzer());
    Ok(index)
}

/// Makes the unfinished index the current one, and removes the older one.
pub(crate) fn publish(folder: &Path, _lock: &WriteLock) -> Result<u64, SearchError> {
    let old = current(folder)?;
    let generation = old.map_or(1, |old| old + 1);
    fs::rename(folder.join(UNFINISHED), path_of(folder, generation))?;
    File::open(folder)?.sync_all()?;
    if let Some(old) = old {
        // Readers keep their open files; a leftover folder is never read.
        let _ = fs::remove_dir_all(path_of(folder, old));
    }
    Ok(generation)
}
