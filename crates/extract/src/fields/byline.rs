//! Who wrote it, as the page shows it: links to authors, elements that call
//! themselves a byline, lines that start with "By", a name beside the date. Only
//! reads; precedence is decided in `author`.

use crate::blocks::{Blocks, Kind};
use crate::dates::find_in_words;
use crate::html::{Document, NodeId, Tag};
use crate::roles::Roles;

/// Links that lead to an author, elements that call themselves byline or
/// author, and lines that start with "By".
pub(super) fn in_page(document: &Document<'_>, blocks: &Blocks, container: NodeId) -> Vec<String> {
    if let Some(name) = linked(document, blocks) {
        return vec![name];
    }
    let start = blocks.within(document, container).start;
    let near = |index: usize| index.abs_diff(start) < 40;
    // What calls itself author, then what starts with "By".
    let named = blocks
        .list
        .iter()
        .enumerate()
        .filter(|(_, block)| {
            (block.size < 80 || block.size < 160 && block.text.contains(WRITTEN_BY))
                && !block.roles.is_about_others()
                && block.roles.has(Roles::BYLINE | Roles::BIO)
        })
        .filter_map(|(index, block)| {
            after_by(&block.text)
                .or_else(|| {
                    block
                        .roles
                        .has(Roles::BIO)
                        .then(|| as_person(&block.text))
                        .flatten()
                })
                .map(|name| (index, name))
        })
        .min_by_key(|(index, _)| index.abs_diff(start));
    if let Some((_, name)) = named {
        return vec![name];
    }
    let lines = blocks.list.iter().enumerate().filter(|(index, block)| {
        near(*index) && block.size <= 120 && !block.roles.is_about_others()
    });
    for (index, block) in lines {
        if let Some(name) = after_by(&block.text) {
            return vec![name];
        }
        if is_label(&block.text)
            && let Some(name) = blocks
                .list
                .get(index + 1)
                .filter(|next| next.size < 40)
                .and_then(|next| after_by(&format!("by {}", next.text)))
        {
            return vec![name];
        }
    }
    beside_a_date(blocks, start)
        .or_else(|| at_the_end(blocks))
        .into_iter()
        .collect()
}

/// "By" on a line of its own.
fn is_label(text: &str) -> bool {
    matches!(
        text.trim_end_matches(':').to_lowercase().as_str(),
        "by" | "written by" | "article by" | "author" | "posted by" | "von" | "par" | "por"
    )
}

/// The person behind a label anywhere, if it is the only one: a box under the text.
fn at_the_end(blocks: &Blocks) -> Option<String> {
    let mut names: Vec<String> = blocks
        .list
        .windows(2)
        .filter(|pair| is_label(&pair[0].text) && !pair[0].roles.is_about_others())
        .filter_map(|pair| as_person(&pair[1].text))
        .collect();
    names.dedup();
    match names.len() {
        1 => names.pop(),
        _ => None,
    }
}

/// The first author that the page links to; beside the text only if no other is there.
fn linked(document: &Document<'_>, blocks: &Blocks) -> Option<String> {
    let (mut by_rel, mut by_address, mut beside) = (Vec::new(), Vec::new(), Vec::new());
    for node in 1..document.len() {
        if document.tag(node) != Tag::A {
            continue;
        }
        let has_rel = document.raw_attr(node, "rel").is_some_and(|rel| {
            rel.split_ascii_whitespace()
                .any(|rel| rel.eq_ignore_ascii_case("author"))
        });
        let href = document.raw_attr(node, "href").unwrap_or_default();
        if !has_rel && !leads_to_author(href) {
            continue;
        }
        let text = document.text(node);
        let Some(name) = as_person(&text).or_else(|| as_pen_name(&text, href)) else {
            continue;
        };
        let roles = blocks.roles_around(document, node);
        match (roles.is_about_others(), has_rel) {
            (false, true) => by_rel.push(name),
            (false, false) => by_address.push(name),
            (true, _) if roles.is_only_beside() => beside.push(name),
            (true, _) => {}
        }
    }
    beside.dedup();
    if beside.len() > 1 {
        beside.clear();
    }
    by_rel.into_iter().chain(by_address).chain(beside).next()
}

/// A name on a line of its own between the headline and the text, next to a
/// date: a byline without a label.
fn beside_a_date(blocks: &Blocks, start: usize) -> Option<String> {
    let list = &blocks.list;
    let from = start.saturating_sub(MAX_BLOCKS_FROM_HEADLINE);
    let headline = (from..(start + MAX_BLOCKS_FROM_HEADLINE).min(list.len()))
        .find(|index| list[*index].kind == Kind::Heading(1))?;
    let is_date = |index: usize| {
        list.get(index)
            .is_some_and(|block| block.size < 60 && find_in_words(&block.text).is_some())
    };
    (headline + 1..(headline + MAX_BLOCKS_FROM_HEADLINE).min(list.len()))
        .take_while(|index| list[*index].size < 160)
        .filter(|index| !list[*index].roles.is_about_others())
        .find_map(|index| {
            let near = is_date(index + 1) || is_date(index + 2) || is_date(index - 1);
            near.then(|| as_person(&list[index].text)).flatten()
        })
}

