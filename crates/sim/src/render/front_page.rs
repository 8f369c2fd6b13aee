//! Front pages and sections of sites that are made for readers only: each list
//! shows some of the articles, in pages, among links to everything else that a
//! site has. Nothing here is for machines.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::page_frame::{JUNK, PER_LISTING, html};
use super::{Document, escape};
use crate::article::Article;
use crate::rng::Rng;
use crate::site::Site;
use crate::text::SECTIONS;

/// Percentage of articles on the front page; the others are in their sections
/// only.
const FRONT_PAGE_PERCENT: u64 = 88;

/// What a path of such a site shows, if it is neither an article nor a trap.
pub(crate) fn reader_page(site: &Site, path: &str, now: Timestamp) -> Option<Document> {
    if let Some((section, page)) = list_of(path) {
        return list(site, section, page, now);
    }
    let name = path.split(['/', '?']).nth(1).unwrap_or_default();
    JUNK.iter()
        .any(|junk| junk.trim_matches('/').split('/').next() == Some(name))
        .then(|| {
            html(
                site,
                name,
                "",
                "<main><h1>Welcome</h1><p>Please fill in.</p></main>\n",
                now,
            )
        })
}

/// The section, or the front page, and which page of it.
fn list_of(path: &str) -> Option<(Option<&'static str>, u64)> {
    let number = |text: &str| text.parse().ok().filter(|page| *page > 0);
    if path == "/" {
        return Some((None, 1));
    }
    if let Some(page) = path.strip_prefix("/page/") {
        return Some((None, number(page)?));
    }
    let rest = path.strip_prefix("/section/")?;
    let (name, page) = match rest.split_once("/page/") {
        Some((name, page)) => (name, number(page)?),
        None => (rest.trim_end_matches('/'), 1),
    };
    let section = SECTIONS.iter().find(|section| **section == name)?;
    Some((Some(section), page))
}

fn list(site: &Site, section: Option<&'static str>, page: u64, now: Timestamp) -> Option<Document> {
    let is_listed = |article: &Article| match section {
        None => is_on_front(site, article.number),
        Some(section) => article.section == section,
    };
    let newest_first = (0..site.published_by(now)).rev();
    let mut listed = newest_first
        .map(|number| site.article(number))
        .filter(is_listed)
        .skip(usize::try_from((page - 1) * PER_LISTING).ok()?)
        .peekable();
    if listed.peek().is_none() && page > 1 {
        return None;
    }
    let mut main = String::from("<main>\n");
    for article in listed.by_ref().take(PER_LISTING as usize) {
        let path = escape(article.announced_path());
        let _ = writeln!(
            main,
            "<div class=\"card\"><a href=\"{path}\"><img src=\"/media/{}.jpg\" alt=\"\"></a>\
             <h2><a href=\"{path}\">{}</a></h2></div>",
            article.number,
            escape(&article.title),
        );
    }
    if listed.peek().is_some() {
        let base = section.map_or(String::new(), |section| format!("/section/{section}"));
        let _ = writeln!(
            main,
            "<a rel=\"next\" href=\"{base}/page/{}\">Older</a>",
            page + 1
        );
    }
    main.push_str("</main>\n");
    Some(html(site, &site.name, "", &main, now))
}

fn is_on_front(site: &Site, number: u64) -> bool {
    Rng::of(site.seed ^ u64::from(site.index), "front", number).random_bool(FRONT_PAGE_PERCENT)
}

/// A page of a trap.
pub(crate) fn trap_page(site: &Site, path: &str, now: Timestamp) -> Option<Document> {
    let links = site.trap?.links_at(path)?;
    let mut main = String::from("<main><p>Nothing is planned.</p>\n");
    for link in links {
        let link = escape(&link);
        let _ = writeln!(
            main,
            "<a href=\"{link}\">{}</a>",
            link.rsplit('/').next().unwrap_or("more")
        );
    }
    main.push_str("</main>\n");
    Some(html(site, "What else", "", &main, now))
}
