//! Append-only files, rotated by size and day; a batch is never split. A file has
//! its final name only when it is complete and on disk; until then it ends in
//! `.part`, and the next writer truncates the incomplete record that a killed one
//! left and continues. One process writes to a folder under one name.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Deserialize;
use tracing::warn;

const PART_SUFFIX: &str = ".part";

/// A file format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    pub(crate) extension: &'static str,
    /// The bytes that a file of this name begins with.
    pub(crate) header: fn(name: &str, now: Timestamp) -> Vec<u8>,
    /// Finds the complete records of a `.part` file.
    pub(crate) scan: fn(&mut BufReader<File>) -> io::Result<CompleteRecords>,
}

/// The complete records at the start of a file.
#[derive(Debug, Default)]
pub(crate) struct CompleteRecords {
    pub(crate) bytes: u64,
    /// The documents in it, and their newest revisions.
    pub(crate) revisions: Revisions,
}

pub(crate) type Revisions = HashMap<String, i64>;

/// Identifies the document of a record.
#[derive(Debug, Deserialize)]
pub(crate) struct RecordKey {
    pub(crate) id: String,
    pub(crate) revision: i64,
}

/// One document in the format of the file.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) revision: i64,
    pub(crate) bytes: Vec<u8>,
}

/// The files of one sink.
#[derive(Debug, Clone)]
pub(crate) struct RotatingFiles {
    folder: PathBuf,
    /// Prefix of every file name.
    name: String,
    max_bytes: u64,
    format: Format,
    /// None before the first batch, and after a failure: then the folder is
    /// scanned again, as after a crash.
    open: Arc<Mutex<Option<OpenFolder>>>,
}

#[derive(Debug)]
struct OpenFolder {
    _lock: File,
    current: Option<CurrentFile>,
    /// The documents of the file before this one. A batch that was written and
    /// not acknowledged is delivered again, perhaps after a rotation.
    previous: Revisions,
}

#[derive(Debug)]
struct CurrentFile {
    file: File,
    /// Without `.part`.
    path: PathBuf,
    day: Date,
    bytes: u64,
    revisions: Revisions,
}

