//! Puts the defects of real feeds into a feed. Each leaves every item recoverable by
//! a tolerant parser, so the ledger stays the truth about what can be found.

use super::feed::Item;
use super::{Document, escape, gzip};
use crate::feed_format::{FeedDefect, FeedFormat};

impl FeedDefect {
    pub(super) fn spoil_items(self, items: &mut Vec<Item>) {
        match self {
            Self::RelativeLinks => {
                for link in items.iter_mut().filter_map(|item| item.link.as_mut()) {
                    *link = path_of(link).to_owned();
                }
            }
            Self::GuidOnly => {
                for item in items {
                    if let Some(link) = item.link.take() {
                        item.guid = link;
                        item.guid_is_link = true;
                    }
                }
            }
            Self::NoDates => items.iter_mut().for_each(|item| item.published = None),
            Self::ZeroDates => {
                for item in items {
                    item.published = Some("0001-01-01T00:00:00Z".to_owned());
                }
            }
            Self::OddDates => {
                for date in items.iter_mut().filter_map(|item| item.published.as_mut()) {
                    *date = date
                        .replace('T', " ")
                        .replace("GMT", "+0000")
                        .replace('Z', "");
                }
            }
            Self::DoubleEscapedTitles => items
                .iter_mut()
                .for_each(|item| item.title = escape(&item.title)),
            Self::RepeatedItems => {
                let repeated: Vec<_> = items.iter().take(2).cloned().collect();
                items.extend(repeated);
            }
            _ => {}
        }
    }

    pub(super) fn spoil_document(self, format: FeedFormat, text: &str) -> Document {
        let kind = format.content_type();
        match self {
            Self::BareAmpersand => Document::new(kind, note(text, "Fish & chips & more")),
            Self::HtmlEntities => Document::new(kind, note(text, "caf&eacute;&nbsp;&mdash; open")),
            Self::LeadingJunk => Document::new(
                kind,
                format!("\nWarning: date() is deprecated in /srv/feed.php\n\n{text}"),
            ),
            Self::Bom => Document::new(kind, format!("\u{feff}{text}")),
            Self::WrongCharsetLabel => {
                Document::new(bare(kind), text.replacen("UTF-8", "utf-16", 1))
            }
            Self::Latin1Undeclared => Document::new(
                bare(kind),
                latin1(&text.replacen(" encoding=\"UTF-8\"", "", 1)),
            ),
            Self::Utf16 => Document::new(bare(kind), utf16(&text.replacen("UTF-8", "UTF-16", 1))),
            Self::TruncatedTail => Document::new(kind, truncated(text)),
            Self::ControlCharacters => {
                Document::new(kind, note(text, "bell \u{7} and \u{b} tab \u{0} nul"))
            }
            Self::InvalidByte => Document::new(kind, with_invalid_byte(text)),
            Self::MismatchedEndTag => Document::new(kind, note(text, "<b>bold</i> news")),
            Self::UndeclaredPrefix => {
                Document::new(kind, note(text, "<media:credit>none</media:credit>"))
            }
            Self::WrongContentType => Document::new("text/html; charset=utf-8", text),
            Self::UndeclaredGzip => Document::new(kind, gzip(text.as_bytes())),
            _ => Document::new(kind, text),
        }
    }
}

/// Puts raw markup into the feed's own title, where it harms no item.
fn note(text: &str, raw: &str) -> String {
    text.replacen("</title>", &format!(" {raw}</title>"), 1)
}

fn path_of(link: &str) -> &str {
    let after_scheme = link.find("//").map_or(0, |at| at + 2);
    let path = link[after_scheme..]
        .find('/')
        .map_or(link.len(), |at| after_scheme + at);
    &link[path..]
}

/// Cut behind the last item: what would close the feed is missing.
fn truncated(text: &str) -> &str {
    let ends = ["</item>", "</entry>"];
    let end = ends
        .iter()
        .filter_map(|end| text.rfind(end).map(|at| at + end.len()))
        .max();
    &text[..end.unwrap_or(text.len())]
}

/// The content type without its charset, where the document itself decides.
fn bare(content_type: &'static str) -> &'static str {
    content_type.split(';').next().unwrap_or(content_type)
}

fn latin1(text: &str) -> Vec<u8> {
    text.chars()
        .map(|c| u8::try_from(u32::from(c)).unwrap_or(b'\''))
        .collect()
}

fn utf16(text: &str) -> Vec<u8> {
    let units = std::iter::once(0xfeff).chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

fn with_invalid_byte(text: &str) -> Vec<u8> {
    let mut bytes = note(text, "?").into_bytes();
    if let Some(mark) = bytes
        .iter()
        .position(|byte| *byte == b'?')
        .and_then(|prolog| {
            // The first question mark opens the XML declaration, the second ends it.
            bytes[prolog + 1..]
                .iter()
                .enumerate()
                .filter(|(_, byte)| **byte == b'?')
                .nth(1)
                .map(|(at, _)| prolog + 1 + at)
        })
    {
        bytes[mark] = 0xff;
    }
    bytes
}
