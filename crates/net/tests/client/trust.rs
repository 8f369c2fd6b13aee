//! There is one HTTP client: no other crate of the workspace opens connections
//! of its own.

use std::fs;
use std::path::{Path, PathBuf};

/// Crates that speak HTTP, DNS or bare TCP as clients.
const CLIENTS: &[&str] = &[
    "hyper",
    "hyper-util",
    "reqwest",
    "ureq",
    "isahc",
    "curl",
    "attohttpc",
    "surf",
    "awc",
    "hickory-resolver",
    "hickory-client",
    "trust-dns-resolver",
    "minreq",
    "async-h1",
    "h2",
    "tungstenite",
    "tokio-tungstenite",
];

/// How code would dial by itself.
const DIALLING: &[&str] = &[
    "TcpStream::connect",
    "UdpSocket::connect",
    "lookup_host",
    "to_socket_addrs",
    "hyper::client",
    "hyper_util::client",
];

/// The server of the API is built on these, and dials nobody with them.
const OF_THE_SERVER: &[&str] = &["hyper", "hyper-util"];

fn crates() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut folders: Vec<_> = fs::read_dir(crates)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|folder| folder.join("Cargo.toml").exists())
        .collect();
    folders.sort();
    assert!(folders.len() > 3, "{folders:?}");
    folders
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_other_crate_has_a_client_of_its_own() {
    let mut seen_in_net = false;
    for folder in crates() {
        let is_net = folder.ends_with("net");
        let is_server = folder.ends_with("server");
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("[dev-dependencies]").next().unwrap();
        for line in dependencies.lines() {
            let name = line.split(['.', ' ', '=']).next().unwrap();
            let is_allowed = is_server && OF_THE_SERVER.contains(&name);
            let is_client = CLIENTS.contains(&name) && !is_allowed;
            seen_in_net |= is_net && is_client;
            assert!(
                is_net || !is_client,
                "{} depends on {name}",
                folder.display()
            );
        }
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        for file in files.iter().filter(|_| !is_net) {
            let text = fs::read_to_string(file).unwrap();
            for call in DIALLING {
                assert!(!text.contains(call), "{} calls {call}", file.display());
            }
        }
    }
    assert!(seen_in_net, "this test can't see what it looks for");
}
