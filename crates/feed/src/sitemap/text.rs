//! Sitemaps as plain text: one address a line, nothing else.

use super::entry::{Collector, Entry};
use super::{Sitemap, SitemapKind};
use crate::defect::{DefectKind, Defects};
use crate::link;

/// Whether the first line that says anything is an address.
pub(super) fn is_list(text: &str) -> bool {
    let mut lines = text.lines().map(clean).filter(|line| !line.is_empty());
    lines.next().is_some_and(link::is_http)
}

pub(super) fn read(text: &str, mut defects: Defects, mut collector: Collector<'_>) -> Sitemap {
    let mut offset = 0;
    for raw in text.split_inclusive('\n') {
        let line = clean(raw);
        let here = offset;
        offset += raw.len();
        if line.is_empty() {
            continue;
        }
        if !link::is_http(line) || line.contains(char::is_whitespace) {
            defects.note(DefectKind::BadLocation, text, here, line);
        } else if collector.push(Entry::at(line.to_owned())).is_break() {
            break;
        }
    }
    collector.finish(SitemapKind::Text, defects)
}

fn clean(line: &str) -> &str {
    line.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}' || c == '\0')
}
