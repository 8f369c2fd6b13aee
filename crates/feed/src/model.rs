//! What a feed is to the rest of Tidings, whatever format it came in: one item
//! model, one feed model. Values only; how they are found is elsewhere.

use std::fmt;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::defect::Defects;
use crate::html::{self, Tags};

/// A parsed feed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Feed {
    pub format: Format,
    pub title: Option<String>,
    pub description: Option<String>,
    /// The page that the feed belongs to.
    pub home_page: Option<String>,
    /// Where the feed says it lives.
    pub self_url: Option<String>,
    /// WebSub hubs.
    pub hubs: Vec<String>,
    /// The next page of an archived or paged feed (RFC 5005).
    pub next_page: Option<String>,
    pub language: Option<String>,
    pub generator: Option<String>,
    pub image: Option<String>,
    pub updated: Option<Timestamp>,
    /// Minutes that a copy may be kept (`ttl`).
    pub ttl_minutes: Option<u32>,
    /// Hours (0–23, UTC) in which nothing is published.
    pub skip_hours: Vec<u8>,
    /// English names of days on which nothing is published.
    pub skip_days: Vec<String>,
    pub update_period: Option<UpdatePeriod>,
    /// Updates in each period; 1 when a period stands alone.
    pub update_frequency: Option<u32>,
    pub items: Vec<Item>,
    /// What was repaired, and where.
    pub defects: Defects,
}

/// One entry of a feed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Item {
    /// Absolute, unless nothing was known to resolve it against.
    pub link: Option<String>,
    pub guid: Option<String>,
    /// The feed says that the guid is the address of the article.
    pub guid_is_permalink: bool,
    /// Plain text.
    pub title: Option<String>,
    pub summary: Option<Markup>,
    pub content: Option<Markup>,
    pub content_quality: ContentQuality,
    pub authors: Vec<String>,
    pub categories: Vec<String>,
    pub published: Option<Timestamp>,
    pub updated: Option<Timestamp>,
    pub enclosures: Vec<Enclosure>,
    pub image: Option<String>,
    pub language: Option<String>,
    /// The page with the discussion.
    pub comments: Option<String>,
}

impl Item {
    /// When it was published, or else last changed.
    pub fn date(&self) -> Option<Timestamp> {
        self.published.or(self.updated)
    }
}

/// A file that comes with an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Enclosure {
    pub url: String,
    pub media_type: Option<String>,
    pub bytes: Option<u64>,
}

/// Text that may hold HTML, kept as it was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Markup {
    source: String,
    is_html: bool,
}

impl Markup {
    pub(crate) fn new(source: String, is_html: bool) -> Self {
        Self { source, is_html }
    }

    /// As published: HTML if [`Self::is_html`], plain text otherwise.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub fn is_html(&self) -> bool {
        self.is_html
    }

    /// Plain text: tags stripped, references decoded once, no scripts.
    pub fn text(&self) -> String {
        if self.is_html {
            html::text(&self.source, Tags::Any)
        } else {
            html::collapse(&self.source)
        }
    }

    /// Whether more than `limit` characters of text are in it.
    pub(crate) fn has_more_than(&self, limit: usize) -> bool {
        if self.is_html {
            html::has_more_than(limit, &self.source, Tags::Any)
        } else {
            html::is_longer_than(limit, &self.source)
        }
    }
}

impl Serialize for Markup {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

/// How much of the article a feed carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentQuality {
    #[default]
    TitleOnly,
    /// A summary of a hundred characters or fewer.
    Stub,
    Summary,
    /// The content element holds text.
    Full,
}

impl ContentQuality {
    /// A longer summary says something about the article.
    const STUB_CHARACTERS: usize = 100;

    pub(crate) fn of(summary: Option<&Markup>, content: Option<&Markup>) -> Self {
        let more_than = |markup: Option<&Markup>, limit| {
            markup.is_some_and(|markup: &Markup| markup.has_more_than(limit))
        };
        if more_than(content, 0) {
            Self::Full
        } else if more_than(summary, Self::STUB_CHARACTERS) {
            Self::Summary
        } else if more_than(summary, 0) {
            Self::Stub
        } else {
            Self::TitleOnly
        }
    }
}

/// The unit of `sy:updatePeriod`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdatePeriod {
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

impl UpdatePeriod {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let all = [
            ("hourly", Self::Hourly),
            ("daily", Self::Daily),
            ("weekly", Self::Weekly),
            ("monthly", Self::Monthly),
            ("yearly", Self::Yearly),
        ];
        let text = text.trim();
        let found = all.iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
        found.map(|(_, period)| *period)
    }
}

/// The format of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    Rss090,
    Rss091,
    Rss092,
    Rss093,
    Rss094,
    Rss10,
    Rss11,
    Rss20,
    /// RSS of a version that nobody published, or none.
    RssOther,
    Atom03,
    Atom10,
    JsonFeed10,
    JsonFeed11,
    Cdf,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rss090 => "RSS 0.90",
            Self::Rss091 => "RSS 0.91",
            Self::Rss092 => "RSS 0.92",
            Self::Rss093 => "RSS 0.93",
            Self::Rss094 => "RSS 0.94",
            Self::Rss10 => "RSS 1.0",
            Self::Rss11 => "RSS 1.1",
            Self::Rss20 => "RSS 2.0",
            Self::RssOther => "RSS",
            Self::Atom03 => "Atom 0.3",
            Self::Atom10 => "Atom 1.0",
            Self::JsonFeed10 => "JSON Feed 1.0",
            Self::JsonFeed11 => "JSON Feed 1.1",
            Self::Cdf => "CDF",
        })
    }
}

impl Feed {
    pub(crate) fn empty(format: Format) -> Self {
        Self {
            format,
            title: None,
            description: None,
            home_page: None,
            self_url: None,
            hubs: Vec::new(),
            next_page: None,
            language: None,
            generator: None,
            image: None,
            updated: None,
            ttl_minutes: None,
            skip_hours: Vec::new(),
            skip_days: Vec::new(),
            update_period: None,
            update_frequency: None,
            items: Vec::new(),
            defects: Defects::default(),
        }
    }
}
