//! A tolerant tokenizer: quick-xml finds the markup, this decides what is meant
//! where the markup is broken. Tokens are slices of the text. Never fails:
//! damage becomes a defect and the next place that makes sense.

use std::io::BufRead as _;

use quick_xml::Reader;
use quick_xml::errors::SyntaxError;
use quick_xml::events::Event;

use crate::attributes::Attributes;
use crate::defect::{DefectKind, Defects};

/// How often a search to the end of the document may be in vain. Each costs
/// time in proportion to the document, so hostile input must not choose.
const MAX_VAIN_SEARCHES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    Start(Tag<'a>),
    /// The name of an end tag.
    End(&'a str),
    /// Text with its references still encoded.
    Text(&'a str),
    CData(&'a str),
    /// The text after `<!DOCTYPE`.
    Doctype(&'a str),
}

/// A start tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag<'a> {
    pub(crate) name: &'a str,
    pub(crate) attributes: Attributes<'a>,
    /// Closed in itself: `<br/>`.
    pub(crate) is_empty: bool,
    /// The whole tag as it was written.
    pub(crate) source: &'a str,
}

pub(crate) struct Tokens<'a> {
    text: &'a str,
    reader: Reader<&'a [u8]>,
    /// Where the reader's input starts in `text`.
    anchor: usize,
    /// Offset of the token that was returned last.
    offset: usize,
    /// The name of the start tag that was returned last.
    last_start: &'a str,
    vain_searches: usize,
    pub(crate) defects: Defects,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(text: &'a str, defects: Defects) -> Self {
        Self {
            text,
            reader: reader(text),
            anchor: 0,
            offset: 0,
            last_start: "",
            vain_searches: 0,
            defects,
        }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// Where the last token starts.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Where the next token starts.
    pub(crate) fn position(&self) -> usize {
        self.anchor + usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    pub(crate) fn note(&mut self, kind: DefectKind, detail: &str) {
        self.defects.note(kind, self.text, self.offset, detail);
    }

    pub(crate) fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let start = self.position();
            self.offset = start;
            if let Some(text) = self.text_at(start) {
                return Some(Token::Text(text));
            }
            let event = self.reader.read_event();
            let end = self.position();
            let token = match event {
                Ok(Event::Text(_) | Event::GeneralRef(_)) => Token::Text(&self.text[start..end]),
                Ok(Event::Start(_) | Event::Empty(_)) => match self.start_tag(start, end) {
                    Some(token) => token,
                    None => continue,
                },
                Ok(Event::End(_)) => self.end_tag(start, end),
                Ok(Event::CData(_)) => self.cdata(start, end),
                Ok(Event::DocType(_)) => {
                    let text = &self.text[start..end];
                    Token::Doctype(text.get("<!DOCTYPE".len()..text.len() - 1).unwrap_or(""))
                }
                Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_)) => continue,
                Ok(Event::Eof) => return None,
                Err(quick_xml::Error::Syntax(error)) => match self.unclosed(start, &error) {
                    Some(token) => token,
                    None if self.position() >= self.text.len() => return None,
                    None => continue,
                },
                // Consumed already, and says nothing that matters here.
                Err(_) if end > start => continue,
                Err(_) => return None,
            };
            return Some(token);
        }
    }

    /// Text up to the next markup in one piece. quick-xml would stop at every
    /// reference, of which escaped HTML has thousands.
    fn text_at(&mut self, start: usize) -> Option<&'a str> {
        let rest = &self.text[start..];
        let length = memchr::memchr(b'<', rest.as_bytes()).unwrap_or(rest.len());
        if length == 0 {
            return None;
        }
        self.reader.stream().consume(length);
        Some(&rest[..length])
    }

    fn start_tag(&mut self, start: usize, end: usize) -> Option<Token<'a>> {
        let source = &self.text[start..end];
        let inside = &source.as_bytes()[1..];
        if !inside.first().is_some_and(|byte| starts_name(*byte)) {
            return Some(self.stray(start));
        }
        if memchr::memchr(b'<', inside).is_some() && !tag(source).attributes.are_well_formed() {
            return self.unbalanced(start);
        }
        let tag = tag(source);
        self.last_start = tag.name;
        Some(Token::Start(tag))
    }

    /// A tag that runs into the next one: a quote or the `>` is missing.
    fn unbalanced(&mut self, start: usize) -> Option<Token<'a>> {
        let rest = &self.text.as_bytes()[start + 1..];
        let close = memchr::memchr(b'>', rest).map(|at| start + 1 + at);
        let open = memchr::memchr(b'<', rest).map(|at| start + 1 + at);
        let source = match (close, open) {
            (Some(close), open) if open.is_none_or(|open| close < open) => {
                self.anchor_at(close + 1);
                &self.text[start..=close]
            }
            (_, Some(open)) if self.text[start..open].contains('=') => {
                self.anchor_at(open);
                &self.text[start..open]
            }
            (_, Some(_)) => return Some(self.stray(start)),
            (_, None) => {
                self.note(DefectKind::Truncated, "the document ends inside a tag");
                self.anchor_at(self.text.len());
                return None;
            }
        };
        self.note(DefectKind::UnclosedMarkup, source);
        let tag = tag(source);
        self.last_start = tag.name;
        Some(Token::Start(tag))
    }

    fn end_tag(&mut self, start: usize, end: usize) -> Token<'a> {
        let inside = &self.text[start + 2..end];
        if let Some(open) = memchr::memchr(b'<', inside.as_bytes()) {
            let close = memchr::memchr(b'>', inside.as_bytes()).unwrap_or(open);
            let cut = open.min(close + 1);
            self.note(DefectKind::UnclosedMarkup, &inside[..cut]);
            self.anchor_at(start + 2 + cut);
            return Token::End(name_of(&inside[..cut]));
        }
        Token::End(name_of(inside))
    }

    fn cdata(&mut self, start: usize, end: usize) -> Token<'a> {
        let inside = &self.text[start + "<![CDATA[".len()..end - "]]>".len()];
        // A section inside a section: most likely the first was never closed.
        if memchr::memchr(b'<', inside.as_bytes()).is_some()
            && let Some(next) = memchr::memmem::find(inside.as_bytes(), b"<![CDATA[")
            && let Some(cut) = self.end_of_last_start(&inside[..next])
        {
            return self.cut_cdata(start, cut);
        }
        Token::CData(inside)
    }

    fn cut_cdata(&mut self, start: usize, length: usize) -> Token<'a> {
        self.note(DefectKind::UnclosedMarkup, "CDATA section");
        let inside = start + "<![CDATA[".len();
        self.anchor_at(inside + length);
        let text = &self.text[inside..inside + length];
        Token::CData(text.strip_suffix("]]").unwrap_or(text))
    }

    /// Where the element that was opened last would end.
    fn end_of_last_start(&self, text: &str) -> Option<usize> {
        let end = format!("</{}", self.last_start);
        memchr::memmem::find(text.as_bytes(), end.as_bytes())
    }

    /// Markup that has no end before the document has.
    fn unclosed(&mut self, start: usize, error: &SyntaxError) -> Option<Token<'a>> {
        self.vain_searches += 1;
        let rest = &self.text[start..];
        if self.vain_searches > MAX_VAIN_SEARCHES {
            self.note(DefectKind::Truncated, "too much markup without an end");
            self.anchor_at(self.text.len());
            return None;
        }
        match error {
            SyntaxError::UnclosedCData if rest.starts_with("<![CDATA[") => {
                let inside = &rest["<![CDATA[".len()..];
                let length = self.end_of_last_start(inside);
                Some(self.cut_cdata(start, length.unwrap_or(inside.len())))
            }
            SyntaxError::UnclosedTag
            | SyntaxError::UnclosedSingleQuotedAttributeValue
            | SyntaxError::UnclosedDoubleQuotedAttributeValue => {
                let name = rest.as_bytes().get(1);
                if name == Some(&b'/') {
                    return Some(self.unclosed_end(start));
                }
                if !name.is_some_and(|byte| starts_name(*byte)) {
                    return Some(self.stray(start));
                }
                self.unbalanced(start)
            }
            _ => {
                // Whatever it was, the next tag is worth more.
                let end = memchr::memchr2(b'<', b'>', &rest.as_bytes()[1..]);
                let end = end.map_or(rest.len(), |at| at + 1);
                let is_closed = rest.as_bytes().get(end) == Some(&b'>');
                self.note(DefectKind::UnclosedMarkup, rest[..end].trim_end());
                self.anchor_at(start + end + usize::from(is_closed));
                None
            }
        }
    }

    fn unclosed_end(&mut self, start: usize) -> Token<'a> {
        let inside = &self.text[start + 2..];
        let cut = memchr::memchr2(b'<', b'>', inside.as_bytes()).unwrap_or(inside.len());
        let closed = usize::from(inside.as_bytes().get(cut) == Some(&b'>'));
        self.note(DefectKind::UnclosedMarkup, &inside[..cut]);
        self.anchor_at(start + 2 + cut + closed);
        Token::End(name_of(&inside[..cut]))
    }

    /// A `<` that starts nothing.
    fn stray(&mut self, start: usize) -> Token<'a> {
        self.note(DefectKind::StrayMarkup, "<");
        self.anchor_at(start + 1);
        Token::Text(&self.text[start..=start])
    }

    /// Goes on from an offset of the text.
    fn anchor_at(&mut self, offset: usize) {
        let rest = &self.text[offset..];
        // The reader drops a byte order mark at its start without counting it.
        let marks = rest.len() - rest.trim_start_matches('\u{feff}').len();
        self.anchor = offset + marks;
        self.reader = reader(&self.text[self.anchor..]);
    }
}

fn reader(text: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    reader
}

/// Reads a tag from its source, which starts with `<` and may lack its `>`.
fn tag(source: &str) -> Tag<'_> {
    let inside = &source[1..];
    let inside = inside.strip_suffix('>').unwrap_or(inside);
    let (inside, is_empty) = match inside.strip_suffix('/') {
        Some(inside) => (inside, true),
        None => (inside, false),
    };
    let name = name_of(inside);
    Tag {
        name,
        attributes: Attributes::new(&inside[name.len()..]),
        is_empty,
        source,
    }
}

fn name_of(inside: &str) -> &str {
    let inside = inside.strip_suffix('>').unwrap_or(inside);
    let bytes = inside.as_bytes();
    let end = bytes
        .iter()
        .position(|byte| byte.is_ascii_whitespace() || *byte == b'/');
    &inside[..end.unwrap_or(inside.len())]
}

fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b':' || byte >= 0x80
}
