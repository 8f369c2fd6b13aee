//! Kept blocks to text: paragraphs with a blank line between them, items and
//! cells on lines of their own, NFC; the same as Markdown on request; the
//! links and images among them. Decides nothing.

use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};
use url::Url;

use crate::article::{Image, Link};
use crate::blocks::{Block, Kind};
use crate::fields::about::resolve;
use crate::html::{Document, NodeId, Tag};
use crate::text::fold_whitespace;

const MAX_LINKS: usize = 500;
const MAX_IMAGES: usize = 100;

/// Plain text.
pub(crate) fn text(blocks: &[&Block]) -> String {
    let mut out = String::with_capacity(blocks.iter().map(|block| block.text.len() + 2).sum());
    let mut last = None;
    for block in blocks {
        if let Some(last) = last {
            out.push_str(if is_line(last) && is_line(block.kind) {
                "\n"
            } else {
                "\n\n"
            });
        }
        out.push_str(&block.text);
        last = Some(block.kind);
    }
    normalised(out)
}

/// Markdown of the same blocks.
pub(crate) fn markdown(blocks: &[&Block]) -> String {
    let mut out = String::new();
    let mut last = None;
    for block in blocks {
        if let Some(last) = last {
            out.push_str(if is_line(last) && is_line(block.kind) {
                "\n"
            } else {
                "\n\n"
            });
        }
        let line = block.text.replace('\n', "  \n");
        match block.kind {
            Kind::Heading(level) => {
                out.push_str(&"#".repeat(usize::from(level)));
                out.push(' ');
                out.push_str(&block.text.replace('\n', " "));
            }
            Kind::Item => {
                out.push_str("- ");
                out.push_str(&block.text.replace('\n', "  \n  "));
            }
            Kind::Quote => {
                out.push_str("> ");
                out.push_str(&block.text.replace('\n', "\n> "));
            }
            Kind::Code => {
                out.push_str("```\n");
                out.push_str(&block.text);
                out.push_str("\n```");
            }
            Kind::Paragraph | Kind::Cell | Kind::Bare => out.push_str(&line),
        }
        last = Some(block.kind);
    }
    normalised(out)
}

fn is_line(kind: Kind) -> bool {
    matches!(kind, Kind::Item | Kind::Cell)
}

fn normalised(text: String) -> String {
    if is_nfc_quick(text.chars()) == IsNormalized::Yes {
        text
    } else {
        text.nfc().collect()
    }
}

/// The start of a text, at most `most` characters, cut at a word.
pub(crate) fn excerpt(text: &str, most: usize) -> String {
    let folded = fold_whitespace(
        text.get(
            ..text
                .char_indices()
                .nth(most * 2)
                .map_or(text.len(), |(at, _)| at),
        )
        .unwrap_or(text),
    );
    if folded.chars().count() <= most {
        return folded;
    }
    let end = folded
        .char_indices()
        .nth(most - 1)
        .map_or(folded.len(), |(at, _)| at);
    let head = &folded[..end];
    // Scripts without spaces are cut anywhere.
    let cut = head.rfind(' ').filter(|at| *at > end / 2).unwrap_or(end);
    format!(
        "{}…",
        head[..cut].trim_end_matches([' ', ',', ';', ':', '-', '–'])
    )
}

/// Links of the kept blocks.
pub(crate) fn links(document: &Document<'_>, blocks: &[&Block], base: Option<&Url>) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    for block in blocks.iter().filter(|block| block.link_size > 0) {
        let around = document
            .ancestors(block.first)
            .find(|id| document.tag(*id) == Tag::A);
        for node in around.into_iter().chain(block.node + 1..=block.last) {
            if links.len() >= MAX_LINKS {
                return links;
            }
            if document.tag(node) != Tag::A {
                continue;
            }
            let Some(url) = document
                .attr(node, "href")
                .filter(|href| !href.starts_with('#'))
                .and_then(|href| resolve(base, &href))
            else {
                continue;
            };
            let text = document.text(node);
            if links
                .last()
                .is_none_or(|last| last.url != url || last.text != text)
            {
                links.push(Link { url, text });
            }
        }
    }
    links
}

/// Images inside the element that holds the article.
pub(crate) fn images(document: &Document<'_>, container: NodeId, base: Option<&Url>) -> Vec<Image> {
    let mut images: Vec<Image> = Vec::new();
    for node in container..document.end(container) {
        if document.tag(node) != Tag::Img || images.len() >= MAX_IMAGES {
            continue;
        }
        // The address that a browser would load last: lazy images keep it aside.
        let source = ["data-src", "data-lazy-src", "data-original", "src"]
            .into_iter()
            .filter_map(|name| document.attr(node, name))
            .find(|value| !value.trim_start().starts_with("data:") && !value.trim().is_empty());
        let is_pixel = document
            .raw_attr(node, "width")
            .is_some_and(|width| matches!(width, "0" | "1"));
        if let Some(url) = source.and_then(|source| resolve(base, &source))
            && !is_pixel
            && !images.iter().any(|image| image.url == url)
        {
            let alt = document
                .attr(node, "alt")
                .map(|alt| fold_whitespace(&alt))
                .unwrap_or_default();
            images.push(Image { url, alt });
        }
    }
    images
}

#[cfg(test)]
mod tests {
    use super::excerpt;

    #[test]
    fn excerpts_end_at_a_word() {
        assert_eq!(excerpt("short enough", 200), "short enough");
        assert_eq!(excerpt("one two three four five", 12), "one two…");
        assert_eq!(excerpt("一二三四五六七八九十", 5), "一二三四…");
    }
}
