//! The page archive: raw pages, compressed, in a folder; one file per content,
//! named by its hash. Written under a temporary name first, so that a file with
//! its final name is complete.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use tidings_text::hex;

/// The zstd level: fast, and a fifth of the size.
const LEVEL: i32 = 3;

#[derive(Debug, Clone)]
pub struct PageArchive {
    folder: PathBuf,
}

impl PageArchive {
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Saves a page; returns its name.
    pub fn save(&self, page: &[u8]) -> io::Result<String> {
        let name = hex::encode(Sha256::digest(page));
        let path = self.path(&name);
        if path.exists() {
            // It counts as new: [`PageArchive::prune`] goes by this time.
            let file = fs::File::options().append(true).open(&path)?;
            file.set_modified(SystemTime::now())?;
            return Ok(name);
        }
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)?;
        let compressed = zstd::bulk::compress(page, LEVEL)?;
        // Concurrent saves of the same page write two files and rename both.
        let random = getrandom::u64().map_err(io::Error::other)?;
        let draft = folder.join(format!("{name}.{random:016x}.draft"));
        let written = fs::write(&draft, compressed).and_then(|()| fs::rename(&draft, &path));
        if written.is_err() {
            // An incomplete file is of no use.
            let _ = fs::remove_file(&draft);
        }
        written.map(|()| name)
    }

    /// Reads an archived page.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let is_name = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_name {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{name:?} is not the name of an archived page"),
            ));
        }
        zstd::stream::decode_all(fs::File::open(self.path(name))?)
    }

    /// Deletes pages that were last saved longer ago; returns how many.
    pub fn prune(&self, ttl: Duration, now: SystemTime) -> io::Result<u64> {
        let mut removed = 0;
        let folders = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            folders => folders?,
        };
        for folder in folders {
            for file in fs::read_dir(folder?.path())? {
                let file = file?;
                let age = now.duration_since(file.metadata()?.modified()?);
                // One from the future is new.
                if age.unwrap_or_default() > ttl {
                    fs::remove_file(file.path())?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }

    fn path(&self, name: &str) -> PathBuf {
        let (prefix, rest) = name.split_at(2);
        self.folder.join(prefix).join(format!("{rest}.html.zst"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_page_can_be_read_and_is_stored_once() {
        let folder = tempfile::tempdir().unwrap();
        let archive = PageArchive::in_folder(folder.path().to_owned());
        let page = "<p>word</p>".repeat(1000);
        let name = archive.save(page.as_bytes()).unwrap();
        assert_eq!(archive.save(page.as_bytes()).unwrap(), name);
        assert_eq!(archive.read(&name).unwrap(), page.as_bytes());
        let prefix = folder.path().join(&name[..2]);
        let files: Vec<_> = fs::read_dir(prefix).unwrap().collect();
        assert_eq!(files.len(), 1);
        assert!(files[0].as_ref().unwrap().metadata().unwrap().len() < 200);
        for name in ["../../etc/passwd", "", "ab"] {
            assert!(archive.read(name).is_err(), "{name}");
        }
    }

    #[test]
    fn pages_that_were_saved_long_ago_are_deleted() {
        const DAY: Duration = Duration::from_secs(86_400);
        let folder = tempfile::tempdir().unwrap();
        let archive = PageArchive::in_folder(folder.path().join("pages"));
        let now = SystemTime::now();
        assert_eq!(archive.prune(DAY, now).unwrap(), 0, "there is none yet");
        let names = ["one", "two", "three"].map(|page| archive.save(page.as_bytes()).unwrap());
        for name in &names[..2] {
            let file = fs::File::options().append(true).open(archive.path(name));
            file.unwrap().set_modified(now - 3 * DAY).unwrap();
        }
        // A page that is served again is not old.
        archive.save(b"two").unwrap();
        assert_eq!(archive.prune(2 * DAY, now).unwrap(), 1);
        let is_there = names.map(|name| archive.read(&name).is_ok());
        assert_eq!(is_there, [false, true, true]);
    }
}
