//! The formats that feeds have, and the defects that real ones have: names only;
//! `render` writes them.

use serde::Serialize;

/// A syndication format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedFormat {
    Rss090,
    Rss091,
    Rss092,
    Rss1,
    Rss2,
    Atom03,
    Atom1,
    Json1,
    Json11,
}

impl FeedFormat {
    pub const ALL: &'static [Self] = &[
        Self::Rss090,
        Self::Rss091,
        Self::Rss092,
        Self::Rss1,
        Self::Rss2,
        Self::Atom03,
        Self::Atom1,
        Self::Json1,
        Self::Json11,
    ];

    pub(crate) fn is_json(self) -> bool {
        matches!(self, Self::Json1 | Self::Json11)
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Atom03 | Self::Atom1 => "application/atom+xml; charset=utf-8",
            Self::Json1 | Self::Json11 => "application/feed+json",
            Self::Rss090 | Self::Rss1 => "application/rdf+xml; charset=utf-8",
            _ => "application/rss+xml; charset=utf-8",
        }
    }
}

/// One way in which a feed is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedDefect {
    BareAmpersand,
    HtmlEntities,
    LeadingJunk,
    Bom,
    WrongCharsetLabel,
    Latin1Undeclared,
    Utf16,
    TruncatedTail,
    ControlCharacters,
    InvalidByte,
    MismatchedEndTag,
    UndeclaredPrefix,
    WrongContentType,
    UndeclaredGzip,
    RelativeLinks,
    GuidOnly,
    NoDates,
    OddDates,
    ZeroDates,
    DoubleEscapedTitles,
    RepeatedItems,
}

impl FeedDefect {
    pub const ALL: &'static [Self] = &[
        Self::BareAmpersand,
        Self::HtmlEntities,
        Self::LeadingJunk,
        Self::Bom,
        Self::WrongCharsetLabel,
        Self::Latin1Undeclared,
        Self::Utf16,
        Self::TruncatedTail,
        Self::ControlCharacters,
        Self::InvalidByte,
        Self::MismatchedEndTag,
        Self::UndeclaredPrefix,
        Self::WrongContentType,
        Self::UndeclaredGzip,
        Self::RelativeLinks,
        Self::GuidOnly,
        Self::NoDates,
        Self::OddDates,
        Self::ZeroDates,
        Self::DoubleEscapedTitles,
        Self::RepeatedItems,
    ];

    /// Whether a feed of this format can have this defect.
    pub(crate) fn fits(self, format: FeedFormat) -> bool {
        match self {
            Self::Bom
            | Self::WrongContentType
            | Self::UndeclaredGzip
            | Self::RelativeLinks
            | Self::NoDates
            | Self::ZeroDates
            | Self::RepeatedItems => true,
            // Only RSS 2.0 has a guid that may stand for the link.
            Self::GuidOnly => format == FeedFormat::Rss2,
            _ => !format.is_json(),
        }
    }
}
