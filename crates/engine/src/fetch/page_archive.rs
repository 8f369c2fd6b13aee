//! The page archive: raw pages, compressed, in a folder; one file per content,
//! named by its hash. Written under a temporary name first, so that a file with
//! its final name is complete. Never deletes.

use std::fs;
use std::io;
use std::path::PathBuf;

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
}
