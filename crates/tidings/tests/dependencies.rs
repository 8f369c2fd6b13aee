//! The crates that Tidings is built from: their licences, where they come from, and
//! that the large ones are there once. `scripts/audit` also asks for advisories.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value as Json;

/// One of these must be enough for each crate.
const LICENCES: [&str; 13] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
    "MIT-0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "CC0-1.0",
    "Unlicense",
    "Unicode-3.0",
    "CDLA-Permissive-2.0",
    "0BSD",
];

/// Crates that take long to build, and are wanted in one version.
const ONCE: [&str; 17] = [
    "axum",
    "chrono",
    "hyper",
    "jiff",
    "libsqlite3-sys",
    "openssl",
    "quick-xml",
    "regex",
    "regex-automata",
    "ring",
    "rustls",
    "serde",
    "serde_json",
    "tantivy",
    "tokio",
    "tokio-postgres",
    "url",
];

/// All packages of the lock file, those of other platforms too, which the first call
/// on a machine downloads.
fn packages() -> Vec<Json> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let metadata: Json = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn name(package: &Json) -> String {
    let text = |key: &str| package[key].as_str().unwrap();
    format!("{} {}", text("name"), text("version"))
}

/// Whether an SPDX expression can be met with the licences that are allowed.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let mut tokens = Vec::new();
    for word in expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .split_whitespace()
    {
        match (word, tokens.last_mut()) {
            ("(" | ")" | "OR" | "AND", _) | (_, None) => tokens.push(word.to_owned()),
            (word, Some(last)) if ["(", "OR", "AND"].contains(&last.as_str()) => {
                tokens.push(word.to_owned());
            }
            // A licence WITH an exception is one.
            (word, Some(last)) => *last = format!("{last} {word}"),
        }
    }
    let mut tokens = tokens.iter().map(String::as_str).peekable();
    any(&mut tokens)
}

type Tokens<I> = std::iter::Peekable<I>;

fn any<'t>(tokens: &mut Tokens<impl Iterator<Item = &'t str>>) -> bool {
    let mut met = all(tokens);
    while tokens.next_if_eq(&"OR").is_some() {
        met |= all(tokens);
    }
    met
}

fn all<'t>(tokens: &mut Tokens<impl Iterator<Item = &'t str>>) -> bool {
    let mut met = one(tokens);
    while tokens.next_if_eq(&"AND").is_some() {
        met &= one(tokens);
    }
    met
}

fn one<'t>(tokens: &mut Tokens<impl Iterator<Item = &'t str>>) -> bool {
    match tokens.next() {
        Some("(") => {
            let mut depth = 1;
            let mut inside = Vec::new();
            for token in tokens.by_ref() {
                depth += i32::from(token == "(") - i32::from(token == ")");
                if depth == 0 {
                    break;
                }
                inside.push(token);
            }
            is_allowed(&inside.join(" "))
        }
        Some(licence) => LICENCES.contains(&licence),
        None => false,
    }
}

#[test]
fn licences_are_read_as_expressions() {
    let rows = [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("MIT/Apache-2.0", true),
        ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true),
        ("(MIT OR GPL-2.0) AND Unicode-3.0", true),
        ("MIT AND GPL-2.0", false),
        ("(MIT AND (GPL-2.0 OR LGPL-2.1)) OR AGPL-3.0", false),
        ("", false),
    ];
    for (expression, expected) in rows {
        assert_eq!(is_allowed(expression), expected, "{expression}");
    }
}

#[test]
fn every_licence_is_permissive() {
    let packages = packages();
    assert!(packages.len() > 100, "{}", packages.len());
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !is_allowed(package["license"].as_str().unwrap_or_default()))
        .map(|package| format!("{}: {}", name(package), package["license"]))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn every_crate_is_ours_or_from_the_registry() {
    const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
    for package in packages() {
        match package["source"].as_str() {
            None => assert!(name(&package).starts_with("tidings"), "{}", name(&package)),
            Some(source) => assert_eq!(source, REGISTRY, "{}", name(&package)),
        }
    }
}

#[test]
fn large_crates_are_there_once() {
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages() {
        let of = package["name"].as_str().unwrap().to_owned();
        versions.entry(of).or_default().push(name(&package));
    }
    let present = ONCE.iter().filter(|of| versions.contains_key(**of)).count();
    assert!(present > 10, "{present}");
    for of in ONCE {
        let found = versions.get(of).map_or(&[][..], Vec::as_slice);
        assert!(found.len() <= 1, "{found:?}");
    }
}
