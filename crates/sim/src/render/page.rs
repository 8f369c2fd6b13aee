//! HTML: listings with their feed links, and articles in the templates of
//! their site, wrapped in the clutter that real pages have.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::json;

use super::page_frame::{PER_LISTING, html};
use super::{Document, escape};
use crate::article::Article;
use crate::site::{Site, Template};

/// The home page (`page` 1) and the older pages behind it.
pub(crate) fn listing_page(site: &Site, page: u64, now: Timestamp) -> Option<Document> {
    let published = site.published_by(now);
    let newest = published.saturating_sub((page - 1) * PER_LISTING);
    if newest == 0 && page > 1 {
        return None;
    }
    let oldest = newest.saturating_sub(PER_LISTING);
    let mut main = String::from("<main>\n");
    for article in (oldest..newest).rev().map(|number| site.article(number)) {
        let _ = writeln!(
            main,
            "<article class=\"card\"><h2><a href=\"{}\">{}</a></h2><time datetime=\"{}\">{2}</time></article>",
            escape(article.announced_path()),
            escape(&article.title),
            article.published,
        );
    }
    if oldest > 0 {
        let _ = writeln!(
            main,
            "<a rel=\"next\" href=\"/page/{}\">Older</a>",
            page + 1
        );
    }
    main.push_str("</main>\n");
    let mut head = String::new();
    for feed in &site.feeds {
        let kind = feed
            .format
            .content_type()
            .split(';')
            .next()
            .unwrap_or_default();
        let _ = writeln!(
            head,
            "<link rel=\"alternate\" type=\"{kind}\" title=\"{}\" href=\"{}\">",
            escape(&site.name),
            feed.path
        );
    }
    Some(html(site, &site.name, &head, &main, now))
}

/// The page of an article, as it reads at `now`.
pub(crate) fn article_page(site: &Site, article: &Article, now: Timestamp) -> Document {
    let head = match site.template {
        Template::JsonLdGraph => open_graph(site, article) + &json_ld(site, article, now),
        Template::OpenGraph => open_graph(site, article),
        Template::Microdata | Template::Plain => String::new(),
    };
    let title = format!("{} | {}", article.title, site.name);
    let body = match site.template {
        Template::Microdata => microdata_body(site, article, now),
        _ => plain_body(site, article, now),
    };
    let mut page = html(site, &title, &head, &body, now);
    pad(&mut page.body, site.page_bytes);
    page.modified(Some(article.changed(now)))
}

pub(crate) fn not_found_page(site: &Site, now: Timestamp) -> Document {
    let main =
        "<main><h1>Page not found</h1><p>Sorry, this page does not exist any more.</p></main>\n";
    html(site, "Page not found", "", main, now)
}

fn paragraphs(site: &Site, article: &Article, now: Timestamp) -> String {
    let mut out = String::new();
    for paragraph in article.paragraphs(site, now) {
        let _ = writeln!(out, "<p>{}</p>", escape(&paragraph));
    }
    out
}

/// What stands around the text and does not belong to it.
fn clutter(site: &Site, article: &Article) -> String {
    let mut out = String::from("<aside><h3>Most read</h3><ul>");
    for other in article.number.saturating_sub(3)..article.number {
        let other = site.article(other);
        let _ = write!(
            out,
            "<li><a href=\"{}\">{}</a></li>",
            escape(&other.path),
            escape(&other.title)
        );
    }
    out.push_str("</ul><p>Sign up for our newsletter and never miss a story.</p></aside>\n");
    out.push_str("<section id=\"comments\"><h3>Comments</h3><p>First! Great read, thanks for sharing.</p></section>\n");
    out
}

fn plain_body(site: &Site, article: &Article, now: Timestamp) -> String {
    format!(
        "<main><article>\n<h1>{}</h1>\n<p class=\"byline\">By {} · <time datetime=\"{}\">{2}</time></p>\n{}</article>\n{}</main>\n",
        escape(&article.title),
        escape(&article.authors.join(" and ")),
        article.published,
        paragraphs(site, article, now),
        clutter(site, article),
    )
}

fn microdata_body(site: &Site, article: &Article, now: Timestamp) -> String {
    let mut authors = String::new();
    for author in &article.authors {
        let _ = write!(
            authors,
            "<span itemprop=\"author\" itemscope itemtype=\"https://schema.org/Person\"><span itemprop=\"name\">{}</span></span> ",
            escape(author)
        );
    }
    format!(
        "<main><div itemscope itemtype=\"https://schema.org/NewsArticle\">\n<h1 itemprop=\"headline\">{}</h1>\n<p class=\"byline\">{authors}<meta itemprop=\"datePublished\" content=\"{}\"></p>\n<div itemprop=\"articleBody\">\n{}</div></div>\n{}</main>\n",
        escape(&article.title),
        article.published,
        paragraphs(site, article, now),
        clutter(site, article),
    )
}

fn open_graph(site: &Site, article: &Article) -> String {
    let url = site.absolute(&article.path);
    let published = article.published.to_string();
    let summary = article.summary(site);
    let rows = [
        ("og:type", "article"),
        ("og:title", &article.title),
        ("og:url", &url),
        ("og:site_name", &site.name),
        ("og:description", &summary),
        ("article:published_time", &published),
        ("article:section", article.section),
    ];
    let mut out = format!("<link rel=\"canonical\" href=\"{}\">\n", escape(&url));
    for (property, content) in rows {
        let _ = writeln!(
            out,
            "<meta property=\"{property}\" content=\"{}\">",
            escape(content)
        );
    }
    out
}

fn json_ld(site: &Site, article: &Article, now: Timestamp) -> String {
    let authors: Vec<_> = article
        .authors
        .iter()
        .map(|name| json!({ "@type": "Person", "name": name }))
        .collect();
    let graph = json!({
        "@context": "https://schema.org",
        "@graph": [
            { "@type": "WebSite", "name": site.name, "url": site.home() },
            {
                "@type": "NewsArticle",
                "headline": article.title,
                "datePublished": article.published.to_string(),
                "dateModified": article.changed(now).to_string(),
                "author": authors,
                "articleSection": article.section,
                "mainEntityOfPage": site.absolute(&article.path),
            },
        ],
    });
    // `<` can't end the script early when it is written as an escape.
    let text = graph.to_string().replace('<', "\\u003c");
    format!("<script type=\"application/ld+json\">{text}</script>\n")
}

/// Brings a page to the size of real ones, which are mostly script.
fn pad(body: &mut Vec<u8>, bytes: usize) {
    if body.len() < bytes {
        let filler = "window.dataLayer=window.dataLayer||[];dataLayer.push({event:'view'});";
        let missing = bytes - body.len();
        let script: String = filler.chars().cycle().take(missing).collect();
        body.extend_from_slice(format!("<script>{script}</script>\n").as_bytes());
    }
}
