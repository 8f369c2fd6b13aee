//! What a document is: the value that workers build from a page (or an adapter
//! from an API item), that the store holds as JSON, and that every sink delivers.
//!
//! Values only. Fields that are unknown are left out of the JSON, and readers
//! accept documents that older versions wrote.

mod sketch;
mod tag;

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use sketch::{KEYS, LOOKUP_KEYS, MIN_SIMILARITY, Sketch};
pub use tag::normalize_tag;

/// A document. Id, revision, `duplicate_of` and `cluster` are the store's: they
/// are set when it is read back, whatever the JSON says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Document {
    /// The url key of the final URL, in hex.
    pub id: String,
    /// Grows when the content changes.
    pub revision: i64,
    /// The URL that was requested.
    pub url: String,
    /// The URL of the response, when redirects led elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// The address that the page declares for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canonical_url: Option<String>,
    pub source_id: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source_name: String,
    /// How its URL was found: `feed`, `sitemap`, `spider`, `manual`, `api`, `agent`.
    pub origin: String,
    pub title: String,
    /// At most 200 characters, cut at a word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub excerpt: String,
    /// The main text: paragraphs parted by a blank line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body_text: String,
    /// The name of the page in the page archive, if it is archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_html: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_at: Option<Timestamp>,
    pub fetched_at: Timestamp,
    /// ISO 639-1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// Lower-case, words joined by hyphens.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_name: Option<String>,
    pub word_count: u64,
    /// `article`, `poem`, …
    pub content_type: String,
    pub content_quality: ContentQuality,
    pub license: License,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub important: bool,
    /// SHA-256 of the normalised text, in hex; none for an empty text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
    /// The earliest document with the same text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_of: Option<String>,
    /// Documents that are nearly the same (wire copies) share one: the frontier
    /// id of the first of them, its own for a document that is like no other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    pub extraction: Extraction,
    pub robots: RobotsFlags,
    #[serde(skip_serializing_if = "FeedFacts::is_empty")]
    pub feed: FeedFacts,
    /// MD5 of URL and title as a feed or service listed them, in hex: the id of
    /// articles in sembr.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed_md5: Option<String>,
    pub http: HttpFacts,
    /// What the page said of itself, in the names and types of the
    /// `raw_content` index (`og_*`, `meta_*`, `json_ld_data`, `meta`).
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub raw_content: Map<String, Value>,
}

impl Document {
    /// The address to show: where the page was found at last.
    pub fn address(&self) -> &str {
        self.final_url.as_deref().unwrap_or(&self.url)
    }

    /// The text that an exporter may pass on: all of it if the licence allows
    /// that, else the excerpt.
    pub fn exportable_text(&self) -> &str {
        if self.license.allows_full_text() {
            &self.body_text
        } else {
            &self.excerpt
        }
    }
}

/// How much of the article there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentQuality {
    #[default]
    TitleOnly,
    Stub,
    Summary,
    Full,
}

impl ContentQuality {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TitleOnly => "title_only",
            Self::Stub => "stub",
            Self::Summary => "summary",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for ContentQuality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What may be done with the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum License {
    PublicDomain,
    /// Published in a feed: excerpts may be shown.
    #[default]
    Rss,
    Restricted,
    /// Under the terms of an API.
    Api,
}

impl License {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PublicDomain => "public-domain",
            Self::Rss => "rss",
            Self::Restricted => "restricted",
            Self::Api => "api",
        }
    }

    pub fn allows_full_text(self) -> bool {
        self == Self::PublicDomain
    }
}

impl fmt::Display for License {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for License {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::PublicDomain, Self::Rss, Self::Restricted, Self::Api]
            .into_iter()
            .find(|license| license.as_str() == text)
            .ok_or_else(|| format!("{text:?} is not one of public-domain, rss, restricted, api"))
    }
}

/// How the text was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Extraction {
    pub method: String,
    /// 0 to 1.
    pub confidence: f32,
    /// `article`, `listing`, `stub`, `other`.
    pub page_type: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paywall: bool,
    /// A limit was reached: something may be missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The text is the start of a longer one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// What the page allows robots to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RobotsFlags {
    pub noindex: bool,
    pub nofollow: bool,
    pub noarchive: bool,
}

/// What the feed said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FeedFacts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl FeedFacts {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The HTTP response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpFacts {
    pub status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_written_can_be_read_and_older_documents_too() {
        let document = Document {
            id: "ab".into(),
            title: "Bread".into(),
            published_at: Some("2026-11-15T09:00:00Z".parse().unwrap()),
            license: License::PublicDomain,
            tags: vec!["baking".into()],
            ..Document::default()
        };
        let json = serde_json::to_string(&document).unwrap();
        assert_eq!(serde_json::from_str::<Document>(&json).unwrap(), document);
        let old: Document = serde_json::from_str(r#"{"title":"x","unknown":1}"#).unwrap();
        assert_eq!(old.title, "x");
    }

    #[test]
    fn only_free_texts_leave_whole() {
        let document = |license| Document {
            excerpt: "short".into(),
            body_text: "long".into(),
            license,
            ..Document::default()
        };
        assert_eq!(document(License::PublicDomain).exportable_text(), "long");
        for license in [License::Rss, License::Restricted, License::Api] {
            assert_eq!(document(license).exportable_text(), "short");
        }
    }
}
