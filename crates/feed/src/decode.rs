//! Bytes to text: byte order marks, the patterns of UTF-16 and UTF-32, the
//! labels of the HTTP header and the XML declaration, and the truth of the
//! bytes where labels lie. Never fails, and never decodes UTF-7.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::defect::{DefectKind, Defects};

/// Below this many UTF-8 sequences, valid UTF-8 may be an accident of a
/// multi-byte encoding that was declared.
const SEQUENCES_THAT_PROVE: usize = 8;

/// How far into a document its encoding declaration may stand.
const DECLARATION_WINDOW: usize = 1024;

/// The text of a document, without its byte order mark.
pub(crate) fn decode<'a>(
    bytes: &'a [u8],
    content_type: Option<&str>,
    defects: &mut Defects,
) -> Cow<'a, str> {
    if let Some(text) = by_mark_or_pattern(bytes, defects) {
        return text;
    }
    let header = content_type.and_then(charset).and_then(known_label);
    let declared = declared_label(bytes).and_then(known_label);
    // A document whose declaration can be read byte by byte is not UTF-16.
    let labels = [header, declared].map(|label| label.filter(|label| label.is_ascii_compatible()));
    if let Some(declared) = declared.filter(|label| !label.is_ascii_compatible()) {
        let detail = format!("declared {}, is not", declared.name());
        defects.note_whole(DefectKind::WrongEncoding, &detail);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return valid_utf8(text, bytes, labels, defects);
    }
    for encoding in labels.into_iter().flatten() {
        if encoding == UTF_8 {
            continue;
        }
        if let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(bytes) {
            return text;
        }
    }
    not_as_labelled(bytes, labels, defects)
}

fn by_mark_or_pattern<'a>(bytes: &'a [u8], defects: &mut Defects) -> Option<Cow<'a, str>> {
    let utf32 = |skip: usize, unit: fn([u8; 4]) -> u32| {
        let units = bytes[skip..].chunks_exact(4);
        let decoded = units.map(|four| {
            let four = [four[0], four[1], four[2], four[3]];
            char::from_u32(unit(four)).unwrap_or(char::REPLACEMENT_CHARACTER)
        });
        Some(Cow::Owned(decoded.collect::<String>()))
    };
    match bytes {
        [0xff, 0xfe, 0, 0, ..] => return utf32(4, u32::from_le_bytes),
        [0, 0, 0xfe, 0xff, ..] => return utf32(4, u32::from_be_bytes),
        [b'<', 0, 0, 0, ..] => return utf32(0, u32::from_le_bytes),
        [0, 0, 0, b'<', ..] => return utf32(0, u32::from_be_bytes),
        _ => {}
    }
    let (encoding, rest) = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => (UTF_8, rest),
        [0xff, 0xfe, rest @ ..] => (UTF_16LE, rest),
        [0xfe, 0xff, rest @ ..] => (UTF_16BE, rest),
        [b'<' | b'{' | b'\n' | b' ', 0, third, 0, ..] if *third != 0 => (UTF_16LE, bytes),
        [0, b'<' | b'{' | b'\n' | b' ', 0, fourth, ..] if *fourth != 0 => (UTF_16BE, bytes),
        _ => return None,
    };
    let (text, had_errors) = encoding.decode_without_bom_handling(rest);
    if had_errors {
        if encoding == UTF_8 && mostly_not_utf8(rest) {
            // A mark in front of another encoding: some editors add it blindly.
            return None;
        }
        defects.note_whole(DefectKind::InvalidBytes, encoding.name());
    }
    Some(text)
}

fn valid_utf8<'a>(
    text: &'a str,
    bytes: &'a [u8],
    labels: [Option<&'static Encoding>; 2],
    defects: &mut Defects,
) -> Cow<'a, str> {
    let Some(label) = labels.into_iter().flatten().next() else {
        return Cow::Borrowed(text);
    };
    if label == UTF_8 {
        return Cow::Borrowed(text);
    }
    let sequences = bytes.iter().filter(|byte| **byte >= 0xc0).count();
    let escapes = label == encoding_rs::ISO_2022_JP && memchr::memchr(0x1b, bytes).is_some();
    let may_be_accident =
        !label.is_single_byte() && sequences > 0 && sequences < SEQUENCES_THAT_PROVE;
    if (escapes || may_be_accident)
        && let Some(text) = label.decode_without_bom_handling_and_without_replacement(bytes)
    {
        return text;
    }
    if sequences > 0 {
        let detail = format!("declared {}, is UTF-8", label.name());
        defects.note_whole(DefectKind::WrongEncoding, &detail);
    }
    Cow::Borrowed(text)
}

