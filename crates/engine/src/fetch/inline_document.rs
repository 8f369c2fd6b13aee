//! Inline documents: texts that came with their URL from a feed or a service (whole
//! texts, summaries, abstracts). No page is fetched. CPU only.

use tidings_document::ContentQuality;
use tidings_extract::{
    Article, FeedEntry, Method, Options, Origin, Page, Quality, Selector, Selectors, Sourced,
    content_hash, sketch,
};
use tidings_store::Outcome;
use tidings_text::hex;
use tidings_url::ProxyHosts;

use super::build_document::{self, Provenance};
use super::feed_hints::FeedHints;
use super::job::Job;
use super::source_cache::CachedSource;
use super::{Extractor, outcome};
use crate::sources::target;

const EXCERPT_CHARS: usize = 200;

/// A claim whose item is the document.
pub(super) struct InlineDocument {
    job: Job,
    hints: FeedHints,
}

impl InlineDocument {
    /// `None` for a page that must be fetched.
    pub(super) fn of(job: &Job) -> Option<Self> {
        let hints = FeedHints::of(&job.claim);
        let has_text = hints.plain_text.is_some() || hints.content.is_some();
        (hints.is_document && has_text).then(|| Self {
            job: job.clone(),
            hints,
        })
    }

    pub(super) fn read(
        self,
        extractor: Extractor,
        source: &CachedSource,
        proxies: &ProxyHosts,
    ) -> Outcome {
        let Self { job, hints } = self;
        let claim = &job.claim;
        let entry = hints.entry();
        // HTML is extracted like a page; for plain text only the metadata is.
        let content = hints.content.as_deref().unwrap_or_default();
        let html = format!("<article>{content}</article>");
        // All of it is the text: there is no page around it to leave out.
        let selectors = Selectors {
            body: Selector::parse("article").ok(),
            remove: source.selectors.remove.clone(),
            important: source.selectors.important.clone(),
            ..Selectors::default()
        };
        let page = Page {
            html: html.as_bytes(),
            url: claim.url.as_str(),
            charset: Some("utf-8"),
            selectors: Some(&selectors),
            feed: Some(&entry),
            now: job.now,
        };
        let mut article: Article = extractor(&page, &Options::default());
        if let Some(plain) = &hints.plain_text {
            article.text = paragraphs(plain);
            article.excerpt = excerpt(&article.text);
            article.word_count = article.text.split_whitespace().count();
            article.content_hash = content_hash(&article.text);
            article.sketch = sketch(&article.text);
        }
        prefer_entry(&mut article, entry);
        article.quality = quality(&hints);
        article.method = Method::Feed;
        let content_hash = article.content_hash.as_deref().and_then(hex::decode);
        let provenance = Provenance {
            claim,
            source,
            hints: &hints,
            final_url: claim.url.as_str(),
            status: 200,
            etag: None,
            last_modified: None,
            raw_html: None,
            now: job.now,
        };
        let own = target(claim.url.clone(), &source.settings.rules(), proxies);
        let sketch = article.sketch.take();
        let document = build_document::document(article, provenance, own.key.to_string());
        let Some(document) = build_document::row(&document, own.key, sketch) else {
            return outcome::internal("cannot serialize the document");
        };
        Outcome::Fetched {
            etag: None,
            last_modified: None,
            content_hash,
            document: Some(Box::new(document)),
            again_in: None,
        }
    }
}

/// The item is the document: what it says counts more than what its text looks like.
fn prefer_entry(article: &mut Article, entry: FeedEntry) {
    fn of_feed<T>(value: T) -> Sourced<T> {
        let origin = Origin::Feed;
        Sourced { value, origin }
    }
    if let Some(title) = entry.title {
        article.title = Some(of_feed(title));
    }
    if let Some(published) = entry.published {
        article.published = Some(of_feed(published));
    }
    if !entry.authors.is_empty() {
        article.authors = Some(of_feed(entry.authors));
    }
}

/// As the feed's item was judged. A service delivers the whole text, or declares it
/// an abstract.
fn quality(hints: &FeedHints) -> Quality {
    match hints.content_quality {
        Some(ContentQuality::TitleOnly) => Quality::TitleOnly,
        Some(ContentQuality::Stub) => Quality::Stub,
        Some(ContentQuality::Summary) => Quality::Summary,
        Some(ContentQuality::Full) => Quality::Full,
        None if hints.is_abstract() => Quality::Summary,
        None => Quality::Full,
    }
}

/// One blank line between paragraphs; line breaks stay, as in verses.
fn paragraphs(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let parts = text.split("\n\n").map(|part| part.trim_matches('\n'));
    let parts: Vec<&str> = parts.filter(|part| !part.trim().is_empty()).collect();
    parts.join("\n\n")
}

/// The start, cut at a word.
fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= EXCERPT_CHARS {
        return line;
    }
    let start: String = line.chars().take(EXCERPT_CHARS).collect();
    let end = start.rfind(' ').unwrap_or(start.len());
    start[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verses_stay_and_blank_lines_are_one() {
        let text = "\r\n\r\nThe harbour sleeps,\r\n  the boats are in.\r\n\r\n\r\n\r\nMorning.\r\n";
        assert_eq!(
            paragraphs(text),
            "The harbour sleeps,\n  the boats are in.\n\nMorning."
        );
    }

    #[test]
    fn an_excerpt_ends_with_a_word() {
        let text = "word ".repeat(100);
        assert_eq!(excerpt(&text).len(), 199);
        assert_eq!(excerpt("short\n\ntext"), "short text");
    }
}
