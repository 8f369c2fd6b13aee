//! robots.txt, as far as a site has one.

use super::{Document, sitemap};
use crate::site::{RobotsKind, Site};

pub(crate) fn robots(site: &Site) -> Option<Document> {
    if site.robots == RobotsKind::Absent {
        return None;
    }
    let delay = site
        .crawl_delay()
        .map(|delay| format!("Crawl-delay: {}\n", delay.as_secs_f32()))
        .unwrap_or_default();
    let sitemap = sitemap::entry_path(site.sitemap)
        .map(|path| format!("\nSitemap: {}\n", site.absolute(path)))
        .unwrap_or_default();
    let text = format!("User-agent: *\nDisallow: /members/\nDisallow: /search\n{delay}{sitemap}");
    Some(Document::new("text/plain", text))
}
