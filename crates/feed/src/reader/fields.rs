//! Which fields of the items and of the feed its elements set: addresses in
//! attributes immediately, values when their element ends.

use std::borrow::Cow;

use tidings_text::entities;
use url::Url;

use super::{Capture, Place, Reader};
use crate::capture::{Mode, Value};
use crate::defect::DefectKind;
use crate::draft::{Draft, LinkRank};
use crate::element::Element;
use crate::field::{Field, TextKind};
use crate::model::{Enclosure, Format};
use crate::tokens::Tag;
use crate::{date, html, link, namespace};

impl<'a> Reader<'a, '_> {
    /// Reads the attributes of a start tag, and decides how its children are read.
    pub(super) fn open(&mut self, found: Element, tag: &Tag<'a>) -> Place {
        let place = self.place();
        match (found, place) {
            (Element::Item, _) => {
                self.start_item(tag);
                Place::Item
            }
            (Element::Rss | Element::Rdf | Element::AtomFeed | Element::Channel, Place::Feed) => {
                if found == Element::Channel && self.channel.feed.format == Format::Cdf {
                    self.cdf_channel(tag);
                }
                Place::Feed
            }
            (_, Place::Elsewhere) | (Element::Unknown, _) => Place::Elsewhere,
            (Element::MediaContent, Place::Item | Place::Media) => {
                self.media_content(tag);
                Place::Media
            }
            (Element::MediaGroup, Place::Item | Place::Media) => Place::Media,
            (Element::Title(1) | Element::Summary(1) | Element::Thumbnail, Place::Media) => {
                self.field(found, tag);
                Place::Elsewhere
            }
            (_, Place::Media) => Place::Elsewhere,
            (found, _) => {
                self.field(found, tag);
                Place::Elsewhere
            }
        }
    }

    fn start_item(&mut self, tag: &Tag<'a>) {
        let mut draft = Draft::new(self.tokens.offset());
        for (name, value) in tag.attributes.iter() {
            let (_, local) = namespace::split(name);
            match local.to_ascii_lowercase().as_str() {
                // RDF names its items; CDF has their links here.
                "about" => {
                    let about = link::resolve(self.base(), &entities::decode(value));
                    if link::is_http(&about) {
                        draft.link(LinkRank::AbsoluteGuid, about.clone());
                    }
                    draft.item.guid = Some(about);
                }
                "href" => {
                    let url = link::resolve(self.base(), &entities::decode(value));
                    draft.link(LinkRank::Alternate, url);
                }
                "lastmod" => draft.item.updated = date::parse(value),
                _ => {}
            }
        }
        draft.item.language = self.scope.language();
        self.draft = Some(draft);
    }

    fn cdf_channel(&mut self, tag: &Tag<'a>) {
        if let Some(href) = tag.attributes.get("href") {
            let url = link::resolve(self.base(), &href);
            self.channel.link("", url);
        }
        if let Some(base) = tag.attributes.get("base") {
            let depth = self.stack.len() + 1;
            self.scope.push_base(depth, &base, self.hints.url);
        }
    }

    /// A field of the item that is open, or else of the feed.
    fn field(&mut self, found: Element, tag: &Tag<'a>) {
        let attribute = |name| tag.attributes.get(name);
        match found {
            Element::Link => {
                if let Some(href) = attribute("href") {
                    return self.atom_link(tag, &href);
                }
            }
            Element::Enclosure => {
                if let Some(url) = attribute("url").or_else(|| attribute("href")) {
                    self.enclosure(&url, tag);
                }
                return;
            }
            Element::Thumbnail => {
                if let Some(url) = attribute("url").or_else(|| attribute("href")) {
                    self.image(2, &url);
                }
                return;
            }
            Element::Category => {
                if let Some(category) = attribute("term").or_else(|| attribute("text")) {
                    let category = attribute("label").unwrap_or(category);
                    let category = html::collapse(&category);
                    if let Some(draft) = &mut self.draft
                        && !category.is_empty()
                    {
                        draft.category(category);
                    }
                    return;
                }
            }
            Element::Title(_) | Element::Summary(_) | Element::Updated(_) => {
                // CDF puts values into attributes.
                if let Some(value) = attribute("value") {
                    let field = self.field_of(found, tag, value);
                    return self.set(field);
                }
            }
            Element::Content(_) => {
                if let (Some(src), Some(_)) = (attribute("src"), &self.draft) {
                    let url = link::resolve(self.base(), &src);
                    if let Some(draft) = &mut self.draft {
                        draft.link(LinkRank::OtherRelation, url);
                    }
                }
            }
            _ => {}
        }
        if tag.is_empty {
            return;
        }
        self.start_capture(found, tag);
    }

    fn field_of<'f>(&self, found: Element, tag: &Tag<'_>, value: Cow<'f, str>) -> Field<'f> {
        Field {
            element: found,
            kind: TextKind::of(tag.attributes, self.is_atom),
            value,
            claims_page: None,
            offset: self.tokens.offset(),
        }
    }

    fn start_capture(&mut self, found: Element, tag: &Tag<'a>) {
        let mut field = self.field_of(found, tag, Cow::Borrowed(""));
        field.claims_page = match found {
            Element::Guid => {
                let claim = tag.attributes.get("isPermaLink");
                claim.map(|claim| !claim.eq_ignore_ascii_case("false"))
            }
            Element::Link => {
                let relation = tag.attributes.get("rel");
                relation.map(|relation| relation.eq_ignore_ascii_case("alternate"))
            }
            _ => None,
        };
        let looks_inside = matches!(
            found,
            Element::Author(_) | Element::Image | Element::SkipHours | Element::SkipDays
        );
        let mode = if looks_inside || field.kind == TextKind::Inline {
            Mode::Source
        } else {
            Mode::Decoded
        };
        self.capture = Some(Capture {
            index: self.stack.len(),
            field,
            mode,
            value: Value::default(),
            content_start: self.tokens.position(),
            of_item: self.draft.is_some(),
        });
    }

    /// Sets a field of the item or of the feed.
    pub(super) fn set(&mut self, field: Field<'_>) {
        match field.element {
            Element::Link => {
                let url = link::resolve(self.base(), &field.value);
                match &mut self.draft {
                    Some(draft) if field.claims_page == Some(false) => {
                        draft.link(LinkRank::OtherRelation, url);
                    }
                    Some(draft) => draft.link(LinkRank::Alternate, url),
                    None => {
                        if self.site.is_none() {
                            self.site = Url::parse(&url).ok().filter(|url| url.has_host());
                        }
                        self.channel.link("", url);
                    }
                }
            }
            Element::Guid | Element::Id => {
                let url = link::resolve(self.base(), &field.value);
                if let Some(draft) = &mut self.draft {
                    draft.guid(&field, url);
                }
            }
            Element::Comments => {
                let url = link::resolve(self.base(), &field.value);
                if let Some(draft) = &mut self.draft
                    && !url.is_empty()
                {
                    draft.item.comments = Some(url);
                }
            }
            Element::Image | Element::Logo => {
                let url = match field.element {
                    Element::Image => field.child("url").unwrap_or_else(|| {
                        // The text itself, when there are no children.
                        if field.value.contains('<') {
                            String::new()
                        } else {
                            field.value.clone().into_owned()
                        }
                    }),
                    _ => field.value.into_owned(),
                };
                self.image(1, &url);
            }
            _ => match &mut self.draft {
                Some(draft) => {
                    if !draft.set(&field) {
                        let text = self.tokens.text();
                        let value = &field.value;
                        let offset = field.offset;
                        self.tokens
                            .defects
                            .note(DefectKind::BadDate, text, offset, value);
                    }
                }
                None => self.channel.set(&field),
            },
        }
    }

    fn atom_link(&mut self, tag: &Tag<'a>, href: &str) {
        let url = link::resolve(self.base(), href);
        let relation = tag.attributes.get("rel").unwrap_or_default();
        let relation = relation.to_ascii_lowercase();
        let relation = relation.trim();
        // Relations may be written as addresses of the registry.
        let relation = relation.rsplit('/').next().unwrap_or(relation);
        if self.draft.is_none() {
            return self.channel.link(relation, url);
        }
        let media_type = tag.attributes.get("type").unwrap_or_default();
        let is_page = media_type.is_empty() || media_type.contains("html");
        if relation == "enclosure" {
            return self.enclosure(href, tag);
        }
        let rank = match relation {
            "" | "alternate" if is_page => LinkRank::Alternate,
            "" | "alternate" => LinkRank::AlternateFormat,
            "replies" | "edit" | "license" | "http-edit" | "service.edit" | "service.post" => {
                return;
            }
            _ => LinkRank::OtherRelation,
        };
        if let Some(draft) = &mut self.draft {
            draft.link(rank, url);
        }
    }

    fn media_content(&mut self, tag: &Tag<'a>) {
        let attribute = |name| tag.attributes.get(name).unwrap_or_default();
        let Some(url) = tag.attributes.get("url") else {
            return;
        };
        if attribute("medium") == "image" || attribute("type").starts_with("image") {
            self.image(2, &url);
        } else {
            self.enclosure(&url, tag);
        }
    }

    fn enclosure(&mut self, url: &str, tag: &Tag<'a>) {
        let url = link::resolve(self.base(), url);
        if url.is_empty() {
            return;
        }
        let attribute = |name| tag.attributes.get(name);
        let size = attribute("length").or_else(|| attribute("fileSize"));
        let media_type = attribute("type").filter(|kind| !kind.is_empty());
        if let Some(draft) = &mut self.draft {
            draft.enclosure(Enclosure {
                url,
                media_type: media_type.map(Cow::into_owned),
                bytes: size.and_then(|size| size.parse().ok()),
            });
        }
    }

    fn image(&mut self, rank: u8, url: &str) {
        let url = link::resolve(self.base(), url);
        match &mut self.draft {
            Some(draft) => draft.image(rank, url),
            None => self.channel.image(url),
        }
    }

    /// What relative addresses here are relative to. RSS has no rule; links that
    /// leave out the host mean the site more often than the feed's own host.
    fn base(&self) -> Option<&Url> {
        let has_rule = self.scope.has_base() || self.is_atom || self.draft.is_none();
        match &self.site {
            Some(site) if !has_rule && self.hints.url.is_some() => Some(site),
            _ => self.scope.base(self.hints.url),
        }
    }
}
