//! When it was published and changed: structured data, meta tags, `time`
//! elements and bylines near the top, the address, the feed. A date in the
//! future or before the web is ignored, so the day of the crawl never becomes the
//! day of publication.

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::Offset;

use crate::blocks::{Block, Blocks, Kind};
use crate::dates::{EARLIEST, When, find_in_words, in_url};
use crate::html::{Document, NodeId, Tag};
use crate::provenance::{Origin, Sourced};
use crate::roles::Roles;
use crate::structured::{JsonLd, Meta, Microdata};

/// The evidence for the dates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DateEvidence<'a, 's> {
    pub(crate) document: &'a Document<'s>,
    pub(crate) blocks: &'a Blocks,
    pub(crate) container: NodeId,
    pub(crate) json_ld: &'a JsonLd,
    pub(crate) meta: &'a Meta,
    pub(crate) microdata: &'a Microdata,
    pub(crate) url: &'a str,
    pub(crate) now: Timestamp,
}

#[rustfmt::skip]
const PUBLISHED: &[&str] = &[
    "article:published_time", "article:published", "og:article:published_time", "og:published_time",
    "datepublished", "date_published", "published_time", "pubdate", "publishdate", "publish-date",
    "publish_date", "publication_date", "publicationdate", "published", "published-date",
    "originalpublicationdate", "parsely-pub-date", "sailthru.date", "cxenseparse:recs:publishtime",
    "article.published", "article_date_original", "dc.date.issued", "dcterms.issued", "dcterms.date",
    "dc.date", "dcterms.created", "dc.date.created", "dc.created", "datecreated", "citation_publication_date",
    "citation_date", "citation_online_date", "bt:pubdate", "blog.date", "field-name-post-date", "rbpubdate",
    "timestamp", "date", "created", "displaydate", "dateposted", "cdate", "og:pubdate", "pub_date",
    "release_date", "dateissued", "og:regdate",
];

#[rustfmt::skip]
const MODIFIED: &[&str] = &[
    "article:modified_time", "og:updated_time", "og:modified_time", "datemodified", "article:modified",
    "dcterms.modified", "dc.date.modified", "last-modified", "lastmod", "modified", "revised",
    "date.modified", "updated",
];

/// Names of the date in data of scripts that are not JSON-LD.
const IN_SCRIPTS: [&str; 8] = [
    "datePublished",
    "publishedAt",
    "published_at",
    "publishDate",
    "publish_date",
    "publicationDate",
    "publishedDate",
    "firstPublished",
];
const MAX_DATES_IN_SCRIPTS: usize = 20;

/// The publication date.
pub(crate) fn published(evidence: &DateEvidence<'_, '_>) -> Option<Sourced<When>> {
    let DateEvidence {
        json_ld,
        meta,
        microdata,
        ..
    } = evidence;
    let read = |text: &str| When::parse(text).filter(|when| evidence.believes(*when));
    let article = ["datePublished", "dateCreated", "uploadDate"]
        .into_iter()
        .find_map(|key| json_ld.text(key).and_then(|text| read(&text)));
    let page = json_ld
        .page()
        .and_then(|page| page.get("datePublished"))
        .and_then(|value| json_ld.as_text(value))
        .and_then(|text| read(&text));
    if let Some(when) = article {
        // Some systems write the last change into both; then the visible date wins.
        let changed = json_ld.text("dateModified").and_then(|text| read(&text));
        if changed == Some(when)
            && let Some(shown) = in_page(evidence)
            && shown.value.day() < when.day()
        {
            return Some(shown);
        }
        let precise =
            page.filter(|page| is_midnight(when) && !is_midnight(*page) && are_near(when, *page));
        return Some(Sourced::new(precise.unwrap_or(when), Origin::JsonLd));
    }
    if let Some(when) = page {
        return Some(Sourced::new(when, Origin::JsonLd));
    }
    for name in PUBLISHED {
        let found = meta.all(name).find_map(|text| Some((text, read(text)?)));
        if let Some((text, when)) = found {
            if is_ambiguous(text)
                && let Some(shown) = in_page(evidence)
                && Some(shown.value.day()) == swapped(when)
            {
                return Some(shown);
            }
            let origin = match *name {
                name if name.starts_with("dc") => Origin::DublinCore,
                name if name.contains(':') => Origin::OpenGraph,
                _ => Origin::Meta,
            };
            return Some(Sourced::new(when, origin));
        }
    }
    if let Some(when) = ["datePublished", "dateCreated"]
        .into_iter()
        .find_map(|name| microdata.get(name).and_then(read))
    {
        return Some(Sourced::new(when, Origin::Microdata));
    }
    let by_url = in_url(evidence.url)
        .map(When::Day)
        .filter(|when| evidence.believes(*when));
    let shown = in_page(evidence);
    match (shown, by_url) {
        (Some(shown), Some(url))
            if shown.value.day() != url.day() && shown.origin == Origin::Text =>
        {
            Some(Sourced::new(url, Origin::Url))
        }
        (Some(shown), _) => Some(shown),
        (None, Some(url)) => Some(Sourced::new(url, Origin::Url)),
        (None, None) => in_scripts(evidence).map(|when| Sourced::new(when, Origin::Html)),
    }
}

