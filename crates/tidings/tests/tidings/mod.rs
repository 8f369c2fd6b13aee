//! Calls the binary in an empty folder with a clean environment, so that what
//! is on the developer's machine can't change a result.

#![allow(dead_code)]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// One call of the binary.
pub(crate) struct Run {
    folder: tempfile::TempDir,
    command: Command,
    stdin: String,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn tidings(args: &[&str]) -> Ended {
    Run::new(args).run()
}

pub(crate) fn command(args: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidings"));
    command.args(args).current_dir(folder).env_clear();
    command
}

/// Shuts a process down gracefully, and returns its exit code.
pub(crate) fn terminate(mut child: std::process::Child) -> Option<i32> {
    // The shell's own `kill`: the program of that name is not everywhere.
    let kill = format!("kill -TERM {}", child.id());
    let sent = Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert!(sent.success());
    child.wait().unwrap().code()
}

impl Run {
    pub(crate) fn new(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let command = command(args, folder.path());
        Self {
            folder,
            command,
            stdin: String::new(),
        }
    }

    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.folder.path().join(name), text).unwrap();
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn stdin(mut self, text: &str) -> Self {
        text.clone_into(&mut self.stdin);
        self
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn run(self) -> Ended {
        self.run_keeping().0
    }

    /// Runs it and returns its folder too, to see what it wrote there.
    pub(crate) fn run_keeping(mut self) -> (Ended, tempfile::TempDir) {
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(self.stdin.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let ended = Ended {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        (ended, self.folder)
    }
}
