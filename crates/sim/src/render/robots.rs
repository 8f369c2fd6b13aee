//! robots.txt, as far as a site has one.

use super::{Document, sitemap};
use crate::site::{RobotsKind, Site};

pub(crate) fn robots(site: &Site) -> Option<Document> {
    let delay = match site.robots {
        RobotsKind::Absent => return None,
        RobotsKind::Usual => "",
        RobotsKind::CrawlDelay => "Crawl-delay: 2\n",
    };
    let sitemap = sitemap::entry_path(site.sitemap)
        .map(|path| format!("\nSitemap: {}\n", site.absolute(path)))
        .unwrap_or_default();
    let text = format!("User-agent: *\nDisallow: /members/\nDisallow: /search\n{delay}{sitemap}");
    Some(Document::new("text/plain", text))
}
