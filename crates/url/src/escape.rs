//! One spelling for percent-escapes (RFC 3986 §6.2.2): escapes of unreserved
//! characters are decoded, the others are written in upper case, and what the
//! RFC does not allow raw is escaped. Works on the output of a WHATWG parse.

use tidings_text::hex;

/// The characters that may stand raw in one component of a URL.
pub(crate) struct Component([bool; 256]);

pub(crate) const PATH: Component = Component::of(b"!$&'()*+,;=:@/");
pub(crate) const QUERY: Component = Component::of(b"!$&'()*+,;=:@/?");

impl Component {
    const fn of(extra: &[u8]) -> Self {
        let mut allowed = [false; 256];
        let mut byte = 0;
        while byte < 128 {
            allowed[byte] = is_unreserved(byte as u8);
            byte += 1;
        }
        let mut i = 0;
        while i < extra.len() {
            allowed[extra[i] as usize] = true;
            i += 1;
        }
        Self(allowed)
    }

    /// True when `text` is already in its one spelling.
    pub(crate) fn is_normalized(&self, text: &str) -> bool {
        text.bytes().all(|byte| self.0[byte as usize])
    }

    /// Appends `text` to `out` in its one spelling.
    pub(crate) fn normalize_into(&self, text: &str, out: &mut String) {
        if self.is_normalized(text) {
            out.push_str(text);
            return;
        }
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            if self.0[byte as usize] {
                out.push(byte as char);
            } else if let Some(decoded) = escape_at(bytes, at) {
                if is_unreserved(decoded) {
                    out.push(decoded as char);
                } else {
                    push_escape(decoded, out);
                }
                at += 2;
            } else {
                // Also a stray `%`: left raw it could join with what follows
                // and become an escape on the next pass.
                push_escape(byte, out);
            }
            at += 1;
        }
    }
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// The byte that a well-formed escape at `at` stands for.
fn escape_at(bytes: &[u8], at: usize) -> Option<u8> {
    let [b'%', high, low] = bytes.get(at..at + 3)? else {
        return None;
    };
    hex::byte(*high, *low)
}

fn push_escape(byte: u8, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(DIGITS[usize::from(byte >> 4)] as char);
    out.push(DIGITS[usize::from(byte & 15)] as char);
}

#[cfg(test)]
mod tests {
    use super::{PATH, QUERY};

    #[test]
    fn each_character_has_one_spelling() {
        let rows = [
            ("plain path is kept", "/a/b-c_d.e~f", "/a/b-c_d.e~f"),
            ("unreserved escapes are decoded", "/%61%2D%7e", "/a-~"),
            ("other escapes are upper-cased", "/%c3%bc%2f", "/%C3%BC%2F"),
            ("a stray percent is escaped", "/100%/x", "/100%25/x"),
            ("an escape never forms by decoding", "/%2%65", "/%252e"),
            ("a percent at the end", "/x%4", "/x%254"),
            (
                "what the RFC refuses is escaped",
                "/a|b[c]",
                "/a%7Cb%5Bc%5D",
            ),
        ];
        for (name, path, normalized) in rows {
            let mut out = String::new();
            PATH.normalize_into(path, &mut out);
            assert_eq!(out, normalized, "{name}");
        }
    }

    #[test]
    fn a_question_mark_may_stand_raw_only_in_a_query() {
        assert!(QUERY.is_normalized("a=?"));
        assert!(!PATH.is_normalized("a=?"));
    }
}
