//! Which file of a crate imports which: `use` trees and paths (`crate::`, `super::`,
//! `self::`, child modules), with re-exports of the crate root followed to the file
//! that they come from. Code below `#[cfg(test)] mod` is not looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A module by its path below the crate root; the root is empty.
pub(crate) type Module = Vec<String>;

/// For each file the files that it imports.
pub(crate) type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// Reads the imports of a crate from its `src` folder.
pub(crate) fn imports_of(src: &Path) -> Imports {
    let mut code = BTreeMap::new();
    read_folder(src, &mut Vec::new(), &mut code);
    imports_between(&code)
}

fn read_folder(folder: &Path, at: &mut Module, code: &mut BTreeMap<Module, String>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            at.push(name);
            read_folder(&path, at, code);
            at.pop();
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let mut module = at.clone();
            if !matches!(name.as_str(), "lib" | "main" | "mod") {
                module.push(name);
            }
            code.insert(module, std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// The imports between modules whose code is given.
pub(crate) fn imports_between(code: &BTreeMap<Module, String>) -> Imports {
    let modules: BTreeSet<Module> = code.keys().cloned().collect();
    let plain: BTreeMap<&Module, String> = code
        .iter()
        .map(|(module, text)| (module, without_prose_and_tests(text)))
        .collect();
    let root_exports = plain
        .get(&Module::new())
        .map(|text| exports(text))
        .unwrap_or_default();
    let mut imports = Imports::new();
    for (module, text) in plain {
        let mut found = BTreeSet::new();
        for path in paths(text.as_str()) {
            let Some(absolute) = absolute(module, &path, &modules) else {
                continue;
            };
            let mut target = longest_module(&absolute, &modules);
            if target.is_empty() {
                let Some(exported) = absolute.first().and_then(|name| root_exports.get(name))
                else {
                    continue;
                };
                target = longest_module(exported, &modules);
            }
            if &target != module && !target.is_empty() {
                found.insert(target);
            }
        }
        imports.insert(module.clone(), found);
    }
    imports
}

/// Names that the root exports, with the path that each comes from.
fn exports(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for statement in text.split(';') {
        let Some((_, tree)) = statement.split_once("pub use ") else {
            continue;
        };
        for path in expand(tree) {
            if let Some(name) = path.last() {
                found.insert(name.clone(), path.clone());
            }
        }
    }
    found
}

/// All paths that code names: those of `use` statements, and those inside of it.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("use ") {
        let is_word = !rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let after = &rest[at + 4..];
        if let (true, Some(end)) = (is_word, after.find(';')) {
            found.extend(expand(&after[..end]));
        }
        rest = after;
    }
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
    for word in text.split(|c: char| !is_part(c)) {
        if word.contains("::") {
            found.push(word.split("::").map(str::to_owned).collect());
        }
    }
    found
}

/// `a::{b, c::{d, self}} ` as its paths.
fn expand(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree);
        let path = path.split("::").map(|part| part.trim().to_owned());
        return vec![
            path.filter(|part| part != "self" && !part.is_empty() || tree.starts_with("self"))
                .collect(),
        ];
    };
    let prefix: Vec<String> = tree[..open]
        .trim_end_matches(':')
        .split("::")
        .map(|part| part.trim().to_owned())
        .filter(|part| !part.is_empty())
        .collect();
    let close = tree.rfind('}').unwrap_or(tree.len());
    let (mut depth, mut start, mut parts) = (0, open + 1, Vec::new());
    for (at, c) in tree
        .char_indices()
        .filter(|(at, _)| *at > open && *at < close)
    {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&tree[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tree[start..close]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    parts
        .flat_map(|part| {
            if part.trim() == "self" {
                vec![Vec::new()]
            } else {
                expand(part)
            }
        })
        .map(|path| prefix.iter().cloned().chain(path).collect())
        .collect()
}

/// The path from the crate root, if it leads into this crate.
fn absolute(module: &Module, path: &[String], modules: &BTreeSet<Module>) -> Option<Vec<String>> {
    let mut at = module.clone();
    let mut rest = path;
    match rest.first()?.as_str() {
        "crate" => {
            at.clear();
            rest = &rest[1..];
        }
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|part| part == "super") {
                at.pop();
                rest = &rest[1..];
            }
        }
        name => {
            let mut child = at.clone();
            child.push(name.to_owned());
            if !modules.contains(&child) {
                return None;
            }
        }
    }
    at.extend(rest.iter().cloned());
    Some(at)
}

fn longest_module(path: &[String], modules: &BTreeSet<Module>) -> Module {
    let lengths = (0..=path.len()).rev();
    let mut known = lengths.map(|length| path[..length].to_vec());
    known
        .find(|module| modules.contains(module))
        .unwrap_or_default()
}

/// Code without comments, strings and the module of its tests.
fn without_prose_and_tests(code: &str) -> String {
    let tests = code.find("#[cfg(test)]\nmod ").filter(|at| {
        let line = code[*at..].lines().nth(1).unwrap_or_default();
        line.ends_with('{')
    });
    let code = &code[..tests.unwrap_or(code.len())];
    let mut out = String::new();
    for line in code.lines() {
        let line = line.split("//").next().unwrap_or_default();
        let mut is_string = false;
        for part in line.split('"') {
            if !is_string {
                out.push_str(part);
                out.push(' ');
            }
            is_string = !is_string;
        }
        out.push('\n');
    }
    out
}

/// Groups of files that import each other, but for a module and its own children.
pub(crate) fn circles(imports: &Imports) -> Vec<Vec<Module>> {
    let mut found = Vec::new();
    let mut seen: BTreeSet<&Module> = BTreeSet::new();
    for module in imports.keys() {
        if seen.contains(module) {
            continue;
        }
        let reached = reachable(module, imports, |_, _| true);
        let circle: Vec<Module> = reached
            .iter()
            .filter(|other| reachable(other, imports, |_, _| true).contains(module))
            .cloned()
            .collect();
        if circle.is_empty() {
            continue;
        }
        seen.extend(imports.keys().filter(|other| circle.contains(other)));
        let head = circle.iter().min_by_key(|other| other.len()).unwrap();
        let is_one_subject = circle.iter().all(|other| other.starts_with(head));
        // Siblings below one parent still must not import each other in a circle.
        let between_siblings = |from: &Module, to: &Module| {
            circle.contains(to) && !from.starts_with(to) && !to.starts_with(from)
        };
        let is_knotted = circle
            .iter()
            .any(|other| reachable(other, imports, between_siblings).contains(other));
        if !is_one_subject || is_knotted {
            found.push(circle);
        }
    }
    found
}

/// What a module imports, directly or not.
fn reachable(
    from: &Module,
    imports: &Imports,
    counts: impl Fn(&Module, &Module) -> bool,
) -> BTreeSet<Module> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from.clone()];
    while let Some(module) = open.pop() {
        for target in imports.get(&module).into_iter().flatten() {
            if counts(&module, target) && reached.insert(target.clone()) {
                open.push(target.clone());
            }
        }
    }
    reached
}
