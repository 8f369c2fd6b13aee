//! Who wrote it: names from structured data, meta tags, bylines; cleaned of
//! "By", titles and addresses, split where several are named. The name of the
//! site is no author when there is a better one.

use crate::blocks::{Blocks, Kind};
use crate::html::{Document, NodeId, Tag};
use crate::provenance::{Origin, Sourced};
use crate::roles::Roles;
use crate::structured::{JsonLd, Meta, Microdata};
use crate::text::letters;
use crate::when::find_in_words;

/// Names longer than this are sentences.
const LONGEST: usize = 60;
const MOST: usize = 12;

pub(crate) fn find(
    document: &Document<'_>,
    blocks: &Blocks,
    container: NodeId,
    json_ld: &JsonLd,
    meta: &Meta,
    microdata: &Microdata,
    site: Option<&str>,
) -> Option<Sourced<Vec<String>>> {
    let site = site.map(letters);
    let names = |raw: Vec<String>, origin: Origin| {
        let mut names: Vec<String> = Vec::new();
        for name in raw.iter().flat_map(|raw| split(raw)) {
            if !names.iter().any(|known| letters(known) == letters(&name)) && names.len() < MOST {
                names.push(name);
            }
        }
        (!names.is_empty()).then(|| Sourced::new(names, origin))
    };
    let is_site = |found: &Sourced<Vec<String>>| {
        found.value.len() == 1
            && site
                .as_ref()
                .is_some_and(|site| *site == letters(&found.value[0]))
    };
    let mut claims: Vec<Sourced<Vec<String>>> = Vec::new();
    claims.extend(names(json_ld.texts("author"), Origin::JsonLd));
    let metas = [
        "author",
        "article:author_name",
        "parsely-author",
        "sailthru.author",
        "byl",
        "dc.creator",
        "dcterms.creator",
        "dc.contributor",
        "citation_author",
        "article:author",
        "og:article:author",
        "twitter:creator:name",
    ];
    for name in metas {
        let origin = match name {
            _ if name.starts_with("dc") => Origin::DublinCore,
            _ if name.contains("article:") => Origin::OpenGraph,
            _ => Origin::Meta,
        };
        claims.extend(names(meta.all(name).map(str::to_owned).collect(), origin));
    }
    claims.extend(names(labelled(meta), Origin::Twitter));
    claims.extend(names(
        microdata.all("author").map(str::to_owned).collect(),
        Origin::Microdata,
    ));
    if let Some(found) = claims.iter().find(|found| !is_site(found)) {
        return Some(found.clone());
    }
    if let Some(found) =
        names(in_page(document, blocks, container), Origin::Html).filter(|found| !is_site(found))
    {
        return Some(found);
    }
    // Better the name of the site than none: many sites sign as themselves.
    claims.into_iter().next()
}

/// The names that structured data and meta tags give, before the page is read.
pub(crate) fn declared(json_ld: &JsonLd, meta: &Meta, microdata: &Microdata) -> Vec<String> {
    let metas = ["author", "dc.creator", "parsely-author"]
        .into_iter()
        .filter_map(|name| meta.get(name))
        .map(str::to_owned);
    json_ld
        .texts("author")
        .into_iter()
        .chain(metas)
        .chain(labelled(meta))
        .chain(microdata.all("author").map(str::to_owned))
        .flat_map(|raw| split(&raw))
        .take(MOST)
        .collect()
}

/// `twitter:label1 = Written by`, `twitter:data1 = Jane Doe`.
fn labelled(meta: &Meta) -> Vec<String> {
    [
        ("twitter:label1", "twitter:data1"),
        ("twitter:label2", "twitter:data2"),
    ]
    .into_iter()
    .filter(|(label, _)| {
        meta.get(label).is_some_and(|label| {
            matches!(
                label.to_lowercase().as_str(),
                "written by"
                    | "author"
                    | "verfasst von"
                    | "geschrieben von"
                    | "écrit par"
                    | "escrito por"
                    | "by"
            )
        })
    })
    .filter_map(|(_, data)| meta.get(data).map(str::to_owned))
    .collect()
}

/// Links that lead to an author, elements that call themselves byline or
/// author, and lines that start with "By".
fn in_page(document: &Document<'_>, blocks: &Blocks, container: NodeId) -> Vec<String> {
    let mut linked = Vec::new();
    let mut addressed = Vec::new();
    for node in 1..document.len() {
        if document.tag(node) != Tag::A {
            continue;
        }
        let by_rel = document.raw_attr(node, "rel").is_some_and(|rel| {
            rel.split_ascii_whitespace()
                .any(|rel| rel.eq_ignore_ascii_case("author"))
        });
        let by_address = !by_rel && document.raw_attr(node, "href").is_some_and(leads_to_author);
        if !by_rel && !by_address || blocks.roles_around(document, node).is_about_others() {
            continue;
        }
        if let Some(name) = as_person(&document.text(node)) {
            if by_rel {
                linked.push(name);
            } else {
                addressed.push(name);
            }
        }
    }
    if let Some(name) = linked.into_iter().chain(addressed).next() {
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
            block.size < 80
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
        // "By" on a line of its own.
        let is_label = matches!(
            block.text.trim_end_matches(':').to_lowercase().as_str(),
            "by" | "written by" | "author" | "posted by" | "von" | "par" | "por"
        );
        if is_label
            && let Some(name) = blocks
                .list
                .get(index + 1)
                .and_then(|next| as_person(&next.text))
        {
            return vec![name];
        }
    }
    beside_a_date(blocks, start).into_iter().collect()
}

