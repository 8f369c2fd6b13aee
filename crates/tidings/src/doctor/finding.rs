//! One finding of the doctor.

use serde::Serialize;

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// Something does not work, or soon will not.
    Error,
    /// It works, but slower, incompletely or with a risk.
    Warning,
    Ok,
}

impl Severity {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Ok => "ok",
        }
    }
}

/// A finding with its figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// The subject, in a word.
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
    pub(crate) fn error(
        about: &'static str,
        what: impl Into<String>,
        why: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Error,
            about,
            what: what.into(),
            why: Some(why.into()),
            next: Some(next.into()),
        }
    }

    pub(crate) fn warning(
        about: &'static str,
        what: impl Into<String>,
        why: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(about, what, why, next)
        }
    }

    pub(crate) fn ok(about: &'static str, what: impl Into<String>) -> Self {
        Self {
            severity: Severity::Ok,
            about,
            what: what.into(),
            why: None,
            next: None,
        }
    }
}
