//! The origin of a value. Every field of an article has one, so that a wrong
//! value can be explained.

use serde::Serialize;

/// Where a value came from, in order of precedence.
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

/// A value and its origin.
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
