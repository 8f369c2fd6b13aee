//! The house is built as docs/ARCHITECTURE.md says: files import downwards only, the
//! shipped binary holds no development code, net has no database, and every file and
//! symbol of the journey of a URL exists.

#![allow(clippy::unwrap_used)]

#[path = "architecture/imports.rs"]
mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use imports::{circles, imports_between, imports_of};

/// Crates that still have circles between files. The list may only become shorter.
const WITH_CIRCLES: &[&str] = &[];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn files_import_downwards_only() {
    let mut with_circles = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let found = circles(&imports_of(&folder.join("src")));
        if !found.is_empty() {
            let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
            let shown = found.iter().map(|circle| {
                let files: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
                files.join(" ↔ ")
            });
            with_circles.insert(name, shown.collect::<Vec<_>>());
        }
    }
    let allowed: BTreeSet<&str> = WITH_CIRCLES.iter().copied().collect();
    let found: BTreeSet<&str> = with_circles.keys().map(String::as_str).collect();
    assert_eq!(found, allowed, "circles: {with_circles:#?}");
}

#[test]
fn a_circle_is_found_and_a_parent_with_its_children_is_none() {
    let code = |pairs: &[(&str, &str)]| {
        let module = |path: &str| {
            path.split('/')
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let pairs = pairs.iter();
        let code: BTreeMap<Vec<String>, String> = pairs
            .map(|(path, text)| (module(path), (*text).to_owned()))
            .collect();
        circles(&imports_between(&code)).len()
    };
    assert_eq!(
        code(&[("a", "use crate::b::B;"), ("b", "fn f() { crate::a::g() }")]),
        1
    );
    assert_eq!(
        code(&[
            ("a", "use crate::{b::B};"),
            ("b", "use crate::c::C;"),
            ("c", "use super::a;")
        ]),
        1
    );
    assert_eq!(
        code(&[
            ("", "pub use b::B;"),
            ("a", "use crate::B;"),
            ("b", "use crate::a::A;")
        ]),
        1
    );
    assert_eq!(
        code(&[("a", "mod x; use x::X;"), ("a/x", "use super::A;")]),
        0
    );
    assert_eq!(
        code(&[
            ("a", "use x::X;"),
            ("a/x", "use super::y::Y;"),
            ("a/y", "use super::x::X;")
        ]),
        1
    );
    assert_eq!(
        code(&[
            ("a", "use x::X; use crate::b::B;"),
            ("a/x", "use super::A;"),
            ("b", "use crate::a::x;")
        ]),
        1
    );
    assert_eq!(
        code(&[
            ("a", "use crate::b::B; // use crate::c"),
            ("b", "\"crate::a\"")
        ]),
        0
    );
}

/// What a package depends on, as `cargo tree` prints it.
fn dependencies(package: &str) -> BTreeSet<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args([
            "tree",
            "--locked",
            "--offline",
            "--prefix",
            "none",
            "-e",
            "normal",
            "-p",
            package,
        ])
        .current_dir(root())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let names = text.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn the_shipped_binary_holds_no_benchmarks_and_no_chaos_tests() {
    let found = dependencies("tidings");
    assert!(found.contains("tidings-engine"));
    assert!(!found.contains("tidings-bench") && !found.contains("tidings-chaos"));
}

#[test]
fn the_http_client_has_no_database() {
    let found = dependencies("tidings-net");
    assert!(found.contains("hyper"));
    for database in [
        "tidings-store",
        "rusqlite",
        "tokio-postgres",
        "deadpool-postgres",
    ] {
        assert!(!found.contains(database), "{database}");
    }
}

/// The numbered rows of the journey: the file that each links to, and its symbols.
fn journey() -> Vec<(String, Vec<String>)> {
    let page = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let section = page
        .split("\n## ")
        .find(|part| part.starts_with("One URL's journey"));
    let rows = section.expect("a section about the journey").lines();
    let rows = rows.filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    rows.map(|row| {
        let link = row.split("](../").nth(1).expect("a link to a file");
        let path = link.split(')').next().unwrap().to_owned();
        let symbols = row.split('`').skip(1).step_by(2);
        let symbols = symbols.map(|symbol| symbol.rsplit("::").next().unwrap().to_owned());
        (path, symbols.collect())
    })
    .collect()
}

#[test]
fn every_file_and_symbol_of_the_journey_exists() {
    let journey = journey();
    let files: BTreeSet<&String> = journey.iter().map(|(path, _)| path).collect();
    assert!((15..=25).contains(&files.len()), "{} files", files.len());
    for (path, symbols) in &journey {
        let code = std::fs::read_to_string(root().join(path)).unwrap_or_else(|_| panic!("{path}"));
        assert!(!symbols.is_empty(), "{path}");
        for symbol in symbols {
            let is_there = ["fn ", "struct ", "enum ", "trait ", "const "]
                .iter()
                .any(|kind| code.contains(&format!("{kind}{symbol}")));
            assert!(is_there, "{path} has no {symbol}");
        }
    }
}