impl RotatingFiles {
    pub(crate) fn new(folder: PathBuf, sink: &str, max_bytes: u64, format: Format) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let plain = |c: char| if is_plain(c) { c } else { '_' };
        Self {
            folder,
            name: sink.chars().map(plain).collect(),
            max_bytes,
            format,
            open: Arc::default(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Appends records; they are on disk when this returns. Revisions that are
    /// present already are skipped. Without records, closes a file of a past day.
    pub(crate) async fn append(&self, records: Vec<Record>, now: Timestamp) -> io::Result<()> {
        let files = self.clone();
        let work = tokio::task::spawn_blocking(move || files.append_blocking(&records, now));
        work.await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    fn append_blocking(&self, records: &[Record], now: Timestamp) -> io::Result<()> {
        let mut slot = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = match slot.take() {
            Some(open) => open,
            None => self.open_folder()?,
        };
        self.write(&mut open, records, now)?;
        *slot = Some(open);
        Ok(())
    }

    fn write(&self, open: &mut OpenFolder, records: &[Record], now: Timestamp) -> io::Result<()> {
        let today = now.to_zoned(TimeZone::UTC).date();
        let new_records: Vec<_> = records.iter().filter(|record| !open.has(record)).collect();
        // A batch is never split, so that a redelivered one is recognised.
        let is_due = open
            .current
            .as_ref()
            .is_some_and(|current| current.day != today || current.bytes >= self.max_bytes);
        let is_idle = new_records.is_empty() && !records.is_empty();
        if is_due && !is_idle {
            self.finish(open)?;
        }
        if new_records.is_empty() {
            return Ok(());
        }
        let current = match &mut open.current {
            Some(current) => current,
            None => open.current.insert(self.start(today, now)?),
        };
        let mut bytes =
            Vec::with_capacity(new_records.iter().map(|record| record.bytes.len()).sum());
        for record in &new_records {
            bytes.extend_from_slice(&record.bytes);
        }
        current.file.write_all(&bytes)?;
        current.file.sync_data()?;
        current.bytes += bytes.len() as u64;
        for record in new_records {
            record_revision(&mut current.revisions, &record.id, record.revision);
        }
        Ok(())
    }

    fn start(&self, day: Date, now: Timestamp) -> io::Result<CurrentFile> {
        let number = self.next_number(day)?;
        let extension = self.format.extension;
        let day_digits = day.strftime("%Y%m%d");
        let name = format!("{}-{day_digits}-{number:06}.{extension}", self.name);
        let path = self.folder.join(&name);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(part_path(&path))?;
        let header = (self.format.header)(&name, now);
        file.write_all(&header)?;
        sync_folder(&self.folder)?;
        Ok(CurrentFile {
            file,
            path,
            day,
            bytes: header.len() as u64,
            revisions: Revisions::new(),
        })
    }

    /// Renames the open file to its final name.
    fn finish(&self, open: &mut OpenFolder) -> io::Result<()> {
        let Some(current) = open.current.take() else {
            return Ok(());
        };
        current.file.sync_all()?;
        fs::rename(part_path(&current.path), &current.path)?;
        sync_folder(&self.folder)?;
        open.previous = current.revisions;
        Ok(())
    }

    /// Locks the folder and continues the files of the last writer.
    fn open_folder(&self) -> io::Result<OpenFolder> {
        fs::create_dir_all(&self.folder)?;
        let lock = File::create(self.folder.join(format!(".{}.lock", self.name)))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other(format!(
                    "another process writes to {}; stop it or choose another path",
                    self.folder.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut open = OpenFolder {
            _lock: lock,
            current: None,
            previous: Revisions::new(),
        };
        let mut parts: Vec<_> = self
            .names()?
            .into_iter()
            .filter_map(|(day, number, name)| {
                let final_name = name.strip_suffix(PART_SUFFIX)?.to_owned();
                Some((day, number, final_name))
            })
            .collect();
        parts.sort();
        for (day, _, name) in parts {
            self.finish(&mut open)?;
            open.current = self.resume(&self.folder.join(name), day)?;
        }
        Ok(open)
    }

    /// Opens a `.part` file and truncates its incomplete record.
    fn resume(&self, path: &Path, day: Date) -> io::Result<Option<CurrentFile>> {
        let part = part_path(path);
        let file = OpenOptions::new().read(true).write(true).open(&part)?;
        let mut reader = BufReader::new(file);
        let complete = (self.format.scan)(&mut reader)?;
        let mut file = reader.into_inner();
        if complete.revisions.is_empty() {
            fs::remove_file(&part)?;
            return Ok(None);
        }
        let torn = file.metadata()?.len() - complete.bytes;
        if torn > 0 {
            warn!(file = %part.display(), bytes = torn, "truncated an incomplete record");
        }
        file.set_len(complete.bytes)?;
        file.seek(SeekFrom::End(0))?;
        file.sync_all()?;
        Ok(Some(CurrentFile {
            file,
            path: path.to_owned(),
            day,
            bytes: complete.bytes,
            revisions: complete.revisions,
        }))
    }

    fn next_number(&self, day: Date) -> io::Result<u32> {
        let numbers = self.names()?.into_iter();
        let taken = numbers
            .filter(|(of, _, _)| *of == day)
            .map(|(_, number, _)| number);
        Ok(taken.max().map_or(1, |number| number + 1))
    }

    /// The files of this sink: day, number, name.
    fn names(&self) -> io::Result<Vec<(Date, u32, String)>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let Ok(name) = entry?.file_name().into_string() else {
                continue;
            };
            let numbers = name
                .strip_prefix(&self.name)
                .and_then(|rest| rest.strip_prefix('-'))
                .and_then(|rest| rest.split_once(&format!(".{}", self.format.extension)))
                .filter(|(_, end)| matches!(*end, "" | PART_SUFFIX))
                .and_then(|(numbers, _)| numbers.split_once('-'));
            let Some((day, number)) = numbers else {
                continue;
            };
            if let (Ok(day), Ok(number)) = (Date::strptime("%Y%m%d", day), number.parse()) {
                names.push((day, number, name));
            }
        }
        Ok(names)
    }
}

impl OpenFolder {
    /// Whether this revision or a newer one is written already.
    fn has(&self, record: &Record) -> bool {
        let current = self.current.as_ref().map(|current| &current.revisions);
        let mut known = current.into_iter().chain([&self.previous]);
        known.any(|revisions| {
            revisions
                .get(&record.id)
                .is_some_and(|revision| *revision >= record.revision)
        })
    }
}

/// Stores the newest revision of a document.
pub(crate) fn record_revision(revisions: &mut Revisions, id: &str, revision: i64) {
    let known = revisions.entry(id.to_owned()).or_insert(revision);
    *known = revision.max(*known);
}

fn part_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(PART_SUFFIX);
    PathBuf::from(name)
}

/// A new file name is durable only after its folder is synced.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
