//! The output: the article and everything known about it. Values only; every
//! field that could be wrong has its origin.

use serde::Serialize;
use tidings_document::Sketch;

use crate::dates::When;
use crate::provenance::Sourced;
use crate::raw_content::RawContent;

/// An extracted page.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Article {
    /// The main text: paragraphs separated by a blank line, NFC, no markup.
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub markdown: Option<String>,
    /// The beginning of the text (or the description), at most 200 characters, cut at a word.
    pub excerpt: String,
    pub title: Option<Sourced<String>>,
    pub authors: Option<Sourced<Vec<String>>>,
    pub published: Option<Sourced<When>>,
    pub modified: Option<Sourced<When>>,
    /// ISO 639-1.
    pub language: Option<Sourced<String>>,
    pub description: Option<Sourced<String>>,
    pub section: Option<Sourced<String>>,
    /// Lower-case, words joined by hyphens.
    pub tags: Option<Sourced<Vec<String>>>,
    pub image: Option<Sourced<String>>,
    pub site_name: Option<Sourced<String>>,
    pub canonical_url: Option<Sourced<String>>,
    /// An address or a name, as the page gives it.
    pub license: Option<Sourced<String>>,
    /// A selector of the source for important articles matched.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub important: bool,
    pub word_count: usize,
    pub page_type: PageType,
    pub quality: Quality,
    pub flags: Flags,
    pub robots: Robots,
    /// SHA-256 of the text, case, punctuation and whitespace folded; none for an empty text.
    pub content_hash: Option<String>,
    /// For near-duplicate detection; none for a text that is too short.
    #[serde(skip)]
    pub sketch: Option<Sketch>,
    /// Links in the main text.
    pub links: Vec<Link>,
    /// Images in the main text.
    pub images: Vec<Image>,
    pub method: Method,
    /// 0 to 1: how likely it is that the text is the article and all of it.
    pub confidence: f32,
    /// A limit or the CPU budget was reached: something may be missing.
    pub cut: bool,
    pub charset: &'static str,
    pub raw_content: RawContent,
    /// Hashes of the blocks that other pages of the site may have, too, if a
    /// memory of the site was given.
    #[serde(skip)]
    pub(crate) prints: Vec<u32>,
    /// Why each block is in the article or not, if `explain` is set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockNote>,
}

/// What kind of page it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PageType {
    Article,
    Listing,
    /// Too little text to be an article.
    Stub,
    #[default]
    Other,
}

impl PageType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Article => "article",
            Self::Listing => "listing",
            Self::Stub => "stub",
            Self::Other => "other",
        }
    }
}

/// How much of the article there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    #[default]
    TitleOnly,
    Stub,
    Summary,
    Full,
}

impl Quality {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TitleOnly => "title_only",
            Self::Stub => "stub",
            Self::Summary => "summary",
            Self::Full => "full",
        }
    }
}

/// What keeps the reader from the article.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Flags {
    pub paywall: bool,
    pub consent_wall: bool,
    /// A success status, but the text says that there is no such page.
    pub soft_404: bool,
    pub captcha: bool,
    pub amp: bool,
}

/// What the page allows robots to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Robots {
    pub noindex: bool,
    pub nofollow: bool,
    pub noarchive: bool,
}

/// How the text was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// By a selector of the source.
    Selector,
    /// By weighing the blocks of the page.
    Blocks,
    /// From the body in the structured data, because the page itself has none.
    JsonLd,
    /// From the feed, because the page has none.
    Feed,
    /// Without judging: the CPU budget was spent.
    Cheap,
    /// Nothing was found.
    #[default]
    Nothing,
}

impl Method {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Selector => "selector",
            Self::Blocks => "blocks",
            Self::JsonLd => "json_ld",
            Self::Feed => "feed",
            Self::Cheap => "cheap",
            Self::Nothing => "nothing",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    pub url: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Image {
    pub url: String,
    pub alt: String,
}

/// One block of the page and its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockNote {
    /// `kept`, or why not.
    pub verdict: String,
    /// Kind, size, links, roles.
    pub why: String,
    /// Its ancestors, innermost element first.
    pub path: String,
    pub text: String,
}
