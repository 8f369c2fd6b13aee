//! What is written is used by the running program: every public function has a
//! caller outside of tests, every setting is read, every field of the API's schemas
//! is filled. By name, so a common name can hide one.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Public functions that only tests and tools call, each with its reason. The
/// list may only become shorter.
const ONLY_FOR_TESTS: &[(&str, &str)] = &[
    (
        "with_manual_clock",
        "time is an argument: tests of the store set it",
    ),
    (
        "with_clock",
        "time is an argument: tests of robots.txt set it",
    ),
    (
        "pretend_schema_version",
        "a store of a newer release does not exist yet",
    ),
    ("idle_connections", "tests look for connections that leak"),
    ("described_routes", "tests try every route"),
    ("stages", "the benchmark of fetching shows them"),
    ("sqlite_version", "reports of benchmarks name it"),
];

/// Crates of development: neither checked, nor callers.
const TOOLS: [&str; 3] = ["sim", "bench", "chaos"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The code of the product by file, without comments and without the tests at the
/// end of files.
fn product() -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap();
        if !TOOLS.contains(&name) {
            read(&folder.join("src"), &mut files);
        }
    }
    files
}

fn read(folder: &Path, files: &mut BTreeMap<PathBuf, String>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let code = std::fs::read_to_string(&path).unwrap();
            files.insert(path, without_tests(&code));
        }
    }
}

fn without_tests(code: &str) -> String {
    let lines: Vec<&str> = code.lines().collect();
    let is_start = |at: &usize| {
        let next = lines.get(at + 1).copied().unwrap_or_default();
        let next = match next.starts_with("#[") {
            true => lines.get(at + 2).copied().unwrap_or_default(),
            false => next,
        };
        lines[*at] == "#[cfg(test)]" && next.starts_with("mod ") && next.ends_with('{')
    };
    let end = (0..lines.len()).find(is_start).unwrap_or(lines.len());
    let code = lines[..end].iter().map(|line| match line.find("//") {
        // Addresses have slashes, too.
        Some(at) if at == 0 || !line[..at].ends_with(':') => &line[..at],
        _ => line,
    });
    code.collect::<Vec<_>>().join("\n")
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

/// The function that a line defines, if it is public, and the rest of the line.
fn public_function(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let mut rest = rest.trim_start();
    for word in ["const ", "async ", "unsafe "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let rest = rest.strip_prefix("fn ")?;
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
    Some(rest.split_at(end))
}

/// Public functions whose name is nowhere but at their definition.
fn uncalled(files: &BTreeMap<PathBuf, String>) -> BTreeSet<String> {
    let (mut defined, mut used) = (BTreeSet::new(), BTreeSet::new());
    for code in files.values() {
        let mut is_import = false;
        for line in code.lines() {
            let start = line.trim_start();
            is_import |= start.starts_with("use ") || start.starts_with("pub use ");
            if is_import {
                is_import = !line.ends_with(';');
                continue;
            }
            let rest = match public_function(line) {
                Some((name, rest)) => {
                    defined.insert(name.to_owned());
                    rest
                }
                None => line,
            };
            used.extend(words(rest).map(str::to_owned));
        }
    }
    defined.difference(&used).cloned().collect()
}

#[test]
fn every_public_function_has_a_caller_in_the_product() {
    let allowed: BTreeSet<String> = ONLY_FOR_TESTS
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    assert_eq!(uncalled(&product()), allowed);
}

#[test]
fn a_function_that_only_tests_call_is_found() {
    let code = "pub(crate) async fn called() {}\n\
        pub fn forgotten(called: u8) {\n    called();\n}\n\
        // forgotten()\nuse crate::forgotten;\n\
        #[cfg(test)]\nmod tests {\n    fn test() { forgotten() }\n}\n";
    let files = BTreeMap::from([(PathBuf::from("a.rs"), without_tests(code))]);
    assert_eq!(uncalled(&files), BTreeSet::from(["forgotten".to_owned()]));
}

/// The strings between quotes that follow a text.
fn strings_after<'c>(code: &'c str, text: &str) -> Vec<&'c str> {
    code.split(&format!("{text}\""))
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect()
}

#[test]
fn every_setting_is_read() {
    let files = product();
    let is_table = |path: &Path| path.ends_with("config/table.rs");
    let table = files.iter().find(|(path, _)| is_table(path)).unwrap().1;
    let keys = strings_after(table, "key: ");
    assert!(keys.len() > 30, "{keys:?}");
    let unread: Vec<&str> = keys
        .into_iter()
        .filter(|key| {
            let read = format!("\"{key}\"");
            let mut others = files.iter().filter(|(path, _)| !is_table(path));
            !others.any(|(_, code)| code.contains(&read))
        })
        .collect();
    assert!(unread.is_empty(), "never read: {unread:?}");
}

/// What JSON Schema says about fields.
const KEYWORDS: [&str; 17] = [
    "type",
    "format",
    "enum",
    "items",
    "properties",
    "required",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "anyOf",
    "allOf",
    "description",
    "default",
    "pattern",
];

#[test]
fn every_field_of_the_api_is_filled() {
    let files = product();
    let is_schema = |path: &Path| path.ends_with("server/src/openapi/schemas.rs");
    let mut fields = BTreeSet::new();
    for (_, code) in files.iter().filter(|(path, _)| is_schema(path)) {
        for part in code.split("\": ") {
            let name = part.rsplit('"').next().unwrap();
            let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            if is_name && !name.is_empty() && !KEYWORDS.contains(&name) {
                fields.insert(name);
            }
        }
    }
    assert!(fields.len() > 80, "{}", fields.len());
    let others = files.iter().filter(|(path, _)| !is_schema(path));
    let known: BTreeSet<&str> = others.flat_map(|(_, code)| words(code)).collect();
    let empty: Vec<_> = fields.difference(&known).collect();
    assert!(empty.is_empty(), "never filled: {empty:?}");
}
