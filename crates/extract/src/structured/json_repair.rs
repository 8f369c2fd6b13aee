//! JSON as pages write it: strict first, then a reader that forgives raw line
//! breaks, trailing commas, comments, unescaped quotes and missing ends.
//! Bounded in depth; returns what could be parsed.

use serde_json::{Map, Number, Value};

const MAX_DEPTH: usize = 64;

/// Parses JSON, repairing what is broken. `None` if there is nothing to read.
pub(super) fn parse(text: &str) -> Option<Value> {
    let text = strip_wrapping(text);
    // serde_json stops at a depth of 128 by itself.
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let decoded;
    let text = if text.contains("&quot;") {
        let mut out = String::with_capacity(text.len());
        crate::html::decode_into(text, &mut out);
        decoded = out;
        decoded.as_str()
    } else {
        text
    };
    let mut reader = Reader {
        bytes: text.as_bytes(),
        text,
        at: 0,
    };
    let mut values = Vec::new();
    // Several objects one after the other are read as a list.
    while values.len() < 50 {
        reader.blank();
        while matches!(reader.peek(), Some(b',' | b';')) {
            reader.at += 1;
            reader.blank();
        }
        if !matches!(reader.peek(), Some(b'{' | b'[')) {
            break;
        }
        values.push(reader.value(0)?);
    }
    match values.len() {
        0 => None,
        1 => values.pop(),
        _ => Some(Value::Array(values)),
    }
}

/// Without CDATA and comment wrappers.
fn strip_wrapping(text: &str) -> &str {
    let mut text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    for (start, end) in [
        ("<!--", "-->"),
        ("//<![CDATA[", "//]]>"),
        ("<![CDATA[", "]]>"),
        ("/*<![CDATA[*/", "/*]]>*/"),
    ] {
        if let Some(rest) = text.strip_prefix(start) {
            text = rest.trim().strip_suffix(end).unwrap_or(rest).trim();
        }
    }
    text
}

