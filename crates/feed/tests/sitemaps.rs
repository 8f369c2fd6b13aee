//! Sitemaps as sites serve them. Each row is one way to get them wrong, or to
//! get them right in an unusual way.

#![allow(clippy::unwrap_used)]

use std::io::Write as _;

use tidings_feed::sitemap::{self, Sitemap, SitemapKind};
use tidings_feed::{DefectKind, Found, Hints};
use url::Url;

const NS: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"";

fn base() -> Url {
    Url::parse("https://a.example/maps/sitemap.xml").unwrap()
}

fn read(bytes: &[u8]) -> Sitemap {
    let base = base();
    let hints = Hints {
        url: Some(&base),
        ..Hints::default()
    };
    sitemap::parse(bytes, &hints)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}

fn urls(sitemap: &Sitemap) -> Vec<&str> {
    sitemap
        .entries
        .iter()
        .map(|entry| entry.url.as_str())
        .collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn utf16(text: &str) -> Vec<u8> {
    let units = std::iter::once(0xfeff).chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

/// Every row holds exactly these two pages.
#[test]
fn two_pages_are_found_however_they_are_written() {
    let one = "<url><loc>https://a.example/1</loc><lastmod>2026-11-10</lastmod></url>";
    let two = "<url><loc>https://a.example/2</loc></url>";
    let plain =
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset {NS}>{one}{two}</urlset>");
    let wrap = |inside: &str| format!("<urlset {NS}>{inside}</urlset>").into_bytes();
    let rows: Vec<(&str, Vec<u8>)> = vec![
        ("plain", plain.clone().into_bytes()),
        ("no namespace", format!("<urlset>{one}{two}</urlset>").into()),
        ("an old namespace", format!("<urlset xmlns=\"http://www.google.com/schemas/sitemap/0.84\">{one}{two}</urlset>").into()),
        ("an unknown namespace", format!("<urlset xmlns=\"urn:x\">{one}{two}</urlset>").into()),
        ("a prefix", format!("<s:urlset xmlns:s=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{one}{two}</s:urlset>").replace("<url>", "<s:url>").replace("</url>", "</s:url>").replace("<loc>", "<s:loc>").replace("</loc>", "</s:loc>").into()),
        ("leading white space", format!("\n\n  {plain}").into()),
        ("junk before the prolog", format!("Warning: x in y.php\n{plain}").into()),
        ("HTML before the prolog", format!("<br />\n<b>Notice</b>: x\n{plain}").into()),
        ("a byte order mark", format!("\u{feff}{plain}").into()),
        ("two byte order marks", format!("\u{feff}\u{feff}{plain}").into()),
        ("a doctype", format!("<!DOCTYPE urlset SYSTEM \"x.dtd\">\n{}", &plain[39..]).into()),
        ("a doctype with entities", format!("<!DOCTYPE urlset [<!ENTITY x \"y\">]>\n{}", &plain[39..]).into()),
        ("a style sheet", plain.replace("?>\n", "?>\n<?xml-stylesheet href=\"s.xsl\"?>\n").into()),
        ("comments", plain.replace("<url>", "<!-- a > b --><url>").into()),
        ("CDATA", plain.replace("https://a.example/2", "<![CDATA[https://a.example/2]]>").into()),
        ("white space in loc", plain.replace("https://a.example/2", "\n\t https://a.example/2 \n").into()),
        ("a relative loc", plain.replace("https://a.example/2", "/2").into()),
        ("a loc without a scheme", plain.replace("https://a.example/2", "//a.example/2").into()),
        ("upper case", plain.replace("loc>", "LOC>").replace("url>", "URL>").into()),
        ("no end", plain.replace("</urlset>", "").into()),
        ("cut in an entry", plain.replace("</urlset>", "<url><loc>https://a.exam").into()),
        ("cut in a tag", plain.replace("</urlset>", "<url><lo").into()),
        ("wrong end tags", plain.replace("</loc></url></urlset>", "</lok></url></urlset>").into()),
        ("entries that are not closed", plain.replace("</url>", "").into()),
        ("an empty loc", plain.replace("</urlset>", "<url><loc></loc></url></urlset>").into()),
        ("no loc", plain.replace("</urlset>", "<url><lastmod>2026-11-10</lastmod></url></urlset>").into()),
        ("an impossible loc", plain.replace("</urlset>", "<url><loc>javascript:void(0)</loc></url></urlset>").into()),
        ("a bad lastmod", plain.replace("2026-11-10", "last week").into()),
        ("a bad priority", plain.replace("</loc><lastmod>", "</loc><priority>very</priority><lastmod>").into()),
        ("control characters", plain.replace("</url>", "</url>\u{1}\u{b}").into()),
        ("an undeclared image prefix", plain.replace("</url>", "<image:image><image:loc>https://a.example/i.png</image:loc></image:image></url>").into()),
        ("unknown elements", plain.replace("</url>", "<x:y xmlns:x=\"urn:x\"><x:loc2>https://a.example/9</x:loc2></x:y></url>").into()),
        ("gzip", gzip(plain.as_bytes())),
        ("gzip, twice as long a stream", [gzip(&plain.as_bytes()[..150]), gzip(&plain.as_bytes()[150..])].concat()),
        ("UTF-16", utf16(&plain.replace("UTF-8", "UTF-16"))),
        ("says UTF-16, is UTF-8", plain.replace("UTF-8", "UTF-16").into()),
        ("Latin-1 in a comment", [plain.replace("</urlset>", "<!-- ").as_bytes(), b"\xe9\xe8 --></urlset>"].concat()),
        ("text", b"https://a.example/1\nhttps://a.example/2\n".to_vec()),
        ("text with Windows line ends", b"\xef\xbb\xbfhttps://a.example/1\r\n\r\nhttps://a.example/2\r\n".to_vec()),
        ("text with noise", b"https://a.example/1\n# comment\n  https://a.example/2  \nftp://a.example/3\n".to_vec()),
        ("text, gzipped", gzip(b"https://a.example/1\nhttps://a.example/2")),
        ("RSS", b"<rss><channel><item><link>https://a.example/1</link></item><item><guid>https://a.example/2</guid></item></channel></rss>".to_vec()),
        ("Atom", b"<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='/1'/></entry><entry><link href='/2'/></entry></feed>".to_vec()),
        ("no root", format!("{one}{two}").into()),
        ("locations outside entries", wrap("<loc>https://a.example/1</loc><loc>https://a.example/2</loc>")),
        ("two locations in one entry", wrap("<url><loc>https://a.example/1</loc><loc>https://a.example/2</loc></url>")),
        ("unclosed CDATA", wrap("<url><loc><![CDATA[https://a.example/1</loc></url><url><loc><![CDATA[https://a.example/2]]></loc></url>")),
        ("index", b"<sitemapindex><sitemap><loc>https://a.example/1</loc></sitemap><sitemap><loc>https://a.example/2</loc></sitemap></sitemapindex>".to_vec()),
    ];
    assert!(rows.len() >= 36);
    for (name, bytes) in rows {
        let sitemap = read(&bytes);
        assert_eq!(
            urls(&sitemap),
            ["https://a.example/1", "https://a.example/2"],
            "{name}"
        );
    }
}

#[test]
fn addresses_are_decoded_once() {
    for (loc, url) in [
        (
            "https://a.example/?a=1&amp;b=2",
            "https://a.example/?a=1&b=2",
        ),
        ("https://a.example/?a=1&b=2", "https://a.example/?a=1&b=2"),
        (
            "https://a.example/?a=1&amp;amp;b=2",
            "https://a.example/?a=1&amp;b=2",
        ),
        ("https://a.example/caf&eacute;", "https://a.example/café"),
        ("https://a.example/caf&#233;", "https://a.example/café"),
        (
            "<![CDATA[https://a.example/?a=1&b=2]]>",
            "https://a.example/?a=1&b=2",
        ),
        (
            "https://a.example/?q=&apos;x&apos;",
            "https://a.example/?q='x'",
        ),
    ] {
        let text = format!("<urlset><url><loc>{loc}</loc></url></urlset>");
        assert_eq!(urls(&read(text.as_bytes())), [url], "{loc}");
    }
}

#[test]
fn extensions_belong_to_their_entry() {
    let text = format!(
        "<urlset {NS} xmlns:news=\"http://www.google.com/schemas/sitemap-news/0.9\"
          xmlns:image=\"http://www.google.com/schemas/sitemap-image/1.1\"
          xmlns:video=\"http://www.google.com/schemas/sitemap-video/1.1\" xmlns:xhtml=\"http://www.w3.org/1999/xhtml\">
        <url><loc>https://a.example/1</loc><lastmod>2026-11-10T12:00:00+01:00</lastmod>
          <xhtml:link rel=\"alternate\" hreflang=\"de\" href=\"https://a.example/de/1\"/>
          <news:news><news:publication><news:name>Gazette</news:name><news:language>en</news:language></news:publication>
            <news:publication_date>2026-11-10</news:publication_date><news:title>Ships &amp; boats</news:title></news:news>
          <image:image><image:loc>https://a.example/1.jpg</image:loc><image:title>No</image:title></image:image>
          <image:image><image:loc>/2.jpg</image:loc></image:image>
          <video:video><video:thumbnail_loc>/t.jpg</video:thumbnail_loc><video:title>Film</video:title>
            <video:content_loc>/f.mp4</video:content_loc></video:video></url>
        <url><loc>https://a.example/2</loc></url></urlset>"
    );
    let sitemap = read(text.as_bytes());
    insta::assert_json_snapshot!(sitemap.entries);
}

#[test]
fn kinds_are_told_apart() {
    for (text, kind) in [
        ("<urlset/>", SitemapKind::UrlSet),
        (
            "<sitemapindex><sitemap><loc>https://a.example/s.xml</loc></sitemap></sitemapindex>",
            SitemapKind::Index,
        ),
        ("https://a.example/1", SitemapKind::Text),
        ("<rss><channel/></rss>", SitemapKind::Feed),
    ] {
        assert_eq!(read(text.as_bytes()).kind, kind, "{text}");
    }
    assert!(read(b"<urlset/>").defects.contains(DefectKind::NoItems));
}

#[test]
fn what_is_no_sitemap_is_named() {
    for (bytes, found) in [
        (&b""[..], Found::Empty),
        (b"<html><body>404</body></html>", Found::Html),
        (b"User-agent: *\nDisallow:", Found::Text),
        (b"{\"a\":1}", Found::OtherJson(String::new())),
        (b"\x1f\x8b\x08broken", Found::BadGzip),
        (b"<catalog/>", Found::OtherXml("catalog".to_owned())),
    ] {
        let error = sitemap::parse(bytes, &Hints::default()).unwrap_err();
        assert_eq!(error.found, found, "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn one_lastmod_for_all_is_not_trusted() {
    let trusted = |same: usize, other: usize| {
        let entry = |day: usize, n: usize| {
            format!(
                "<url><loc>https://a.example/{day}/{n}</loc><lastmod>2026-11-{day:02}</lastmod></url>"
            )
        };
        let mut text = "<urlset>".to_owned();
        (0..same).for_each(|n| text += &entry(1, n));
        (0..other).for_each(|n| text += &entry(2 + n % 20, n));
        read(text.as_bytes()).lastmod_is_trusted
    };
    assert!(!trusted(100, 0) && !trusted(96, 4));
    assert!(trusted(95, 5) && trusted(50, 50) && trusted(3, 0));
}

#[test]
fn a_file_has_bounds() {
    let many = "<url><loc>https://a.example/x</loc></url>".repeat(50_010);
    let sitemap = read(format!("<urlset>{many}</urlset>").as_bytes());
    assert_eq!(sitemap.entries.len(), sitemap::MAX_ENTRIES);
    assert!(sitemap.defects.contains(DefectKind::TooMany));

    let bomb = gzip(
        &[
            b"<urlset><url><loc>https://a.example/1</loc></url>",
            &vec![b' '; 1 << 22][..],
        ]
        .concat(),
    );
    let hints = Hints {
        max_bytes: 4096,
        ..Hints::default()
    };
    let sitemap = sitemap::parse(&bomb, &hints).unwrap();
    assert_eq!(urls(&sitemap), ["https://a.example/1"]);
    assert!(sitemap.defects.contains(DefectKind::DamagedGzip));
}
