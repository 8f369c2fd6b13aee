//! Passwords and keys: read from the environment or from a file, held in a type
//! that prints nothing, and redacted from every text that servers send.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::context::{BuildError, Context};

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// The text without this secret: servers echo what they were sent.
    pub(crate) fn redact(&self, text: &str) -> String {
        if self.0.is_empty() {
            text.to_owned()
        } else {
            text.replace(&self.0, "[hidden]")
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// Reads the secret named by `KEY_env` or `KEY_file`; none if neither is set.
/// Surrounding white space is trimmed.
pub(crate) fn read(
    context: &Context,
    key: &str,
    env: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<Secret>, BuildError> {
    let text = match (env, file) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(BuildError(format!(
                "{key}_env and {key}_file are both set; remove one"
            )));
        }
        (Some(variable), None) => (context.environment)(variable).ok_or_else(|| {
            BuildError(format!(
                "{key}_env names the environment variable {variable}, which is not set"
            ))
        })?,
        (None, Some(path)) => {
            let path: PathBuf = context.folder.join(path);
            std::fs::read_to_string(&path).map_err(|error| {
                BuildError(format!(
                    "{key}_file: cannot read {}: {error}",
                    path.display()
                ))
            })?
        }
    };
    let text = text.trim();
    if text.is_empty() {
        return Err(BuildError(format!("{key} is empty")));
    }
    Ok(Some(Secret(text.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed_and_is_redacted_from_texts() {
        let secret = Secret("hunter2".to_owned());
        assert_eq!(format!("{secret:?}"), "[hidden]");
        assert_eq!(secret.redact("wrong key hunter2!"), "wrong key [hidden]!");
    }
}
