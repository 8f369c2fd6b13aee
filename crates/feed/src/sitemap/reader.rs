//! Reads the XML of sitemaps: every `url` or `sitemap` element is an entry, its
//! children are distinguished by their names and by their parent.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::entry::{Alternate, Collector, Entry, News, Video};
use super::{Sitemap, SitemapKind};
use crate::capture::Value;
use crate::defect::DefectKind;
use crate::tokens::{Tag, Token, Tokens};
use crate::{date, html, namespace};

/// Images, videos and alternates of one entry, and of all; more are dropped.
const MAX_PARTS: usize = 1_000;
const MAX_PARTS_OF_ALL: usize = 100_000;

/// What the fields that are being read belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Entry,
    News,
    Image,
    Video,
}

struct Reader<'a, 'c> {
    tokens: Tokens<'a>,
    collector: Collector<'c>,
    entry: Option<Entry>,
    part: Part,
    /// Images, videos and alternates so far.
    parts: usize,
    /// The field that is open: its name and its value so far.
    field: Option<(&'a str, Value<'a>)>,
    is_stopped: bool,
}

pub(super) fn read<'a>(tokens: Tokens<'a>, root: Tag<'a>, collector: Collector<'_>) -> Sitemap {
    let (_, name) = namespace::split(root.name);
    let is_index =
        name.eq_ignore_ascii_case("sitemapindex") || name.eq_ignore_ascii_case("sitemap");
    let kind = if is_index {
        SitemapKind::Index
    } else {
        SitemapKind::UrlSet
    };
    let mut reader = Reader {
        tokens,
        collector,
        entry: None,
        part: Part::Entry,
        parts: 0,
        field: None,
        is_stopped: false,
    };
    let mut is_closed = root.is_empty;
    reader.start(root);
    while !reader.is_stopped
        && let Some(token) = reader.tokens.next()
    {
        match token {
            Token::Start(tag) => reader.start(tag),
            Token::End(name) => is_closed |= reader.end(name),
            Token::Text(text) => {
                if let Some((_, value)) = &mut reader.field {
                    let offset = reader.tokens.offset();
                    value.text(reader.tokens.text(), offset, text);
                }
            }
            Token::CData(text) => {
                if let Some((_, value)) = &mut reader.field {
                    value.verbatim(text);
                }
            }
            Token::Doctype(_) => {}
        }
    }
    if !is_closed && !reader.is_stopped {
        // A truncated location is worse than none.
        reader.field = None;
        let end = reader.tokens.text().len();
        let text = reader.tokens.text();
        let detail = "the document ends before its root element does";
        reader
            .tokens
            .defects
            .note(DefectKind::Truncated, text, end, detail);
    }
    reader.finish_entry();
    reader.collector.finish(kind, reader.tokens.defects)
}

