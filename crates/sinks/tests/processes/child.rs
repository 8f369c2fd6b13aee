//! Processes to kill: the tests start themselves with one test to run, which
//! writes down how far it came.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A process that dies with the test.
pub(crate) struct Child {
    process: std::process::Child,
    said: PathBuf,
}

impl Child {
    /// Runs one test of this binary as `role`.
    pub(crate) fn start(test: &str, role: &str, folder: &Path) -> Self {
        let said = folder.join("said");
        let _ = std::fs::remove_file(&said);
        let process = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env("TIDINGS_TEST_ROLE", role)
            .env("TIDINGS_TEST_FOLDER", folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, said }
    }

    /// The last number that it said.
    fn last_said(&self) -> usize {
        let text = std::fs::read_to_string(&self.said).unwrap_or_default();
        // A line without an end was cut by the death.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().last().map_or(0, |line| line.parse().unwrap())
    }

    pub(crate) fn wait_until_it_said(&self, least: usize) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.last_said() < least {
            assert!(Instant::now() < deadline, "the child does nothing");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGKILL: no drain, no goodbye. Gives the last number that it said.
    pub(crate) fn kill(&mut self) -> usize {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.last_said()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The folder, and where to say things, if this process was started as `role`.
pub(crate) fn me(role: &str) -> Option<(PathBuf, File)> {
    if std::env::var("TIDINGS_TEST_ROLE").ok()? != role {
        return None;
    }
    let folder = PathBuf::from(std::env::var_os("TIDINGS_TEST_FOLDER")?);
    let said = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("said"))
        .unwrap();
    Some((folder, said))
}

pub(crate) fn say(said: &mut File, number: usize) {
    said.write_all(format!("{number}\n").as_bytes()).unwrap();
}