/// Numbers that don't begin with the year: the first could be the day or the month.
fn is_ambiguous(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits < 3 && !text.contains(char::is_alphabetic)
}

/// The other reading of `03-09-2026`.
fn swapped(when: When) -> Option<Date> {
    let day = when.day();
    Date::new(day.year(), day.day(), day.month()).ok()
}

/// The date in the script data of a page that is rendered in the browser. It may
/// be about other articles, too, so it counts only if it has a single day.
fn in_scripts(evidence: &DateEvidence<'_, '_>) -> Option<When> {
    let document = evidence.document;
    let mut found: Option<When> = None;
    let scripts = (1..document.len())
        .filter(|node| document.tag(*node) == Tag::Script && document.end(*node) > node + 1);
    for script in scripts {
        let text = document.raw_text(script + 1);
        for key in IN_SCRIPTS {
            for (at, _) in text.match_indices(key).take(MAX_DATES_IN_SCRIPTS) {
                let value = text[at + key.len()..]
                    .trim_start_matches(['\\', '"', '\'', ' ', ':'])
                    .get(..10);
                let Some(when) = value
                    .and_then(When::parse)
                    .filter(|when| evidence.believes(*when))
                else {
                    continue;
                };
                if found.is_some_and(|known| known.day() != when.day()) {
                    return None;
                }
                found = Some(when);
            }
        }
    }
    found
}

/// A moment that was rounded to a day, in whatever zone.
fn is_midnight(when: When) -> bool {
    match when {
        When::Moment(moment, offset) => offset.to_datetime(moment).time() == Time::midnight(),
        When::Day(_) => true,
    }
}

fn are_near(a: When, b: When) -> bool {
    let apart = a
        .timestamp()
        .as_second()
        .abs_diff(b.timestamp().as_second());
    apart < 2 * 24 * 3600
}

/// The date of the last change.
pub(crate) fn modified(evidence: &DateEvidence<'_, '_>) -> Option<Sourced<When>> {
    let read = |text: &str| When::parse(text).filter(|when| evidence.believes(*when));
    if let Some(when) = evidence
        .json_ld
        .text("dateModified")
        .and_then(|text| read(&text))
    {
        return Some(Sourced::new(when, Origin::JsonLd));
    }
    for name in MODIFIED {
        if let Some(when) = evidence.meta.get(name).and_then(read) {
            return Some(Sourced::new(
                when,
                if name.contains(':') {
                    Origin::OpenGraph
                } else {
                    Origin::Meta
                },
            ));
        }
    }
    evidence
        .microdata
        .get("dateModified")
        .and_then(read)
        .map(|when| Sourced::new(when, Origin::Microdata))
}

impl DateEvidence<'_, '_> {
    pub(crate) fn believes(&self, when: When) -> bool {
        believes(when, self.now)
    }
}

/// Not before the web, and not after tomorrow (somewhere it is tomorrow already).
pub(crate) fn believes(when: When, now: Timestamp) -> bool {
    let tomorrow: Date = Offset::UTC
        .to_datetime(now)
        .date()
        .tomorrow()
        .unwrap_or(Date::MAX);
    when.day() >= EARLIEST && when.day() <= tomorrow
}

