//! Microdata: the `itemprop` values of a page, of the article item if there is
//! one. Nested items (the author, the publisher) are read as their names.

use crate::html::{Document, NodeId, Tag};
use crate::text::fold_whitespace;

use super::json_ld::article_rank;

/// The properties of the article item.
#[derive(Debug, Clone, Default)]
pub(crate) struct Microdata {
    properties: Vec<(String, String)>,
    /// The type of the item, without its address.
    pub(crate) kind: Option<String>,
}

impl Microdata {
    pub(crate) fn collect(document: &Document<'_>) -> Self {
        let item = article_item(document);
        let (from, to) = item.as_ref().map_or((1, document.len()), |(node, _)| {
            (*node + 1, document.end(*node))
        });
        let mut found = Self {
            properties: Vec::new(),
            kind: item.map(|(_, kind)| kind),
        };
        // Without an article item any property might belong to anything.
        if found.kind.is_none() {
            return found;
        }
        let mut node = from;
        while node < to && found.properties.len() < 200 {
            let next = node + 1;
            if document.tag(node) != Tag::Text
                && let Some(names) = document.raw_attr(node, "itemprop")
            {
                let nested = document.raw_attr(node, "itemscope").is_some();
                // A comment is an item of its own; its author is not ours.
                if nested && matches!(names, "comment" | "review" | "hasPart") {
                    node = document.end(node);
                    continue;
                }
                if names != "articleBody"
                    && let Some(value) = value(document, node, nested)
                {
                    for name in names.split_ascii_whitespace() {
                        found.properties.push((name.to_owned(), value.clone()));
                    }
                }
                if nested {
                    node = document.end(node);
                    continue;
                }
            }
            node = next;
        }
        found
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.properties
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.properties
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

fn article_item(document: &Document<'_>) -> Option<(NodeId, String)> {
    let mut best: Option<(u8, NodeId, String)> = None;
    for node in 1..document.len() {
        if document.tag(node) == Tag::Text {
            continue;
        }
        let Some(kind) = document.raw_attr(node, "itemtype") else {
            continue;
        };
        let kind = kind.trim().rsplit('/').next().unwrap_or(kind);
        let rank = article_rank(kind);
        if rank > best.as_ref().map_or(0, |(rank, _, _)| *rank) {
            best = Some((rank, node, kind.to_owned()));
        }
    }
    best.map(|(_, node, kind)| (node, kind))
}

fn value(document: &Document<'_>, node: NodeId, nested: bool) -> Option<String> {
    if nested {
        let inner = (node + 1..document.end(node)).find(|id| {
            document.tag(*id) != Tag::Text
                && document
                    .raw_attr(*id, "itemprop")
                    .is_some_and(|name| matches!(name, "name" | "url"))
        });
        if let Some(inner) = inner {
            return value(document, inner, false);
        }
    }
    let attribute = match document.tag(node) {
        Tag::Meta => "content",
        Tag::A | Tag::Link => "href",
        Tag::Img | Tag::Iframe | Tag::Source | Tag::Video | Tag::Audio => "src",
        Tag::Time => "datetime",
        _ => "content",
    };
    let by_attribute = document
        .attr(node, attribute)
        .map(|value| fold_whitespace(&value));
    // The name of an author is often a link: its text is meant.
    let is_name_link = document.tag(node) == Tag::A
        && document
            .raw_attr(node, "itemprop")
            .is_some_and(|name| matches!(name, "name" | "author"));
    by_attribute
        .filter(|_| !is_name_link)
        .or_else(|| Some(document.text(node)))
        .filter(|value| !value.is_empty())
}
