//! Calls the binary in an empty folder with a clean environment, so that what
//! is on the developer's machine can't change a result.

use std::process::{Command, Stdio};

/// One call of the binary.
pub(crate) struct Run {
    folder: tempfile::TempDir,
    command: Command,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn new(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidings-bench"));
        command.args(args).current_dir(folder.path()).env_clear();
        Self { folder, command }
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it; its folder lives on, to see what it left there.
    pub(crate) fn run(mut self) -> (Ended, tempfile::TempDir) {
        let output = self.command.stdin(Stdio::null()).output().unwrap();
        let ended = Ended {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        (ended, self.folder)
    }
}
