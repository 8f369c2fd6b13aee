//! Why the configuration is invalid: all problems, each with its place.

use std::fmt;

/// All problems of the configuration, each with its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfigError(Vec<String>);

impl ConfigError {
    pub(crate) fn new(problems: Vec<String>) -> Self {
        Self(problems)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [problem] => write!(f, "{problem}"),
            problems => {
                write!(f, "the configuration has {} problems", problems.len())?;
                problems
                    .iter()
                    .try_for_each(|problem| write!(f, "\n  {problem}"))
            }
        }
    }
}
