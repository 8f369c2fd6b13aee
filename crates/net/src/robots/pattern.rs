//! Paths and the patterns of robots.txt, both in one spelling, and whether one
//! matches the other. Pure; linear in the length of both.

use tidings_text::hex;

/// A path pattern with `*` and a final `$`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// What stands between the asterisks, in order.
    parts: Vec<String>,
    is_anchored: bool,
    /// As long as it was written: the longest match wins.
    length: usize,
}

impl Pattern {
    /// `None` for an empty pattern, which matches nothing.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        let (body, is_anchored) = match text.strip_suffix('$') {
            Some(body) => (body, true),
            None => (text, false),
        };
        // A pattern without its slash means the same to everyone who writes one.
        let body = if body.starts_with(['/', '*']) || body.is_empty() {
            body.to_owned()
        } else {
            format!("/{body}")
        };
        let parts: Vec<String> = body.split('*').map(normalize).collect();
        let length = parts.iter().map(String::len).sum::<usize>() + parts.len() - 1;
        Some(Self {
            parts,
            is_anchored,
            length: length + usize::from(is_anchored),
        })
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// `path` is normalized. Every part is matched where it occurs first: with
    /// nothing but asterisks between them, no later place can do better.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let (first, others) = self
            .parts
            .split_first()
            .expect("splitting always gives a part");
        let Some(mut rest) = path.strip_prefix(first.as_str()) else {
            return false;
        };
        let Some((last, middle)) = others.split_last() else {
            return !self.is_anchored || rest.is_empty();
        };
        for part in middle {
            match rest.find(part.as_str()) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        if self.is_anchored {
            rest.ends_with(last.as_str())
        } else {
            rest.contains(last.as_str())
        }
    }
}

/// One spelling for what means the same: unreserved characters are plain, all
/// other escapes have capital digits, and what can't stand in a URL, or means
/// something in a pattern, is escaped.
pub(crate) fn normalize(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut normalized = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = match bytes[at] {
            b'%' => match bytes[at + 1..] {
                [high, low, ..] => hex::byte(high, low),
                _ => None,
            },
            _ => None,
        };
        let byte = escaped.unwrap_or(bytes[at]);
        at += if escaped.is_some() { 3 } else { 1 };
        let is_unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let is_plain = byte.is_ascii_graphic() && !b"*$".contains(&byte);
        if is_unreserved || (escaped.is_none() && is_plain) {
            normalized.push(char::from(byte));
        } else {
            normalized.push_str(&format!("%{byte:02X}"));
        }
    }
    normalized
}
