//! Table tests of the order in which signs of a charset are believed.

use std::borrow::Cow;

use proptest::prelude::*;

use super::*;

fn hints(content_type: Option<&str>) -> Hints<'_> {
    Hints {
        label: content_type.and_then(from_content_type),
        ..Hints::default()
    }
}

fn xml(label: Option<&str>) -> Hints<'_> {
    Hints {
        label,
        declaration: Declaration::Xml,
        top_level_domain: None,
    }
}

#[test]
fn the_first_plausible_sign_wins() {
    use CharsetFrom::{Bom, Detected, Header, Meta};
    let russian: &[u8] = b"<p>\xcf\xf0\xe8\xe2\xe5\xf2, \xec\xe8\xf0, \xfd\xf2\xee \xed\xee\xe2\xee\xf1\xf2\xe8 \xe4\xed\xff</p>";
    let declared = [b"<meta charset=windows-1251>".as_slice(), russian].concat();
    let lying = [b"<meta charset=utf-8>".as_slice(), russian].concat();
    type Row<'a> = (&'a str, &'a [u8], Option<&'a str>, &'a str, CharsetFrom);
    let rows: &[Row<'_>] = &[
        ("plain", b"<p>hello", None, "UTF-8", Detected),
        (
            "a BOM beats all",
            b"\xef\xbb\xbf<meta charset=latin1>\xc3\xa9",
            Some("text/html; charset=latin1"),
            "UTF-8",
            Bom,
        ),
        (
            "a wide BOM",
            b"\xff\xfe<\0p\0>\0",
            Some("text/html; charset=utf-8"),
            "UTF-16LE",
            Bom,
        ),
        (
            "the header",
            b"\xe9t\xe9",
            Some("text/html; charset=iso-8859-1"),
            "windows-1252",
            Header,
        ),
        (
            "the header beats the page",
            "<meta charset=latin1>é".as_bytes(),
            Some("text/html; charset=utf-8"),
            "UTF-8",
            Header,
        ),
        (
            "the page",
            &declared,
            Some("text/html"),
            "windows-1251",
            Meta,
        ),
        (
            "a page that lies",
            &lying,
            Some("text/html; charset=utf-8"),
            "windows-1251",
            Detected,
        ),
        (
            "a page that says UTF-16 in ASCII",
            b"<meta charset=utf-16>abc",
            None,
            "UTF-8",
            Meta,
        ),
        (
            "no UTF-7",
            b"<meta charset=utf-7>+ADw-script+AD4-",
            None,
            "UTF-8",
            Detected,
        ),
        (
            "no replacement encoding",
            b"<meta charset=iso-2022-kr>abc",
            None,
            "UTF-8",
            Detected,
        ),
        (
            "a label that nobody knows",
            b"abc",
            Some("text/html; charset=banana"),
            "UTF-8",
            Detected,
        ),
        (
            "wide without a BOM",
            b"<\0p\0>\0x\0",
            None,
            "UTF-16LE",
            Detected,
        ),
        ("detected Russian", russian, None, "windows-1251", Detected),
    ];
    for (name, bytes, content_type, charset, from) in rows {
        let decoded = decode(bytes, &hints(*content_type));
        assert_eq!((decoded.charset, decoded.from), (*charset, *from), "{name}");
    }
}

#[test]
fn one_bad_byte_does_not_change_the_encoding() {
    let text = format!("{}\u{e9}", "größer und schöner ".repeat(40));
    let mut bytes = text.into_bytes();
    bytes.push(0xe9);
    bytes.extend_from_slice(b" end");
    let decoded = decode(&bytes, &hints(Some("text/html; charset=utf-8")));
    assert_eq!(decoded.charset, "UTF-8");
    assert!(decoded.has_replacements);
}

