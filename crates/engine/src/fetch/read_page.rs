//! Reads a fetched page: extract the article, reject what is none, archive the
//! page, build the document. CPU and perhaps a file; no network and no store.

use std::sync::Arc;
use std::time::Duration;

use cpu_time::ThreadTime;
use tidings_extract::{Article, FeedEntry, Method, Options, Page, Quality};
use tidings_net::Response;
use tidings_store::{HostId, Outcome, Submission, Target};
use tidings_text::{charset, hex};
use tidings_url::ProxyHosts;

use super::Extractor;
use super::build_document::{self, Provenance};
use super::feed_hints::FeedHints;
use super::job::Job;
use super::outcome::{self, Attempts};
use super::page_archive::PageArchive;
use super::page_version::PageVersion;
use super::site_cache::SiteCache;
use super::source_cache::CachedSource;
use crate::sources::target;

/// CPU time for one page; past it the extractor uses its cheap methods.
const CPU_BUDGET: Duration = Duration::from_millis(500);
/// A feed's text replaces a page's when it is this many times longer.
const MIN_LENGTH_RATIO: usize = 2;

/// Everything that reading needs, so that it can run on another thread.
#[derive(Debug)]
pub(super) struct PageRead {
    pub(super) job: Job,
    pub(super) source: Arc<CachedSource>,
    pub(super) proxies: ProxyHosts,
    pub(super) response: Response,
    pub(super) attempts: Attempts,
}

/// A page that was read: the outcome of its claim, and what it says of itself.
#[derive(Debug)]
pub(super) struct PageOutcome {
    pub(super) outcome: Outcome,
    pub(super) version: Option<PageVersion>,
    /// The other page that it names as canonical, if it is read for the first time.
    pub(super) names: Option<Target>,
}

impl From<Outcome> for PageOutcome {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            version: None,
            names: None,
        }
    }
}

impl PageRead {
    pub(super) fn run(
        self,
        extractor: Extractor,
        archive: Option<&PageArchive>,
        sites: &SiteCache,
    ) -> PageOutcome {
        let hints = FeedHints::of(&self.job.claim);
        let article = self.extract(extractor, &hints, sites);
        if let Some(outcome) = outcome::of_article(&article, &self.attempts) {
            return PageOutcome::from(outcome);
        }
        let raw_html = archive.map(|archive| archive.save(&self.response.body));
        match raw_html.transpose() {
            Ok(raw_html) => self.finish(article, &hints, raw_html),
            Err(error) => outcome::internal(format!("cannot archive the page: {error}")).into(),
        }
    }

    /// Extracts the article within the CPU budget.
    fn extract(&self, extractor: Extractor, hints: &FeedHints, sites: &SiteCache) -> Article {
        let started = ThreadTime::now();
        let within_budget = || started.elapsed() < CPU_BUDGET;
        let host = HostId::of(&self.response.url.host_key(&self.proxies));
        let site = sites.of(host);
        let options = Options {
            within_budget: &within_budget,
            site: Some(&site),
            ..Options::default()
        };
        let content_type = self.response.header("content-type");
        let entry = hints.entry();
        let page = Page {
            html: &self.response.body,
            url: self.response.url.as_str(),
            charset: content_type.and_then(charset::from_content_type),
            selectors: Some(&self.source.selectors),
            feed: Some(&entry),
            now: self.job.now,
        };
        let article = extractor(&page, &options);
        sites.learn(host, page.url, &article);
        better_of_feed(article, extractor, &page, &options, hints)
    }

    /// The outcome of a page that is an article.
    fn finish(
        self,
        mut article: Article,
        hints: &FeedHints,
        raw_html: Option<String>,
    ) -> PageOutcome {
        let Self {
            job,
            source,
            proxies,
            response,
            ..
        } = self;
        let claim = &job.claim;
        let header = |name: &str| response.header(name).map(str::to_owned);
        let (etag, last_modified) = (header("etag"), header("last-modified"));
        let content_hash = article.content_hash.as_deref().and_then(hex::decode);
        let provenance = Provenance {
            claim,
            source: &source,
            hints,
            final_url: response.url.as_str(),
            status: response.status,
            etag: etag.clone(),
            last_modified: last_modified.clone(),
            raw_html,
            now: job.now,
        };
        let rules = source.settings.rules();
        let final_target = target(response.url.clone(), &rules, &proxies);
        let version = PageVersion::of(&article);
        // A page that has a document keeps it.
        let names = match claim.content_hash {
            None => version.other_page(&final_target, &rules, &proxies),
            Some(_) => None,
        };
        let names = names.filter(|named| named.id() != claim.lease_token.id);
        let page = |outcome| PageOutcome {
            outcome,
            version: Some(version),
            names,
        };
        let sketch = article.sketch.take();
        let document = build_document::document(article, provenance, final_target.key.to_string());
        let Some(document) = build_document::row(&document, final_target.key, sketch) else {
            return outcome::internal("cannot serialize the document").into();
        };
        let document = Some(Box::new(document));
        if final_target.id() == claim.lease_token.id {
            let has_changed = content_hash != claim.content_hash;
            return page(Outcome::Fetched {
                etag,
                last_modified,
                content_hash,
                document,
                again_in: job.recrawl_in(&source.settings, has_changed),
            });
        }
        let to = Submission {
            source_id: claim.source_id,
            priority: claim.priority,
            depth: claim.depth,
            parent_url: Some(claim.url.as_str().to_owned()),
            item: claim.item.clone(),
            ..Submission::new(final_target, claim.origin)
        };
        page(Outcome::Redirected {
            to: Box::new(to),
            etag,
            last_modified,
            content_hash,
            document,
        })
    }
}

/// Prefers the feed's full text over a page that shows little of it.
fn better_of_feed(
    article: Article,
    extractor: Extractor,
    page: &Page<'_>,
    options: &Options<'_>,
    hints: &FeedHints,
) -> Article {
    let Some(content) = &hints.content else {
        return article;
    };
    if article.quality == Quality::Full || content.len() < article.text.len() * MIN_LENGTH_RATIO {
        return article;
    }
    let whole = format!("<article>{content}</article>");
    let from_feed = extractor(
        &Page {
            html: whole.as_bytes(),
            charset: Some("utf-8"),
            selectors: None,
            feed: Some(&FeedEntry::default()),
            ..*page
        },
        &Options {
            site: None,
            ..*options
        },
    );
    if from_feed.quality <= article.quality {
        return article;
    }
    let mut article = article;
    article.text = from_feed.text;
    article.excerpt = from_feed.excerpt;
    article.word_count = from_feed.word_count;
    article.quality = from_feed.quality;
    article.content_hash = from_feed.content_hash;
    article.sketch = from_feed.sketch;
    article.links = from_feed.links;
    article.method = Method::Feed;
    article
}