struct Reader<'a> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Skips whitespace and comments.
    fn blank(&mut self) {
        loop {
            while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
                self.at += 1;
            }
            let rest = &self.bytes[self.at.min(self.bytes.len())..];
            let end = if rest.starts_with(b"/*") {
                memchr::memmem::find(rest, b"*/").map(|i| i + 2)
            } else if rest.starts_with(b"//") {
                Some(memchr::memchr(b'\n', rest).unwrap_or(rest.len()))
            } else {
                return;
            };
            self.at += end.unwrap_or(rest.len());
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.blank();
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => Some(Value::String(self.string(b'"'))),
            b'\'' => Some(Value::String(self.string(b'\''))),
            _ => Some(self.word()),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut map = Map::new();
        loop {
            self.blank();
            match self.peek() {
                None => return Some(Value::Object(map)),
                Some(b'}') => {
                    self.at += 1;
                    return Some(Value::Object(map));
                }
                Some(b',' | b':') => self.at += 1,
                Some(quote @ (b'"' | b'\'')) => {
                    let key = self.string(quote);
                    self.blank();
                    if self.peek() == Some(b':') {
                        self.at += 1;
                        match self.value(depth + 1) {
                            Some(value) => {
                                map.insert(key, value);
                            }
                            None => return Some(Value::Object(map)),
                        }
                    }
                }
                Some(b']') => return Some(Value::Object(map)),
                Some(_) => {
                    let before = self.at;
                    let _ = self.word();
                    self.at = self.at.max(before + 1);
                }
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut list = Vec::new();
        loop {
            self.blank();
            match self.peek() {
                None => return Some(Value::Array(list)),
                Some(b']') => {
                    self.at += 1;
                    return Some(Value::Array(list));
                }
                Some(b'}') => return Some(Value::Array(list)),
                Some(b',' | b':') => self.at += 1,
                Some(_) => {
                    let before = self.at;
                    match self.value(depth + 1) {
                        Some(value) => list.push(value),
                        None => return Some(Value::Array(list)),
                    }
                    self.at = self.at.max(before + 1);
                }
            }
        }
    }

    /// A string up to its quote. A quote that is not followed by what may follow
    /// a string belongs to the text.
    fn string(&mut self, quote: u8) -> String {
        self.at += 1;
        let mut out = String::new();
        let mut from = self.at;
        while let Some(byte) = self.peek() {
            if byte == b'\\' {
                out.push_str(&self.text[from..self.at]);
                self.escape(&mut out);
                from = self.at;
            } else if byte == quote && self.ends_string() {
                break;
            } else {
                self.at += 1;
            }
        }
        let end = self.at.min(self.bytes.len());
        out.push_str(&self.text[from.min(end)..end]);
        self.at = (self.at + 1).min(self.bytes.len());
        out
    }

    fn ends_string(&self) -> bool {
        let rest = self.bytes[self.at + 1..].trim_ascii_start();
        match rest.first() {
            None | Some(b'}' | b']' | b':') => true,
            Some(b',') => {
                let next = rest[1..].trim_ascii_start().first();
                matches!(
                    next,
                    None | Some(
                        b'"' | b'\'' | b'{' | b'[' | b'}' | b']' | b'-' | b'/' | b'0'
                            ..=b'9' | b't' | b'f' | b'n'
                    )
                )
            }
            // A line break between two strings: the comma was forgotten.
            Some(b'"') => self.bytes[self.at + 1..]
                .first()
                .is_some_and(|b| matches!(b, b'\n' | b'\r')),
            Some(_) => false,
        }
    }

    fn escape(&mut self, out: &mut String) {
        let kind = self.bytes.get(self.at + 1).copied();
        self.at += 2;
        match kind {
            Some(b'n') => out.push('\n'),
            Some(b't') => out.push('\t'),
            Some(b'r' | b'b' | b'f') => out.push(' '),
            Some(b'u') => {
                let code = |at: usize| {
                    self.bytes
                        .get(at..at + 4)
                        .and_then(|hex| std::str::from_utf8(hex).ok())
                        .and_then(|hex| u32::from_str_radix(hex, 16).ok())
                };
                let Some(high) = code(self.at) else {
                    return;
                };
                self.at += 4;
                let mut full = high;
                if (0xd800..0xdc00).contains(&high)
                    && self.bytes.get(self.at..self.at + 2) == Some(b"\\u")
                    && let Some(low) = code(self.at + 2)
                    && (0xdc00..0xe000).contains(&low)
                {
                    full = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                    self.at += 6;
                }
                out.push(char::from_u32(full).unwrap_or('\u{fffd}'));
            }
            Some(_) => {
                // Any other character stands for itself, however wide it is.
                let at = self.at - 1;
                if let Some(c) = self.text.get(at..).and_then(|rest| rest.chars().next()) {
                    out.push(c);
                    self.at = at + c.len_utf8();
                }
            }
            None => self.at = self.bytes.len(),
        }
    }

    /// `true`, `12.5`, `null`, or what was written without quotes.
    fn word(&mut self) -> Value {
        let from = self.at;
        while self
            .peek()
            .is_some_and(|b| !matches!(b, b',' | b'}' | b']' | b'\n' | b':' | b'"'))
        {
            self.at += 1;
        }
        if self.at == from {
            self.at += 1;
            return Value::Null;
        }
        let word = self.text.get(from..self.at).unwrap_or("").trim();
        match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" | "undefined" | "" => Value::Null,
            _ => match word.parse::<i64>() {
                Ok(number) => Value::Number(number.into()),
                Err(_) => match word.parse::<f64>().ok().and_then(Number::from_f64) {
                    Some(number) => Value::Number(number),
                    None => Value::String(word.to_owned()),
                },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use serde_json::json;

    #[test]
    fn broken_json_is_read() {
        for (name, text, value) in [
            ("strict", r#"{"a": 1}"#, json!({"a": 1})),
            (
                "trailing commas",
                r#"{"a": [1, 2,], "b": 3,}"#,
                json!({"a": [1, 2], "b": 3}),
            ),
            (
                "raw line break in a string",
                "{\"a\": \"one\ntwo\"}",
                json!({"a": "one\ntwo"}),
            ),
            (
                "unescaped quotes",
                r#"{"a": "the "best" of all", "b": 1}"#,
                json!({"a": "the \"best\" of all", "b": 1}),
            ),
            (
                "comments and CDATA",
                "//<![CDATA[\n{\"a\": /* x */ 1}\n//]]>",
                json!({"a": 1}),
            ),
            (
                "missing end",
                r#"{"a": {"b": [1, 2"#,
                json!({"a": {"b": [1, 2]}}),
            ),
            (
                "forgotten comma",
                "{\"a\": \"x\"\n\"b\": \"y\"}",
                json!({"a": "x", "b": "y"}),
            ),
            (
                "two objects",
                r#"{"a": 1}{"b": 2}"#,
                json!([{"a": 1}, {"b": 2}]),
            ),
            (
                "entities",
                "{&quot;a&quot;: &quot;b&quot;}",
                json!({"a": "b"}),
            ),
            (
                "escapes",
                r#"{"a": "\u00e9\ud83d\ude00\q",}"#,
                json!({"a": "é😀q"}),
            ),
        ] {
            assert_eq!(parse(text), Some(value), "{name}");
        }
        assert_eq!(parse("no json at all"), None);
        assert!(parse(&"[".repeat(100_000)).is_some());
    }
}
