//! Where the `tidings` binary is, for benchmarks and fault scenarios that run it
//! as a child process. Only looks; never builds.

use std::io;
use std::path::{Path, PathBuf};

/// The named binary, or the one next to this executable (or next to its `deps`
/// folder, where cargo puts test executables).
pub fn tidings_binary(named: Option<&Path>) -> io::Result<PathBuf> {
    let place = match named {
        Some(place) => std::path::absolute(place)?,
        None => beside(&std::env::current_exe()?),
    };
    match place.is_file() {
        true => Ok(place),
        false => Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "no tidings binary at {}; build it with `cargo build -p tidings{}`, or name it with --tidings PATH or TIDINGS_BIN",
                place.display(),
                if cfg!(debug_assertions) {
                    ""
                } else {
                    " --release"
                }
            ),
        )),
    }
}

fn beside(executable: &Path) -> PathBuf {
    let folder = executable.parent().unwrap_or(Path::new("."));
    let folder = match folder.file_name().is_some_and(|name| name == "deps") {
        true => folder.parent().unwrap_or(folder),
        false => folder,
    };
    folder.join("tidings")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_is_next_to_this_one_or_above_its_deps() {
        for executable in [
            "/target/debug/tidings-chaos",
            "/target/debug/deps/scenarios-1f",
        ] {
            assert_eq!(
                beside(Path::new(executable)),
                Path::new("/target/debug/tidings")
            );
        }
    }

    #[test]
    fn a_missing_binary_names_the_command_that_builds_it() {
        let error = tidings_binary(Some(Path::new("/nowhere/tidings"))).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("/nowhere/tidings"), "{text}");
        assert!(text.contains("cargo build -p tidings"), "{text}");
    }
}
