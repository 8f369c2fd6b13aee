//! How far the parser is from the standard: the tree construction cases of
//! html5lib-tests, which are no part of this repository. Counted are the pages
//! whose text comes out in the same order, and those where it also has the same
//! parents. `HTML5LIB_TESTS=DIR cargo test -p tidings-extract --lib distance -- --ignored --nocapture`

use std::fs;
use std::path::Path;

use super::{Document, ParserLimits, Tag, parse};

/// Shares of the cases, in thousandths, that were reached once and must stay.
const MIN_SAME_TEXT: usize = 900;
const MIN_SAME_PARENTS: usize = 800;

struct Case {
    data: String,
    /// Texts with the names of their parents, in document order.
    expected: Vec<(String, String)>,
}

#[test]
#[ignore = "needs HTML5LIB_TESTS, the directory tree-construction of html5lib-tests"]
fn distance_to_the_standard() {
    let directory = std::env::var("HTML5LIB_TESTS").expect("HTML5LIB_TESTS is a directory");
    let mut cases = Vec::new();
    for entry in fs::read_dir(Path::new(&directory)).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|kind| kind == "dat") {
            let bytes = fs::read(&path).expect("a file");
            cases.extend(read_cases(&String::from_utf8_lossy(&bytes)));
        }
    }
    let (mut same_text, mut same_parents) = (0, 0);
    for case in &cases {
        let document = parse(&case.data, &ParserLimits::default(), &|| true);
        let found = merged(texts(&document));
        let words = |list: &[(String, String)]| -> String {
            let texts = list.iter().map(|(_, text)| text.as_str());
            texts
                .flat_map(str::chars)
                .filter(|c| !c.is_whitespace())
                .collect()
        };
        same_text += usize::from(words(&found) == words(&case.expected));
        same_parents += usize::from(found == case.expected);
    }
    println!(
        "{} cases, same text {same_text}, same parents {same_parents}",
        cases.len()
    );
    assert!(same_text * 1000 >= cases.len() * MIN_SAME_TEXT);
    assert!(same_parents * 1000 >= cases.len() * MIN_SAME_PARENTS);
}

/// The cases of a file; fragments and those without scripts are left out.
fn read_cases(file: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for part in file.split("#data\n").skip(1) {
        let Some((data, rest)) = part.split_once("\n#errors") else {
            continue;
        };
        if rest.contains("#document-fragment") || rest.contains("#script-off") {
            continue;
        }
        let Some((_, tree)) = rest.split_once("#document\n") else {
            continue;
        };
        cases.push(Case {
            data: data.to_owned(),
            expected: merged(expected_texts(tree)),
        });
    }
    cases
}

/// The texts of a tree as the files write it.
fn expected_texts(tree: &str) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut lines = tree.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(rest) = line.strip_prefix("| ") else {
            continue;
        };
        let content = rest.trim_start_matches(' ');
        let depth = (rest.len() - content.len()) / 2;
        open.truncate(depth);
        if let Some(text) = content.strip_prefix('"') {
            let mut text = text.to_owned();
            while !text.ends_with('"') && lines.peek().is_some_and(|next| !next.starts_with("| ")) {
                text.push('\n');
                text.push_str(lines.next().unwrap_or(""));
            }
            let text = text.trim_end_matches('"').to_owned();
            if !open.iter().any(|name| is_unread(name)) {
                texts.push((open.last().cloned().unwrap_or_default(), text));
            }
        } else if let Some(name) = content
            .strip_prefix('<')
            .filter(|name| !name.starts_with('!'))
        {
            open.push(name.trim_end_matches('>').to_owned());
        } else {
            open.push(String::new());
        }
    }
    texts
}

/// Whose text the parser does not keep.
fn is_unread(name: &str) -> bool {
    let name = name.split(' ').next().unwrap_or(name);
    matches!(
        name,
        "script" | "style" | "textarea" | "iframe" | "noembed" | "noframes" | "noscript" | "svg"
    )
}

fn texts(document: &Document<'_>) -> Vec<(String, String)> {
    (1..document.len())
        .filter(|node| document.tag(*node) == Tag::Text && document.is_readable_text(*node))
        .map(|node| {
            let parent = document.name(document.parent(node)).to_ascii_lowercase();
            // The elements that every page has are not made where a page leaves them out.
            let parent = match parent.as_str() {
                "" | "html" | "head" => "body".to_owned(),
                _ => parent,
            };
            let mut text = String::new();
            super::decode_into(document.raw_text(node), &mut text);
            (parent, text)
        })
        .collect()
}

/// Without blank ones, and those of one parent in a row as one.
fn merged(texts: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut merged: Vec<(String, String)> = Vec::new();
    for (parent, text) in texts {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() {
            continue;
        }
        match merged.last_mut() {
            Some((last, known)) if *last == parent => known.push_str(&text),
            _ => merged.push((parent, text)),
        }
    }
    merged
}
