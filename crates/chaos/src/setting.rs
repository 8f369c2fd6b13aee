//! What a fault scenario is given: the engine, its size, and the binary under test.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        })
    }
}

/// How hard, on which engine, and with which binary.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) engine: Engine,
    pub(crate) quick: bool,
    /// The `tidings` binary whose processes are put to the test.
    pub(crate) tidings: &'static Path,
}

impl Setting {
    /// One of two figures: of the quick form, or of the full one.
    pub(crate) fn size<T>(self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// The timeout for one step.
    pub(crate) fn step_timeout(self) -> Duration {
        Duration::from_secs(self.size(30, 120))
    }

    /// The timeout for all the work of a scenario.
    pub(crate) fn work_timeout(self) -> Duration {
        Duration::from_secs(self.size(60, 1800))
    }

    /// How long a URL belongs to a process that does not extend its lease.
    pub(crate) fn lease(self) -> Duration {
        self.size(Duration::from_secs(3), Duration::from_secs(60))
    }
}

/// Whether a program is installed and this call of it succeeds.
pub(crate) fn can_run(program: &str, args: &[&str]) -> bool {
    let tried = Command::new(program).args(args).output();
    tried.is_ok_and(|output| output.status.success())
}
