//! The text of a document, and what was wrong with its charset as defects. The
//! detection itself is that of `tidings_text`.

use std::borrow::Cow;

use tidings_text::charset::{self, CharsetFrom, Declaration, Decoded};

use crate::defect::{DefectKind, Defects};

/// The text of a feed or sitemap, without its byte order mark.
pub(crate) fn decode<'a>(
    bytes: &'a [u8],
    content_type: Option<&str>,
    defects: &mut Defects,
) -> Cow<'a, str> {
    let hints = charset::Hints {
        label: content_type.and_then(charset::from_content_type),
        declaration: Declaration::Xml,
        top_level_domain: None,
    };
    let decoded = charset::decode(bytes, &hints);
    note(&decoded, defects);
    decoded.text
}

fn note(decoded: &Decoded<'_>, defects: &mut Defects) {
    let charset = decoded.charset;
    if let Some(refuted) = decoded.refuted {
        let detail = format!("declared {refuted}, is not");
        defects.note_whole(DefectKind::WrongEncoding, &detail);
    }
    let is_detected = decoded.from == CharsetFrom::Detected;
    let is_unicode = charset.starts_with("UTF-");
    let detail = match decoded.label {
        Some(label) if is_detected && is_unicode && label != charset => {
            Some(format!("declared {label}, is {charset}"))
        }
        Some(label) if is_detected && label != charset => {
            Some(format!("declared {label}, read as {charset}"))
        }
        None if is_detected && !is_unicode => Some(format!("declared nothing, read as {charset}")),
        _ => None,
    };
    if let Some(detail) = detail {
        defects.note_whole(DefectKind::WrongEncoding, &detail);
    }
    if decoded.has_replacements {
        let detail = format!("some are not {charset}");
        defects.note_whole(DefectKind::InvalidBytes, &detail);
    }
}
