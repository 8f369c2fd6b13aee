//! Why bytes gave no feed or sitemap at all. Everything less is a defect of a
//! result that exists; an empty result without a reason does not.

use std::fmt;

use serde::Serialize;

/// The bytes are not of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[error("not a {wanted}: the document is {found}{}", found.hint())]
pub struct NotRecognised {
    pub wanted: Wanted,
    pub found: Found,
}

/// What the caller expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    Feed,
    Sitemap,
}

/// What the bytes are instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "detail")]
pub enum Found {
    Empty,
    /// A web page. Discovery may find the feed that belongs to it.
    Html,
    /// A sitemap where a feed was wanted.
    Sitemap,
    /// An OPML list of feeds.
    Opml,
    /// Well-formed JSON that is no JSON Feed; the top-level keys are named.
    OtherJson(String),
    /// XML whose root element is unknown.
    OtherXml(String),
    /// The gzip stream is damaged from the start.
    BadGzip,
    /// Images, archives, PDF and so on.
    Binary,
    /// Plain text without any markup.
    Text,
}

impl Found {
    fn hint(&self) -> &'static str {
        match self {
            Self::Html => "; look for its feeds with discovery",
            Self::Opml => "; import the feeds that it lists",
            _ => "",
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Feed => "feed",
            Self::Sitemap => "sitemap",
        })
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("empty"),
            Self::Html => f.write_str("an HTML page"),
            Self::Sitemap => f.write_str("a sitemap"),
            Self::Opml => f.write_str("an OPML list of feeds"),
            Self::OtherJson(keys) if keys.is_empty() => f.write_str("JSON of another shape"),
            Self::OtherJson(keys) => write!(f, "JSON of another shape (keys: {keys})"),
            Self::OtherXml(root) => write!(f, "XML with the root element <{root}>"),
            Self::BadGzip => f.write_str("a gzip stream that can't be read"),
            Self::Binary => f.write_str("binary data"),
            Self::Text => f.write_str("plain text"),
        }
    }
}
