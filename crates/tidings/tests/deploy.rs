//! The files of `deploy/` and the commands in the docs: every command, setting and
//! metric exists, and systemd accepts the units.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod tidings;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use tidings::{Run, command, terminate, tidings};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, into),
            false => into.push(path),
        }
    }
}

fn deployed() -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    files(&root().join("deploy"), &mut paths);
    assert!(paths.len() >= 8, "{paths:?}");
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

/// Names in a text that begin like this.
fn names(text: &str, prefix: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c));
    let named = words.filter(|word| word.starts_with(prefix) && word.len() > prefix.len());
    named.map(str::to_owned).collect()
}

/// The command lines of Tidings in a text, each as its arguments.
fn commands(text: &str) -> Vec<Vec<String>> {
    let words = |line: &str| -> Vec<String> {
        let line = line
            .split(" # ")
            .next()
            .unwrap()
            .split(" | ")
            .next()
            .unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    };
    let list = |line: &str| -> Vec<String> { serde_json::from_str(line).unwrap() };
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("ExecStart=/usr/local/bin/tidings ") {
            found.push(words(rest));
        } else if let Some(rest) = line.strip_prefix("tidings ") {
            found.push(words(rest));
        } else if let Some(rest) = line.strip_prefix("command: ")
            && rest.contains("--roles")
        {
            found.push(list(rest));
        } else if let Some(rest) = line.strip_prefix("CMD ") {
            found.push(list(rest));
        }
        // `tidings …` within a sentence or a table.
        for part in line
            .split('`')
            .filter_map(|part| part.strip_prefix("tidings "))
        {
            found.push(words(part));
        }
    }
    found
}

#[test]
fn every_documented_command_exists() {
    let mut texts = deployed();
    for name in ["docs/OPERATIONS.md", "docs/SECURITY.md", "docs/API.md"] {
        let path = root().join(name);
        texts.push((path.clone(), fs::read_to_string(path).unwrap()));
    }
    let mut count = 0;
    for (path, text) in &texts {
        for command in commands(text) {
            let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
            args.push("--help");
            let ended = tidings(&args);
            assert_eq!(
                ended.code,
                0,
                "{}: {command:?}: {}",
                path.display(),
                ended.stderr
            );
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn every_setting_in_the_files_exists() {
    let config = root().join("deploy/tidings.toml");
    let ended = Run::new(&["config", "--json"])
        .env("TIDINGS_CONFIG", config.to_str().unwrap())
        .run();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let settings: Value = serde_json::from_str(&ended.stdout).unwrap();
    let known: BTreeSet<String> = names(&settings.to_string().replace('.', "_"), "")
        .iter()
        .map(|key| format!("TIDINGS_{}", key.to_uppercase()))
        .collect();
    let mut count = 0;
    for (path, text) in deployed() {
        for name in names(&text, "TIDINGS_") {
            let is_known = known.contains(&name) || name == "TIDINGS_CONFIG";
            assert!(is_known, "{}: {name}", path.display());
            count += 1;
        }
    }
    assert!(count > 5, "{count}");
}

#[test]
fn every_metric_in_the_files_exists() {
    let folder = tempfile::tempdir().unwrap();
    // A family without samples is not shown: the frontier needs a URL, the server a request.
    let add = ["frontier", "add", "https://news.example/story"];
    assert!(command(&add, folder.path()).status().unwrap().success());
    let args = [
        "work",
        "--roles",
        "serve,deliver",
        "--json",
        "--set",
        "server.bind=127.0.0.1:0",
    ];
    let mut running = command(&args, folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let said: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let address = said["dashboard"].as_str().unwrap();
    let address = address.trim_start_matches("http://").trim_end_matches('/');
    let token = said["token"].as_str().unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    let mut response = String::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        response.clear();
        stream.read_to_string(&mut response).unwrap();
    }
    assert_eq!(terminate(running), Some(0));
    let known = names(&response, "tidings_");
    assert!(known.len() > 10, "{response}");
    for name in [
        "deploy/grafana/tidings.json",
        "deploy/prometheus/alerts.yml",
    ] {
        let text = fs::read_to_string(root().join(name)).unwrap();
        let used = names(&text, "tidings_");
        assert!(used.len() > 4, "{name}");
        let unknown: Vec<_> = used.difference(&known).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
    }
}

#[test]
fn systemd_accepts_the_units() {
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    for (path, text) in deployed() {
        if path.extension().is_none_or(|kind| kind != "service") {
            continue;
        }
        let unit = folder.path().join(path.file_name().unwrap());
        let text = text.replace("/usr/local/bin/tidings", env!("CARGO_BIN_EXE_tidings"));
        fs::write(&unit, text).unwrap();
        let verified = Command::new("systemd-analyze")
            .arg("verify")
            .arg(&unit)
            .output();
        let Ok(verified) = verified else {
            eprintln!("skipped: there is no systemd-analyze here");
            return;
        };
        let said = String::from_utf8_lossy(&verified.stderr);
        let name = unit.file_name().unwrap().to_string_lossy();
        assert!(!said.contains(&*name), "{said}");
        count += 1;
    }
    assert_eq!(count, 2);
}

#[test]
fn the_files_parse() {
    for (path, text) in deployed() {
        let kind = path.extension().and_then(|kind| kind.to_str());
        if kind == Some("json") {
            serde_json::from_str::<Value>(&text).unwrap();
        }
        let Some(python) = std::env::var_os("TIDINGS_TEST_PYTHON") else {
            eprintln!("skipped: TIDINGS_TEST_PYTHON names no Python; scripts/test sets it");
            continue;
        };
        if matches!(kind, Some("yml" | "yaml")) {
            // PyYAML comes with schemathesis.
            let read = "import sys, yaml; yaml.safe_load(open(sys.argv[1]))";
            let read = Command::new(python)
                .args(["-c", read])
                .arg(&path)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&read.stderr);
            let is_there = !said.contains("No module named");
            assert!(
                read.status.success() || !is_there,
                "{}: {said}",
                path.display()
            );
        }
    }
}
