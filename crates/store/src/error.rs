//! Errors of the store. Callers need to know which of three it is: transient and
//! worth a retry, an invalid request, or corrupt data.

use thiserror::Error;

/// A failed store operation.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database is unreachable or overloaded; a retry may succeed, and nothing
    /// was partially applied.
    #[error("store unavailable: {location}: {why}")]
    Unavailable { location: String, why: String },
    /// The database rejected the operation; a retry would fail too.
    #[error("store operation failed: {location}: {why}")]
    Failed { location: String, why: String },
    /// A new row got an id that another process has drawn, too.
    #[error("store operation failed: {location}: {why}")]
    IdTaken { location: String, why: String },
    /// The address of a store is invalid.
    #[error(
        "invalid store address {address:?}: {why}; use sqlite:FILE or postgres://USER@HOST/DATABASE"
    )]
    Address { address: String, why: String },
    /// The schema was written by a newer program.
    #[error(
        "the store {location} has schema version {found}, this program supports up to {known}; \
         upgrade tidings, or migrate down with the newer one"
    )]
    TooNew {
        location: String,
        found: i64,
        known: i64,
    },
    /// A list is too long to be sorted.
    #[error("more than {max} URLs match: order them by id or newest, or narrow the filter")]
    TooManyToSort { max: u32 },
    /// The requested object does not exist.
    #[error("there is no {what}")]
    NotFound { what: String },
    /// The request conflicts with stored data.
    #[error("{0}")]
    Conflict(String),
    /// A stored value can't be decoded.
    #[error("corrupt {what} in the store: {why}")]
    Corrupt { what: &'static str, why: String },
}

impl StoreError {
    /// Whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::NotFound { what: what.into() }
    }

    pub(crate) fn corrupt(what: &'static str, why: impl std::fmt::Display) -> Self {
        Self::Corrupt {
            what,
            why: why.to_string(),
        }
    }
}

pub type Result<T, E = StoreError> = std::result::Result<T, E>;
