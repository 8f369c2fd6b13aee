//! Meta tags, links and the title of a page: names folded to lower case, in
//! document order. Open Graph, Twitter cards, Dublin Core and the unnamed rest
//! are one list, distinguished by their prefix.

use crate::html::{Document, NodeId, Tag};
use crate::text::fold_whitespace;

/// Tags that are collected.
const MAX_TAGS: usize = 500;

/// The head of a page.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meta {
    tags: Vec<(String, String)>,
    links: Vec<(String, String)>,
    /// The text of the first `title`.
    pub(crate) title: Option<String>,
    /// The `lang` of the root.
    pub(crate) lang: Option<String>,
    /// The `base` that links are resolved against.
    pub(crate) base: Option<String>,
    /// `<html amp>` or `<html ⚡>`.
    pub(crate) amp: bool,
}

impl Meta {
    pub(crate) fn collect(document: &Document<'_>) -> Self {
        let mut meta = Self::default();
        for node in 1..document.len() {
            match document.tag(node) {
                Tag::Meta => meta.tag(document, node),
                Tag::Link => meta.link(document, node),
                Tag::Title if meta.title.is_none() => {
                    meta.title = Some(document.text(node)).filter(|title| !title.is_empty());
                }
                Tag::Base if meta.base.is_none() => {
                    meta.base = document
                        .attr(node, "href")
                        .map(|href| href.trim().to_owned());
                }
                Tag::Html => {
                    meta.amp = document
                        .attrs(node)
                        .any(|(name, _)| matches!(name, "amp" | "⚡"));
                    meta.lang = document
                        .attr(node, "lang")
                        .or_else(|| document.attr(node, "xml:lang"))
                        .map(|lang| lang.trim().to_owned())
                        .filter(|lang| !lang.is_empty());
                }
                Tag::Body if meta.lang.is_none() => {
                    meta.lang = document
                        .attr(node, "lang")
                        .map(|lang| lang.into_owned())
                        .filter(|lang| !lang.is_empty());
                }
                _ => {}
            }
        }
        meta
    }

    fn tag(&mut self, document: &Document<'_>, node: NodeId) {
        if self.tags.len() >= MAX_TAGS {
            return;
        }
        let (mut name, mut content) = (None, None);
        for (key, value) in document.attrs(node) {
            if key.eq_ignore_ascii_case("content") {
                content = content.or(Some(value));
            } else if ["property", "name", "itemprop", "http-equiv"]
                .iter()
                .any(|k| key.eq_ignore_ascii_case(k))
            {
                name = name.or(Some(value));
            }
        }
        let (Some(name), Some(content)) = (name, content) else {
            return;
        };
        let mut decoded = String::with_capacity(content.len());
        crate::html::decode_into(content, &mut decoded);
        // Sites that encode twice are common enough.
        if decoded.contains("&#") || decoded.contains("&amp;") || decoded.contains("&quot;") {
            let once = std::mem::take(&mut decoded);
            crate::html::decode_into(&once, &mut decoded);
        }
        let content = fold_whitespace(&decoded);
        if !content.is_empty() {
            self.tags.push((name.trim().to_ascii_lowercase(), content));
        }
    }

    fn link(&mut self, document: &Document<'_>, node: NodeId) {
        if self.links.len() < MAX_TAGS
            && let (Some(rel), Some(href)) =
                (document.attr(node, "rel"), document.attr(node, "href"))
        {
            self.links
                .push((rel.to_ascii_lowercase(), href.trim().to_owned()));
        }
    }

    /// The first tag of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.tags
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, content)| content.as_str())
    }

    /// The first tag that any of the names has, in the order of the names.
    pub(crate) fn first(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.tags
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, content)| content.as_str())
    }

    pub(crate) fn link_to(&self, rel: &str) -> Option<&str> {
        self.links
            .iter()
            .find(|(rels, _)| rels.split_ascii_whitespace().any(|r| r == rel))
            .map(|(_, href)| href.as_str())
    }
}
