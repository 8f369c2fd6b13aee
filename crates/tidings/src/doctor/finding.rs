//! One thing that a doctor found.

use serde::Serialize;

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// Something does not work, or soon will not.
    AdapterErrorKind,
    WorthKnowing,
    Fine,
}

impl Severity {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::AdapterErrorKind => "trouble",
            Self::WorthKnowing => "worth knowing",
            Self::Fine => "fine",
        }
    }
}

/// What was found, with its figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// What it is about, in a word.
    pub(crate) about: &'static str,
    pub(crate) what: String,
    /// Why it matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// What to do about it: a command, or a setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl Finding {
    pub(crate) fn trouble(
        about: &'static str,
        what: impl Into<String>,
        why: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::AdapterErrorKind,
            about,
            what: what.into(),
            why: Some(why.into()),
            next: Some(next.into()),
        }
    }

    pub(crate) fn notable(
        about: &'static str,
        what: impl Into<String>,
        why: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::WorthKnowing,
            ..Self::trouble(about, what, why, next)
        }
    }

    pub(crate) fn fine(about: &'static str, what: impl Into<String>) -> Self {
        Self {
            severity: Severity::Fine,
            about,
            what: what.into(),
            why: None,
            next: None,
        }
    }
}
