//! JSON Feed 1.0 and 1.1, read member by member: a member of a wrong type costs
//! that member, a document that breaks off keeps the items before the break.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::defect::{DefectKind, Defects};
use crate::draft::{Draft, LinkRank};
use crate::element::Element;
use crate::error::Found;
use crate::field::{Field, TextKind};
use crate::hints::Hints;
use crate::model::{Enclosure, Feed, Format, Item};
use crate::{html, link};

/// The members of an object that this file reads; others cost nothing.
type Members<'a> = HashMap<&'static str, &'a RawValue>;

const KNOWN_MEMBERS: [&str; 19] = [
    "url",
    "external_url",
    "id",
    "title",
    "summary",
    "content_html",
    "content_text",
    "date_published",
    "date_modified",
    "language",
    "authors",
    "author",
    "name",
    "tags",
    "image",
    "banner_image",
    "attachments",
    "mime_type",
    "size_in_bytes",
];
/// Values of a list that are read; nobody has more authors or tags.
const MAX_VALUES: usize = 64;

/// Reads a document that starts with `{` or `[`.
pub(crate) fn read(
    text: &str,
    hints: &Hints<'_>,
    defects: Defects,
    emit: &mut dyn FnMut(Item) -> ControlFlow<()>,
) -> Result<Feed, Found> {
    // Line breaks inside strings are the most common fault of JSON that was put
    // together by hand; between values a space means the same.
    let clean = without_controls(text);
    let mut cursor = Cursor {
        text: &clean,
        at: 0,
    };
    let mut reader = JsonReader {
        text,
        hints,
        defects,
        emit,
        feed: Feed::empty(Format::JsonFeed11),
        items: 0,
        dropped: 0,
        is_feed: false,
        keys: Vec::new(),
    };
    if !cursor.eat(b'{') {
        return Err(Found::OtherJson(String::new()));
    }
    let is_whole = reader.document(&mut cursor);
    if !reader.is_feed {
        return Err(Found::OtherJson(reader.keys.join(", ")));
    }
    if is_whole.is_none() {
        let detail = "the JSON is damaged here";
        reader
            .defects
            .note(DefectKind::Truncated, text, cursor.at, detail);
    }
    reader.defects.note_dropped(reader.dropped);
    if reader.items == 0 {
        reader.defects.note_whole(DefectKind::NoItems, "no items");
    }
    reader.feed.defects = reader.defects;
    Ok(reader.feed)
}

struct JsonReader<'a, 'r> {
    /// As it was published, to find the lines of defects.
    text: &'a str,
    hints: &'r Hints<'r>,
    defects: Defects,
    emit: &'r mut dyn FnMut(Item) -> ControlFlow<()>,
    feed: Feed,
    items: usize,
    /// Items without link, id and title.
    dropped: usize,
    /// A version of JSON Feed or a list of items was seen.
    is_feed: bool,
    keys: Vec<String>,
}

impl JsonReader<'_, '_> {
    /// The members of the top level; `None` if the JSON breaks off.
    fn document(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        loop {
            if cursor.eat(b'}') {
                return Some(());
            }
            let key: Cow<'_, str> = cursor.value()?;
            if !cursor.eat(b':') {
                return None;
            }
            if self.keys.len() < 8 {
                self.keys.push(key.chars().take(30).collect());
            }
            if key == "items" && cursor.eat(b'[') {
                self.is_feed = true;
                loop {
                    if cursor.eat(b']') {
                        break;
                    }
                    let start = cursor.at;
                    match cursor.value() {
                        Some(item) if self.item(item, start).is_break() => return Some(()),
                        Some(_) => {}
                        None => {
                            cursor.skip()?;
                            let detail = "an item is not valid JSON";
                            self.defects
                                .note(DefectKind::WrongType, self.text, start, detail);
                        }
                    }
                    cursor.eat(b',');
                }
            } else {
                let value: &RawValue = cursor.value()?;
                self.member(&key, value);
            }
            cursor.eat(b',');
        }
    }

    fn member(&mut self, key: &str, value: &RawValue) {
        let text = || string(value);
        let base = self.hints.url;
        match key {
            "version" => {
                let version = text().unwrap_or_default();
                if version.contains("jsonfeed.org") || version.starts_with("1") {
                    self.is_feed = true;
                }
                if version.trim_end_matches('/').ends_with("version/1") || version == "1.0" {
                    self.feed.format = Format::JsonFeed10;
                }
            }
            "title" => self.feed.title = text().map(|title| html::collapse(&title)),
            "description" => self.feed.description = text().map(|text| html::collapse(&text)),
            "home_page_url" => self.feed.home_page = text().map(|url| link::resolve(base, &url)),
            "feed_url" => self.feed.self_url = text().map(|url| link::resolve(base, &url)),
            "next_url" => self.feed.next_page = text().map(|url| link::resolve(base, &url)),
            "icon" | "favicon" if self.feed.image.is_none() => {
                self.feed.image = text().map(|url| link::resolve(base, &url));
            }
            "language" => self.feed.language = text(),
            "hubs" => {
                for hub in list(value).iter().take(8) {
                    let hub = object(hub);
                    if let Some(url) = hub.as_ref().and_then(|hub| member(hub, "url")) {
                        self.feed.hubs.push(link::resolve(base, &url));
                    }
                }
            }
            _ => {}
        }
    }

