//! A document of what a page, its feed and its source say. Pure: the page is
//! read already, and the time comes in.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use tidings_document::{
    ContentQuality, Document, Extraction, FeedFacts, HttpFacts, License, RobotsFlags, Sketch,
};
use tidings_extract::{Article, FeedEntry, Quality, Sourced, When};
use tidings_store::{Claim, NewDocument, StoredDocument};
use tidings_text::hex;

use super::sources::KnownSource;

/// What a feed said of an item, as it travelled with its URL.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    title: Option<String>,
    summary: Option<String>,
    pub(super) content: Option<String>,
    guid: Option<String>,
    authors: Vec<String>,
    categories: Vec<String>,
    published: Option<String>,
    updated: Option<String>,
    image: Option<String>,
    language: Option<String>,
    feed_title: Option<String>,
    feed_url: Option<String>,
    /// The item is the document: no page is asked for.
    pub(super) is_document: bool,
    /// The whole text, where it is not HTML.
    pub(super) plain_text: Option<String>,
    content_type: Option<String>,
    license: Option<License>,
}

impl Said {
    /// What can't be read was not said.
    pub(super) fn of(claim: &Claim) -> Self {
        claim
            .item
            .as_deref()
            .and_then(|item| serde_json::from_str(item).ok())
            .unwrap_or_default()
    }

    /// The text stands for a longer one.
    pub(super) fn is_abstract(&self) -> bool {
        self.content_type.as_deref() == Some("abstract")
    }

    /// For the extractor, which believes it where the page says nothing.
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

/// How the page was had.
pub(super) struct Fetch<'a> {
    pub(super) claim: &'a Claim,
    pub(super) source: &'a KnownSource,
    pub(super) said: &'a Said,
    pub(super) final_url: &'a str,
    pub(super) status: u16,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    pub(super) raw_html: Option<String>,
    pub(super) now: Timestamp,
}

/// Fields of `raw_content` that the document has under names of its own.
const TOLD_ELSEWHERE: [&str; 4] = ["url", "title", "raw_text", "word_count"];

pub(super) fn document(article: Article, fetch: Fetch<'_>, id: String) -> Document {
    let Fetch {
        claim,
        source,
        said,
        ..
    } = fetch;
    let value = |field: Option<Sourced<String>>| field.map(|sourced| sourced.value);
    let moment = |field: Option<Sourced<When>>| field.map(|sourced| sourced.value.timestamp());
    let mut raw_content = match serde_json::to_value(&article.raw_content) {
        Ok(Json::Object(fields)) => fields,
        _ => Map::new(),
    };
    for name in TOLD_ELSEWHERE {
        raw_content.remove(name);
    }
    let settings = &source.settings;
    let mut tags = settings.tags.clone();
    for tag in article.tags.map(|tags| tags.value).unwrap_or_default() {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    Document {
        id,
        url: claim.url.as_str().to_owned(),
        final_url: (fetch.final_url != claim.url.as_str()).then(|| fetch.final_url.to_owned()),
        canonical_url: value(article.canonical_url),
        source_id: claim.source_id,
        source_name: source.name.clone(),
        origin: claim.origin.as_str().to_owned(),
        title: value(article.title).unwrap_or_default(),
        excerpt: article.excerpt,
        body_text: article.text,
        raw_html: fetch.raw_html,
        authors: article
            .authors
            .map(|authors| authors.value)
            .unwrap_or_default(),
        published_at: moment(article.published),
        modified_at: moment(article.modified),
        fetched_at: fetch.now,
        language: value(article.language),
        section: value(article.section),
        tags,
        image: value(article.image),
        site_name: value(article.site_name),
        word_count: article.word_count as u64,
        content_type: settings
            .content_type
            .clone()
            .or_else(|| said.content_type.clone())
            .unwrap_or_else(|| "article".to_owned()),
        content_quality: quality(article.quality),
        license: settings.license.or(said.license).unwrap_or(License::Rss),
        content_hash: article.content_hash,
        extraction: Extraction {
            method: article.method.as_str().to_owned(),
            confidence: article.confidence,
            page_type: article.page_type.as_str().to_owned(),
            paywall: article.flags.paywall,
            cut: article.cut,
        },
        robots: RobotsFlags {
            noindex: article.robots.noindex,
            nofollow: article.robots.nofollow,
            noarchive: article.robots.noarchive,
        },
        feed: FeedFacts {
            guid: said.guid.clone(),
            title: said.feed_title.clone(),
            url: said.feed_url.clone(),
        },
        http: HttpFacts {
            status: fetch.status,
            etag: fetch.etag,
            last_modified: fetch.last_modified,
        },
        raw_content,
        ..Document::default()
    }
}

fn quality(quality: Quality) -> ContentQuality {
    match quality {
        Quality::TitleOnly => ContentQuality::TitleOnly,
        Quality::Stub => ContentQuality::Stub,
        Quality::Summary => ContentQuality::Summary,
        Quality::Full => ContentQuality::Full,
    }
}

/// The row of a document; `None` when it can't be written down as JSON, which
/// strings, numbers and lists always can.
pub(super) fn row(
    document: &Document,
    key: tidings_url::UrlKey,
    sketch: Option<Sketch>,
) -> Option<NewDocument> {
    Some(NewDocument {
        key,
        source_id: document.source_id,
        title: document.title.clone(),
        content_hash: document.content_hash.as_deref().and_then(hex::decode),
        sketch,
        body: serde_json::to_string(document).ok()?,
    })
}

/// A document as the store keeps it: what is the store's to say is from its row.
pub fn stored_document(stored: &StoredDocument) -> serde_json::Result<Document> {
    let document: Document = serde_json::from_str(&stored.body)?;
    Ok(Document {
        id: stored.id.to_string(),
        revision: i64::from(stored.revision),
        duplicate_of: stored.duplicate_of.map(|key| key.to_string()),
        cluster: Some(stored.cluster.to_string()),
        ..document
    })
}
