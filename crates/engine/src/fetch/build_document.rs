//! Builds the document from the extracted article, the hints of its feed and the
//! settings of its source. Pure: the page is read already, and the time comes in.

use jiff::Timestamp;
use serde_json::{Map, Value as Json};
use tidings_document::{
    ContentQuality, Document, Extraction, FeedFacts, HttpFacts, License, RobotsFlags, Sketch,
    normalize_tag,
};
use tidings_extract::{Article, Quality, Sourced, When};
use tidings_store::{Claim, NewDocument};
use tidings_text::hex;

use super::feed_hints::FeedHints;
use super::source_cache::CachedSource;

/// Where the article comes from: claim, source, hints and response.
pub(super) struct Provenance<'a> {
    pub(super) claim: &'a Claim,
    pub(super) source: &'a CachedSource,
    pub(super) hints: &'a FeedHints,
    pub(super) final_url: &'a str,
    pub(super) status: u16,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    pub(super) raw_html: Option<String>,
    pub(super) now: Timestamp,
}

/// The longest text that a document keeps: a book has less.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Fields of `raw_content` that the document has under other names.
const DUPLICATED_FIELDS: [&str; 4] = ["url", "title", "raw_text", "word_count"];

pub(super) fn document(article: Article, provenance: Provenance<'_>, id: String) -> Document {
    let Provenance {
        claim,
        source,
        hints,
        ..
    } = provenance;
    let value = |field: Option<Sourced<String>>| field.map(|sourced| sourced.value);
    let moment = |field: Option<Sourced<When>>| field.map(|sourced| sourced.value.timestamp());
    let mut raw_content = match serde_json::to_value(&article.raw_content) {
        Ok(Json::Object(fields)) => fields,
        _ => Map::new(),
    };
    for name in DUPLICATED_FIELDS {
        raw_content.remove(name);
    }
    let (body_text, is_truncated) = start(article.text, MAX_TEXT_BYTES);
    let settings = &source.settings;
    let own = article.tags.map(|tags| tags.value).unwrap_or_default();
    let tags = normalized_tags(settings.tags.iter().chain(&own));
    let mut important_tags = settings.important_tags.iter();
    let has_important_tag = important_tags.any(|tag| tags.contains(&normalize_tag(tag)));
    Document {
        id,
        url: claim.url.as_str().to_owned(),
        final_url: (provenance.final_url != claim.url.as_str())
            .then(|| provenance.final_url.to_owned()),
        canonical_url: value(article.canonical_url),
        source_id: claim.source_id,
        source_name: source.name.clone(),
        origin: claim.origin.as_str().to_owned(),
        title: value(article.title).unwrap_or_default(),
        excerpt: article.excerpt,
        body_text,
        raw_html: provenance.raw_html,
        authors: article
            .authors
            .map(|authors| authors.value)
            .unwrap_or_default(),
        published_at: moment(article.published),
        modified_at: moment(article.modified),
        fetched_at: provenance.now,
        language: value(article.language),
        section: value(article.section),
        tags,
        image: value(article.image),
        site_name: value(article.site_name),
        word_count: article.word_count as u64,
        content_type: settings
            .content_type
            .clone()
            .or_else(|| hints.content_type.clone())
            .unwrap_or_else(|| "article".to_owned()),
        content_quality: quality(article.quality),
        license: settings.license.or(hints.license).unwrap_or(License::Rss),
        important: settings.important || has_important_tag || article.important,
        content_hash: article.content_hash,
        extraction: Extraction {
            method: article.method.as_str().to_owned(),
            confidence: article.confidence,
            page_type: article.page_type.as_str().to_owned(),
            paywall: article.flags.paywall,
            cut: article.cut,
            truncated: is_truncated,
        },
        robots: RobotsFlags {
            noindex: article.robots.noindex,
            nofollow: article.robots.nofollow,
            noarchive: article.robots.noarchive,
        },
        feed: FeedFacts {
            guid: hints.guid.clone(),
            title: hints.feed_title.clone(),
            url: hints.feed_url.clone(),
        },
        feed_md5: hints.feed_md5.clone(),
        http: HttpFacts {
            status: provenance.status,
            etag: provenance.etag,
            last_modified: provenance.last_modified,
        },
        raw_content,
        ..Document::default()
    }
}

/// Tags in the one spelling of documents, each once.
fn normalized_tags<'a>(raw: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for tag in raw.map(|tag| normalize_tag(tag)) {
        if !tag.is_empty() && !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags
}

/// At most this many bytes of a text, and whether it has more.
fn start(mut text: String, max_bytes: usize) -> (String, bool) {
    let is_longer = text.len() > max_bytes;
    let mut end = max_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.shrink_to_fit();
    (text, is_longer)
}

fn quality(quality: Quality) -> ContentQuality {
    match quality {
        Quality::TitleOnly => ContentQuality::TitleOnly,
        Quality::Stub => ContentQuality::Stub,
        Quality::Summary => ContentQuality::Summary,
        Quality::Full => ContentQuality::Full,
    }
}

/// The row of a document; `None` when it cannot be serialized, which strings,
/// numbers and lists always can.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_one_spelling_and_are_listed_once() {
        let raw = ["World News", "world-news", "Wire", "--", "wire"].map(str::to_owned);
        assert_eq!(normalized_tags(raw.iter()), ["world-news", "wire"]);
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let rows = [
            ("", 4, "", false),
            ("harbour", 7, "harbour", false),
            ("harbour", 4, "harb", true),
            ("käse", 2, "k", true),
            ("käse", 3, "kä", true),
        ];
        for (text, max_bytes, expected, is_longer) in rows {
            let cut = start(text.to_owned(), max_bytes);
            assert_eq!(
                cut,
                (expected.to_owned(), is_longer),
                "{text} at {max_bytes}"
            );
        }
    }
}
