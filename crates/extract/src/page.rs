//! The input: the page, what is known about it from elsewhere, and its resource
//! limits. Plain values; the clock and the CPU budget come from the caller.

use std::fmt;

use jiff::Timestamp;

use crate::dates::When;
use crate::selectors::Selectors;
use crate::site_memory::SiteMemory;

/// A page to extract from.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    pub html: &'a [u8],
    /// The address that the page was fetched from, after redirects.
    pub url: &'a str,
    /// The charset of the Content-Type header.
    pub charset: Option<&'a str>,
    /// Selectors configured for the source.
    pub selectors: Option<&'a Selectors>,
    /// The feed's entry for the page.
    pub feed: Option<&'a FeedEntry>,
    /// Later dates are ignored.
    pub now: Timestamp,
}

/// A feed's metadata of an item: the fallback where the page has none.
#[derive(Debug, Clone, Default)]
pub struct FeedEntry {
    pub title: Option<String>,
    pub authors: Vec<String>,
    pub published: Option<When>,
    pub modified: Option<When>,
    /// Plain text or HTML.
    pub summary: Option<String>,
    pub language: Option<String>,
    pub tags: Vec<String>,
    pub image: Option<String>,
}

/// Resource limits of a page. Beyond a limit the rest of the page is left out.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub html_bytes: usize,
    pub depth: usize,
    pub attributes_per_tag: usize,
    /// Runs of text.
    pub texts: usize,
    /// Elements and texts together.
    pub nodes: usize,
    /// Bytes of one run of text.
    pub text_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            html_bytes: 15 << 20,
            depth: 512,
            attributes_per_tag: 256,
            texts: 50_000,
            nodes: 200_000,
            text_bytes: 1 << 20,
        }
    }
}

/// How to extract.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    pub limits: Limits,
    pub quality: QualityBounds,
    /// Also return the text as Markdown.
    pub markdown: bool,
    /// Also report for every block of the page why it is in the article or not.
    pub explain: bool,
    /// What is known of other pages of the site: what they have too is left out,
    /// and the article carries what can be learned from it (`SiteMemory::learn`).
    pub site: Option<&'a SiteMemory>,
    /// Whether CPU time is left. Checked inside the loops; after the first `false`
    /// the cheap method is used and the article is marked as cut.
    pub within_budget: &'a dyn Fn() -> bool,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            quality: QualityBounds::default(),
            markdown: false,
            explain: false,
            site: None,
            within_budget: &|| true,
        }
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("limits", &self.limits)
            .field("quality", &self.quality)
            .field("markdown", &self.markdown)
            .field("explain", &self.explain)
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

/// Minimum characters of each quality.
#[derive(Debug, Clone, Copy)]
pub struct QualityBounds {
    pub full: usize,
    pub summary: usize,
    pub stub: usize,
}

impl Default for QualityBounds {
    fn default() -> Self {
        Self {
            full: 2_000,
            summary: 500,
            stub: 100,
        }
    }
}
