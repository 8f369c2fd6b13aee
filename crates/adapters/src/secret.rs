//! A key that can't be printed, and is taken out of every text that others wrote.

use std::fmt;

use crate::adapter::{AdapterError, AdapterErrorKind, PullContext};

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    /// The key of this name; the error says where to put it.
    pub(crate) fn needed(context: &PullContext<'_>, name: &str) -> Result<Self, AdapterError> {
        Self::find(context, name).ok_or_else(|| {
            AdapterError::new(
                AdapterErrorKind::Auth,
                format!("there is no key: set the environment variable {name}, or {name}_FILE to a file that holds it"),
            )
        })
    }

    pub(crate) fn find(context: &PullContext<'_>, name: &str) -> Option<Self> {
        let found = context.secrets.secret(name)?;
        let found = found.trim();
        (!found.is_empty()).then(|| Self(found.to_owned()))
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    pub(crate) fn hide_in(&self, text: &str) -> String {
        text.replace(&self.0, "[hidden]")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}
