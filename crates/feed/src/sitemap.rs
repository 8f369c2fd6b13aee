//! Sitemaps of every form: `urlset`, `sitemapindex`, the news, image and video
//! extensions, plain text, gzip, and feeds that stand in for one. As tolerant
//! as the feed parser, and bounded; fetches nothing.

mod entry;
mod reader;
mod text;

use std::ops::ControlFlow;

use serde::Serialize;

use crate::decode::decode;
use crate::defect::{DefectKind, Defects};
use crate::error::{Found, NotRecognised, Wanted};
use crate::gzip;
use crate::hints::Hints;
use crate::link;
use crate::reader::Reader as FeedReader;
use crate::root::{self, Root};
use entry::Collector;

pub use entry::{Alternate, Entry, News, Video};

/// As many as the protocol allows in one file.
pub const MAX_ENTRIES: usize = 50_000;

/// A parsed sitemap.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sitemap {
    pub kind: SitemapKind,
    pub entries: Vec<Entry>,
    /// Whether `lastmod` says anything. Where nearly all are the same, it is
    /// the time of the build: compare the set of URLs instead.
    pub lastmod_is_trusted: bool,
    pub defects: Defects,
}

/// What the entries of a sitemap are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SitemapKind {
    /// Pages.
    UrlSet,
    /// Other sitemaps.
    Index,
    /// Pages, one per line.
    Text,
    /// The items of a feed.
    Feed,
}

/// Reads a whole sitemap.
pub fn parse(bytes: &[u8], hints: &Hints<'_>) -> Result<Sitemap, NotRecognised> {
    let mut entries = Vec::new();
    let mut sitemap = parse_each(bytes, hints, |entry| {
        entries.push(entry);
        ControlFlow::Continue(())
    })?;
    sitemap.entries = entries;
    Ok(sitemap)
}

/// Reads a sitemap and hands over each entry as it ends, until `each` breaks.
/// The sitemap that is returned has no entries.
pub fn parse_each(
    bytes: &[u8],
    hints: &Hints<'_>,
    mut each: impl FnMut(Entry) -> ControlFlow<()>,
) -> Result<Sitemap, NotRecognised> {
    let not_a_sitemap = |found| NotRecognised {
        wanted: Wanted::Sitemap,
        found,
    };
    let mut defects = Defects::default();
    let inflated = gzip::inflate(bytes, hints.max_bytes);
    if let Some(damage) = &inflated.damage {
        if inflated.bytes.is_empty() {
            return Err(not_a_sitemap(Found::BadGzip));
        }
        defects.note_whole(DefectKind::DamagedGzip, damage);
    }
    let within = &inflated.bytes[..inflated.bytes.len().min(hints.max_bytes)];
    if within.len() < inflated.bytes.len() {
        let detail = format!("cut at {} bytes", hints.max_bytes);
        defects.note_whole(DefectKind::TooMany, &detail);
    }
    let text = decode(within, hints.content_type, &mut defects);
    let mut collector = Collector::new(hints.url, &mut each);
    match root::find(&text, defects) {
        Root::Sitemap { tokens, tag } => Ok(reader::read(*tokens, tag, collector)),
        Root::Feed {
            tokens,
            tag,
            format,
        } => {
            let mut take = |item: crate::Item| match item.link.clone() {
                Some(url) => collector.push(Entry {
                    lastmod: item.updated.or(item.published),
                    ..Entry::at(url)
                }),
                None => ControlFlow::Continue(()),
            };
            let feed = FeedReader::new(*tokens, format, hints, &mut take).read(tag);
            Ok(collector.finish(SitemapKind::Feed, feed.defects))
        }
        Root::Json { .. } => Err(not_a_sitemap(Found::OtherJson(String::new()))),
        Root::Other(found, defects) => {
            let is_list = matches!(found, Found::Text | Found::OtherXml(_));
            if is_list && text::is_list(&text) {
                return Ok(text::read(&text, defects, collector));
            }
            Err(not_a_sitemap(found))
        }
    }
}

/// Whether an address can be an entry.
fn is_location(url: &str) -> bool {
    link::may_be_page(url) && !url.contains(char::is_whitespace)
}
