//! An item in the making: of several values for one field the best one stays.
//! Knows the rules of choice, not where values come from.

use jiff::Timestamp;

use crate::defect::{DefectKind, Defects};
use crate::element::Element;
use crate::field::Field;
use crate::model::{ContentQuality, Enclosure, Item};
use crate::{date, link};

/// How good an address is as the address of the article.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LinkRank {
    #[default]
    None,
    Enclosure,
    OtherRelation,
    AbsoluteGuid,
    Permalink,
    /// `rel=alternate` of another type than HTML.
    AlternateFormat,
    Alternate,
}

/// Values beyond this many are not kept: nobody reads a thousand categories.
const MAX_VALUES: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) item: Item,
    link: LinkRank,
    title: u8,
    summary: u8,
    content: u8,
    published: u8,
    updated: u8,
    author: u8,
    image: u8,
    /// Where the item starts in the document.
    pub(crate) offset: usize,
}

impl Draft {
    pub(crate) fn new(offset: usize) -> Self {
        Self {
            offset,
            ..Self::default()
        }
    }

    /// An address that may be the article's; it is resolved already.
    pub(crate) fn link(&mut self, rank: LinkRank, url: String) {
        let is_usable = link::may_be_page(&url);
        if is_usable && rank > self.link {
            self.item.link = Some(url);
            self.link = rank;
        }
    }

    pub(crate) fn guid(&mut self, field: &Field<'_>, resolved: String) {
        let guid = link::clean(&field.value).into_owned();
        if guid.is_empty() || self.item.guid.is_some() {
            return;
        }
        let claims_permalink = match (field.element, field.claims_page) {
            (Element::Guid, claim) => claim.unwrap_or(true),
            _ => false,
        };
        let is_http = link::is_http(&guid);
        // Relative, but said to be an address or clearly a path: resolved like one.
        let is_path = guid.starts_with('/') && !guid.contains(char::is_whitespace);
        let is_relative_permalink =
            (field.claims_page == Some(true) && !link::is_absolute(&guid)) || is_path;
        self.item.guid_is_permalink = claims_permalink && (is_http || is_relative_permalink);
        if self.item.guid_is_permalink {
            self.link(LinkRank::Permalink, resolved);
        } else if is_http || is_path {
            self.link(LinkRank::AbsoluteGuid, resolved);
        }
        self.item.guid = Some(guid);
    }

    /// An element whose value is plain text. `false` if it is not usable.
    pub(crate) fn set(&mut self, field: &Field<'_>) -> bool {
        match field.element {
            Element::Title(rank) => {
                best(&mut self.title, rank, &mut self.item.title, || field.line());
            }
            Element::Summary(rank) => {
                best(&mut self.summary, rank, &mut self.item.summary, || {
                    field.markup()
                });
            }
            Element::Content(rank) => {
                best(&mut self.content, rank, &mut self.item.content, || {
                    field.markup()
                });
            }
            Element::Published(rank) => {
                return set_date(&mut self.published, rank, &mut self.item.published, field);
            }
            Element::Updated(rank) => {
                return set_date(&mut self.updated, rank, &mut self.item.updated, field);
            }
            Element::Author(rank) => self.author(rank, field),
            Element::Category => {
                if let Some(category) = field.line() {
                    self.category(category);
                }
            }
            Element::Language if self.item.language.is_none() => {
                self.item.language = field.line();
            }
            _ => {}
        }
        true
    }

    fn author(&mut self, rank: u8, field: &Field<'_>) {
        if rank < self.author {
            return;
        }
        let Some(author) = field.author_name() else {
            return;
        };
        if rank > self.author {
            self.item.authors.clear();
            self.author = rank;
        }
        if self.item.authors.len() < MAX_VALUES && !self.item.authors.contains(&author) {
            self.item.authors.push(author);
        }
    }

    pub(crate) fn category(&mut self, category: String) {
        let categories = &mut self.item.categories;
        if categories.len() < MAX_VALUES && !categories.contains(&category) {
            categories.push(category);
        }
    }

    pub(crate) fn enclosure(&mut self, enclosure: Enclosure) {
        let is = |kind: &str| {
            let media_type = enclosure.media_type.as_deref();
            media_type.is_some_and(|media_type| media_type.starts_with(kind))
        };
        if is("image") {
            self.image(1, enclosure.url.clone());
        }
        self.link(LinkRank::Enclosure, enclosure.url.clone());
        let enclosures = &mut self.item.enclosures;
        let is_known = enclosures.iter().any(|known| known.url == enclosure.url);
        if enclosures.len() < MAX_VALUES && !is_known {
            enclosures.push(enclosure);
        }
    }

    pub(crate) fn image(&mut self, rank: u8, url: String) {
        if rank > self.image && !url.is_empty() {
            self.item.image = Some(url);
            self.image = rank;
        }
    }

    /// Whether nothing was found that an item is known by.
    pub(crate) fn is_nameless(&self) -> bool {
        let item = &self.item;
        item.link.is_none() && item.title.is_none() && item.guid.is_none()
    }

    /// Whether anything was found that is worth an item.
    pub(crate) fn is_blank(&self) -> bool {
        let item = &self.item;
        item.link.is_none()
            && item.title.is_none()
            && item.guid.is_none()
            && item.summary.is_none()
            && item.content.is_none()
    }

    /// The item, its address and dates checked. `text` is the document.
    pub(crate) fn finish(self, text: &str, now: Option<Timestamp>, defects: &mut Defects) -> Item {
        let Self {
            mut item, offset, ..
        } = self;
        item.content_quality = ContentQuality::of(item.summary.as_ref(), item.content.as_ref());
        match &item.link {
            None => defects.note(DefectKind::NoLink, text, offset, ""),
            Some(link) if !link::is_absolute(link) => {
                defects.note(DefectKind::RelativeLink, text, offset, link);
            }
            Some(_) => {}
        }
        let Some(now) = now else { return item };
        for date in [&mut item.published, &mut item.updated] {
            if let Some(moment) = *date
                && !date::is_plausible(moment, now)
            {
                let detail = moment.to_string();
                defects.note(DefectKind::ImplausibleDate, text, offset, &detail);
                *date = None;
            }
        }
        item
    }
}

/// Keeps a value if it ranks higher than the one that is there.
pub(crate) fn best<T>(
    held: &mut u8,
    rank: u8,
    slot: &mut Option<T>,
    value: impl FnOnce() -> Option<T>,
) {
    if rank > *held
        && let Some(value) = value()
    {
        *slot = Some(value);
        *held = rank;
    }
}

/// The same for dates. `false` if the text is not blank and not a date.
fn set_date(held: &mut u8, rank: u8, slot: &mut Option<Timestamp>, field: &Field<'_>) -> bool {
    if rank < *held || field.value.trim().is_empty() {
        return true;
    }
    let date = field.date();
    if let Some(date) = date {
        // Of two dates of one rank the later in the document corrects the other.
        *slot = Some(date);
        *held = rank;
    }
    date.is_some()
}