/// Blocks between the headline and the text, at most.
const MAX_BLOCKS_FROM_HEADLINE: usize = 12;

fn leads_to_author(href: &str) -> bool {
    let path = href.split(['?', '#']).next().unwrap_or(href);
    let mut parts = path.split('/').filter(|part| !part.is_empty()).rev();
    // The name is the last part; what it is stands before it.
    parts.next();
    parts.next().is_some_and(|kind| {
        matches!(
            kind.to_ascii_lowercase().as_str(),
            "author"
                | "authors"
                | "autor"
                | "autoren"
                | "auteur"
                | "people"
                | "profile"
                | "contributors"
                | "contributor"
                | "by"
                | "staff"
                | "writers"
                | "journalist"
                | "reporter"
                | "team"
        )
    })
}

/// A name that is not that of a person ("Yeastie", "The Oven Team"), if the address of the author has a word of it.
fn as_pen_name(text: &str, href: &str) -> Option<String> {
    let name = text.trim();
    let address = href
        .trim_end_matches('/')
        .rsplit('/')
        .next()?
        .to_lowercase();
    let is_in_address = |word: &str| word.len() >= 3 && address.contains(&word.to_lowercase());
    let words: Vec<&str> = name.split_whitespace().collect();
    ((1..=4).contains(&words.len()) && words.iter().any(|word| is_in_address(word)))
        .then(|| name.to_owned())
}

/// A line that is nothing but the name of a person.
fn as_person(text: &str) -> Option<String> {
    let name = after_by(text).unwrap_or_else(|| text.trim().to_owned());
    let words: Vec<&str> = name.split_whitespace().collect();
    let looks = (2..=4).contains(&words.len())
        && words.iter().all(|word| {
            word.chars().next().is_some_and(|c| c.is_alphabetic())
                && word
                    .chars()
                    .all(|c| c.is_alphabetic() || matches!(c, '.' | '-' | '\'' | '’'))
        })
        && words
            .iter()
            .filter(|word| word.chars().next().is_some_and(|c| !c.is_lowercase()))
            .count()
            * 2
            > words.len();
    let is_label = [
        "read",
        "view",
        "more",
        "about",
        "all",
        "share",
        "follow",
        "subscribe",
        "contact",
        "posts",
        "meet",
        "our",
        "the",
        "latest",
        "editorial",
        "written",
        "author",
    ]
    .contains(
        &words
            .first()
            .map(|word| word.to_lowercase())
            .unwrap_or_default()
            .as_str(),
    ) || words.last().is_some_and(|word| {
        matches!(
            word.to_lowercase().as_str(),
            "author" | "posts" | "profile" | "bio" | "articles" | "more"
        )
    });
    (looks && !is_label).then_some(name)
}

/// "This post was written by Jane Doe, who …"
const WRITTEN_BY: &str = " was written by ";

/// The name in `By Jane Doe | 3 min read`.
fn after_by(text: &str) -> Option<String> {
    const STARTS: [&str; 16] = [
        "by ",
        "by:",
        "written by ",
        "written by:",
        "posted by ",
        "posted by:",
        "author:",
        "published by ",
        "von ",
        "par ",
        "por ",
        "di ",
        "door ",
        "av ",
        "autor: ",
        "autor ",
    ];
    // "By" and the name in elements of their own.
    if let Some(name) = text.strip_prefix("By")
        && name.starts_with(char::is_uppercase)
    {
        return after_by(&format!("by {name}"));
    }
    let lower = text.to_lowercase();
    let found = STARTS
        .iter()
        .find(|start| lower.starts_with(**start))
        .map(|start| start.len())
        .or_else(|| lower.find(WRITTEN_BY).map(|at| at + WRITTEN_BY.len()))?;
    let rest = text.get(found..)?;
    let end = rest
        .find(['|', '•', '·', '—', '–', '\n', '/', '(', ',', ';', ':'])
        .unwrap_or(rest.len());
    let mut name = rest[..end].trim();
    for stop in [
        " on ",
        " in ",
        " updated",
        " published",
        " posted",
        " - ",
        " am ",
        " le ",
        " el ",
        " at ",
    ] {
        if let Some(at) = name.to_lowercase().find(stop) {
            name = name.get(..at).unwrap_or(name).trim();
        }
    }
    let words = name.split_whitespace().count();
    let capital = name.chars().next().is_some_and(|c| !c.is_lowercase());
    ((1..=4).contains(&words) && capital && !name.chars().any(|c| c.is_ascii_digit()))
        .then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::after_by;

    #[test]
    fn a_byline_gives_a_name() {
        for (line, name) in [
            ("By Jane Doe | 3 min read", Some("Jane Doe")),
            ("Written by Jane Doe on August 3, 2024", Some("Jane Doe")),
            ("By clicking you agree to our terms", None),
            ("Written by:Jane Doe", Some("Jane Doe")),
            ("ByJane Doe", Some("Jane Doe")),
            ("Byron Doe", None),
            (
                "This post was written by Jane Doe, baker in Ulm.",
                Some("Jane Doe"),
            ),
            ("Von Max Mustermann", Some("Max Mustermann")),
        ] {
            assert_eq!(after_by(line).as_deref(), name, "{line}");
        }
    }
}
