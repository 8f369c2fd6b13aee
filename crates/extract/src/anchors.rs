//! The links of a page with their role: in a headline, in a menu, to the next
//! page. For link discovery, not for text. Bounded; decides nothing.

use url::Url;

use crate::extract::{base_url, decode, parser_limits};
use crate::html::{self, Document, NodeId, Tag};
use crate::page::{Options, Page};

/// Links per page; later ones are left out.
const MAX_LINKS: usize = 3000;
/// Ancestors that are examined for the role of a link.
const MAX_ANCESTORS: usize = 40;
/// Nodes that are examined below a link: one that is never closed contains the page.
const MAX_DESCENDANTS: usize = 400;
/// Characters of a link's text.
const MAX_TEXT_CHARS: usize = 300;

/// A link of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Anchor {
    /// Absolute, `http` or `https`.
    pub url: String,
    /// The text of the link.
    pub text: String,
    /// In a heading, or around one.
    pub is_headline: bool,
    /// In an element that is one story of many.
    pub is_card: bool,
    /// In a menu, or in the foot of the page.
    pub is_navigation: bool,
    /// To the next page of the same list.
    pub is_next: bool,
    /// `rel` is `nofollow`, `ugc` or `sponsored`.
    pub is_nofollow: bool,
}

/// The links of a page, in document order. Never fails.
pub fn anchors(page: &Page<'_>, options: &Options<'_>) -> Vec<Anchor> {
    let (source, _) = decode(page, options);
    let document = html::parse(&source, &parser_limits(options), options.within_budget);
    let nodes = 1..document.len();
    let base = nodes
        .clone()
        .find(|node| document.tag(*node) == Tag::Base)
        .and_then(|node| document.attr(node, "href"));
    let Some(base) = base_url(page.url, base.as_deref().map(str::trim)) else {
        return Vec::new();
    };
    nodes
        .filter(|node| matches!(document.tag(*node), Tag::A | Tag::Area))
        .filter_map(|node| anchor(&document, node, &base))
        .take(MAX_LINKS)
        .collect()
}

fn anchor(document: &Document<'_>, node: NodeId, base: &Url) -> Option<Anchor> {
    let href = document.attr(node, "href")?;
    let href = href.trim();
    // A place on the same page.
    if href.is_empty() || href.starts_with('#') {
        return None;
    }
    let url = base.join(href).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let relation = document.attr(node, "rel").unwrap_or_default();
    let has_rel = |wanted: &str| {
        relation
            .split_ascii_whitespace()
            .any(|word| word.eq_ignore_ascii_case(wanted))
    };
    let mut anchor = Anchor {
        url: url.into(),
        text: match document.end(node) - node <= MAX_DESCENDANTS {
            true => document.text(node).chars().take(MAX_TEXT_CHARS).collect(),
            false => String::new(),
        },
        is_next: has_rel("next"),
        is_nofollow: has_rel("nofollow") || has_rel("ugc") || has_rel("sponsored"),
        ..Anchor::default()
    };
    place(document, node, &mut anchor);
    Some(anchor)
}

fn place(document: &Document<'_>, node: NodeId, anchor: &mut Anchor) {
    let below = node + 1..document.end(node).min(node + MAX_DESCENDANTS);
    anchor.is_headline = below.into_iter().any(|id| is_heading(document.tag(id)));
    let mut is_in_header = false;
    for above in document.ancestors(node).take(MAX_ANCESTORS) {
        match document.tag(above) {
            Tag::Nav | Tag::Footer => anchor.is_navigation = true,
            Tag::Header => is_in_header = true,
            Tag::Article => anchor.is_card = true,
            tag if is_heading(tag) => anchor.is_headline = true,
            _ => {}
        }
    }
    // Stories have headers of their own.
    anchor.is_navigation |= is_in_header && !anchor.is_card;
}

fn is_heading(tag: Tag) -> bool {
    matches!(
        tag,
        Tag::H1 | Tag::H2 | Tag::H3 | Tag::H4 | Tag::H5 | Tag::H6
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(html: &str) -> Vec<Anchor> {
        let page = Page {
            html: html.as_bytes(),
            url: "https://a.example/news/",
            charset: None,
            selectors: None,
            feed: None,
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        anchors(&page, &Options::default())
    }

    #[test]
    fn a_link_has_its_role() {
        let found = of("<header><a href=/>Home</a></header><nav><a href='../world'>World</a></nav>
            <article><header><h2><a href='story-1?a=1&amp;b=2'> One <b>story</b></a></h2></header></article>
            <a href=two><h3>Two</h3></a> <a href=?page=2 rel='Next nofollow'>Older</a>
            <footer><a href=//b.example/x>Elsewhere</a></footer>
            <a href='#top'>Up</a><a href='mailto:a@b.example'>Write</a><a href='javascript:void(0)'>Do</a><a>Nothing</a>");
        let described: Vec<String> = found
            .iter()
            .map(|anchor| {
                let marks = [
                    (anchor.is_headline, "headline"),
                    (anchor.is_card, "card"),
                    (anchor.is_navigation, "navigation"),
                    (anchor.is_next, "next"),
                    (anchor.is_nofollow, "nofollow"),
                ];
                let marks = marks.iter().filter(|(holds, _)| *holds);
                let marks: Vec<&str> = marks.map(|(_, name)| *name).collect();
                format!("{} [{}] {}", anchor.url, anchor.text, marks.join(" "))
            })
            .collect();
        assert_eq!(
            described,
            [
                "https://a.example/ [Home] navigation",
                "https://a.example/world [World] navigation",
                "https://a.example/news/story-1?a=1&b=2 [One story] headline card",
                "https://a.example/news/two [Two] headline",
                "https://a.example/news/?page=2 [Older] next nofollow",
                "https://b.example/x [Elsewhere] navigation",
            ]
        );
    }

    #[test]
    fn the_base_counts_and_the_number_is_bounded() {
        let links = "<a href=x>x</a>".repeat(MAX_LINKS + 10);
        let found = of(&format!("<base href='https://c.example/d/'>{links}"));
        assert_eq!(found.len(), MAX_LINKS);
        assert_eq!(found[0].url, "https://c.example/d/x");
    }
}
