//! Base64 as Atom uses it for content that is neither text nor XML: lenient with
//! white space, missing padding and either alphabet. Any other byte is refused.

/// The decoded bytes; none if a byte belongs to neither alphabet.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0_u8);
    for byte in text.trim().trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ if byte.is_ascii_whitespace() => continue,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn base64_is_decoded_or_refused() {
        assert_eq!(decode("RXhh\nbXBsZQ=="), Some(b"Example".to_vec()));
        assert_eq!(decode(""), Some(Vec::new()));
        assert_eq!(decode("not base64!"), None);
    }
}
