//! A key that can't be printed, and is removed from every text of a service.

use std::fmt;

use crate::adapter::{AdapterError, AdapterErrorKind, PullContext};

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    /// The key of this name; the error says how to set it.
    fn required(context: &PullContext<'_>, name: &str) -> Result<Self, AdapterError> {
        Self::find(context, name).ok_or_else(|| {
            AdapterError::new(
                AdapterErrorKind::Auth,
                format!("the key is missing: set the environment variable {name}, or {name}_FILE to a file that holds it"),
            )
        })
    }

    /// The one key of a service: of the configured variable, else of the usual one.
    pub(crate) fn key(context: &PullContext<'_>, usual: &str) -> Result<Self, AdapterError> {
        let name = context.service.key_env.as_deref().unwrap_or(usual);
        Self::required(context, name)
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
