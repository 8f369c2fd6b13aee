//! The charset of a document and its text: byte order mark, the bytes of UTF-16
//! and UTF-32, valid UTF-8, the HTTP header, the document's own declaration,
//! then detection. A label is believed only as far as the bytes allow. Never
//! fails, and never decodes UTF-7.

mod label;
mod sample;
mod unicode;

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};
use serde::Serialize;

use sample::Sample;
pub use unicode::undo_double_encoding;

pub use crate::content_type::from_content_type;

/// From this many UTF-8 sequences on, valid UTF-8 can't be an accident of the
/// multi-byte encoding that a label names.
const PROOF_SEQUENCES: usize = 8;
/// A label is wrong if more than one in this many bytes of the text is part of a
/// replacement character.
const MIN_TEXT_PER_REPLACEMENT: usize = 50;

/// What is known of a document besides its bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hints<'a> {
    /// The charset of the Content-Type header; see [`from_content_type`].
    pub label: Option<&'a str>,
    pub declaration: Declaration,
    /// Of the document's host; helps the detector.
    pub top_level_domain: Option<&'a str>,
}

/// Where a document declares its charset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Declaration {
    /// In a `<meta>` tag, or else as in XML.
    #[default]
    Html,
    /// In `<?xml encoding="…"?>`.
    Xml,
}

/// How the charset was determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CharsetFrom {
    Bom,
    Header,
    /// The document's own declaration.
    Meta,
    Detected,
}

/// The text of a document, without its byte order mark.
#[derive(Debug)]
pub struct Decoded<'a> {
    pub text: Cow<'a, str>,
    /// The name of the encoding, as the Encoding Standard spells it.
    pub charset: &'static str,
    pub from: CharsetFrom,
    /// Some bytes were not of this encoding and became U+FFFD.
    pub has_replacements: bool,
    /// The charset that the header names, or else the document.
    pub label: Option<&'static str>,
    /// UTF-16, when the document declares it in bytes that are not UTF-16.
    pub refuted: Option<&'static str>,
}

impl<'a> Decoded<'a> {
    fn new(text: Cow<'a, str>, charset: &'static str, from: CharsetFrom) -> Self {
        Self {
            text,
            charset,
            from,
            has_replacements: false,
            label: None,
            refuted: None,
        }
    }

    fn lossy(bytes: &'a [u8], encoding: &'static Encoding, from: CharsetFrom) -> Self {
        let (text, has_replacements) = encoding.decode_without_bom_handling(bytes);
        Self {
            has_replacements,
            ..Self::new(text, encoding.name(), from)
        }
    }

    /// None if a byte is not of this encoding.
    fn strict(bytes: &'a [u8], encoding: &'static Encoding, from: CharsetFrom) -> Option<Self> {
        let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
        Some(Self::new(text, encoding.name(), from))
    }
}

