//! What the simulated sites send: feeds, sitemaps, pages, robots.txt. Pure: a
//! site and a time in, a [`Document`] out.

mod feed;
mod feed_defect;
mod front_page;
mod page;
mod page_frame;
mod robots;
mod sitemap;

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use jiff::tz::TimeZone;

pub(crate) use feed::feed;
pub(crate) use front_page::{reader_page, trap_page};
pub(crate) use page::{article_page, listing_page, not_found_page};
pub(crate) use robots::robots;
pub(crate) use sitemap::sitemap;

/// A body and what its headers say of it.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
    pub(crate) modified: Option<Timestamp>,
}

impl Document {
    fn new(content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            content_type,
            body: body.into(),
            modified: None,
        }
    }

    fn modified(self, at: Option<Timestamp>) -> Self {
        Self {
            modified: at,
            ..self
        }
    }
}

/// Text for XML and HTML, between tags and in attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    out
}

/// `Sun, 15 Nov 2026 10:00:00 GMT`, as HTTP and RSS write dates.
pub(crate) fn http_date(at: Timestamp) -> String {
    formatted(at, "%a, %d %b %Y %H:%M:%S GMT")
}

fn formatted(at: Timestamp, format: &str) -> String {
    let mut text = String::new();
    // Writing to a string fails only on a bad format, and these are constants.
    let _ = write!(text, "{}", at.to_zoned(TimeZone::UTC).strftime(format));
    text
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to a vector does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}