    fn item(&mut self, value: &RawValue, offset: usize) -> ControlFlow<()> {
        let Some(members) = object(value) else {
            let detail = "an item is not an object";
            self.defects
                .note(DefectKind::WrongType, self.text, offset, detail);
            return ControlFlow::Continue(());
        };
        let base = self.hints.url;
        let mut draft = Draft::new(offset);
        let text = |key: &str| member(&members, key);
        for (key, rank) in [
            ("url", LinkRank::Alternate),
            ("external_url", LinkRank::OtherRelation),
        ] {
            if let Some(url) = text(key) {
                draft.link(rank, link::resolve(base, &url));
            }
        }
        if let Some(id) = text("id") {
            let url = link::resolve(base, &id);
            draft.guid(&field(Element::Id, TextKind::Plain, id, offset), url);
        }
        for (key, element, kind) in [
            ("title", Element::Title(3), TextKind::Plain),
            ("summary", Element::Summary(3), TextKind::Plain),
            ("content_html", Element::Content(3), TextKind::Html),
            ("content_text", Element::Content(2), TextKind::Plain),
            ("date_published", Element::Published(3), TextKind::Plain),
            ("date_modified", Element::Updated(3), TextKind::Plain),
            ("language", Element::Language, TextKind::Plain),
        ] {
            let Some(value) = text(key) else { continue };
            let field = field(element, kind, value, offset);
            if !draft.set(&field) {
                self.defects
                    .note(DefectKind::BadDate, self.text, offset, &field.value);
            }
        }
        self.people_and_files(&members, &mut draft, offset);
        if draft.is_nameless() {
            self.dropped += 1;
            return ControlFlow::Continue(());
        }
        let item = draft.finish(self.text, self.hints.now, &mut self.defects);
        self.items += 1;
        (self.emit)(item)
    }

    fn people_and_files(&self, members: &Members<'_>, draft: &mut Draft, offset: usize) {
        let base = self.hints.url;
        let authors = members.get("authors").map(|value| list(value));
        let author = members.get("author").copied();
        for author in authors.into_iter().flatten().chain(author) {
            let name = object(author)
                .and_then(|author| member(&author, "name").or_else(|| member(&author, "url")))
                .or_else(|| string(author));
            if let Some(name) = name {
                draft.set(&field(Element::Author(3), TextKind::Plain, name, offset));
            }
        }
        for tag in members
            .get("tags")
            .map(|value| list(value))
            .unwrap_or_default()
        {
            if let Some(tag) = string(tag).map(|tag| html::collapse(&tag)) {
                draft.category(tag);
            }
        }
        for (rank, key) in [(2, "image"), (1, "banner_image")] {
            if let Some(url) = member(members, key) {
                draft.image(rank, link::resolve(base, &url));
            }
        }
        for file in members
            .get("attachments")
            .map(|value| list(value))
            .unwrap_or_default()
        {
            let Some(file) = object(file) else { continue };
            let Some(url) = member(&file, "url") else {
                continue;
            };
            draft.enclosure(Enclosure {
                url: link::resolve(base, &url),
                media_type: member(&file, "mime_type"),
                bytes: member(&file, "size_in_bytes").and_then(|size| size.parse().ok()),
            });
        }
    }
}

fn field(element: Element, kind: TextKind, value: String, offset: usize) -> Field<'static> {
    Field {
        element,
        kind,
        value: Cow::Owned(value),
        claims_page: None,
        offset,
    }
}

/// A place in the JSON text. Values are read one at a time, so that damage
/// further on can't harm them.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn eat(&mut self, byte: u8) -> bool {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_ascii_start();
        let is_there = trimmed.as_bytes().first() == Some(&byte);
        if is_there {
            self.at += rest.len() - trimmed.len() + 1;
        }
        is_there
    }

    /// Passes an object or a list that is not valid, by its brackets. `None` if
    /// it has no end.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        let mut is_string = false;
        let mut bytes = self.text.bytes().enumerate().skip(self.at);
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'\\' if is_string => {
                    bytes.next();
                }
                b'"' => is_string = !is_string,
                b'{' | b'[' if !is_string => depth += 1,
                b'}' | b']' if !is_string => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        self.at = at + 1;
                        return Some(());
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn value<T: Deserialize<'a>>(&mut self) -> Option<T> {
        let json = serde_json::Deserializer::from_str(&self.text[self.at..]);
        let mut values = json.into_iter::<T>();
        let value = values.next()?.ok()?;
        self.at += values.byte_offset();
        Some(value)
    }
}

fn without_controls(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte >= b' ') {
        return Cow::Borrowed(text);
    }
    let spaced = |c: char| if c < ' ' { ' ' } else { c };
    Cow::Owned(text.chars().map(spaced).collect())
}

fn object(value: &RawValue) -> Option<Members<'_>> {
    let mut json = serde_json::Deserializer::from_str(value.get());
    json.deserialize_map(KnownMembers).ok()
}

fn list(value: &RawValue) -> Vec<&RawValue> {
    let mut json = serde_json::Deserializer::from_str(value.get());
    json.deserialize_seq(FirstValues).unwrap_or_default()
}

/// Reads an object of any size into the members that are known.
struct KnownMembers;

impl<'de> Visitor<'de> for KnownMembers {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Members::new();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match KNOWN_MEMBERS.iter().find(|known| **known == key) {
                Some(known) => {
                    members.insert(known, map.next_value()?);
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(members)
    }
}

/// Reads a list of any length into its first values.
struct FirstValues;

impl<'de> Visitor<'de> for FirstValues {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while values.len() < MAX_VALUES {
            match list.next_element()? {
                Some(value) => values.push(value),
                None => return Ok(values),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(values)
    }
}

/// A string, or a number written as one. Other types are no text.
fn string(value: &RawValue) -> Option<String> {
    let raw = value.get();
    if raw.starts_with('"') {
        return serde_json::from_str::<String>(raw)
            .ok()
            .filter(|text| !text.trim().is_empty());
    }
    let is_number = raw.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    is_number.then(|| raw.to_owned())
}

fn member(members: &Members<'_>, key: &str) -> Option<String> {
    members.get(key).and_then(|value| string(value))
}
