//! Where a value came from. Every field of an article remembers it, so that a
//! wrong one can be explained.

use serde::Serialize;

/// Who said it, in the order of trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A selector of the source.
    Selector,
    JsonLd,
    OpenGraph,
    Twitter,
    DublinCore,
    /// A meta tag of no family.
    Meta,
    Microdata,
    /// An element of the page: a heading, `time`, `link`, `lang`.
    Html,
    /// The text of the page.
    Text,
    /// The address of the page.
    Url,
    /// The feed that announced the page.
    Feed,
}

/// A value and who said it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sourced<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Sourced<T> {
    pub(crate) fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}
