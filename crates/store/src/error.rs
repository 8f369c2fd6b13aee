//! Why the store could not do what it was asked. Callers need three answers:
//! is it worth trying again, is the request wrong, or is the data?

use thiserror::Error;

/// A failed request to the store.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database can't be reached or is in trouble; the same call may work
    /// in a moment, and nothing was half done.
    #[error("the store {place} does not answer: {why}")]
    Unavailable { place: String, why: String },
    /// The database refused for good.
    #[error("the store {place} failed: {why}")]
    Failed { place: String, why: String },
    /// The address of a store can't be understood.
    #[error("{address:?} is not a store: {why}; use sqlite:FILE or postgres://USER@HOST/DATABASE")]
    Address { address: String, why: String },
    /// The schema was written by a newer program.
    #[error(
        "the store {place} has schema version {found}, this program knows up to {known}; \
         upgrade tidings, or migrate down with the newer one"
    )]
    TooNew {
        place: String,
        found: i64,
        known: i64,
    },
    /// A list would have to be sorted that is too long for that.
    #[error("more than {most} URLs match: order them by id or newest, or narrow the filter")]
    TooManyToSort { most: u32 },
    /// What was asked for does not exist.
    #[error("there is no {what}")]
    NotFound { what: String },
    /// What was asked for contradicts what is there.
    #[error("{0}")]
    Conflict(String),
    /// A stored value can't be read back.
    #[error("the store holds a broken {what}: {why}")]
    Corrupt { what: &'static str, why: String },
}

impl StoreError {
    /// Whether the same call may succeed in a moment.
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
