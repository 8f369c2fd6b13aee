//! The entries of a sitemap, and what is counted over all of them: the bound
//! on their number, and whether their `lastmod` can be believed.

use std::collections::HashMap;
use std::ops::ControlFlow;

use jiff::Timestamp;
use serde::Serialize;
use url::Url;

use super::{MAX_ENTRIES, Sitemap, SitemapKind, is_location};
use crate::defect::{DefectKind, Defects};
use crate::link;

/// A page, or another sitemap.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Entry {
    pub url: String,
    pub lastmod: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub news: Option<Box<News>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub videos: Vec<Video>,
    /// The page in other languages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternates: Vec<Alternate>,
}

impl Entry {
    pub(super) fn at(url: String) -> Self {
        Self {
            url,
            ..Self::default()
        }
    }
}

/// The news extension.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct News {
    pub title: Option<String>,
    pub publication: Option<String>,
    pub language: Option<String>,
    pub published: Option<Timestamp>,
}

/// The video extension.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Video {
    pub title: Option<String>,
    pub url: Option<String>,
    pub thumbnail: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alternate {
    pub language: String,
    pub url: String,
}

/// In files with fewer entries, equal dates prove nothing.
const TOO_FEW_TO_JUDGE: usize = 10;

/// Checks entries and hands them on.
pub(super) struct Collector<'c> {
    base: Option<&'c Url>,
    each: &'c mut dyn FnMut(Entry) -> ControlFlow<()>,
    count: usize,
    /// How often each `lastmod` occurs.
    lastmods: HashMap<Timestamp, usize>,
    pub(super) is_full: bool,
}

impl<'c> Collector<'c> {
    pub(super) fn new(
        base: Option<&'c Url>,
        each: &'c mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Self {
        Self {
            base,
            each,
            count: 0,
            lastmods: HashMap::new(),
            is_full: false,
        }
    }

    /// An address of the sitemap, made absolute; `None` if it can't be one.
    pub(super) fn location(&self, raw: &str) -> Option<String> {
        let url = link::resolve(self.base, raw);
        is_location(&url).then_some(url)
    }

    pub(super) fn push(&mut self, entry: Entry) -> ControlFlow<()> {
        if self.count >= MAX_ENTRIES {
            self.is_full = true;
            return ControlFlow::Break(());
        }
        self.count += 1;
        if let Some(lastmod) = entry.lastmod {
            *self.lastmods.entry(lastmod).or_default() += 1;
        }
        (self.each)(entry)
    }

    pub(super) fn finish(self, kind: SitemapKind, mut defects: Defects) -> Sitemap {
        if self.is_full {
            let detail = format!("only the first {MAX_ENTRIES} entries are read");
            defects.note_whole(DefectKind::TooMany, &detail);
        }
        if self.count == 0 && !defects.contains(DefectKind::NoItems) {
            defects.note_whole(DefectKind::NoItems, "no location");
        }
        Sitemap {
            kind,
            entries: Vec::new(),
            lastmod_is_trusted: is_trusted(&self.lastmods, self.count),
            defects,
        }
    }
}

/// More than 95 % with one `lastmod` is a build time and not a change.
fn is_trusted(lastmods: &HashMap<Timestamp, usize>, count: usize) -> bool {
    let most = lastmods.values().max().copied().unwrap_or(0);
    count < TOO_FEW_TO_JUDGE || most * 100 <= count * 95
}
