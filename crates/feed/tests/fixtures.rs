//! Feeds that are broken in the ways real ones are, one a file, and what is
//! read from each. All were written for this suite.

#![allow(clippy::unwrap_used)]

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::Value;
use tidings_feed::{Found, Hints, parse};
use url::Url;

pub(crate) fn fixtures() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn each_fixture_gives_what_it_holds() {
    let url = Url::parse("https://feeds.example/all/feed.xml").unwrap();
    for path in fixtures() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let hints = Hints {
            content_type: name
                .contains("http-windows-1251")
                .then_some("text/xml; charset=\"windows-1251\""),
            url: Some(&url),
            now: Some("2026-11-15T00:00:00Z".parse().unwrap()),
            ..Hints::default()
        };
        let feed = parse(&std::fs::read(&path).unwrap(), &hints).unwrap();
        let mut value = serde_json::to_value(&feed).unwrap();
        without_blanks(&mut value);
        insta::assert_snapshot!(name, serde_json::to_string_pretty(&value).unwrap());
    }
}

/// Leaves out what a feed does not have.
fn without_blanks(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| {
                !member.is_null() && member.as_array().is_none_or(|list| !list.is_empty())
            });
            members.values_mut().for_each(without_blanks);
        }
        Value::Array(list) => list.iter_mut().for_each(without_blanks),
        _ => {}
    }
}

#[test]
fn what_is_no_feed_is_named() {
    let json = |keys: &str| Found::OtherJson(keys.to_owned());
    for (bytes, found) in [
        (&b""[..], Found::Empty),
        (b" \n\t", Found::Empty),
        (b"\xef\xbb\xbf", Found::Empty),
        (b"<!DOCTYPE html><html><body>404</body></html>", Found::Html),
        (
            b"<!doctype HTML><title>x</title><p>no html tag",
            Found::Html,
        ),
        (
            b"<html><head><link rel=alternate></head></html>",
            Found::Html,
        ),
        (b"<div>Sorry</div>", Found::Html),
        (
            b"{\"error\":\"not found\",\"code\":404}",
            json("error, code"),
        ),
        (b"[1,2,3]", json("")),
        (b"{", json("")),
        (
            b"<?xml version=\"1.0\"?><catalog><book/></catalog>",
            Found::OtherXml("catalog".to_owned()),
        ),
        (
            b"<urlset><url><loc>https://a.example/</loc></url></urlset>",
            Found::Sitemap,
        ),
        (b"<opml version=\"2.0\"><body/></opml>", Found::Opml),
        (b"Not found", Found::Text),
        (
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0\0\0\x01\0\x08\x06\0\0\0",
            Found::Binary,
        ),
        (b"\x1f\x8bnonsense", Found::BadGzip),
    ] {
        let error = parse(bytes, &Hints::default()).unwrap_err();
        assert_eq!(error.found, found, "{:?}", String::from_utf8_lossy(bytes));
    }
    let error = parse(b"<html>", &Hints::default()).unwrap_err();
    insta::assert_snapshot!(error, @"not a feed: the document is an HTML page; look for its feeds with discovery");
}

#[test]
fn gzip_needs_no_header_and_has_a_bound() {
    let feed = std::fs::read(
        fixtures()
            .iter()
            .find(|path| path.ends_with("atom-1.0.xml"))
            .unwrap(),
    );
    let feed = feed.unwrap();
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let packed = gzip(&feed);
    let plain = parse(&feed, &Hints::default()).unwrap();
    assert_eq!(
        parse(&packed, &Hints::default()).unwrap().items,
        plain.items
    );

    let cut = parse(&packed[..packed.len() * 9 / 10], &Hints::default()).unwrap();
    assert_eq!(cut.items[0].title, plain.items[0].title);
    assert!(!cut.defects.is_empty());

    let bomb = gzip(
        &[
            b"<rss><channel><item><title>x</title></item>",
            &vec![b' '; 1 << 22][..],
        ]
        .concat(),
    );
    let hints = Hints {
        max_bytes: 1 << 16,
        ..Hints::default()
    };
    assert_eq!(parse(&bomb, &hints).unwrap().items.len(), 1);
}
