//! Reading a page: the article, whether it is one, the document, the end of the
//! claim. CPU and perhaps a file; no network and no store.

use std::sync::Arc;
use std::time::Duration;

use cpu_time::ThreadTime;
use tidings_extract::{Article, FeedEntry, Method, Options, Page, Quality};
use tidings_net::Response;
use tidings_store::{HostId, Outcome, Submission};
use tidings_text::{charset, hex};
use tidings_url::ProxyHosts;

use super::kept_pages::PageArchive;
use super::make::{self, Fetch, Said};
use super::page::Job;
use super::sites::Sites;
use super::sources::KnownSource;
use super::verdict::{self, Tries};
use super::{Extractor, retry};
use crate::settings::{SourceSettings, target};

/// CPU time for one page; what is not found by then is found the cheap way.
const CPU_BUDGET: Duration = Duration::from_millis(500);
/// A feed's text replaces a page's when it is so much longer.
const MUCH_LONGER: usize = 2;

/// Everything that reading needs, so that it can happen on another thread.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) job: Job,
    pub(super) source: Arc<KnownSource>,
    pub(super) proxies: ProxyHosts,
    pub(super) response: Response,
    pub(super) tries: Tries,
}

impl Reading {
    pub(super) fn run(
        self,
        extractor: Extractor,
        pages: Option<&PageArchive>,
        sites: &Sites,
    ) -> Outcome {
        let said = Said::of(&self.job.claim);
        let article = self.extract(extractor, &said, sites);
        if let Some(outcome) = verdict::of_article(&article, self.tries) {
            return outcome;
        }
        let raw_html = pages.map(|pages| pages.keep(&self.response.body));
        match raw_html.transpose() {
            Ok(raw_html) => self.finish(article, &said, raw_html),
            Err(error) => verdict::ours(format!("the page can't be kept: {error}")),
        }
    }

    /// The one way to an article, under a budget.
    fn extract(&self, extractor: Extractor, said: &Said, sites: &Sites) -> Article {
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
        let entry = said.entry();
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
        better_of_feed(article, extractor, &page, &options, said)
    }

    /// The end of a page that was read.
    fn finish(self, mut article: Article, said: &Said, raw_html: Option<String>) -> Outcome {
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
        let fetch = Fetch {
            claim,
            source: &source,
            said,
            final_url: response.url.as_str(),
            status: response.status,
            etag: etag.clone(),
            last_modified: last_modified.clone(),
            raw_html,
            now: job.now,
        };
        let arrived = target(response.url.clone(), &source.settings.rules(), &proxies);
        let sketch = article.sketch.take();
        let document = make::document(article, fetch, arrived.key.to_string());
        let Some(document) = make::row(&document, arrived.key, sketch) else {
            return verdict::ours("the document can't be written down");
        };
        let document = Some(Box::new(document));
        if arrived.id() == claim.ticket.id {
            let has_changed = content_hash != claim.content_hash;
            return Outcome::Fetched {
                etag,
                last_modified,
                content_hash,
                document,
                again_in: again_in(&job, &source.settings, has_changed),
            };
        }
        let to = Submission {
            source_id: claim.source_id,
            priority: claim.priority,
            depth: claim.depth,
            parent_url: Some(claim.url.as_str().to_owned()),
            item: claim.item.clone(),
            ..Submission::new(arrived, claim.origin)
        };
        Outcome::Redirected {
            to: Box::new(to),
            etag,
            last_modified,
            content_hash,
            document,
        }
    }
}

/// A page that shows little is no reason to lose what the feed gave whole.
fn better_of_feed(
    article: Article,
    extractor: Extractor,
    page: &Page<'_>,
    options: &Options<'_>,
    said: &Said,
) -> Article {
    let Some(content) = &said.content else {
        return article;
    };
    if article.quality == Quality::Full || content.len() < article.text.len() * MUCH_LONGER {
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

/// When to look at the page again, if its source wants that.
pub(super) fn again_in(
    job: &Job,
    settings: &SourceSettings,
    has_changed: bool,
) -> Option<Duration> {
    let (min, max) = settings.recrawl?.bounds();
    let before = job.claim.last_fetched_at;
    let passed = before.map(|before| {
        let passed = job.now.as_millisecond().saturating_sub(before.0);
        Duration::from_millis(u64::try_from(passed).unwrap_or(0))
    });
    Some(retry::look_again(min, max, passed, has_changed))
}
