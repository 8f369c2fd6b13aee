//! What a body is: by its header, then by its first 512 bytes, because headers
//! are often wrong. Pure.

use serde::Serialize;

/// How many bytes of a body are examined.
pub(crate) const SNIFF_BYTES: usize = 512;

/// The kinds of bodies that are treated differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Media {
    Html,
    Xml,
    Json,
    Text,
    Pdf,
    /// Compressed or packed, for example `sitemap.xml.gz`.
    Archive,
    Image,
    Audio,
    Video,
    /// Some other bytes that are not text.
    Binary,
}

impl Media {
    /// Not used, except for its type.
    pub fn is_binary(self) -> bool {
        matches!(
            self,
            Self::Pdf | Self::Image | Self::Audio | Self::Video | Self::Binary
        )
    }

    /// The bytes decide where they are unmistakable, else the header, else what
    /// the bytes look like.
    pub fn of(content_type: Option<&str>, start: &[u8]) -> Self {
        let start = &start[..start.len().min(SNIFF_BYTES)];
        let declared = content_type.and_then(declared);
        match (magic(start), declared) {
            (Some(kind), _) => kind,
            (None, Some(kind)) if !kind.is_binary() && looks_binary(start) => Self::Binary,
            // Feeds are served as text/html and pages as text/plain every day.
            (None, None | Some(Self::Html | Self::Text | Self::Xml)) => markup(start)
                .or(declared)
                .unwrap_or(if looks_binary(start) {
                    Self::Binary
                } else {
                    Self::Text
                }),
            (None, Some(kind)) => kind,
        }
    }
}

fn declared(content_type: &str) -> Option<Media> {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let (group, kind) = essence.split_once('/')?;
    let (group, kind) = (group.to_ascii_lowercase(), kind.to_ascii_lowercase());
    Some(match (group.as_str(), kind.as_str()) {
        ("text", "html") | ("application", "xhtml+xml") => Media::Html,
        ("text" | "application", "json" | "feed+json") => Media::Json,
        ("application", kind) if kind.ends_with("+json") => Media::Json,
        ("text" | "application", "xml" | "rss" | "rdf" | "atom") => Media::Xml,
        ("application", kind) if kind.ends_with("+xml") => Media::Xml,
        ("application", "pdf" | "x-pdf") => Media::Pdf,
        ("application", "gzip" | "x-gzip" | "zip" | "zstd" | "x-tar" | "x-bzip2" | "x-xz") => {
            Media::Archive
        }
        ("image", "svg+xml") => Media::Xml,
        ("image", _) => Media::Image,
        ("audio", _) => Media::Audio,
        ("video", _) => Media::Video,
        ("text", _) | ("application", "javascript" | "ecmascript") => Media::Text,
        // Says nothing: the bytes must.
        ("application", "octet-stream" | "x-unknown") => return None,
        ("application" | "font" | "model", _) => Media::Binary,
        _ => return None,
    })
}

/// Kinds whose first bytes can't be mistaken for text.
fn magic(start: &[u8]) -> Option<Media> {
    const TABLE: &[(usize, &[u8], Media)] = &[
        (0, b"%PDF-", Media::Pdf),
        (0, b"\x1f\x8b\x08", Media::Archive),
        (0, b"PK\x03\x04", Media::Archive),
        (0, b"\x28\xb5\x2f\xfd", Media::Archive),
        (0, b"BZh", Media::Archive),
        (0, b"\xfd7zXZ\0", Media::Archive),
        (0, b"7z\xbc\xaf\x27\x1c", Media::Archive),
        (0, b"Rar!\x1a\x07", Media::Archive),
        (0, b"\xff\xd8\xff", Media::Image),
        (0, b"\x89PNG\r\n\x1a\n", Media::Image),
        (0, b"GIF87a", Media::Image),
        (0, b"GIF89a", Media::Image),
        (8, b"WEBP", Media::Image),
        (0, b"\0\0\x01\0", Media::Image),
        (8, b"WAVE", Media::Audio),
        (0, b"OggS", Media::Audio),
        (0, b"ID3", Media::Audio),
        (0, b"fLaC", Media::Audio),
        (4, b"ftyp", Media::Video),
        (0, b"\x1a\x45\xdf\xa3", Media::Video),
        (0, b"\x7fELF", Media::Binary),
        (0, b"wOFF", Media::Binary),
        (0, b"wOF2", Media::Binary),
        (0, b"\0asm", Media::Binary),
    ];
    let at = |(offset, bytes, _): &&(usize, &[u8], Media)| {
        start.get(*offset..).is_some_and(|at| at.starts_with(bytes))
    };
    TABLE.iter().find(at).map(|(_, _, kind)| *kind)
}