impl<'a> Reader<'a, '_> {
    fn start(&mut self, tag: Tag<'a>) {
        let (prefix, name) = namespace::split(tag.name);
        let is_own = !matches!(prefix, "image" | "video" | "news" | "xhtml" | "mobile");
        match name.to_ascii_lowercase().as_str() {
            "url" | "sitemap" if is_own && self.part == Part::Entry => {
                self.finish_entry();
                self.entry = Some(Entry::default());
            }
            "urlset" | "sitemapindex" => {}
            "news" => self.part = Part::News,
            "image" if !tag.is_empty => {
                self.part = Part::Image;
            }
            "video" => {
                self.part = Part::Video;
                if let Some(entry) = self.limited(|entry| entry.videos.len()) {
                    entry.videos.push(Video::default());
                }
            }
            "link" => self.alternate(&tag),
            _ if tag.is_empty => {}
            _ => self.field = Some((tag.name, Value::default())),
        }
        if tag.is_empty {
            self.leave(name);
        }
    }

    /// Whether the root was closed.
    fn end(&mut self, name: &'a str) -> bool {
        if let Some((open, _)) = &self.field {
            // A wrong end tag still ends the field it stands in.
            let (open_name, value) = (*open, self.field.take().map(|(_, value)| value));
            if open_name != name {
                self.tokens.note(DefectKind::MismatchedTag, name);
            }
            let value = value.unwrap_or_default().finish().0;
            self.set(open_name, value);
            if open_name == name {
                return false;
            }
        }
        let (_, local) = namespace::split(name);
        self.leave(local)
    }

    fn leave(&mut self, name: &str) -> bool {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("url") || is("sitemap") {
            self.finish_entry();
        } else if is("news") || is("image") || is("video") {
            self.part = Part::Entry;
        }
        is("urlset") || is("sitemapindex")
    }

    fn limited(&mut self, count: impl Fn(&Entry) -> usize) -> Option<&mut Entry> {
        let entry = self.entry.as_mut()?;
        self.parts += 1;
        let has_room = count(entry) < MAX_PARTS && self.parts <= MAX_PARTS_OF_ALL;
        has_room.then_some(entry)
    }

    fn set(&mut self, name: &'a str, value: Cow<'_, str>) {
        let (_, local) = namespace::split(name);
        let local = local.to_ascii_lowercase();
        match (self.part, local.as_str()) {
            (Part::Entry, "loc") => self.location(&value),
            (Part::Entry, "lastmod") => {
                let date = date::parse(&value);
                if date.is_none() && !value.trim().is_empty() {
                    self.tokens.note(DefectKind::BadDate, &value);
                }
                if let Some(entry) = &mut self.entry {
                    entry.lastmod = date;
                }
            }
            (Part::News, "title" | "name" | "language" | "publication_date") => {
                self.news(&local, &value);
            }
            (Part::Image, "loc") => {
                if let Some(url) = self.collector.location(&value)
                    && let Some(entry) = self.limited(|entry| entry.images.len())
                {
                    entry.images.push(url);
                }
            }
            (Part::Video, "title" | "content_loc" | "player_loc" | "thumbnail_loc") => {
                self.video(&local, &value);
            }
            _ => {}
        }
    }

    fn location(&mut self, value: &str) {
        let Some(url) = self.collector.location(value) else {
            self.tokens.note(DefectKind::BadLocation, value);
            return;
        };
        if !crate::link::is_absolute(&url) {
            self.tokens.note(DefectKind::RelativeLink, &url);
        }
        match &mut self.entry {
            Some(entry) if entry.url.is_empty() => entry.url = url,
            // A second location, or one outside any entry, is its own entry.
            Some(_) => {
                self.finish_entry();
                self.entry = Some(Entry::at(url));
            }
            None => self.entry = Some(Entry::at(url)),
        }
    }

    fn news(&mut self, field: &str, value: &str) {
        let Some(entry) = &mut self.entry else { return };
        let news: &mut News = entry.news.get_or_insert_default();
        let line = html::collapse(value);
        let line = (!line.is_empty()).then_some(line);
        match field {
            "title" => news.title = line,
            "name" => news.publication = line,
            "language" => news.language = line,
            _ => news.published = date::parse(value),
        }
    }

    fn video(&mut self, field: &str, value: &str) {
        let url = self.collector.location(value);
        let Some(video) = self
            .entry
            .as_mut()
            .and_then(|entry| entry.videos.last_mut())
        else {
            return;
        };
        match field {
            "title" => video.title = Some(html::collapse(value)),
            "thumbnail_loc" => video.thumbnail = url,
            _ if video.url.is_none() => video.url = url,
            _ => {}
        }
    }

    fn alternate(&mut self, tag: &Tag<'a>) {
        let (Some(language), Some(href)) =
            (tag.attributes.get("hreflang"), tag.attributes.get("href"))
        else {
            return;
        };
        if let Some(url) = self.collector.location(&href)
            && let Some(entry) = self.limited(|entry| entry.alternates.len())
        {
            let language = language.into_owned();
            entry.alternates.push(Alternate { language, url });
        }
    }

    fn finish_entry(&mut self) {
        self.part = Part::Entry;
        let Some(entry) = self.entry.take() else {
            return;
        };
        if entry.url.is_empty() {
            self.tokens
                .note(DefectKind::BadLocation, "an entry without a location");
            return;
        }
        if self.collector.push(entry) == ControlFlow::Break(()) {
            self.is_stopped = true;
        }
    }
}
