//! Bytes as lower-case hex digits.

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| {
        let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
        [DIGITS[high] as char, DIGITS[low] as char]
    });
    digits.collect()
}
