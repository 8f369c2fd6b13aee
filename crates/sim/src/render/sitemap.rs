//! Sitemaps: one file, an index over many (plain or gzipped), a news sitemap,
//! and the plain-text form.

use jiff::{SignedDuration, Timestamp};
use std::fmt::Write as _;

use super::{Document, escape, gzip};
use crate::article::Article;
use crate::site::{Site, SitemapKind};

/// Articles in one file of an index.
const PER_FILE: u64 = 1000;

const NEWS_AGE: SignedDuration = SignedDuration::from_hours(48);

/// The sitemap at a path of the site, if there is one.
pub(crate) fn sitemap(site: &Site, path: &str, now: Timestamp) -> Option<Document> {
    let published = site.published_by(now);
    match (site.sitemap, path) {
        (SitemapKind::Single, "/sitemap.xml") => Some(xml(urlset(site, 0..published, now))),
        (SitemapKind::Text, "/sitemap.txt") => {
            Some(Document::new("text/plain", text(site, published)))
        }
        (SitemapKind::Index | SitemapKind::GzipIndex, "/sitemap_index.xml") => {
            Some(xml(index(site, published, now)))
        }
        (SitemapKind::Index | SitemapKind::GzipIndex, "/news-sitemap.xml") => {
            Some(xml(news(site, now)))
        }
        (SitemapKind::Index, _) => {
            let file = file_number(path, ".xml")?;
            (file < files(published)).then(|| xml(urlset(site, range(file, published), now)))
        }
        (SitemapKind::GzipIndex, _) => {
            let file = file_number(path, ".xml.gz")?;
            let body =
                (file < files(published)).then(|| urlset(site, range(file, published), now))?;
            Some(Document::new("application/gzip", gzip(body.as_bytes())))
        }
        _ => None,
    }
}

/// The address that robots.txt names.
pub(super) fn entry_path(kind: SitemapKind) -> Option<&'static str> {
    match kind {
        SitemapKind::None => None,
        SitemapKind::Single => Some("/sitemap.xml"),
        SitemapKind::Index | SitemapKind::GzipIndex => Some("/sitemap_index.xml"),
        SitemapKind::Text => Some("/sitemap.txt"),
    }
}

fn xml(body: String) -> Document {
    Document::new("application/xml", body)
}

fn file_number(path: &str, ending: &str) -> Option<u64> {
    path.strip_prefix("/sitemap-")?
        .strip_suffix(ending)?
        .parse()
        .ok()
}

fn files(published: u64) -> u64 {
    published.div_ceil(PER_FILE).max(1)
}

fn range(file: u64, published: u64) -> std::ops::Range<u64> {
    file * PER_FILE..((file + 1) * PER_FILE).min(published)
}

fn location(site: &Site, article: &Article) -> String {
    escape(&site.absolute(article.announced_path()))
}

const PROLOG: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
const NAMESPACE: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"";

fn urlset(site: &Site, numbers: std::ops::Range<u64>, now: Timestamp) -> String {
    let mut out = format!("{PROLOG}<urlset {NAMESPACE}>\n");
    for article in numbers.map(|number| site.article(number)) {
        let _ = writeln!(
            out,
            "<url><loc>{}</loc><lastmod>{}</lastmod></url>",
            location(site, &article),
            article.changed(now)
        );
    }
    out.push_str("</urlset>\n");
    out
}

fn index(site: &Site, published: u64, now: Timestamp) -> String {
    let ending = if site.sitemap == SitemapKind::GzipIndex {
        ".xml.gz"
    } else {
        ".xml"
    };
    let mut out = format!("{PROLOG}<sitemapindex {NAMESPACE}>\n");
    let news = site.absolute("/news-sitemap.xml");
    let _ = writeln!(out, "<sitemap><loc>{news}</loc></sitemap>");
    for file in 0..files(published) {
        let changed = range(file, published)
            .map(|number| site.article(number).changed(now))
            .max();
        let file = site.absolute(&format!("/sitemap-{file}{ending}"));
        let changed = changed
            .map(|at| format!("<lastmod>{at}</lastmod>"))
            .unwrap_or_default();
        let _ = writeln!(out, "<sitemap><loc>{file}</loc>{changed}</sitemap>");
    }
    out.push_str("</sitemapindex>\n");
    out
}

fn news(site: &Site, now: Timestamp) -> String {
    let mut out = format!(
        "{PROLOG}<urlset {NAMESPACE} xmlns:news=\"http://www.google.com/schemas/sitemap-news/0.9\">\n"
    );
    let fresh = site
        .latest(now, PER_FILE)
        .take_while(|article| article.published > now - NEWS_AGE);
    for article in fresh {
        let _ = writeln!(
            out,
            "<url><loc>{}</loc><news:news><news:publication><news:name>{}</news:name><news:language>{}</news:language></news:publication><news:publication_date>{}</news:publication_date><news:title>{}</news:title></news:news></url>",
            location(site, &article),
            escape(&site.name),
            site.language.code(),
            article.published,
            escape(&article.title),
        );
    }
    out.push_str("</urlset>\n");
    out
}

fn text(site: &Site, published: u64) -> String {
    let line = |number| site.absolute(site.article(number).announced_path()) + "\n";
    (0..published).map(line).collect()
}
