//! The guarantees name the tests that fail when they no longer hold: each of these
//! tests exists, and so does each scenario of `tidings-chaos`.

#![allow(clippy::unwrap_used)]

mod binary;

use std::path::{Path, PathBuf};

/// Where the guarantees are written, and the heading above them.
const GUARANTEES: &str = "docs/GUARANTEES.md";
const HEADING: &str = "Ten guarantees";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn guarantees() -> String {
    std::fs::read_to_string(root().join(GUARANTEES)).unwrap()
}

/// Rows of tables whose cells hold links to tests: the words of each link, and
/// the file that it leads to.
fn links(text: &str) -> Vec<(String, String)> {
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let mut found = Vec::new();
    for row in rows {
        for part in row.split("](../crates/").skip(1) {
            let path = format!("crates/{}", part.split(')').next().unwrap());
            let before = row.split(&format!("](../{path})")).next().unwrap();
            found.push((before.rsplit('[').next().unwrap().to_owned(), path));
        }
    }
    found
}

#[test]
fn every_test_that_a_guarantee_names_exists() {
    let text = guarantees();
    let links = links(&text);
    assert!(links.len() > 40, "{}", links.len());
    for (names, path) in links {
        let place = root().join(&path);
        assert!(place.exists(), "{path}");
        if place.is_dir() {
            continue;
        }
        let code = std::fs::read_to_string(&place).unwrap();
        let module = place.file_stem().unwrap().to_str().unwrap();
        for name in names.split(", ").filter(|name| *name != module) {
            let is_there = code.contains(&format!("fn {name}("));
            assert!(is_there, "{path} has no test {name}");
        }
    }
}

#[test]
fn there_are_ten_guarantees_and_every_scenario_that_they_name() {
    let text = guarantees();
    let section = text.split("\n## ").find(|part| part.starts_with(HEADING));
    let section = section.unwrap();
    let numbers: Vec<&str> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .map(|row| row.split(' ').next().unwrap())
        .filter(|number| number.parse::<u8>().is_ok())
        .collect();
    let expected: Vec<String> = (1..=10).map(|number| number.to_string()).collect();
    assert_eq!(numbers, expected);

    let listed = binary::chaos(&["list"]).stdout;
    let named: Vec<&str> = section
        .lines()
        .filter_map(|line| line.split_once("chaos: "))
        .flat_map(|(_, names)| names.split('*').skip(1).step_by(2))
        .collect();
    assert!(named.len() >= 10, "{named:?}");
    for name in named {
        assert!(listed.contains(&format!("  {name}: ")), "{name}");
    }
}
