//! What was wrong with a document and how it was repaired, with the place.
//! Never stops anything: a document with defects still gives its items.

use std::fmt;

use serde::Serialize;

/// Defects that are listed one by one; more of them are only counted.
pub const MAX_DEFECTS: usize = 100;

/// One repair, and where it was needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Defect {
    pub kind: DefectKind,
    /// Byte offset into the document after decompression and decoding.
    pub offset: usize,
    /// Line of that offset, counted from 1.
    pub line: usize,
    pub detail: String,
}

/// The classes of damage that are met in the wild.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DefectKind {
    /// Something stood before the XML declaration or the root element.
    LeadingJunk,
    /// The declared encoding is not the one of the bytes.
    WrongEncoding,
    /// Bytes that mean nothing in the encoding became U+FFFD.
    InvalidBytes,
    /// The compressed stream ended early or was damaged.
    DamagedGzip,
    /// A namespace prefix was used without a declaration.
    UndeclaredPrefix,
    /// The root element is missing or unknown.
    NoRoot,
    /// A `<` or `&` that starts no markup was read as text.
    StrayMarkup,
    /// A tag, comment, CDATA section or attribute value was never closed.
    UnclosedMarkup,
    /// An end tag without its start tag, or the other way round.
    MismatchedTag,
    /// The document ends inside an element.
    Truncated,
    /// Elements are nested more deeply than is reasonable.
    TooDeep,
    /// A date in no known form, or one that can't exist.
    BadDate,
    /// A date that can't be the date of this item (year 1, or the future).
    ImplausibleDate,
    /// A link that is relative, without anything to resolve it against.
    RelativeLink,
    /// An item without anything that could be its URL.
    NoLink,
    /// A member of a JSON Feed has another type than the format says.
    WrongType,
    /// The document is a feed, and has no items.
    NoItems,
    /// More entries than one document may have; the rest was left out.
    TooMany,
    /// A sitemap entry with an invalid location.
    BadLocation,
}

impl DefectKind {
    /// Says that a part of the document is missing: the first is listed however many
    /// others came before.
    fn is_final(self) -> bool {
        matches!(self, Self::Truncated | Self::TooMany | Self::NoItems)
    }
}

impl fmt::Display for DefectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LeadingJunk => "leading junk",
            Self::WrongEncoding => "wrong encoding",
            Self::InvalidBytes => "invalid bytes",
            Self::DamagedGzip => "damaged gzip",
            Self::UndeclaredPrefix => "undeclared prefix",
            Self::NoRoot => "no root",
            Self::StrayMarkup => "stray markup",
            Self::UnclosedMarkup => "unclosed markup",
            Self::MismatchedTag => "mismatched tag",
            Self::Truncated => "truncated",
            Self::TooDeep => "too deep",
            Self::BadDate => "bad date",
            Self::ImplausibleDate => "implausible date",
            Self::RelativeLink => "relative link",
            Self::NoLink => "no link",
            Self::WrongType => "wrong type",
            Self::NoItems => "no items",
            Self::TooMany => "too many",
            Self::BadLocation => "bad location",
        })
    }
}

/// The defects of one document, in the order they were met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Defects {
    list: Vec<Defect>,
    #[serde(skip)]
    uncounted: usize,
    /// Where the line count stands: (offset, line).
    #[serde(skip)]
    counted: (usize, usize),
}

impl Defects {
    /// Notes a defect at an offset of `text`.
    pub(crate) fn note(&mut self, kind: DefectKind, text: &str, offset: usize, detail: &str) {
        let is_listed = kind.is_final() && !self.contains(kind);
        if self.list.len() >= MAX_DEFECTS && !is_listed {
            self.uncounted += 1;
            return;
        }
        let offset = offset.min(text.len());
        let line = self.line_of(text.as_bytes(), offset);
        self.list.push(Defect {
            kind,
            offset,
            line,
            detail: shortened(detail),
        });
    }

    /// Notes a defect of the document as a whole.
    pub(crate) fn note_whole(&mut self, kind: DefectKind, detail: &str) {
        self.note(kind, "", 0, detail);
    }

    /// Notes the items that were dropped, if any.
    pub(crate) fn note_dropped(&mut self, count: usize) {
        if count > 0 {
            let detail = format!("items without link, id and title: {count}");
            self.note_whole(DefectKind::NoLink, &detail);
        }
    }

    fn line_of(&mut self, text: &[u8], offset: usize) -> usize {
        let (mut at, mut line) = self.counted;
        if offset < at || line == 0 {
            (at, line) = (0, 1);
        }
        line += memchr::memchr_iter(b'\n', &text[at..offset]).count();
        self.counted = (offset, line);
        line
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Defect> {
        self.list.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are, those beyond [`MAX_DEFECTS`] included.
    pub fn len(&self) -> usize {
        self.list.len() + self.uncounted
    }

    pub fn contains(&self, kind: DefectKind) -> bool {
        self.list.iter().any(|defect| defect.kind == kind)
    }
}

impl<'d> IntoIterator for &'d Defects {
    type Item = &'d Defect;
    type IntoIter = std::slice::Iter<'d, Defect>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

fn shortened(detail: &str) -> String {
    const LIMIT: usize = 80;
    match detail.char_indices().nth(LIMIT) {
        None => detail.to_owned(),
        Some((end, _)) => format!("{}…", &detail[..end]),
    }
}
