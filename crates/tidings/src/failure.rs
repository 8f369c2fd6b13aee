//! How a command fails: a message that says what happened and what to do next,
//! and the exit code that scripts rely on.

use std::fmt;
use std::process::ExitCode;

use crate::config::ConfigError;

/// The end of a command that did not work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The configuration can't be used: exit code 78 (`EX_CONFIG`).
    Config(ConfigError),
    /// What is configured can't be used by this program: exit code 78 too.
    Unusable(anyhow::Error),
    /// The command could not do its work: exit code 1.
    Command(anyhow::Error),
    /// The reason was printed with the results already: exit code 1.
    Reported,
    /// So was this one, and it is the configuration: exit code 78.
    ReportedConfig,
}

impl Failure {
    /// Prints the reason for people and gives the code for programs.
    #[allow(clippy::print_stderr)]
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Config(error) => {
                eprintln!("error: {error}");
                ExitCode::from(78)
            }
            Self::Unusable(error) => {
                print(&error);
                ExitCode::from(78)
            }
            Self::Command(error) => {
                print(&error);
                ExitCode::FAILURE
            }
            Self::Reported => ExitCode::FAILURE,
            Self::ReportedConfig => ExitCode::from(78),
        }
    }
}

#[allow(clippy::print_stderr)]
fn print(error: &anyhow::Error) {
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("  because: {cause}");
    }
}

/// The reason in one line, for those who tell more than one.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => write!(f, "{error}"),
            Self::Unusable(error) | Self::Command(error) => write!(f, "{error:#}"),
            Self::Reported | Self::ReportedConfig => f.write_str("the reason was told before"),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Command(error)
    }
}
