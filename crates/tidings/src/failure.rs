//! How a command fails: a message with the cause and the next step, and the exit
//! code that scripts rely on.

use std::fmt;
use std::process::ExitCode;

use crate::config_error::ConfigError;

/// The end of a command that did not work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The configuration is invalid: exit code 78 (`EX_CONFIG`).
    Config(ConfigError),
    /// Something that the configuration names is invalid: exit code 78 too.
    InvalidConfig(anyhow::Error),
    /// The command failed: exit code 1.
    Command(anyhow::Error),
    /// The reason was printed with the results already: exit code 1.
    Reported,
    /// Reported already as well, and the configuration is the reason: exit code 78.
    ReportedConfig,
}

impl Failure {
    /// Prints the reason and returns the exit code.
    #[allow(clippy::print_stderr)]
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Config(error) => {
                eprintln!("error: {error}");
                ExitCode::from(78)
            }
            Self::InvalidConfig(error) => {
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

/// The reason in one line, for commands that report several.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => write!(f, "{error}"),
            Self::InvalidConfig(error) | Self::Command(error) => write!(f, "{error:#}"),
            Self::Reported | Self::ReportedConfig => f.write_str("reported above"),
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
