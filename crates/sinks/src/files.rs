//! Files that grow by whole batches and are finished by size and day. A file has
//! its final name only when it is complete and on disk; until then it ends in
//! `.part`, and whoever opens the folder next cuts off what a dead writer left
//! half written and goes on. One process writes to a folder under one name.

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

const UNFINISHED: &str = ".part";

/// What a kind of file needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    pub(crate) extension: &'static str,
    /// The bytes that a file of this name begins with.
    pub(crate) head: fn(name: &str, now: Timestamp) -> Vec<u8>,
    /// What of an unfinished file is whole.
    pub(crate) scan: fn(&mut BufReader<File>) -> io::Result<Whole>,
}

/// The whole records at the start of a file.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    pub(crate) bytes: u64,
    /// The documents in it, and their newest revisions.
    pub(crate) held: Held,
}

pub(crate) type Held = HashMap<String, i64>;

/// What records say of their document.
#[derive(Debug, Deserialize)]
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) revision: i64,
}

/// One document in the form of the file.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) revision: i64,
    pub(crate) bytes: Vec<u8>,
}

/// The files of one sink.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    folder: PathBuf,
    /// Every file begins with it.
    name: String,
    max_bytes: u64,
    format: Format,
    /// None before the first batch, and after a failure: then the folder is
    /// looked at afresh, as after a death.
    open: Arc<Mutex<Option<Open>>>,
}

#[derive(Debug)]
struct Open {
    _lock: File,
    current: Option<Current>,
    /// What the file before this one holds. A batch that was written and not
    /// acknowledged comes again, perhaps after the file was finished.
    before: Held,
}

#[derive(Debug)]
struct Current {
    file: File,
    /// Without `.part`.
    path: PathBuf,
    day: Date,
    bytes: u64,
    held: Held,
}

impl Files {
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

    /// Appends records; they are on disk when this returns. Those that are
    /// there already are left out. Without any, finishes a file of a past day.
    pub(crate) async fn append(&self, records: Vec<Record>, now: Timestamp) -> io::Result<()> {
        let files = self.clone();
        let work = tokio::task::spawn_blocking(move || files.append_now(&records, now));
        work.await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    fn append_now(&self, records: &[Record], now: Timestamp) -> io::Result<()> {
        let mut slot = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = match slot.take() {
            Some(open) => open,
            None => self.open_folder()?,
        };
        self.write(&mut open, records, now)?;
        *slot = Some(open);
        Ok(())
    }

    fn write(&self, open: &mut Open, records: &[Record], now: Timestamp) -> io::Result<()> {
        let today = now.to_zoned(TimeZone::UTC).date();
        let news: Vec<_> = records.iter().filter(|record| !open.has(record)).collect();
        // A batch is never cut in two, so that one that comes again is found.
        let is_over = open
            .current
            .as_ref()
            .is_some_and(|current| current.day != today || current.bytes >= self.max_bytes);
        let is_idle = news.is_empty() && !records.is_empty();
        if is_over && !is_idle {
            self.finish(open)?;
        }
        if news.is_empty() {
            return Ok(());
        }
        let current = match &mut open.current {
            Some(current) => current,
            None => open.current.insert(self.start(today, now)?),
        };
        let mut bytes = Vec::with_capacity(news.iter().map(|record| record.bytes.len()).sum());
        for record in &news {
            bytes.extend_from_slice(&record.bytes);
        }
        current.file.write_all(&bytes)?;
        current.file.sync_data()?;
        current.bytes += bytes.len() as u64;
        for record in news {
            note(&mut current.held, &record.id, record.revision);
        }
        Ok(())
    }

    fn start(&self, day: Date, now: Timestamp) -> io::Result<Current> {
        let number = self.next_number(day)?;
        let extension = self.format.extension;
        let day_digits = day.strftime("%Y%m%d");
        let name = format!("{}-{day_digits}-{number:06}.{extension}", self.name);
        let path = self.folder.join(&name);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(unfinished(&path))?;
        let head = (self.format.head)(&name, now);
        file.write_all(&head)?;
        sync_folder(&self.folder)?;
        Ok(Current {
            file,
            path,
            day,
            bytes: head.len() as u64,
            held: Held::new(),
        })
    }

    /// Gives the open file its final name.
    fn finish(&self, open: &mut Open) -> io::Result<()> {
        let Some(current) = open.current.take() else {
            return Ok(());
        };
        current.file.sync_all()?;
        fs::rename(unfinished(&current.path), &current.path)?;
        sync_folder(&self.folder)?;
        open.before = current.held;
        Ok(())
    }

    /// Takes the folder over from whoever wrote there last.
    fn open_folder(&self) -> io::Result<Open> {
        fs::create_dir_all(&self.folder)?;
        let lock = File::create(self.folder.join(format!(".{}.lock", self.name)))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other(format!(
                    "another process writes to {}",
                    self.folder.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut open = Open {
            _lock: lock,
            current: None,
            before: Held::new(),
        };
        let mut unfinished: Vec<_> = self
            .names()?
            .into_iter()
            .filter_map(|(day, number, name)| {
                let final_name = name.strip_suffix(UNFINISHED)?.to_owned();
                Some((day, number, final_name))
            })
            .collect();
        unfinished.sort();
        for (day, _, name) in unfinished {
            self.finish(&mut open)?;
            open.current = self.resume(&self.folder.join(name), day)?;
        }
        Ok(open)
    }

    /// Opens a file that was not finished, without its torn end.
    fn resume(&self, path: &Path, day: Date) -> io::Result<Option<Current>> {
        let part = unfinished(path);
        let file = OpenOptions::new().read(true).write(true).open(&part)?;
        let mut reader = BufReader::new(file);
        let whole = (self.format.scan)(&mut reader)?;
        let mut file = reader.into_inner();
        if whole.held.is_empty() {
            fs::remove_file(&part)?;
            return Ok(None);
        }
        let torn = file.metadata()?.len() - whole.bytes;
        if torn > 0 {
            warn!(file = %part.display(), bytes = torn, "cut off what was half written");
        }
        file.set_len(whole.bytes)?;
        file.seek(SeekFrom::End(0))?;
        file.sync_all()?;
        Ok(Some(Current {
            file,
            path: path.to_owned(),
            day,
            bytes: whole.bytes,
            held: whole.held,
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
                .filter(|(_, end)| matches!(*end, "" | UNFINISHED))
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

impl Open {
    /// This revision is there, or a newer one.
    fn has(&self, record: &Record) -> bool {
        let current = self.current.as_ref().map(|current| &current.held);
        let mut known = current.into_iter().chain([&self.before]);
        known.any(|held| {
            held.get(&record.id)
                .is_some_and(|revision| *revision >= record.revision)
        })
    }
}

/// Remembers the newest revision of a document.
pub(crate) fn note(held: &mut Held, id: &str, revision: i64) {
    let known = held.entry(id.to_owned()).or_insert(revision);
    *known = revision.max(*known);
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED);
    PathBuf::from(name)
}

/// A new name is on disk only when its folder is.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
