//! Bytes as hex digits: written in lower case, read in either.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Lower-case digits, two for each byte.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)] as char);
        text.push(DIGITS[usize::from(byte & 15)] as char);
    }
    text
}

/// The bytes of an even number of digits, of either case; none for anything else.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| byte(*high, *low)).collect()
}

/// The byte of two digits, as in `%2F`.
pub fn byte(high: u8, low: u8) -> Option<u8> {
    Some(digit(high)? << 4 | digit(low)?)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_and_nothing_else_is_hex() {
        let all: Vec<u8> = (0..=255).collect();
        let digits = encode(&all);
        assert!(digits.starts_with("000102") && digits.ends_with("fdfeff"));
        assert_eq!(decode(&digits), Some(all.clone()));
        assert_eq!(decode(&digits.to_ascii_uppercase()), Some(all));
        for wrong in ["a", "abc", "0g", "+f", " 1", "é"] {
            assert_eq!(decode(wrong), None, "{wrong:?}");
        }
        assert_eq!(decode(""), Some(Vec::new()));
        assert_eq!(byte(b'2', b'f'), Some(b'/'));
    }
}
