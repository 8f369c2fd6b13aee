//! Bytes into text: by BOM, header, the page's own word, then by detection.
//! Pure. UTF-7 is not an encoding here, whatever a page says.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use serde::Serialize;

use crate::head;

/// Detection does not get better after this.
const DETECTED_FROM: usize = 64 * 1024;

/// How the encoding was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CharsetFrom {
    Bom,
    Header,
    Meta,
    Detected,
}

/// The text of a body.
#[derive(Debug)]
pub struct Decoded<'a> {
    pub text: Cow<'a, str>,
    /// The name of the encoding, as the Encoding Standard spells it.
    pub charset: &'static str,
    pub from: CharsetFrom,
    /// Some bytes were not of this encoding and became U+FFFD.
    pub has_replacements: bool,
}

/// Decodes a page or another text. `top_level_domain` helps the detector.
pub fn decode<'a>(
    bytes: &'a [u8],
    content_type: Option<&str>,
    top_level_domain: Option<&str>,
) -> Decoded<'a> {
    let (encoding, from) = encoding_of(bytes, content_type, top_level_domain);
    let (text, has_replacements) = encoding.decode_with_bom_removal(bytes);
    Decoded {
        text,
        charset: encoding.name(),
        from,
        has_replacements,
    }
}

fn encoding_of(
    bytes: &[u8],
    content_type: Option<&str>,
    top_level_domain: Option<&str>,
) -> (&'static Encoding, CharsetFrom) {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return (encoding, CharsetFrom::Bom);
    }
    let labelled = |label: String| Encoding::for_label_no_replacement(label.as_bytes());
    let header = content_type.and_then(head::charset_of).and_then(labelled);
    if let Some(encoding) = header
        && is_plausible(encoding, bytes)
    {
        return (encoding, CharsetFrom::Header);
    }
    // A tag that could be read as ASCII was not written in UTF-16.
    let meta = head::declared_charset(bytes)
        .and_then(labelled)
        .map(|encoding| {
            let is_wide = encoding == UTF_16LE || encoding == UTF_16BE;
            if is_wide { UTF_8 } else { encoding }
        });
    if let Some(encoding) = meta
        && is_plausible(encoding, bytes)
    {
        return (encoding, CharsetFrom::Meta);
    }
    (detect(bytes, top_level_domain), CharsetFrom::Detected)
}

/// Pages that say UTF-8 and are something else are common enough to look: more
/// than a few bad bytes are not a slip. Other labels can't be checked so.
fn is_plausible(encoding: &'static Encoding, bytes: &[u8]) -> bool {
    if encoding != UTF_8 {
        return true;
    }
    let bytes = &bytes[..bytes.len().min(DETECTED_FROM)];
    let (mut rest, mut bad, mut good) = (bytes, 0_usize, 0_usize);
    while let Err(error) = std::str::from_utf8(rest) {
        let (valid, wrong) = rest.split_at(error.valid_up_to());
        good += valid.iter().filter(|byte| !byte.is_ascii()).count();
        let Some(skipped) = error.error_len() else {
            // The cut of the sample, or of the page.
            break;
        };
        bad += 1;
        rest = &wrong[skipped..];
    }
    good += rest.iter().filter(|byte| !byte.is_ascii()).count();
    bad == 0 || good / 2 > bad
}

fn detect(bytes: &[u8], top_level_domain: Option<&str>) -> &'static Encoding {
    let sample = &bytes[..bytes.len().min(DETECTED_FROM)];
    if let [b'<', 0, ..] = sample {
        return UTF_16LE;
    }
    if let [0, b'<', ..] = sample {
        return UTF_16BE;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(sample, sample.len() == bytes.len());
    let domain = top_level_domain
        .filter(|name| name.is_ascii() && !name.is_empty())
        .map(str::to_ascii_lowercase);
    let domain = domain.as_deref().map(str::as_bytes);
    let guess = detector.guess(domain, Utf8Detection::Allow);
    // Pure ASCII is every encoding; UTF-8 is the one that nobody regrets.
    if guess == WINDOWS_1252 && sample.is_ascii() {
        UTF_8
    } else {
        guess
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sign_that_is_plausible_wins() {
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
            let decoded = decode(bytes, *content_type, None);
            assert_eq!((decoded.charset, decoded.from), (*charset, *from), "{name}");
        }
    }

    #[test]
    fn one_bad_byte_does_not_change_the_encoding() {
        let text = format!("{}\u{e9}", "größer und schöner ".repeat(40));
        let mut bytes = text.into_bytes();
        bytes.push(0xe9);
        bytes.extend_from_slice(b" end");
        let decoded = decode(&bytes, Some("text/html; charset=utf-8"), None);
        assert_eq!(decoded.charset, "UTF-8");
        assert!(decoded.has_replacements);
    }
}