/// `time` elements and lines of text that carry a date, near the headline.
fn in_page(evidence: &DateEvidence<'_, '_>) -> Option<Sourced<When>> {
    let DateEvidence {
        document,
        blocks,
        container,
        ..
    } = *evidence;
    let start = blocks.within(document, container).start;
    let from = blocks
        .list
        .get(start.saturating_sub(25))
        .map_or(1, |block| block.node);
    let mut updated = None;
    for node in from..document.end(container) {
        if document.tag(node) != Tag::Time {
            continue;
        }
        let written = document
            .attr(node, "datetime")
            .map(|value| value.into_owned())
            .filter(|value| !value.trim().is_empty());
        let Some(when) = written
            .as_deref()
            .and_then(When::parse)
            .or_else(|| find_in_words(&document.text(node)))
            .filter(|when| evidence.believes(*when))
        else {
            continue;
        };
        if blocks.roles_around(document, node).is_about_others() {
            continue;
        }
        let class = document.raw_attr(node, "class").unwrap_or("");
        let found = Sourced::new(when, Origin::Html);
        if class.contains("updated") && !class.contains("published") || class.contains("modified") {
            updated = updated.or(Some(found));
            continue;
        }
        return Some(found);
    }
    line_near_top(evidence)
        .map(|when| Sourced::new(when, Origin::Text))
        .or(updated)
}

/// Lines above the headline that may still belong to it.
const MAX_LINES_ABOVE: usize = 4;

/// Lines around the top of the article; what says that it is the date of
/// publication comes first, then what is nearest to the first line.
fn line_near_top(evidence: &DateEvidence<'_, '_>) -> Option<When> {
    let DateEvidence {
        document,
        blocks,
        container,
        ..
    } = *evidence;
    let range = blocks.within(document, container);
    let headline = blocks.list[..(range.start + 15).min(blocks.list.len())]
        .iter()
        .rposition(|block| block.kind == Kind::Heading(1));
    // A date well above the headline is that of the day, or of another article.
    let above = headline.map_or(0, |index| index.saturating_sub(MAX_LINES_ABOVE));
    let mut best: Option<(u8, usize, When)> = None;
    for (index, block) in blocks.list.iter().enumerate() {
        if block.roles.is_about_others() || block.size > 160 {
            continue;
        }
        let Some(when) = find_in_words(&block.text).filter(|when| evidence.believes(*when)) else {
            continue;
        };
        let rank = line_rank(
            block,
            index.checked_sub(1).map(|before| &blocks.list[before]),
        );
        let distance = index.abs_diff(range.start);
        let is_near = index < range.start + 15 && distance < 80;
        // Further away only a line that leaves no doubt counts, and after all others.
        if !is_near && (rank < 3 || block.link_density() > 0.5) {
            continue;
        }
        let rank = match is_near {
            true if index >= above => rank + 10,
            true => rank + 5,
            false => rank,
        };
        if best.is_none_or(|(known, far, _)| rank > known || rank == known && distance < far) {
            best = Some((rank, distance, when));
        }
    }
    best.map(|(_, _, when)| when)
}

/// How certainly a line has the date of publication.
fn line_rank(block: &Block, before: Option<&Block>) -> u8 {
    let label = before
        .filter(|before| before.size < 25)
        .map_or("", |before| before.text.as_str());
    let lower = format!("{label} {}", block.text).to_lowercase();
    let says_published = [
        "publish",
        "posted",
        "veröffentlicht",
        "publié",
        "publicado",
        "pubblicato",
        "geplaatst",
        "опубликован",
        "公開",
        "投稿",
        "发布",
        "發布",
    ]
    .iter()
    .any(|word| lower.contains(word));
    let says_updated = [
        "updat",
        "modif",
        "aktualisiert",
        "mis à jour",
        "actualizado",
        "aggiornato",
        "更新",
    ]
    .iter()
    .any(|word| lower.contains(word));
    match (says_published, says_updated) {
        (true, _) => 4,
        (false, true) => 1,
        (false, false) if block.roles.has(Roles::BYLINE) && block.size < 60 => 3,
        (false, false) => 2,
    }
}
