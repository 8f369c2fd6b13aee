//! What the README promises names the tests that break when it stops being true:
//! each of them exists, and so does each scenario of `tidings torture`.

#![allow(clippy::unwrap_used)]

mod tidings;

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).unwrap()
}

/// Rows of tables whose cells hold links to tests: the words of each link, and
/// the file that it leads to.
fn links(text: &str) -> Vec<(String, String)> {
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let mut found = Vec::new();
    for row in rows {
        for part in row.split("](crates/").skip(1) {
            let path = format!("crates/{}", part.split(')').next().unwrap());
            let before = row.split(&format!("]({path})")).next().unwrap();
            found.push((before.rsplit('[').next().unwrap().to_owned(), path));
        }
    }
    found
}

#[test]
fn every_test_that_a_promise_names_exists() {
    let readme = readme();
    let links = links(&readme);
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
fn there_are_ten_promises_and_every_bad_day_that_they_name() {
    let readme = readme();
    let section = readme
        .split("\n## ")
        .find(|part| part.starts_with("Ten promises"));
    let section = section.unwrap();
    let numbers: Vec<&str> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .map(|row| row.split(' ').next().unwrap())
        .filter(|number| number.parse::<u8>().is_ok())
        .collect();
    let expected: Vec<String> = (1..=10).map(|number| number.to_string()).collect();
    assert_eq!(numbers, expected);

    let listed = tidings::tidings(&["torture", "--list"]).stdout;
    let named: Vec<&str> = section
        .lines()
        .filter_map(|line| line.split_once("torture: "))
        .flat_map(|(_, names)| names.split('*').skip(1).step_by(2))
        .collect();
    assert!(named.len() >= 10, "{named:?}");
    for name in named {
        assert!(listed.contains(&format!("  {name}: ")), "{name}");
    }
}
