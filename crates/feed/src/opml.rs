//! OPML lists of feeds, as readers export them: nested outlines, wrong cases,
//! missing types, bare ampersands. One bad outline costs that outline, never
//! the list.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use tidings_text::entities;

/// One feed of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outline {
    /// Line of the document where it starts, from 1.
    pub line: usize,
    pub title: Option<String>,
    pub feed_url: String,
    pub home_page: Option<String>,
    /// The outlines around it, the outermost first.
    pub categories: Vec<String>,
}

/// What is no list of feeds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an OPML list: it has no <opml> and no <outline>")]
pub struct NotOpml;

/// Nesting beyond this is an attack.
const DEEPEST: usize = 64;

/// The feeds of an OPML document, in its order.
pub fn parse(bytes: &[u8]) -> Result<Vec<Outline>, NotOpml> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    let mut lines = Lines::default();
    let mut found = Vec::new();
    let mut around: Vec<Option<String>> = Vec::new();
    let mut is_opml = false;
    loop {
        let start = reader.buffer_position() as usize;
        match reader.read_event() {
            Ok(Event::Start(tag)) if is(&tag, "outline") => {
                is_opml = true;
                let label = read(&tag, lines.at(text, start), &around, &mut found);
                if around.len() < DEEPEST {
                    around.push(label);
                }
            }
            Ok(Event::Empty(tag)) if is(&tag, "outline") => {
                is_opml = true;
                read(&tag, lines.at(text, start), &around, &mut found);
            }
            Ok(Event::End(tag)) if tag.name().as_ref().eq_ignore_ascii_case("outline") => {
                around.pop();
            }
            Ok(Event::Start(tag)) if is(&tag, "opml") => is_opml = true,
            Ok(Event::Eof) => break,
            Ok(_) => {}
            // What follows a syntax error is noise; the outlines before it stay.
            Err(_) => break,
        }
    }
    if is_opml { Ok(found) } else { Err(NotOpml) }
}

fn is(tag: &BytesStart<'_>, name: &str) -> bool {
    tag.name().as_ref().eq_ignore_ascii_case(name)
}

/// Notes an outline that is a feed; its label, for those inside it.
fn read(
    tag: &BytesStart<'_>,
    line: usize,
    around: &[Option<String>],
    found: &mut Vec<Outline>,
) -> Option<String> {
    let mut outline = Outline {
        line,
        ..Outline::default()
    };
    let (mut text, mut title) = (None, None);
    for attribute in tag.attributes().with_checks(false).flatten() {
        // A bare `&` is an ampersand.
        let value = entities::decode(&attribute.value).trim().to_owned();
        match attribute.key.as_ref().to_ascii_lowercase().as_str() {
            "xmlurl" => outline.feed_url = value,
            "htmlurl" => outline.home_page = Some(value).filter(|url| !url.is_empty()),
            "title" => title = Some(value).filter(|title| !title.is_empty()),
            "text" => text = Some(value).filter(|text| !text.is_empty()),
            _ => {}
        }
    }
    let label = title.or(text);
    if outline.feed_url.is_empty() {
        return label;
    }
    outline.title = label;
    outline.categories = around.iter().flatten().cloned().collect();
    found.push(outline);
    None
}

/// Counts lines as the document is read.
#[derive(Default)]
struct Lines {
    at: usize,
    line: usize,
}

impl Lines {
    fn at(&mut self, text: &str, offset: usize) -> usize {
        let offset = offset.min(text.len()).max(self.at);
        self.line += memchr::memchr_iter(b'\n', &text.as_bytes()[self.at..offset]).count();
        self.at = offset;
        self.line + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_readers_write_them() {
        let list = br#"<?xml version="1.0"?>
<opml version="2.0"><head><title>Mine</title></head><body>
<outline text="News &amp; more">
  <outline type="rss" text="One" title="The One" xmlUrl="https://one.example/feed?a=1&amp;b=2" htmlUrl="https://one.example/"/>
  <OUTLINE TEXT="Two" XMLURL="https://two.example/feed"></OUTLINE>
  <outline text="Local"><outline text="Three & sons" xmlUrl=" https://three.example/feed?x=1&y=2 "/></outline>
</outline>
<outline xmlUrl="https://four.example/feed"/>
<outline text="empty" xmlUrl=""/>
</body></opml>"#;
        let found = parse(list).unwrap();
        let rows: Vec<_> = found
            .iter()
            .map(|outline| {
                let title = outline.title.as_deref().unwrap_or("-");
                (
                    outline.line,
                    title,
                    outline.feed_url.as_str(),
                    outline.categories.join("/"),
                )
            })
            .collect();
        assert_eq!(
            rows,
            [
                (
                    4,
                    "The One",
                    "https://one.example/feed?a=1&b=2",
                    "News & more".to_owned()
                ),
                (
                    5,
                    "Two",
                    "https://two.example/feed",
                    "News & more".to_owned()
                ),
                (
                    6,
                    "Three & sons",
                    "https://three.example/feed?x=1&y=2",
                    "News & more/Local".to_owned()
                ),
                (8, "-", "https://four.example/feed", String::new()),
            ]
        );
        assert_eq!(found[0].home_page.as_deref(), Some("https://one.example/"));
    }

    #[test]
    fn what_is_no_list_is_refused_and_half_a_list_is_kept() {
        assert_eq!(parse(b"<html><body>hello"), Err(NotOpml));
        assert_eq!(parse(b""), Err(NotOpml));
        let cut =
            b"<opml><body><outline xmlUrl='https://a.example/'/><outline xmlUrl='https://b.exa";
        assert_eq!(parse(cut).unwrap().len(), 1);
        let deep = "<outline text='x'>".repeat(10_000) + "<outline xmlUrl='https://a.example/'/>";
        assert_eq!(parse(deep.as_bytes()).unwrap().len(), 1);
    }
}
