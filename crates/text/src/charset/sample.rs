//! The part of a document by which its charset is determined. Whoever detects takes
//! a sample, so that a document of any size costs the same.

use encoding_rs::Encoding;

/// Detection does not improve beyond this many bytes.
pub(super) const MAX_BYTES: usize = 64 * 1024;
/// Bytes before the first that is not ASCII, as context.
const CONTEXT: usize = 256;

/// At most [`MAX_BYTES`] of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample<'a> {
    bytes: &'a [u8],
    is_to_the_end: bool,
}

impl<'a> Sample<'a> {
    /// From the first byte that is not ASCII, or all that is relevant if
    /// `first_invalid`, the first byte that is not UTF-8, comes much later: then from
    /// there.
    pub(super) fn around(bytes: &'a [u8], first_invalid: usize) -> Self {
        let first = bytes.iter().position(|byte| !byte.is_ascii());
        let first = first.unwrap_or(first_invalid).min(first_invalid);
        let has_both = first_invalid - first < MAX_BYTES / 2;
        let from = if has_both { first } else { first_invalid };
        // A character that starts in the context is whole: ASCII or valid UTF-8.
        let mut from = from.saturating_sub(CONTEXT);
        while from < first_invalid && bytes[from] & 0xc0 == 0x80 {
            from += 1;
        }
        Self::start(&bytes[from..])
    }

    pub(super) fn start(bytes: &'a [u8]) -> Self {
        Self {
            bytes: &bytes[..bytes.len().min(MAX_BYTES)],
            is_to_the_end: bytes.len() <= MAX_BYTES,
        }
    }

    pub(super) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Whether the document ends with it; otherwise its last character may be cut.
    pub(super) fn is_to_the_end(self) -> bool {
        self.is_to_the_end
    }

    /// Its text, and whether some bytes became U+FFFD. A character that is cut at the
    /// end is none.
    pub(super) fn decode(self, encoding: &'static Encoding) -> (String, bool) {
        let mut decoder = encoding.new_decoder_without_bom_handling();
        let room = decoder.max_utf8_buffer_length(self.bytes.len());
        let mut text = String::with_capacity(room.unwrap_or(0));
        let (_, _, has_replacements) =
            decoder.decode_to_string(self.bytes, &mut text, self.is_to_the_end);
        (text, has_replacements)
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{SHIFT_JIS, WINDOWS_1252};

    use super::*;

    #[test]
    fn a_sample_is_bounded_and_holds_the_first_bytes_that_matter() {
        let mut bytes = vec![b'x'; 10 << 20];
        bytes[5 << 20] = 0xe9;
        let sample = Sample::around(&bytes, 5 << 20);
        assert_eq!(sample.bytes().len(), MAX_BYTES);
        assert_eq!(sample.bytes()[CONTEXT], 0xe9);
        assert!(!sample.is_to_the_end());
        // Valid UTF-8 at the start, the first bad byte far behind it.
        let mut bytes = "ж".repeat(1 << 20).into_bytes();
        bytes[1_000_001] = b'x';
        let sample = Sample::around(&bytes, 1_000_000);
        assert_eq!(sample.bytes().len(), MAX_BYTES);
        assert_eq!(sample.bytes()[CONTEXT..CONTEXT + 2], [0xd0, b'x']);
        let short = Sample::around(b"caf\xe9", 3);
        assert_eq!(
            (short.bytes(), short.is_to_the_end()),
            (&b"caf\xe9"[..], true)
        );
    }

    #[test]
    fn a_character_that_the_sample_cuts_is_no_replacement() {
        // Two bytes each, and the sample ends between them.
        let (text, _, _) = SHIFT_JIS.encode("日");
        let bytes = [b"x", text.repeat(MAX_BYTES).as_slice()].concat();
        let sample = Sample::start(&bytes);
        let (text, has_replacements) = sample.decode(SHIFT_JIS);
        assert_eq!(
            (text.chars().count(), has_replacements),
            (MAX_BYTES / 2, false)
        );
        let (_, has_replacements) = Sample::start(b"\xe9").decode(WINDOWS_1252);
        assert!(!has_replacements);
    }
}
