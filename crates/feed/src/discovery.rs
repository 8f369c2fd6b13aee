//! Where the feeds and sitemaps of a site may be: what its page links to, what
//! is known about its platform, what its robots.txt lists, and the paths that
//! are plausible. Only names candidates; whether they are feeds is found out
//! by fetching them, which happens elsewhere, and [`rank`] judges the result.

mod page;
mod platform;
mod rank;

use std::collections::HashSet;

use serde::Serialize;
use url::Url;

use page::Page;

pub use rank::{Ranked, Story, assess_feed, assess_sitemap, rank};

/// An address that may be a feed or a sitemap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    pub url: String,
    pub kind: CandidateKind,
    pub origin: Origin,
    /// What the page calls it.
    pub title: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CandidateKind {
    Feed,
    Sitemap,
}

/// Why an address is a candidate, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The address that was given.
    Given,
    /// `<link rel=alternate>` of a feed type.
    LinkElement,
    /// A rule of the platform that the site runs on.
    Platform,
    /// A `Sitemap:` line of robots.txt.
    Robots,
    /// `<a>` that looks like a feed.
    Anchor,
    /// A path that is often there.
    Guess,
}

/// Feeds that sites of any kind have.
const FEED_PATHS: &[&str] = &[
    "/feed",
    "/rss",
    "/atom.xml",
    "/feed.xml",
    "/rss.xml",
    "/index.xml",
    "/feed.json",
    "/index.rdf",
    "/feeds/posts/default",
    "/?feed=rss2",
    "/blog/feed",
    "/news/rss",
];

const SITEMAP_PATHS: &[&str] = &[
    "/sitemap.xml",
    "/news-sitemap.xml",
    "/sitemap_index.xml",
    "/sitemap_news.xml",
    "/sitemap-news.xml",
    "/sitemap-index.xml",
    "/sitemap.xml.gz",
    "/sitemap.txt",
];

/// Candidates for a site, the most promising first and each once: from the
/// bytes of one of its pages, the page's address, and its robots.txt. Sitemaps
/// stand behind all feeds. Fetch them in this order; the guesses may be cut
/// short at the first that parses.
///
/// ```
/// use tidings_feed::discovery::{Origin, candidates};
///
/// let url = "https://example.com/".parse().unwrap();
/// let page = br#"<link rel="alternate" type="application/rss+xml" href="/news.rss" title="News">"#;
/// let found = candidates(Some(page), &url, Some("Sitemap: /map.xml"));
/// assert_eq!(found[0].origin, Origin::Given);
/// assert_eq!(found[1].origin, Origin::LinkElement);
/// assert_eq!(found[1].url, "https://example.com/news.rss");
/// assert!(found.iter().any(|found| found.url == "https://example.com/map.xml"));
/// ```
pub fn candidates(page: Option<&[u8]>, url: &Url, robots_txt: Option<&str>) -> Vec<Candidate> {
    let mut list = List::default();
    list.push(CandidateKind::Feed, Origin::Given, url, url.as_str(), None);
    let page = page.map(|bytes| Page::read(bytes, url)).unwrap_or_default();
    for link in &page.feeds {
        list.found(link, CandidateKind::Feed, Origin::LinkElement);
    }
    for address in platform::feeds(url, &page) {
        list.push(CandidateKind::Feed, Origin::Platform, url, &address, None);
    }
    for link in &page.anchors {
        list.found(link, CandidateKind::Feed, Origin::Anchor);
    }
    for path in FEED_PATHS {
        list.push(CandidateKind::Feed, Origin::Guess, url, path, None);
    }
    for address in robots_txt.map(robots_sitemaps).unwrap_or_default() {
        list.push(CandidateKind::Sitemap, Origin::Robots, url, address, None);
    }
    for link in &page.sitemaps {
        list.found(link, CandidateKind::Sitemap, Origin::LinkElement);
    }
    for path in SITEMAP_PATHS {
        list.push(CandidateKind::Sitemap, Origin::Guess, url, path, None);
    }
    list.candidates
}

/// The addresses in the `Sitemap:` lines of a robots.txt, as they are written.
pub fn robots_sitemaps(robots_txt: &str) -> Vec<&str> {
    /// More are listed only by mistake.
    const MAX_LINES: usize = 1_000;
    let address = |line| {
        let line: &str = line;
        let (field, value) = line.trim_start_matches('\u{feff}').split_once(':')?;
        let field = field.trim();
        let names = ["sitemap", "site-map"];
        let is_sitemap = names.iter().any(|name| field.eq_ignore_ascii_case(name));
        // A comment, and not the fragment of an address.
        let value = value.split(" #").next().unwrap_or(value).trim();
        (is_sitemap && !value.is_empty()).then_some(value)
    };
    let found = robots_txt.lines().filter_map(address);
    found.take(MAX_LINES).collect()
}

/// A link on a page, resolved.
#[derive(Debug)]
struct Link {
    url: String,
    title: Option<String>,
}

#[derive(Default)]
struct List {
    candidates: Vec<Candidate>,
    seen: HashSet<String>,
}

impl List {
    fn push(
        &mut self,
        kind: CandidateKind,
        origin: Origin,
        base: &Url,
        address: &str,
        title: Option<String>,
    ) {
        let Ok(mut url) = base.join(address) else {
            return;
        };
        url.set_fragment(None);
        if !matches!(url.scheme(), "http" | "https") {
            return;
        }
        let url = String::from(url);
        // A slash at the end rarely makes another feed.
        if self.seen.insert(url.trim_end_matches('/').to_owned()) {
            self.candidates.push(Candidate {
                url,
                kind,
                origin,
                title,
            });
        }
    }

    fn found(&mut self, link: &Link, kind: CandidateKind, origin: Origin) {
        if let Ok(url) = Url::parse(&link.url) {
            self.push(kind, origin, &url, &link.url, link.title.clone());
        }
    }
}