#[test]
fn charsets_are_found_declared_or_not() {
    let utf16: Vec<u8> = "<p>Grüße aus Köln</p>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let twice: String = "<p>it’s</p>".bytes().map(char::from).collect();
    let (japanese, _, _) =
        encoding_rs::SHIFT_JIS.encode("<meta charset=shift_jis><p>日本語のページです</p>");
    let (russian, _, _) = encoding_rs::WINDOWS_1251
        .encode("<p>Это обычная страница на русском языке, и её кодировка нигде не указана.</p>");
    for (name, bytes, declared, part) in [
        (
            "utf-8 declared as latin-1",
            "<p>Grüße</p>".as_bytes(),
            Some("iso-8859-1"),
            "Grüße",
        ),
        (
            "latin-1 declared",
            b"<p>Gr\xfc\xdfe</p>",
            Some("iso-8859-1"),
            "Grüße",
        ),
        (
            "latin-1 declared as utf-8",
            b"<p>Gr\xfc\xdfe aus K\xf6ln und viel mehr</p>",
            Some("utf-8"),
            "Gr",
        ),
        ("utf-16 without a mark", &utf16, None, "Grüße"),
        ("encoded twice", twice.as_bytes(), None, "it’s"),
        ("a meta tag", &japanese, None, "日本語"),
        ("nothing at all", &russian, None, "обычная"),
        (
            "a charset that does not exist",
            b"<p>plain</p>",
            Some("klingon"),
            "plain",
        ),
    ] {
        let label = declared;
        let decoded = decode(
            bytes,
            &Hints {
                label,
                ..Hints::default()
            },
        );
        let text = undo_double_encoding(&decoded.text).unwrap_or(decoded.text.into_owned());
        assert!(text.contains(part), "{name}: {text}");
    }
}

#[test]
fn xml_declarations_are_believed_as_far_as_the_bytes_allow() {
    let declared = |name: &str, rest: &[u8]| {
        let head = format!("<?xml version='1.0' encoding='{name}'?>");
        [head.as_bytes(), rest].concat()
    };
    let (shift_jis, _, _) = encoding_rs::SHIFT_JIS.encode("日本語のページです。ニュース");
    let japanese = b"\x1b$BF|K\\8l\x1b(B";
    let many = "größer und schöner ".repeat(20);
    type Row<'a> = (
        &'a str,
        Vec<u8>,
        Option<&'a str>,
        &'a str,
        CharsetFrom,
        &'a str,
    );
    let rows: Vec<Row<'_>> = vec![
        (
            "declared",
            declared("Shift_JIS", &shift_jis),
            None,
            "Shift_JIS",
            CharsetFrom::Meta,
            "日本語",
        ),
        (
            "the header is wrong",
            declared("Shift_JIS", &shift_jis),
            Some("utf-8"),
            "Shift_JIS",
            CharsetFrom::Meta,
            "日本語",
        ),
        (
            "escapes in ASCII",
            declared("iso-2022-jp", japanese),
            None,
            "ISO-2022-JP",
            CharsetFrom::Meta,
            "日本語",
        ),
        (
            "escapes without a label",
            japanese.to_vec(),
            None,
            "ISO-2022-JP",
            CharsetFrom::Detected,
            "日本語",
        ),
        (
            "ASCII of any name",
            declared("gb2312", b"<a>"),
            None,
            "GBK",
            CharsetFrom::Meta,
            "<a>",
        ),
        (
            "UTF-8 of another name",
            declared("latin1", many.as_bytes()),
            None,
            "UTF-8",
            CharsetFrom::Detected,
            "größer",
        ),
        (
            "too short to prove UTF-8",
            declared("gbk", b"\xc4\xa3\xc2\xbd"),
            None,
            "GBK",
            CharsetFrom::Meta,
            "模陆",
        ),
        (
            "UTF-16 that is not",
            declared("utf-16", b"<a>"),
            Some("utf-16"),
            "UTF-8",
            CharsetFrom::Meta,
            "<a>",
        ),
        (
            "no meta tags in XML",
            b"<meta charset=latin1>\xc3\xa9".to_vec(),
            None,
            "UTF-8",
            CharsetFrom::Detected,
            "é",
        ),
        (
            "UTF-32 with a mark",
            b"\xff\xfe\0\0<\0\0\0a\0\0\0".to_vec(),
            Some("utf-8"),
            "UTF-32LE",
            CharsetFrom::Bom,
            "<a",
        ),
        (
            "a mark before another encoding",
            [b"\xef\xbb\xbf".as_slice(), b"Gr\xfc\xdfe"].concat(),
            Some("latin1"),
            "windows-1252",
            CharsetFrom::Header,
            "Grüße",
        ),
        (
            "UTF-16 that starts with a line end",
            "\r\n<rss>"
                .encode_utf16()
                .flat_map(u16::to_be_bytes)
                .collect(),
            None,
            "UTF-16BE",
            CharsetFrom::Detected,
            "<rss>",
        ),
        (
            "UTF-16 of the header",
            b"h\0i\0".to_vec(),
            Some("utf-16le"),
            "UTF-16LE",
            CharsetFrom::Header,
            "hi",
        ),
    ];
    for (name, bytes, label, charset, from, part) in rows {
        let decoded = decode(&bytes, &xml(label));
        assert_eq!((decoded.charset, decoded.from), (charset, from), "{name}");
        assert!(decoded.text.contains(part), "{name}: {}", decoded.text);
        assert!(!decoded.has_replacements, "{name}");
    }
    let decoded = decode(b"<?xml encoding='utf-16'?>", &xml(None));
    assert_eq!(decoded.refuted, Some("UTF-16LE"));
}

