//! The node: one data folder, with an id that is random, created once and kept in
//! the folder. Sinks that write files belong to the node whose folder has them.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::Context as _;

const FILE: &str = "node-id";

/// The id of the node, if its folder has one.
pub(crate) fn existing_id(folder: &Path) -> anyhow::Result<Option<String>> {
    let path = folder.join(FILE);
    match fs::read_to_string(&path) {
        Ok(id) if !id.trim().is_empty() => Ok(Some(id.trim().to_owned())),
        Ok(_) => anyhow::bail!("{} is empty; delete it", path.display()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// The id of the node; created if its folder has none.
pub(crate) fn id(folder: &Path) -> anyhow::Result<String> {
    if let Some(id) = existing_id(folder)? {
        return Ok(id);
    }
    create(folder).with_context(|| format!("cannot create {}", folder.join(FILE).display()))?;
    existing_id(folder)?.context("the node id is gone")
}

/// Complete as soon as it has its name, and never replaced: another process may
/// create it at the same time.
fn create(folder: &Path) -> std::io::Result<()> {
    let random = getrandom::u32().map_err(|error| std::io::Error::other(error.to_string()))?;
    fs::create_dir_all(folder)?;
    let draft = folder.join(format!("{FILE}.{random:08x}"));
    let mut file = fs::File::create_new(&draft)?;
    writeln!(file, "{}-{random:08x}", host_name())?;
    file.sync_all()?;
    let linked = fs::hard_link(&draft, folder.join(FILE));
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

/// So that people know which machine it is; only Linux has it in a file.
fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let name: String = name.chars().filter(is_plain).take(40).collect();
    match name.is_empty() {
        true => "node".to_owned(),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_node_keeps_its_id() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        assert_eq!(existing_id(&data).unwrap(), None);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn({
                    let data = data.clone();
                    move || id(&data).unwrap()
                })
            })
            .collect();
        let first = id(&data).unwrap();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), first);
        }
        assert_eq!(fs::read_dir(&data).unwrap().count(), 1);
        assert_ne!(id(&folder.path().join("other")).unwrap(), first);
    }
}
