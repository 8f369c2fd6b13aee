//! Who wrote it: names from structured data, meta tags, bylines; cleaned of
//! "By", titles and addresses, split where several are named. The name of the
//! site is no author when there is a better one.

use super::byline;
use crate::blocks::Blocks;
use crate::html::{Document, NodeId};
use crate::provenance::{Origin, Sourced};
use crate::structured::{JsonLd, Meta, Microdata};
use crate::text::letters;

/// Names longer than this are sentences.
const MAX_NAME_CHARS: usize = 60;
const MAX_AUTHORS: usize = 12;

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
            if !names.iter().any(|known| letters(known) == letters(&name))
                && names.len() < MAX_AUTHORS
            {
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
    let is_weak = |found: &Sourced<Vec<String>>| is_site(found) || is_login(&found.value);
    if let Some(found) = claims.iter().find(|found| !is_weak(found)) {
        return Some(found.clone());
    }
    if let Some(found) = names(byline::in_page(document, blocks, container), Origin::Html)
        .filter(|found| !is_weak(found))
    {
        return Some(found);
    }
    // Better the name of the site than none: many sites sign as themselves.
    claims.into_iter().next()
}

/// A login name of the site's CMS: "jane.doe", "jdoe2".
fn is_login(names: &[String]) -> bool {
    let [name] = names else {
        return false;
    };
    !name.contains(char::is_whitespace)
        && !name.contains(char::is_uppercase)
        && name.contains(|c: char| c.is_ascii_digit() || matches!(c, '.' | '_'))
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
        .take(MAX_AUTHORS)
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

/// Commas separate names, but not a name from its degrees (`Jane Doe, MD`).
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
        !piece.contains(' ')
            && piece.chars().filter(|c| c.is_alphabetic()).count() <= 5
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
        && name.chars().count() <= MAX_NAME_CHARS
        && name.chars().any(char::is_alphabetic)
        && !placeholder
        && name.split_whitespace().count() <= 7
}

#[cfg(test)]
mod tests {
    use super::{is_login, split};

    #[test]
    fn a_login_is_no_name() {
        for (name, expected) in [
            ("jane.doe", true),
            ("jdoe2", true),
            ("jane_doe", true),
            ("jane", false),
            ("Jane.Doe", false),
            ("j. doe", false),
        ] {
            assert_eq!(is_login(&[name.to_owned()]), expected, "{name}");
        }
    }

    #[test]
    fn names_are_split_and_cleaned() {
        for (raw, names) in [
            ("By Jane Doe", vec!["Jane Doe"]),
            ("Jane Doe and John Roe", vec!["Jane Doe", "John Roe"]),
            ("Jane Doe, John Roe", vec!["Jane Doe", "John Roe"]),
            ("Jane Doe, MD, PhD", vec!["Jane Doe"]),
            ("Doe, Jane Tess", vec!["Doe, Jane Tess"]),
            ("Doe, Jo T.", vec!["Doe, Jo T"]),
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
}
