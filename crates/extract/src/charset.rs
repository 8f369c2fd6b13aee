//! Bytes to text: byte order mark, declared charset, `meta` prescan, detection.
//! Never fails: what can't be decoded becomes U+FFFD.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// How much of the page is searched for `<meta charset>`.
const PRESCAN_BYTES: usize = 4096;
/// How much of the page the detector reads.
const DETECT_BYTES: usize = 64 * 1024;

/// Decodes a page. `declared` is the charset of the Content-Type header.
pub(crate) fn decode(
    bytes: &[u8],
    declared: Option<&str>,
    top_level_domain: Option<&str>,
) -> (String, &'static str) {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return finish(encoding, &bytes[mark..]);
    }
    // UTF-8 that is valid is UTF-8, whatever was declared: no other text looks like it by chance.
    if let Ok(text) = std::str::from_utf8(bytes)
        && !looks_like_utf16(bytes)
        && !text.is_ascii()
    {
        return (
            undo_double_encoding(text).unwrap_or_else(|| text.to_owned()),
            "UTF-8",
        );
    }
    let named = declared
        .and_then(|label| Encoding::for_label(label.trim().trim_matches('"').as_bytes()))
        .or_else(|| prescan(bytes));
    if let Some(encoding) = named {
        let encoding = if encoding == X_USER_DEFINED {
            WINDOWS_1252
        } else {
            encoding
        };
        let (text, used, malformed) = encoding.decode(bytes);
        let believable = !(malformed && (encoding == UTF_8 || encoding.is_single_byte()))
            || text.matches('\u{fffd}').count() * 50 < text.len().max(1);
        if believable {
            return (text.into_owned(), used.name());
        }
    }
    if looks_like_utf16(bytes) {
        let encoding = if bytes[0] == 0 { UTF_16BE } else { UTF_16LE };
        return finish(encoding, bytes);
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(
        &bytes[..bytes.len().min(DETECT_BYTES)],
        bytes.len() <= DETECT_BYTES,
    );
    let tld = top_level_domain
        .filter(|tld| tld.is_ascii() && !tld.bytes().any(|b| b.is_ascii_uppercase()));
    let guess = detector.guess(tld.map(str::as_bytes), Utf8Detection::Allow);
    finish(guess, bytes)
}

fn finish(encoding: &'static Encoding, bytes: &[u8]) -> (String, &'static str) {
    let (text, used, _) = encoding.decode(bytes);
    (text.into_owned(), used.name())
}

/// `<meta charset=…>` or `<meta http-equiv … charset=…>` near the start.
fn prescan(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes[..bytes.len().min(PRESCAN_BYTES)].to_ascii_lowercase();
    let mut from = 0;
    while let Some(meta) = memchr::memmem::find(&head[from..], b"<meta") {
        let at = from + meta;
        let end = memchr::memchr(b'>', &head[at..]).map_or(head.len(), |i| at + i);
        let tag = &head[at..end];
        if let Some(charset) = memchr::memmem::find(tag, b"charset") {
            let value = tag[charset + 7..].trim_ascii_start();
            if let Some(value) = value.strip_prefix(b"=") {
                let value = value.trim_ascii_start();
                let value = value
                    .strip_prefix(b"\"")
                    .or(value.strip_prefix(b"'"))
                    .unwrap_or(value);
                let stop = value
                    .iter()
                    .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b':')))
                    .unwrap_or(value.len());
                if let Some(encoding) = Encoding::for_label(&value[..stop]) {
                    // A page whose `meta` can be read as ASCII is not UTF-16.
                    let utf16 = encoding == UTF_16LE || encoding == UTF_16BE;
                    return Some(if utf16 { UTF_8 } else { encoding });
                }
            }
        }
        from = end;
    }
    None
}

/// UTF-8 that was taken for Latin-1 and encoded again: every character is below
/// 256, and together they are UTF-8.
fn undo_double_encoding(text: &str) -> Option<String> {
    // Encoded twice, a quotation mark or a dash starts with these.
    memchr::memmem::find(text.as_bytes(), "\u{e2}\u{80}".as_bytes())?;
    let bytes: Option<Vec<u8>> = text
        .chars()
        .map(|c| u8::try_from(u32::from(c)).ok())
        .collect();
    String::from_utf8(bytes?).ok()
}

/// Half of the first bytes are zero, on one side.
fn looks_like_utf16(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(64) & !1];
    if head.len() < 8 {
        return false;
    }
    let zeros = |offset: usize| {
        head.iter()
            .skip(offset)
            .step_by(2)
            .filter(|b| **b == 0)
            .count()
    };
    let (even, odd) = (zeros(0), zeros(1));
    let most = head.len() / 2 * 9 / 10;
    (even >= most && odd == 0) || (odd >= most && even == 0)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn charsets_are_found_declared_or_not() {
        let utf16: Vec<u8> = "<p>Grüße aus Köln</p>"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let twice: String = "<p>it’s</p>".bytes().map(char::from).collect();
        let (japanese, _, _) =
            encoding_rs::SHIFT_JIS.encode("<meta charset=shift_jis><p>日本語のページです</p>");
        let (russian, _, _) = encoding_rs::WINDOWS_1251.encode(
            "<p>Это обычная страница на русском языке, и её кодировка нигде не указана.</p>",
        );
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
            let (text, _) = decode(bytes, declared, None);
            assert!(text.contains(part), "{name}: {text}");
        }
    }
}
