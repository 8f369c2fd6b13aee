//! A field as it was found: the value of one element with what its attributes
//! say about it, before anybody decided what becomes of it.

use std::borrow::Cow;

use jiff::Timestamp;
use tidings_text::{base64, entities};

use crate::attributes::Attributes;
use crate::element::Element;
use crate::html::{self, Tags};
use crate::model::Markup;
use crate::tokens::{Token, Tokens};
use crate::{date, namespace};

/// What the text of an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    Plain,
    Html,
    /// Markup that was not escaped: the source is the HTML.
    Inline,
    Base64,
}

impl TextKind {
    /// By the attributes of Atom. Without any, Atom means plain text, and RSS
    /// means what its publisher thought: HTML, as a rule.
    pub(crate) fn of(attributes: Attributes<'_>, is_atom: bool) -> Self {
        let default = if is_atom { Self::Plain } else { Self::Html };
        if attributes.is_empty() {
            return default;
        }
        let mode = attributes.get("mode").unwrap_or_default();
        let Some(kind) = attributes.get("type") else {
            return match mode.as_ref() {
                "base64" => Self::Base64,
                "escaped" => Self::Html,
                _ => default,
            };
        };
        let kind = kind.to_ascii_lowercase();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let is_text = kind.is_empty() || kind == "html" || kind.starts_with("text");
        let is_xml = kind.ends_with("xhtml") || kind.ends_with("xml");
        match (mode.as_ref(), kind) {
            ("base64", _) => Self::Base64,
            ("escaped", "text/plain") => Self::Plain,
            ("escaped", _) => Self::Html,
            ("xml", _) => Self::Inline,
            (_, "text" | "text/plain" | "plain") => Self::Plain,
            (_, "html" | "text/html") => Self::Html,
            _ if is_xml => Self::Inline,
            // Atom 1.0: whatever is neither text nor XML is base64.
            _ if is_atom && !is_text && kind.contains('/') => Self::Base64,
            _ => default,
        }
    }
}

/// An element that was read to its end.
#[derive(Debug)]
pub(crate) struct Field<'f> {
    pub(crate) element: Element,
    pub(crate) kind: TextKind,
    pub(crate) value: Cow<'f, str>,
    /// Whether the attributes say that the value is the address of the page:
    /// `isPermaLink` of a guid, `rel` of a link.
    pub(crate) claims_page: Option<bool>,
    /// Where the element starts in the document.
    pub(crate) offset: usize,
}

impl Field<'_> {
    /// The value as one line of plain text, `None` if nothing is left of it.
    pub(crate) fn line(&self) -> Option<String> {
        let decoded = self.decoded();
        let line = match self.kind {
            TextKind::Plain => html::collapse(&decoded),
            TextKind::Html | TextKind::Base64 => {
                html::text(&decoded, html::tags_of_title(&decoded))
            }
            TextKind::Inline => html::text(&decoded, Tags::Any),
        };
        (!line.is_empty()).then_some(line)
    }

    /// The value as it was published, `None` if it is blank.
    pub(crate) fn markup(&self) -> Option<Markup> {
        let decoded = self.decoded();
        let trimmed = decoded.trim();
        if trimmed.is_empty() {
            return None;
        }
        Some(Markup::new(
            without_controls(trimmed),
            self.kind != TextKind::Plain,
        ))
    }

    fn decoded(&self) -> Cow<'_, str> {
        match self.kind {
            TextKind::Base64 => {
                let bytes = base64::decode(&self.value);
                let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
                text.map_or(Cow::Borrowed(self.value.as_ref()), Cow::Owned)
            }
            _ => Cow::Borrowed(&self.value),
        }
    }

    pub(crate) fn date(&self) -> Option<Timestamp> {
        if self.value.contains('<') {
            return date::parse(&html::text(&self.value, Tags::Any));
        }
        date::parse(&self.value)
    }

    pub(crate) fn number(&self) -> Option<u32> {
        self.value.trim().parse().ok()
    }

    /// The texts between the tags of child elements.
    pub(crate) fn children(&self) -> Vec<String> {
        let mut texts = Vec::new();
        let mut tokens = Tokens::new(&self.value, Default::default());
        while let Some(token) = tokens.next() {
            if let Token::Text(text) | Token::CData(text) = token
                && !text.trim().is_empty()
            {
                texts.push(html::collapse(&entities::decode(text)));
            }
        }
        texts
    }

    /// The text of the first child element of this name.
    pub(crate) fn child(&self, name: &str) -> Option<String> {
        let mut tokens = Tokens::new(&self.value, Default::default());
        let mut text: Option<String> = None;
        while let Some(token) = tokens.next() {
            match token {
                Token::Start(tag) if text.is_none() => {
                    let (_, local) = namespace::split(tag.name);
                    let is_it = local.eq_ignore_ascii_case(name) && !tag.is_empty;
                    text = is_it.then(String::new);
                }
                Token::Text(raw) => {
                    if let Some(text) = &mut text {
                        entities::decode_into(raw, text);
                    }
                }
                Token::CData(raw) => {
                    if let Some(text) = &mut text {
                        text.push_str(raw);
                    }
                }
                Token::End(_) => {
                    if let Some(text) = text.take().map(|text| html::collapse(&text))
                        && !text.is_empty()
                    {
                        return Some(text);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The name of an author: Atom's `name`, or one of the habits of RSS.
    pub(crate) fn author_name(&self) -> Option<String> {
        if self.value.contains('<') {
            let named = self.child("name").or_else(|| self.child("email"));
            if named.is_some() {
                return named;
            }
        }
        let decoded = entities::decode(&self.value);
        let line = html::text(&decoded, Tags::OnlyHtml);
        if line.is_empty() {
            return None;
        }
        Some(without_address(&line).unwrap_or(line))
    }
}

/// `jo@example.com (Jo Doe)` and `Jo Doe <jo@example.com>` name Jo Doe.
fn without_address(line: &str) -> Option<String> {
    let name = if let Some(inside) = line.strip_suffix(')') {
        let (address, name) = inside.split_once('(')?;
        let (address, name) = (address.trim(), name.trim());
        if address.contains('@') { name } else { address }
    } else {
        let inside = line.strip_suffix('>')?;
        inside.rsplit_once('<')?.0.trim()
    };
    let name = name.trim_matches('"');
    (!name.is_empty()).then(|| name.to_owned())
}

/// Without NUL and the other characters that neither XML nor databases take.
fn without_controls(text: &str) -> String {
    let is_control = |byte: u8| byte < b' ' && !matches!(byte, b'\n' | b'\t' | b'\r');
    if text.bytes().any(is_control) {
        let kept = text
            .chars()
            .filter(|c| !u8::try_from(*c).is_ok_and(is_control));
        kept.collect()
    } else {
        text.to_owned()
    }
}