/// No label fits the bytes. Mostly UTF-8 stays UTF-8 with replacements; the
/// rest is what a detector takes it for.
fn not_as_labelled<'a>(
    bytes: &'a [u8],
    labels: [Option<&'static Encoding>; 2],
    defects: &mut Defects,
) -> Cow<'a, str> {
    let label = labels.into_iter().flatten().next();
    let utf8_is_claimed = label.is_none_or(|label| label == UTF_8);
    let encoding = match label {
        Some(label) if !utf8_is_claimed => label,
        _ if !mostly_not_utf8(bytes) => UTF_8,
        _ => detected(bytes),
    };
    let (text, had_errors) = encoding.decode_without_bom_handling(bytes);
    let claimed = label.map_or("nothing", Encoding::name);
    if label != Some(encoding) && !(label.is_none() && encoding == UTF_8) {
        let detail = format!("declared {claimed}, read as {}", encoding.name());
        defects.note_whole(DefectKind::WrongEncoding, &detail);
    }
    if had_errors {
        let detail = format!("some are not {}", encoding.name());
        defects.note_whole(DefectKind::InvalidBytes, &detail);
    }
    text
}

/// Whether the bytes above ASCII are rarely part of a valid UTF-8 sequence.
fn mostly_not_utf8(bytes: &[u8]) -> bool {
    let (mut valid, mut invalid) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        valid += chunk.valid().bytes().filter(|byte| *byte >= 0xc0).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    // A single bad byte in plain ASCII may be either; the old default of the
    // web is the better guess for a lone accented letter.
    invalid > valid
}

fn detected(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let guess = detector.guess(None, Utf8Detection::Deny);
    if guess == UTF_8 { WINDOWS_1252 } else { guess }
}

/// The charset parameter of a content type.
fn charset(content_type: &str) -> Option<&str> {
    let lower = content_type.to_ascii_lowercase();
    let at = lower.find("charset=")? + "charset=".len();
    let value = content_type[at..].split(';').next()?;
    Some(value.trim().trim_matches(['"', '\'']))
}

/// The encoding that the document itself declares.
fn declared_label(bytes: &[u8]) -> Option<&str> {
    let head = &bytes[..bytes.len().min(DECLARATION_WINDOW)];
    let start = memchr::memmem::find(head, b"<?xml")?;
    let end = start + memchr::memchr(b'>', &head[start..])?;
    let declaration = &head[start..end];
    let at = memchr::memmem::find(declaration, b"encoding")? + "encoding".len();
    let value = std::str::from_utf8(&declaration[at..]).ok()?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    value[1..].split(quote).next()
}

fn known_label(label: &str) -> Option<&'static Encoding> {
    let label = label.trim();
    Encoding::for_label(label.as_bytes()).or_else(|| {
        // Names of Windows and Unix code pages beyond the web's own list.
        let lower = label.to_ascii_lowercase().replace('_', "-");
        let page = lower
            .strip_prefix("cp-")
            .or_else(|| lower.strip_prefix("cp"))
            .or_else(|| lower.strip_prefix("windows"))
            .or_else(|| lower.strip_prefix("win-"))
            .or_else(|| lower.strip_prefix("ms"))
            .unwrap_or(&lower);
        let name = match page {
            "932" => "shift_jis",
            "936" | "gb2312-80" => "gbk",
            "949" => "euc-kr",
            "950" => "big5",
            "65001" | "utf8mb4" => "utf-8",
            "28591" => "iso-8859-1",
            digits if digits.starts_with("125") => return code_page(digits),
            other => other,
        };
        Encoding::for_label(name.as_bytes())
    })
}

fn code_page(digits: &str) -> Option<&'static Encoding> {
    Encoding::for_label(format!("windows-{digits}").as_bytes())
}