type Label = (&'static Encoding, CharsetFrom);

/// Decodes a document. Borrows where the bytes are UTF-8.
pub fn decode<'a>(bytes: &'a [u8], hints: &Hints<'_>) -> Decoded<'a> {
    if let Some(decoded) = unicode::by_signature(bytes) {
        return decoded;
    }
    let header = hints.label.and_then(label::encoding);
    if let Some(wide) = header.filter(|encoding| is_wide(encoding))
        && memchr::memchr(0, bytes).is_some()
    {
        return Decoded::lossy(bytes, wide, CharsetFrom::Header);
    }
    let declared = label::declared(bytes, hints.declaration);
    // A declaration that can be read byte by byte is not in UTF-16.
    let refuted = declared.filter(|encoding| is_wide(encoding));
    let declared = refuted.map_or(declared, |_| Some(UTF_8));
    let header = header.filter(|encoding| !is_wide(encoding));
    let labels = [
        header.map(|encoding| (encoding, CharsetFrom::Header)),
        declared.map(|encoding| (encoding, CharsetFrom::Meta)),
    ];
    let first = labels.into_iter().flatten().next();
    let decoded = match std::str::from_utf8(bytes) {
        Ok(text) => valid_utf8(text, first),
        Err(error) => {
            let sample = Sample::around(bytes, error.valid_up_to());
            let fits = |label: &Label| is_plausible(sample, label.0);
            let (encoding, from) = labels.into_iter().flatten().find(fits).unwrap_or_else(|| {
                let guess = guess(sample, hints.top_level_domain);
                (guess, CharsetFrom::Detected)
            });
            Decoded::lossy(bytes, encoding, from)
        }
    };
    Decoded {
        label: first.map(|(encoding, _)| encoding.name()),
        refuted: refuted.map(Encoding::name),
        ..decoded
    }
}

fn is_wide(encoding: &'static Encoding) -> bool {
    encoding == UTF_16LE || encoding == UTF_16BE
}

/// Valid UTF-8 is UTF-8, whatever the label says, but for two cases: an encoding
/// of escapes within ASCII, and a text too short to prove anything.
fn valid_utf8<'a>(text: &'a str, label: Option<Label>) -> Decoded<'a> {
    let bytes = text.as_bytes();
    let utf8 = |from| Decoded::new(Cow::Borrowed(text), UTF_8.name(), from);
    let Some((label, from)) = label else {
        let has_escapes = memchr::memchr(0x1b, bytes).is_some() && text.is_ascii();
        let is_escaped = || detector_guess(Sample::start(bytes), None) == ISO_2022_JP;
        return match has_escapes && is_escaped() {
            true => Decoded::lossy(bytes, ISO_2022_JP, CharsetFrom::Detected),
            false => utf8(CharsetFrom::Detected),
        };
    };
    if label == UTF_8 {
        return utf8(from);
    }
    let sequences = bytes.iter().filter(|byte| **byte >= 0xc0).count();
    if label == ISO_2022_JP && memchr::memchr(0x1b, bytes).is_some() {
        if let Some(decoded) = Decoded::strict(bytes, label, from) {
            return decoded;
        }
    } else if sequences == 0 {
        return Decoded::new(Cow::Borrowed(text), label.name(), from);
    }
    let may_be_accident = !label.is_single_byte() && sequences < PROOF_SEQUENCES;
    may_be_accident
        .then(|| Decoded::strict(bytes, label, from))
        .flatten()
        .unwrap_or_else(|| utf8(CharsetFrom::Detected))
}

/// Whether the bytes, which are not valid UTF-8, may be what a label says.
fn is_plausible(sample: Sample<'_>, label: &'static Encoding) -> bool {
    if label == UTF_8 {
        return unicode::is_mostly_utf8(sample);
    }
    let (text, has_replacements) = sample.decode(label);
    !has_replacements || {
        let replaced = text.matches(char::REPLACEMENT_CHARACTER).count();
        replaced * MIN_TEXT_PER_REPLACEMENT < text.len()
    }
}

/// No label fits. Mostly UTF-8 is UTF-8 with replacements; the rest is what the
/// detector takes it for.
fn guess(sample: Sample<'_>, top_level_domain: Option<&str>) -> &'static Encoding {
    match unicode::is_mostly_utf8(sample) {
        true => UTF_8,
        false => detector_guess(sample, top_level_domain),
    }
}

/// Never UTF-8: whoever calls has checked that.
fn detector_guess(sample: Sample<'_>, top_level_domain: Option<&str>) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(sample.bytes(), sample.is_to_the_end());
    // The detector panics on a domain with a dot or not in lower-case ASCII.
    let domain = top_level_domain
        .filter(|name| name.is_ascii() && !name.contains('.'))
        .map(str::to_ascii_lowercase);
    let domain = domain.as_deref().map(str::as_bytes);
    detector.guess(domain, Utf8Detection::Deny)
}

#[cfg(test)]
mod tests;
