//! What the bytes themselves say of Unicode encodings: marks and patterns of
//! UTF-16 and UTF-32, the share of valid UTF-8, and UTF-8 that was encoded twice.

use std::borrow::Cow;

use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE};

use super::sample::Sample;
use super::{CharsetFrom, Decoded};

/// The text of a document that starts with a byte order mark, or as only UTF-16
/// and UTF-32 do.
pub(super) fn by_signature(bytes: &[u8]) -> Option<Decoded<'_>> {
    use CharsetFrom::{Bom, Detected};
    match bytes {
        [0xff, 0xfe, 0, 0, rest @ ..] => return Some(utf32le(rest, Bom)),
        [0, 0, 0xfe, 0xff, rest @ ..] => return Some(utf32be(rest, Bom)),
        [b'<', 0, 0, 0, ..] => return Some(utf32le(bytes, Detected)),
        [0, 0, 0, b'<', ..] => return Some(utf32be(bytes, Detected)),
        _ => {}
    }
    let (encoding, rest, from) = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => (UTF_8, rest, Bom),
        [0xff, 0xfe, rest @ ..] => (UTF_16LE, rest, Bom),
        [0xfe, 0xff, rest @ ..] => (UTF_16BE, rest, Bom),
        [b'<' | b'{' | b'\n' | b' ', 0, third, 0, ..] if *third != 0 => (UTF_16LE, bytes, Detected),
        [0, b'<' | b'{' | b'\n' | b' ', 0, fourth, ..] if *fourth != 0 => {
            (UTF_16BE, bytes, Detected)
        }
        [0, ..] if has_every_other_zero(bytes) => (UTF_16BE, bytes, Detected),
        [_, 0, ..] if has_every_other_zero(bytes) => (UTF_16LE, bytes, Detected),
        _ => return None,
    };
    let decoded = Decoded::lossy(rest, encoding, from);
    // A mark in front of another encoding: some editors add it blindly.
    let is_wrong =
        decoded.has_replacements && encoding == UTF_8 && !is_mostly_utf8(Sample::start(rest));
    (!is_wrong).then_some(decoded)
}

fn utf32le(bytes: &[u8], from: CharsetFrom) -> Decoded<'_> {
    utf32(bytes, u32::from_le_bytes, "UTF-32LE", from)
}

fn utf32be(bytes: &[u8], from: CharsetFrom) -> Decoded<'_> {
    utf32(bytes, u32::from_be_bytes, "UTF-32BE", from)
}

fn utf32<'a>(
    bytes: &'a [u8],
    unit: fn([u8; 4]) -> u32,
    charset: &'static str,
    from: CharsetFrom,
) -> Decoded<'a> {
    let (units, _) = bytes.as_chunks::<4>();
    let mut has_replacements = false;
    let text: String = units
        .iter()
        .map(|four| {
            char::from_u32(unit(*four)).unwrap_or_else(|| {
                has_replacements = true;
                char::REPLACEMENT_CHARACTER
            })
        })
        .collect();
    Decoded {
        has_replacements,
        ..Decoded::new(Cow::Owned(text), charset, from)
    }
}

/// Half of the first bytes are zero, on one side: UTF-16 of mostly ASCII.
fn has_every_other_zero(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(64) & !1];
    if head.len() < 8 {
        return false;
    }
    let zeros = |offset: usize| {
        let side = head.iter().skip(offset).step_by(2);
        side.filter(|byte| **byte == 0).count()
    };
    let (even, odd) = (zeros(0), zeros(1));
    let enough = head.len() / 2 * 9 / 10;
    (even >= enough && odd == 0) || (odd >= enough && even == 0)
}

/// Whether the bytes above ASCII are mostly parts of valid UTF-8 sequences. A
/// single bad byte in plain ASCII is not: the old default of the web is the
/// better guess for a lone accented letter.
pub(super) fn is_mostly_utf8(sample: Sample<'_>) -> bool {
    let (mut valid, mut invalid) = (0_usize, 0_usize);
    // One that the sample cuts counts as one invalid: too little to matter.
    for chunk in sample.bytes().utf8_chunks() {
        valid += chunk.valid().bytes().filter(|byte| *byte >= 0xc0).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    invalid <= valid
}

/// The text of UTF-8 that was read as Latin-1 and encoded again: every character
/// is below 256, and together they are UTF-8.
pub fn undo_double_encoding(text: &str) -> Option<String> {
    // Encoded twice, a quotation mark or a dash starts with these.
    memchr::memmem::find(text.as_bytes(), "\u{e2}\u{80}".as_bytes())?;
    let bytes: Option<Vec<u8>> = text
        .chars()
        .map(|c| u8::try_from(u32::from(c)).ok())
        .collect();
    String::from_utf8(bytes?).ok()
}