/// A name on a line of its own between the headline and the text, next to a
/// date: a byline without a label.
fn beside_a_date(blocks: &Blocks, start: usize) -> Option<String> {
    let list = &blocks.list;
    let from = start.saturating_sub(FROM_HEADLINE);
    let headline = (from..(start + FROM_HEADLINE).min(list.len()))
        .find(|index| list[*index].kind == Kind::Heading(1))?;
    let is_date = |index: usize| {
        list.get(index)
            .is_some_and(|block| block.size < 60 && find_in_words(&block.text).is_some())
    };
    (headline + 1..(headline + FROM_HEADLINE).min(list.len()))
        .take_while(|index| list[*index].size < 160)
        .filter(|index| !list[*index].roles.is_about_others())
        .find_map(|index| {
            let near = is_date(index + 1) || is_date(index + 2) || is_date(index - 1);
            near.then(|| as_person(&list[index].text)).flatten()
        })
}

/// Blocks between the headline and the text, at most.
const FROM_HEADLINE: usize = 12;

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

/// The names in one line.
pub(crate) fn split(raw: &str) -> Vec<String> {
    let mut text = raw.trim();
    if text.contains("://")
        || text.starts_with('/')
        || is_of_others(text)
        || text.starts_with("www.")
        || text.contains('@') && !text.contains(' ')
    {
        return Vec::new();
    }
    for start in [
        "by ",
        "By ",
        "BY ",
        "von ",
        "Von ",
        "par ",
        "Par ",
        "por ",
        "Por ",
        "Written by ",
        "written by ",
        "Posted by ",
        "Author: ",
        "By: ",
    ] {
        if let Some(rest) = text.strip_prefix(start) {
            text = rest.trim();
        }
    }
    text.split([';', '|', '、', '\n'])
        .flat_map(|part| part.split(" and "))
        .flat_map(|part| part.split(" & "))
        .flat_map(|part| part.split(" und "))
        .flat_map(|part| part.split(" et "))
        .flat_map(split_commas)
        .map(|name| {
            name.trim()
                .trim_matches([',', '.', ':', '-'])
                .trim()
                .trim_start_matches('@')
        })
        .filter(|name| is_name(name))
        .map(str::to_owned)
        .collect()
}

/// Who changed or checked it did not write it.
fn is_of_others(line: &str) -> bool {
    let lower = line.to_lowercase();
    [
        "updated by ",
        "reviewed by ",
        "edited by ",
        "fact checked by ",
        "medically reviewed",
    ]
    .iter()
    .any(|start| lower.starts_with(start))
}

/// Commas part names, but not a name from its degrees (`Jane Doe, MD`).
fn split_commas(part: &str) -> Vec<&str> {
    let pieces: Vec<&str> = part.split(',').collect();
    if pieces.len() > 1
        && pieces
            .iter()
            .all(|piece| piece.split_whitespace().count() >= 2)
    {
        return pieces;
    }
    let is_degree = |piece: &str| {
        piece.chars().filter(|c| c.is_alphabetic()).count() <= 5
            && piece.chars().filter(|c| c.is_uppercase()).count() >= 2
    };
    if pieces.len() > 1 && pieces[1..].iter().all(|piece| is_degree(piece.trim())) {
        return vec![pieces[0]];
    }
    vec![part]
}

fn is_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    let placeholder = matches!(
        lower.as_str(),
        "admin"
            | "administrator"
            | "editor"
            | "staff"
            | "author"
            | "user"
            | "guest"
            | "unknown"
            | "webmaster"
            | "root"
            | "null"
            | "undefined"
            | "none"
            | "anonymous"
            | "facebook"
            | "twitter"
            | "n/a"
            | "redaktion"
    );
    !name.is_empty()
        && name.chars().count() <= LONGEST
        && name.chars().any(char::is_alphabetic)
        && !placeholder
        && name.split_whitespace().count() <= 7
}

#[cfg(test)]
mod tests {
    use super::{after_by, split};

    #[test]
    fn names_are_parted_and_cleaned() {
        for (raw, names) in [
            ("By Jane Doe", vec!["Jane Doe"]),
            ("Jane Doe and John Roe", vec!["Jane Doe", "John Roe"]),
            ("Jane Doe, John Roe", vec!["Jane Doe", "John Roe"]),
            ("Jane Doe, MD, PhD", vec!["Jane Doe"]),
            ("https://example.com/jane", vec![]),
            ("admin", vec![]),
            ("/author/jane", vec![]),
            ("Updated by Jane Doe", vec![]),
            (
                "Von Max Mustermann und Erika Beispiel",
                vec!["Max Mustermann", "Erika Beispiel"],
            ),
        ] {
            assert_eq!(split(raw), names, "{raw}");
        }
    }

    #[test]
    fn a_byline_gives_a_name() {
        for (line, name) in [
            ("By Jane Doe | 3 min read", Some("Jane Doe")),
            ("Written by Jane Doe on August 3, 2024", Some("Jane Doe")),
            ("By clicking you agree to our terms", None),
            ("Written by:Jane Doe", Some("Jane Doe")),
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
