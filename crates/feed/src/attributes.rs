//! The attributes of a tag, read as leniently as HTML does: quotes may be
//! missing, values may be absent. Bounded, and never allocates unless a value
//! holds references.

use std::borrow::Cow;

use tidings_text::entities;

/// Attributes beyond this many are ignored.
const MAX_ATTRIBUTES: usize = 256;

/// The text of a tag after its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attributes<'a>(&'a str);

impl<'a> Attributes<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self(text)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values in order, the values with references still encoded.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        Iter { rest: self.0 }
            .take(MAX_ATTRIBUTES)
            .map(|attribute| (attribute.name, attribute.value))
    }

    /// The first attribute of this name, whatever its case, decoded and trimmed.
    pub(crate) fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        if self.0.is_empty() {
            return None;
        }
        let (_, value) = self
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))?;
        Some(entities::decode(value.trim_ascii()))
    }

    /// Whether every attribute is a name with a quoted value.
    pub(crate) fn are_well_formed(&self) -> bool {
        let mut attributes = Iter { rest: self.0 };
        attributes.all(|attribute| attribute.is_quoted && is_name(attribute.name))
    }
}

fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    !name.is_empty() && name.bytes().all(|byte| byte >= 0x80 || allowed(byte))
}

struct Attribute<'a> {
    name: &'a str,
    value: &'a str,
    is_quoted: bool,
}

struct Iter<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Attribute<'a>;

    fn next(&mut self) -> Option<Attribute<'a>> {
        let separates = |c: char| c.is_ascii_whitespace() || c == '/' || c == ',';
        let rest = self.rest.trim_start_matches(separates);
        if rest.is_empty() {
            return None;
        }
        // A name may not start with "=", but something must be consumed.
        let ends_name = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'=';
        let bytes = rest.as_bytes();
        let end = bytes[1..].iter().position(ends_name);
        // A multi-byte character never holds an ASCII byte, so this is a boundary.
        let end = end.map_or(rest.len(), |at| at + 1);
        let (name, after) = rest.split_at(floor(rest, end));
        let Some(value) = after.trim_ascii_start().strip_prefix('=') else {
            self.rest = after;
            return Some(Attribute {
                name,
                value: "",
                is_quoted: false,
            });
        };
        let value = value.trim_ascii_start();
        let (value, rest, is_quoted) = match value.as_bytes().first() {
            Some(quote @ (b'"' | b'\'')) => {
                let inside = &value[1..];
                match memchr::memchr(*quote, inside.as_bytes()) {
                    Some(end) => (&inside[..end], &inside[end + 1..], true),
                    None => (inside, "", false),
                }
            }
            _ => {
                let end = value.bytes().position(|byte| byte.is_ascii_whitespace());
                let (value, rest) = value.split_at(end.unwrap_or(value.len()));
                (value, rest, false)
            }
        };
        self.rest = rest;
        Some(Attribute {
            name,
            value,
            is_quoted,
        })
    }
}

/// The nearest character boundary at or after an index.
fn floor(text: &str, mut index: usize) -> usize {
    while !text.is_char_boundary(index) {
        index += 1;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::Attributes;

    #[test]
    fn attributes_are_read_however_they_are_written() {
        let read = |text| Attributes::new(text).iter().collect::<Vec<_>>();
        assert_eq!(read(""), []);
        assert_eq!(read(" a=\"1\" b='2'"), [("a", "1"), ("b", "2")]);
        assert_eq!(read(" a=\"1\"b='2'"), [("a", "1"), ("b", "2")]);
        assert_eq!(read(" a = 1 b"), [("a", "1"), ("b", "")]);
        assert_eq!(read(" = é=ü"), [("=", ""), ("é", "ü")]);
        assert_eq!(read(" a=\"1 b=2"), [("a", "1 b=2")]);
        let attributes = Attributes::new(" HREF=' /a?b&amp;c '");
        assert_eq!(attributes.get("href").as_deref(), Some("/a?b&c"));
        assert!(attributes.are_well_formed());
        assert!(!Attributes::new(" a=\"1 b=2").are_well_formed());
    }
}
