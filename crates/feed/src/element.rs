//! The vocabulary: which field an element of some namespace stands for. RSS and
//! Atom share one table, because real feeds mix them. Case does not matter.

use crate::namespace::Namespace;

/// What an element means, whatever format it comes from. The number is a rank:
/// a higher one wins over a lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    Rss,
    Rdf,
    AtomFeed,
    Channel,
    Item,
    Title(u8),
    Summary(u8),
    Content(u8),
    Link,
    /// RSS `guid`, Atom `id`.
    Guid,
    Id,
    Published(u8),
    Updated(u8),
    Author(u8),
    Category,
    Enclosure,
    MediaContent,
    /// `media:group`: its children count as the item's.
    MediaGroup,
    /// An address of an image in an attribute.
    Thumbnail,
    /// The image of a feed, with a child `url`.
    Image,
    /// The address of the feed's image as text.
    Logo,
    Comments,
    Language,
    Generator,
    Ttl,
    SkipHours,
    SkipDays,
    UpdatePeriod,
    UpdateFrequency,
    Unknown,
}

/// The longest name in the table, for a look-up without allocation.
const MAX_NAME_BYTES: usize = 16;

pub(crate) fn element(namespace: Namespace, name: &str) -> Element {
    let mut buffer = [0; MAX_NAME_BYTES];
    let Some(lower) = buffer.get_mut(..name.len()) else {
        return Element::Unknown;
    };
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    let name: &[u8] = lower;
    match namespace {
        Namespace::Feed => of_feed(name),
        Namespace::Dc => match name {
            b"title" => Element::Title(2),
            b"creator" | b"author" => Element::Author(2),
            b"publisher" | b"contributor" => Element::Author(1),
            b"subject" => Element::Category,
            b"date" => Element::Published(2),
            b"description" => Element::Summary(2),
            b"language" => Element::Language,
            b"identifier" => Element::Id,
            _ => Element::Unknown,
        },
        Namespace::DcTerms => match name {
            b"title" => Element::Title(2),
            b"issued" | b"date" | b"available" => Element::Published(2),
            b"created" | b"dateaccepted" => Element::Published(1),
            b"modified" => Element::Updated(2),
            b"creator" => Element::Author(2),
            b"subject" => Element::Category,
            b"abstract" | b"description" => Element::Summary(2),
            _ => Element::Unknown,
        },
        Namespace::Content => match name {
            b"encoded" => Element::Content(3),
            _ => Element::Unknown,
        },
        Namespace::Xhtml => match name {
            b"body" => Element::Content(2),
            _ => Element::Unknown,
        },
        Namespace::Media => match name {
            b"title" => Element::Title(1),
            b"description" => Element::Summary(1),
            b"content" => Element::MediaContent,
            b"group" => Element::MediaGroup,
            b"thumbnail" => Element::Thumbnail,
            _ => Element::Unknown,
        },
        Namespace::Itunes => match name {
            b"title" => Element::Title(1),
            b"author" => Element::Author(1),
            b"summary" | b"subtitle" => Element::Summary(1),
            b"image" => Element::Thumbnail,
            b"block" | b"explicit" => Element::Unknown,
            _ => Element::Unknown,
        },
        Namespace::Syndication => match name {
            b"updateperiod" => Element::UpdatePeriod,
            b"updatefrequency" => Element::UpdateFrequency,
            _ => Element::Unknown,
        },
        Namespace::Rdf => match name {
            b"rdf" => Element::Rdf,
            _ => Element::Unknown,
        },
        Namespace::Other => Element::Unknown,
    }
}

fn of_feed(name: &[u8]) -> Element {
    match name {
        b"item" | b"entry" => Element::Item,
        b"title" => Element::Title(3),
        b"link" | b"a" => Element::Link,
        b"guid" => Element::Guid,
        b"id" => Element::Id,
        b"description" | b"summary" | b"subtitle" | b"tagline" | b"abstract" => Element::Summary(3),
        b"content" | b"body" | b"fullitem" => Element::Content(2),
        b"pubdate" | b"published" | b"issued" => Element::Published(3),
        b"date" => Element::Published(2),
        b"created" => Element::Published(1),
        b"updated" | b"modified" => Element::Updated(3),
        b"lastbuilddate" | b"lastmod" => Element::Updated(2),
        b"author" => Element::Author(3),
        b"managingeditor" | b"webmaster" | b"contributor" => Element::Author(1),
        b"category" | b"keywords" => Element::Category,
        b"enclosure" => Element::Enclosure,
        b"comments" => Element::Comments,
        b"language" => Element::Language,
        b"generator" => Element::Generator,
        b"image" => Element::Image,
        b"logo" | b"icon" => Element::Logo,
        b"ttl" => Element::Ttl,
        b"skiphours" => Element::SkipHours,
        b"skipdays" => Element::SkipDays,
        b"channel" => Element::Channel,
        b"feed" => Element::AtomFeed,
        b"rss" => Element::Rss,
        b"rdf" => Element::Rdf,
        _ => Element::Unknown,
    }
}
