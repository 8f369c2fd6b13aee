//! The machine that is measured on, as Linux reports it: never its name, never a
//! path of it. What can't be read is left out.

use std::fs;
use std::path::{Path, PathBuf};

use super::report::Fact;

pub(super) fn facts() -> Vec<Fact> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let all = [
        ("processor", field("/proc/cpuinfo", "model name")),
        ("cores", Some(cores.to_string())),
        ("memory", memory()),
        ("kernel", kernel()),
        ("disk of the databases", disk(&std::env::temp_dir())),
    ];
    let fact = |(name, value): (_, Option<String>)| value.map(|value| Fact { name, value });
    all.into_iter().filter_map(fact).collect()
}

/// The first line `name: value` of a file.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(found, _)| found.trim() == name)?;
    Some(value.trim().to_owned())
}

fn memory() -> Option<String> {
    let kib = field("/proc/meminfo", "MemTotal")?;
    let kib: f64 = kib.split_whitespace().next()?.parse().ok()?;
    Some(format!("{:.1} GiB", kib / 1024.0 / 1024.0))
}

fn kernel() -> Option<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(format!("Linux {}", release.trim()))
}

/// The file system that a folder is on, and whether its disk says that it turns.
fn disk(folder: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let folder = folder.canonicalize().ok()?;
    let (device, system) = mount(&mounts, &folder)?;
    // A partition has no queue of its own; its disk, one folder up, has.
    let block = PathBuf::from("/sys/dev/block").join(device);
    let queues = [
        block.join("queue/rotational"),
        block.join("../queue/rotational"),
    ];
    let turns = queues.iter().find_map(|file| fs::read_to_string(file).ok());
    let kind = match turns.as_deref().map(str::trim) {
        Some("0") => " on a non-rotational disk (SSD)",
        Some("1") => " on a rotational disk",
        _ => "",
    };
    Some(format!("{system}{kind}"))
}

/// Device number and file system of the mount that holds a folder: the last of
/// those with the longest path, which lies on top.
fn mount<'a>(mounts: &'a str, folder: &Path) -> Option<(&'a str, &'a str)> {
    let read = |line: &'a str| {
        let (place, system) = line.split_once(" - ")?;
        let fields: Vec<&str> = place.split(' ').collect();
        let path = Path::new(*fields.get(4)?);
        let holds = folder.starts_with(path);
        holds.then_some((path, *fields.get(2)?, system.split(' ').next()?))
    };
    let holding = mounts.lines().filter_map(read);
    let (_, device, system) = holding.max_by_key(|found| found.0.components().count())?;
    Some((device, system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_on_the_mount_with_the_longest_path() {
        let mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw shared:5 - proc proc rw
24 22 0:30 / /tmp rw - tmpfs tmpfs rw
25 22 8:17 / /tmp rw - xfs /dev/sdb1 rw";
        let found = |folder| mount(mounts, Path::new(folder));
        assert_eq!(found("/tmp/x"), Some(("8:17", "xfs")));
        assert_eq!(found("/tmpfiles"), Some(("8:1", "ext4")));
        assert_eq!(found("nowhere"), None);
    }
}
