//! Character references (`&amp;`, `&#8217;`) to characters. Leaves alone what
//! is none; NUL and other control characters never come out.

use std::borrow::Cow;

use memchr::memchr;

/// `raw` with its character references decoded.
pub(crate) fn decode(raw: &str) -> Cow<'_, str> {
    if memchr(b'&', raw.as_bytes()).is_none() {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    decode_into(raw, &mut out);
    Cow::Owned(out)
}

/// Appends `raw` to `out` with its character references decoded.
pub(crate) fn decode_into(raw: &str, out: &mut String) {
    let mut rest = raw;
    while let Some(at) = memchr(b'&', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // The longest name has 33 characters; the rest of the text can't matter.
        let mut end = rest.len().min(40);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        match memchr(b';', &rest.as_bytes()[..end]) {
            Some(semicolon) => {
                let reference = &rest[..=semicolon];
                match numeric(reference) {
                    Some(character) => out.push(character),
                    None => out.push_str(&html_escape::decode_html_entities(reference)),
                }
                rest = &rest[semicolon + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
}

/// `&#39;` and `&#x27;`, with the code points 128 to 159 read as windows-1252,
/// as browsers do.
fn numeric(reference: &str) -> Option<char> {
    let digits = reference.strip_prefix("&#")?.strip_suffix(';')?;
    let code = match digits.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => digits.parse(),
    }
    .ok()?;
    if (0x80..=0x9f).contains(&code) {
        let byte = [u8::try_from(code).ok()?];
        let (text, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(&byte);
        return text.chars().next();
    }
    let character = char::from_u32(code).unwrap_or('\u{fffd}');
    Some(if character.is_control() && !character.is_whitespace() {
        ' '
    } else {
        character
    })
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn references_become_characters_and_the_rest_stays() {
        for (raw, text) in [
            ("a &amp; b", "a & b"),
            ("it&#8217;s &#x2014; &#151;", "it’s — —"),
            ("AT&T; R&D", "AT&T; R&D"),
            ("&nbsp;&eacute;&hellip;", "\u{a0}é…"),
            ("x & y &; &#; &#xzz;", "x & y &; &#; &#xzz;"),
            ("&#0;&#1;", "  "),
            ("ends with &", "ends with &"),
        ] {
            assert_eq!(decode(raw), text, "{raw}");
        }
    }
}
