//! Processes to kill: the tests start their own binary with one test to run, which
//! reports its progress in a file.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A process that dies with the test.
pub(crate) struct Child {
    process: std::process::Child,
    progress: PathBuf,
}

impl Child {
    /// Runs one test of this binary as `role`.
    pub(crate) fn start(test: &str, role: &str, folder: &Path) -> Self {
        let progress = folder.join("progress");
        let _ = std::fs::remove_file(&progress);
        let process = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env("TIDINGS_TEST_ROLE", role)
            .env("TIDINGS_TEST_FOLDER", folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, progress }
    }

    /// The last number that it reported.
    fn last_progress(&self) -> usize {
        let text = std::fs::read_to_string(&self.progress).unwrap_or_default();
        // An incomplete last line was cut by the kill.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().last().map_or(0, |line| line.parse().unwrap())
    }

    pub(crate) fn wait_for_progress(&self, least: usize) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.last_progress() < least {
            assert!(Instant::now() < deadline, "the child makes no progress");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGKILL, without shutdown. Returns the last number that it reported.
    pub(crate) fn kill(&mut self) -> usize {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.last_progress()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The folder and the progress file, if this process was started as `role`.
pub(crate) fn started_as(role: &str) -> Option<(PathBuf, File)> {
    if std::env::var("TIDINGS_TEST_ROLE").ok()? != role {
        return None;
    }
    let folder = PathBuf::from(std::env::var_os("TIDINGS_TEST_FOLDER")?);
    let progress = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("progress"))
        .unwrap();
    Some((folder, progress))
}

pub(crate) fn report_progress(progress: &mut File, number: usize) {
    progress
        .write_all(format!("{number}\n").as_bytes())
        .unwrap();
}
