//! docs/COMPATIBILITY.md names the test of each feature of the reference systems.
//! Each of these tests exists, and so do the routes, settings and commands that
//! the page names.

#![allow(clippy::unwrap_used)]

mod tidings;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tidings::tidings;

const PAGE: &str = "docs/COMPATIBILITY.md";
/// The section whose lines have no tests.
const NOT_TAKEN_OVER: &str = "\n## Not taken over\n";
const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// One line of a table.
struct Row {
    /// The feature, in the words of its system.
    feature: String,
    /// How it is in Tidings.
    ours: String,
    /// Links to its tests.
    tests: String,
}

impl Row {
    /// What stands in backticks in the column of Tidings.
    fn quoted(&self) -> impl Iterator<Item = &str> {
        self.ours.split('`').skip(1).step_by(2)
    }
}

/// The lines of all sections but the introduction and what was not taken over.
fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let (tables, _) = text.split_once(NOT_TAKEN_OVER).unwrap();
    let mut rows = Vec::new();
    for section in tables.split("\n## ").skip(1) {
        // The first is the head of the table.
        let lines = section
            .lines()
            .filter(|line| line.starts_with("| "))
            .skip(1);
        for line in lines {
            let cells = line.strip_prefix("| ").unwrap().strip_suffix(" |");
            let cells: Vec<&str> = cells.unwrap().split(" | ").collect();
            let [feature, ours, tests] = cells[..] else {
                panic!("three cells are expected: {line}");
            };
            rows.push(Row {
                feature: feature.to_owned(),
                ours: ours.to_owned(),
                tests: tests.to_owned(),
            });
        }
    }
    rows
}

/// The names and the file of each link.
fn links(cell: &str) -> Vec<(Vec<&str>, &str)> {
    let mut found = Vec::new();
    for link in cell.split('[').skip(1) {
        let (names, rest) = link.split_once("](../").unwrap();
        let (path, _) = rest.split_once(')').unwrap();
        found.push((names.split(", ").collect(), path));
    }
    found
}

/// Whether a function is a test: by its attribute, or in the list of a conformance
/// suite.
fn is_test(code: &str, name: &str) -> bool {
    let lines: Vec<&str> = code.lines().map(str::trim).collect();
    let starts = [format!("fn {name}("), format!("async fn {name}(")];
    let is_function = |line: &&str| starts.iter().any(|start| line.starts_with(start));
    let Some(at) = lines.iter().position(is_function) else {
        return false;
    };
    let above = lines[..at].iter().rev();
    let has_attribute = above
        .take_while(|line| line.starts_with("#[") || line.starts_with("//"))
        .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"));
    let suite = code.split("on_both_engines!(").nth(1);
    let suite = suite.and_then(|rest| rest.split(");").next());
    let is_listed = suite.is_some_and(|list| list.split(',').any(|one| one.trim() == name));
    has_attribute || is_listed
}

fn assert_none(problems: &[String]) {
    assert!(
        problems.is_empty(),
        "{PAGE} has {} problems:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

#[test]
fn every_line_names_a_test_that_exists() {
    let rows = rows();
    assert!(rows.len() > 200, "{}", rows.len());
    let mut problems = Vec::new();
    for row in &rows {
        let links = links(&row.tests);
        if links.is_empty() {
            problems.push(format!("{}: no test", row.feature));
        }
        for (names, path) in links {
            let code = std::fs::read_to_string(root().join(path)).unwrap_or_default();
            for name in names.iter().filter(|name| !is_test(&code, name)) {
                problems.push(format!("{}: {path} has no test {name}", row.feature));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn no_line_is_half_a_promise() {
    let text = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let text = text.to_lowercase();
    for word in ["partly", "partially", "mostly"] {
        assert!(!text.contains(word), "{PAGE} says {word:?}");
    }
}

#[test]
fn every_route_that_is_named_exists() {
    let routes = tidings_server::described_routes();
    let (mut problems, mut count) = (Vec::new(), 0);
    for row in rows() {
        for quoted in row.quoted() {
            let Some((method, path)) = quoted.split_once(' ') else {
                continue;
            };
            if !METHODS.contains(&method) {
                continue;
            }
            count += 1;
            let path = path.split('?').next().unwrap();
            let is_this = |route: &tidings_server::RouteDescription| {
                route.method == method && route.path == path
            };
            if !routes.iter().any(is_this) {
                problems.push(format!("{}: no route {quoted}", row.feature));
            }
        }
    }
    assert!(count > 30, "{count}");
    assert_none(&problems);
}

#[test]
fn every_setting_that_is_named_exists() {
    let config = tidings(&["config", "--json"]).stdout;
    let config: Value = serde_json::from_str(&config).unwrap();
    let keys: BTreeSet<&str> = config
        .as_array()
        .unwrap()
        .iter()
        .map(|setting| setting["key"].as_str().unwrap())
        .collect();
    let groups: BTreeSet<&str> = keys
        .iter()
        .filter_map(|key| Some(key.split_once('.')?.0))
        .collect();
    let (mut problems, mut count) = (Vec::new(), 0);
    for row in rows() {
        for quoted in row.quoted() {
            let key = quoted.split(' ').next().unwrap();
            let group = key.split_once('.').map(|(group, _)| group);
            if !group.is_some_and(|group| groups.contains(group)) {
                continue;
            }
            count += 1;
            if !keys.contains(key) {
                problems.push(format!("{}: no setting {key}", row.feature));
            }
        }
    }
    assert!(count > 20, "{count}");
    assert_none(&problems);
}

#[test]
fn every_command_that_is_named_exists() {
    let (mut problems, mut count) = (Vec::new(), 0);
    for row in rows() {
        let commands = row
            .quoted()
            .filter_map(|text| text.strip_prefix("tidings "));
        for command in commands {
            count += 1;
            let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            let is_flag = |word: &&str| word.starts_with("--");
            let words = command.split(' ');
            let mut arguments: Vec<&str> = words
                .clone()
                .take_while(|word| is_name(word) && !is_flag(word))
                .collect();
            arguments.push("--help");
            let help = tidings(&arguments);
            let has_flags = words.filter(is_flag).all(|flag| help.stdout.contains(flag));
            if help.code != 0 || !has_flags {
                problems.push(format!("{}: no command {command}", row.feature));
            }
        }
    }
    assert!(count > 15, "{count}");
    assert_none(&problems);
}

#[test]
fn a_function_that_is_no_test_is_found() {
    let code = "on_both_engines!(\n    first,\n    second,\n);\nasync fn first() {}\n\
        #[tokio::test(flavor = \"multi_thread\")]\n// Slow.\nasync fn third() {}\nfn helper() {}\n\
        #[test]\nfn fourth() {}\n";
    for (name, expected) in [
        ("first", true),
        ("third", true),
        ("fourth", true),
        ("second", false),
        ("helper", false),
        ("fifth", false),
    ] {
        assert_eq!(is_test(code, name), expected, "{name}");
    }
}
