//! Character references (`&amp;`, `&#8217;`, `&eacute;`), decoded once: numbers,
//! the five names of XML and those of HTML. Entities of a DTD are never
//! expanded; what is unknown stays as it was written, and no reference becomes
//! NUL or another control character.

use std::borrow::Cow;

use html_escape::NAMED_ENTITIES;

/// The longest name of HTML has 31 letters; numbers are shorter.
const MAX_NAME: usize = 32;

/// Text with its references decoded.
pub fn decode(raw: &str) -> Cow<'_, str> {
    decode_checked(raw).0
}

/// Like [`decode`], and whether there is an ampersand that starts no reference.
pub fn decode_checked(raw: &str) -> (Cow<'_, str>, bool) {
    match memchr::memchr(b'&', raw.as_bytes()) {
        None => (Cow::Borrowed(raw), false),
        Some(first) => {
            let mut text = String::with_capacity(raw.len());
            let has_stray = decode_from(raw, first, &mut text);
            (Cow::Owned(text), has_stray)
        }
    }
}

/// Appends text with its references decoded. True if there is an ampersand that
/// starts no reference.
pub fn decode_into(raw: &str, text: &mut String) -> bool {
    match memchr::memchr(b'&', raw.as_bytes()) {
        None => {
            text.push_str(raw);
            false
        }
        Some(first) => decode_from(raw, first, text),
    }
}

fn decode_from(raw: &str, first: usize, text: &mut String) -> bool {
    text.push_str(&raw[..first]);
    let mut rest = &raw[first..];
    let mut has_stray = false;
    loop {
        // `rest` starts with an ampersand.
        let consumed = reference(rest, text);
        has_stray |= consumed == 1;
        rest = &rest[consumed..];
        match memchr::memchr(b'&', rest.as_bytes()) {
            None => {
                text.push_str(rest);
                return has_stray;
            }
            Some(next) => {
                text.push_str(&rest[..next]);
                rest = &rest[next..];
            }
        }
    }
}

/// Appends the character of the reference at the start of `rest`, or its
/// ampersand if it is none, and returns the number of bytes consumed.
///
/// `rest` must start with an ampersand.
pub fn reference(rest: &str, text: &mut String) -> usize {
    let bytes = rest.as_bytes();
    // The fast path: escaped markup consists of these.
    match bytes {
        [b'&', b'l', b't', b';', ..] => return pushed(text, '<', 4),
        [b'&', b'g', b't', b';', ..] => return pushed(text, '>', 4),
        [b'&', b'a', b'm', b'p', b';', ..] => return pushed(text, '&', 5),
        [b'&', b'q', b'u', b'o', b't', b';', ..] => return pushed(text, '"', 6),
        _ => {}
    }
    let window = &bytes[1..bytes.len().min(MAX_NAME + 2)];
    let length = window.iter().position(|byte| !is_name_byte(*byte));
    if let Some(length) = length
        && window[length] == b';'
        && length > 0
    {
        let name = &rest[1..=length];
        if push_named(name, text) {
            return length + 2;
        }
    }
    pushed(text, '&', 1)
}

fn push_named(name: &str, text: &mut String) -> bool {
    if let Some(number) = name.strip_prefix('#') {
        let character = character(number);
        text.extend(character);
        return character.is_some();
    }
    let characters = named(name);
    text.push_str(characters.unwrap_or_default());
    characters.is_some()
}

fn named(name: &str) -> Option<&'static str> {
    let at = NAMED_ENTITIES.binary_search_by(|(known, _)| known.cmp(&name.as_bytes()));
    at.ok().map(|at| NAMED_ENTITIES[at].1)
}

fn pushed(text: &mut String, c: char, consumed: usize) -> usize {
    text.push(c);
    consumed
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'#'
}

fn character(number: &str) -> Option<char> {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    let code = code.ok()?;
    let character = match code {
        0x80..0xa0 => windows_1252(code),
        code => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    };
    let is_invisible = character.is_control() && !character.is_whitespace();
    Some(if is_invisible { ' ' } else { character })
}

/// Numbers of the C1 range mean windows-1252, as in HTML.
fn windows_1252(code: u32) -> char {
    let byte = u8::try_from(code).unwrap_or(b'?');
    let bytes = [byte];
    let (text, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(&bytes);
    text.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn references_are_decoded_once() {
        for (raw, text) in [
            ("plain", "plain"),
            ("&lt;b&gt; &amp;amp; &quot;&apos;", "<b> &amp; \"'"),
            ("caf&eacute; &nbsp;&mdash;", "café \u{a0}—"),
            ("&#233;&#xE9;&#XE9;", "ééé"),
            ("&#150;&#x80;", "–€"),
            ("&#xD800;&#1114112;", "\u{fffd}\u{fffd}"),
            ("Fish & chips & more", "Fish & chips & more"),
            ("?a=1&copy=2;x", "?a=1&copy=2;x"),
            ("&unknown; &; &# &#x; &#xzz;", "&unknown; &; &# &#x; &#xzz;"),
            ("&CounterClockwiseContourIntegral;", "∳"),
            ("&Alpha;&alpha;&ZeroWidthSpace;", "Αα\u{200b}"),
            ("it&#8217;s &#x2014; &#151;", "it’s — —"),
            ("AT&T; R&D", "AT&T; R&D"),
            ("x & y &foo &amp; z", "x & y &foo & z"),
            ("&#0;&#1;&#10;&#129;", "  \n "),
            ("&#+65; &#99999999999;", "&#+65; &#99999999999;"),
            ("a&", "a&"),
        ] {
            assert_eq!(decode(raw), text, "{raw}");
        }
    }
}