#[test]
fn utf8_is_borrowed() {
    let text = "<p>Größe</p>";
    for label in [None, Some("utf-8"), Some("latin1")] {
        let decoded = decode(text.as_bytes(), &xml(label));
        assert!(matches!(decoded.text, Cow::Borrowed(_)), "{label:?}");
    }
}

#[test]
fn a_text_that_is_ascii_for_long_is_detected_by_what_follows() {
    let mut bytes = vec![b' '; 2 * sample::MAX_BYTES];
    let (russian, _, _) = encoding_rs::WINDOWS_1251
        .encode("Это обычная страница на русском языке, и её кодировка нигде не указана.");
    bytes.extend_from_slice(&russian);
    assert_eq!(decode(&bytes, &Hints::default()).charset, "windows-1251");
}

proptest! {
    #[test]
    fn no_bytes_and_no_hints_are_too_bad(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        label in proptest::option::of("[a-z0-9-]{0,12}"),
        domain in proptest::option::of("\\PC{0,5}"),
    ) {
        let hints = Hints {
            label: label.as_deref(),
            declaration: Declaration::Html,
            top_level_domain: domain.as_deref(),
        };
        let decoded = decode(&bytes, &hints);
        prop_assert!(!decoded.charset.is_empty());
    }
}

/// The decision is by the first 64 KiB that matter: nothing behind them is looked at.
#[test]
fn what_is_behind_the_sample_decides_nothing() {
    let latin = |times: usize| b"caf\xe9 au lait, d\xe9j\xe0 vu. ".repeat(times);
    let russian = "Утро в гавани. ".repeat(100_000).into_bytes();
    let mislabelled = Hints {
        label: Some("utf-8"),
        ..Hints::default()
    };
    for tail in [latin(100_000), russian.clone(), vec![0xff; 2 << 20]] {
        let bytes = [latin(5_000), tail].concat();
        assert_eq!(decode(&bytes, &mislabelled).charset, "windows-1252");
    }
    // A label that the start refutes is not tried on the rest.
    let bytes = [b"\x81\xff\xfe\xfd".repeat(30_000), russian].concat();
    let label = Hints {
        label: Some("shift_jis"),
        ..Hints::default()
    };
    assert_ne!(decode(&bytes, &label).charset, "Shift_JIS");
}
