//! Parameters in the path or the query: how a route describes them, the check of
//! each value, and the checked values that a handler reads.

use std::collections::BTreeMap;
use std::str::FromStr;

use tidings_store::FrontierId;

use crate::problem::Problem;

pub(crate) const STATUSES: &[&str] = &["pending", "fetching", "fetched", "failed", "dead"];
pub(crate) const ORIGINS: &[&str] = &["feed", "sitemap", "spider", "manual", "api", "agent"];
pub(crate) const SORT_ORDERS: &[&str] = &["id", "newest", "recent", "due", "priority"];
/// The largest integer that every JSON reader represents exactly.
pub(crate) const MAX_ID: i64 = (1 << 53) - 1;
const DEFAULT_LIMIT: u32 = 50;

/// A parameter as a route describes it.
#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) kind: ParamKind,
    pub(crate) is_required: bool,
    pub(crate) description: &'static str,
}

impl Param {
    pub(crate) const fn optional(
        name: &'static str,
        kind: ParamKind,
        description: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            is_required: false,
            description,
        }
    }

    pub(crate) const fn required(
        name: &'static str,
        kind: ParamKind,
        description: &'static str,
    ) -> Self {
        Self {
            is_required: true,
            ..Self::optional(name, kind, description)
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum ParamKind {
    Text,
    /// 48 hex digits.
    FrontierId,
    Number {
        min: i64,
        max: i64,
    },
    OneOf(&'static [&'static str]),
    Flag,
    Time,
}

impl ParamKind {
    pub(crate) const ID: Self = Self::Number {
        min: 0,
        max: MAX_ID,
    };

    pub(crate) fn check(self, name: &str, value: &str) -> Result<(), Problem> {
        let invalid = |why: String| Err(Problem::field(name, format!("{name} {why}")));
        match self {
            Self::Text if value.len() > 4096 => invalid("is longer than 4096 bytes".to_owned()),
            Self::Text if value.contains('\0') => invalid("contains a NUL byte".to_owned()),
            Self::Text => Ok(()),
            Self::FrontierId => match value.parse::<FrontierId>() {
                Ok(_) => Ok(()),
                Err(_) => invalid("is not 48 hex digits".to_owned()),
            },
            Self::Number { min, max } => match value.parse::<i64>() {
                Ok(number) if (min..=max).contains(&number) => Ok(()),
                _ => invalid(format!("is not a whole number from {min} to {max}")),
            },
            Self::OneOf(words) if words.contains(&value) => Ok(()),
            Self::OneOf(words) => invalid(format!("is not one of {}", words.join(", "))),
            Self::Flag if matches!(value, "true" | "false" | "1" | "0" | "on") => Ok(()),
            Self::Flag => invalid("is neither true nor false".to_owned()),
            Self::Time => match value.parse::<jiff::Timestamp>() {
                Ok(_) => Ok(()),
                Err(_) => invalid("is not a time such as 2026-11-01T00:00:00Z".to_owned()),
            },
        }
    }
}

/// Parameters that passed the checks of their route.
#[derive(Debug)]
pub(crate) struct Params(BTreeMap<String, String>);

impl Params {
    pub(crate) fn new(checked: BTreeMap<String, String>) -> Self {
        Self(checked)
    }

    /// A parameter that is not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|text| !text.is_empty())
    }

    pub(crate) fn parsed<T: FromStr<Err: ToString>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, Problem> {
        let parse = |text: &str| {
            text.parse()
                .map_err(|error: T::Err| Problem::field(name, error.to_string()))
        };
        self.text(name).map(parse).transpose()
    }

    pub(crate) fn required<T: FromStr<Err: ToString>>(&self, name: &str) -> Result<T, Problem> {
        self.parsed(name)?
            .ok_or_else(|| Problem::field(name, format!("{name} is missing")))
    }

    pub(crate) fn frontier_id(&self) -> Result<FrontierId, Problem> {
        self.required("id")
    }

    pub(crate) fn limit(&self) -> Result<u32, Problem> {
        Ok(self.parsed("limit")?.unwrap_or(DEFAULT_LIMIT))
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        matches!(self.text(name), Some("true" | "1" | "on"))
    }

    /// Whether the client waits for what it starts: unless `wait=false`.
    pub(crate) fn waits(&self) -> bool {
        !matches!(self.text("wait"), Some("false" | "0"))
    }

    pub(crate) fn set_default(&mut self, name: &str, value: &str) {
        let entry = self.0.entry(name.to_owned());
        entry.or_insert_with(|| value.to_owned());
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}