/// What text says at its start, whatever it was labelled.
fn markup(start: &[u8]) -> Option<Media> {
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let text = text.trim_ascii_start();
    let begins = |with: &str| {
        text.get(..with.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(with.as_bytes()))
    };
    if ["<!doctype html", "<html", "<head", "<body", "<script"]
        .iter()
        .any(|tag| begins(tag))
    {
        return Some(Media::Html);
    }
    if ["<rss", "<feed", "<rdf:rdf", "<urlset", "<sitemapindex"]
        .iter()
        .any(|tag| begins(tag))
    {
        return Some(Media::Xml);
    }
    if begins("<?xml") {
        let is_xhtml = contains(text, b"<html") || contains(text, b"xhtml");
        return Some(if is_xhtml { Media::Html } else { Media::Xml });
    }
    None
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len())
        .any(|window| window.eq_ignore_ascii_case(word))
}

/// Control characters that no text has, unless it is UTF-16 or UTF-32.
fn looks_binary(start: &[u8]) -> bool {
    let is_wide = matches!(
        start,
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, 0, 0xfe, 0xff, ..]
    ) || matches!(start, [b'<', 0, ..] | [0, b'<', ..]);
    let controls = start
        .iter()
        .filter(|byte| matches!(byte, 0x00..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f))
        .count();
    // One stray NUL is a defect of a page, not a sign of a program.
    !is_wide && controls > 1 + start.len() / 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_bytes_together_say_what_it_is() {
        use Media::{Archive, Audio, Binary, Html, Image, Json, Pdf, Text, Video, Xml};
        let elf = [b"\x7fELF".as_slice(), &[0; 60]].concat();
        let noise: Vec<u8> = (0..=255).collect();
        let rows: &[(&str, Option<&str>, &[u8], Media)] = &[
            (
                "a page",
                Some("text/html; charset=utf-8"),
                b"<!DOCTYPE html><p>",
                Html,
            ),
            ("a page in capitals", Some("TEXT/HTML"), b"<P>x", Html),
            ("a page without a label", None, b"  \n<html><p>", Html),
            (
                "a page labelled as text",
                Some("text/plain"),
                b"<!doctype HTML>",
                Html,
            ),
            (
                "a page labelled as XML",
                Some("application/xml"),
                b"<html lang=de>",
                Html,
            ),
            (
                "XHTML",
                Some("application/xhtml+xml"),
                b"<?xml version='1.0'?><html>",
                Html,
            ),
            (
                "a feed",
                Some("application/rss+xml"),
                b"<?xml version='1.0'?><rss>",
                Xml,
            ),
            (
                "a feed labelled as a page",
                Some("text/html"),
                b"<?xml version='1.0'?><rss>",
                Xml,
            ),
            (
                "a feed behind a BOM",
                Some("text/html"),
                b"\xef\xbb\xbf<feed>",
                Xml,
            ),
            ("a sitemap without a label", None, b"<urlset>", Xml),
            ("JSON", Some("application/json"), b"{\"a\":1}", Json),
            ("a JSON feed", Some("application/feed+json"), b"{}", Json),
            (
                "problem JSON",
                Some("application/problem+json"),
                b"{}",
                Json,
            ),
            ("plain text", Some("text/plain"), b"hello", Text),
            ("text without a label", None, b"hello", Text),
            ("nothing at all", None, b"", Text),
            ("PDF", Some("application/pdf"), b"%PDF-1.7", Pdf),
            (
                "PDF labelled as a page",
                Some("text/html"),
                b"%PDF-1.7",
                Pdf,
            ),
            ("a film", Some("video/mp4"), b"\0\0\0\x18ftypmp42", Video),
            (
                "a film labelled as a page",
                Some("text/html"),
                b"\0\0\0\x18ftypmp42",
                Video,
            ),
            ("a picture", Some("image/jpeg"), b"\xff\xd8\xff\xe0", Image),
            (
                "a picture without a label",
                None,
                b"\x89PNG\r\n\x1a\n",
                Image,
            ),
            (
                "a picture that is XML",
                Some("image/svg+xml"),
                b"<svg>",
                Xml,
            ),
            ("sound", Some("audio/mpeg"), b"ID3\x04", Audio),
            (
                "a packed sitemap",
                Some("application/x-gzip"),
                b"\x1f\x8b\x08\0",
                Archive,
            ),
            (
                "a packed sitemap labelled as XML",
                Some("text/xml"),
                b"\x1f\x8b\x08\0",
                Archive,
            ),
            ("a program", Some("application/octet-stream"), &elf, Binary),
            (
                "noise labelled as a page",
                Some("text/html"),
                &noise,
                Binary,
            ),
            (
                "a page with one NUL",
                Some("text/html"),
                b"<p>a\0b</p>",
                Html,
            ),
            (
                "a page in UTF-16",
                Some("text/html"),
                b"\xff\xfe<\0p\0>\0",
                Html,
            ),
            (
                "a page labelled as bytes",
                Some("application/octet-stream"),
                b"<html>",
                Html,
            ),
            ("a broken label", Some("nonsense"), b"<html>", Html),
            ("a font", Some("font/woff2"), b"wOF2", Binary),
        ];
        for (name, content_type, start, media) in rows {
            assert_eq!(Media::of(*content_type, start), *media, "{name}");
        }
    }
}
