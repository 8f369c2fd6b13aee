//! What a feed or service said of an item, as it travelled with its URL: metadata
//! for the extractor, and sometimes the whole text. Pure.

use serde::Deserialize;
use tidings_document::{ContentQuality, License};
use tidings_extract::{FeedEntry, When};
use tidings_store::Claim;

/// The JSON that the poller submitted with the URL.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FeedHints {
    pub(super) title: Option<String>,
    summary: Option<String>,
    pub(super) content: Option<String>,
    pub(super) guid: Option<String>,
    authors: Vec<String>,
    categories: Vec<String>,
    published: Option<String>,
    updated: Option<String>,
    image: Option<String>,
    language: Option<String>,
    pub(super) feed_title: Option<String>,
    pub(super) feed_url: Option<String>,
    /// The item is the document: no page is fetched.
    pub(super) is_document: bool,
    /// The whole text, where it is not HTML.
    pub(super) plain_text: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) license: Option<License>,
    /// As judged from the item.
    pub(super) content_quality: Option<ContentQuality>,
    pub(super) feed_md5: Option<String>,
}

impl FeedHints {
    /// Empty when there are none, or they do not parse.
    pub(super) fn of(claim: &Claim) -> Self {
        claim
            .item
            .as_deref()
            .and_then(|item| serde_json::from_str(item).ok())
            .unwrap_or_default()
    }

    /// The text is an abstract of a longer one.
    pub(super) fn is_abstract(&self) -> bool {
        self.content_type.as_deref() == Some("abstract")
    }

    /// For the extractor, which uses it where the page has no metadata.
    pub(super) fn entry(&self) -> FeedEntry {
        let when = |date: &Option<String>| date.as_deref().and_then(When::parse);
        FeedEntry {
            title: self.title.clone(),
            authors: self.authors.clone(),
            published: when(&self.published),
            modified: when(&self.updated),
            summary: self.content.clone().or_else(|| self.summary.clone()),
            language: self.language.clone(),
            tags: self.categories.clone(),
            image: self.image.clone(),
        }
    }
}
