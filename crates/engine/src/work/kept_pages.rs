//! The pages as they came, compressed, in a folder: one file for each content,
//! named after it. Written under another name first, so that a file with its
//! final name is whole. Never deletes.

use std::fs;
use std::io;
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use tidings_text::hex;

/// The level at which pages are compressed: fast, and a fifth of the size.
const LEVEL: i32 = 3;

#[derive(Debug, Clone)]
pub struct PageArchive {
    folder: PathBuf,
}

impl PageArchive {
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Keeps a page; its name from now on.
    pub fn keep(&self, page: &[u8]) -> io::Result<String> {
        let name = hex::encode(Sha256::digest(page));
        let path = self.path(&name);
        if path.exists() {
            return Ok(name);
        }
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)?;
        let compressed = zstd::bulk::compress(page, LEVEL)?;
        // Two that keep the same page at once write two files and rename both.
        let random = getrandom::u64().map_err(io::Error::other)?;
        let draft = folder.join(format!("{name}.{random:016x}.draft"));
        let written = fs::write(&draft, compressed).and_then(|()| fs::rename(&draft, &path));
        if written.is_err() {
            // What can't be written is not worth keeping half.
            let _ = fs::remove_file(&draft);
        }
        written.map(|()| name)
    }

    /// A page that was kept, if it is (still) there.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let is_name = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_name {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{name:?} is not the name of a page"),
            ));
        }
        zstd::stream::decode_all(fs::File::open(self.path(name))?)
    }

    fn path(&self, name: &str) -> PathBuf {
        let (shelf, rest) = name.split_at(2);
        self.folder.join(shelf).join(format!("{rest}.html.zst"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_can_be_read_and_is_kept_once() {
        let folder = tempfile::tempdir().unwrap();
        let pages = PageArchive::in_folder(folder.path().to_owned());
        let page = "<p>word</p>".repeat(1000);
        let name = pages.keep(page.as_bytes()).unwrap();
        assert_eq!(pages.keep(page.as_bytes()).unwrap(), name);
        assert_eq!(pages.read(&name).unwrap(), page.as_bytes());
        let shelf = folder.path().join(&name[..2]);
        let files: Vec<_> = fs::read_dir(shelf).unwrap().collect();
        assert_eq!(files.len(), 1);
        assert!(files[0].as_ref().unwrap().metadata().unwrap().len() < 200);
        for name in ["../../etc/passwd", "", "ab"] {
            assert!(pages.read(name).is_err(), "{name}");
        }
    }
}
