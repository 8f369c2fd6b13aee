//! The server as `tidings` starts it: it prints its address and the first token,
//! others are created and revoked, and a port in use is named.

#![allow(clippy::unwrap_used)]

mod tidings;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use serde_json::Value;

use tidings::{Run, command};

fn status(address: &str, path: &str, token: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn it_prints_its_address_and_tokens_are_created_and_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["run", "--json", "--set", "server.bind=127.0.0.1:0"];
    let mut running = command(&args, folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let said: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let url = said["dashboard"].as_str().unwrap();
    let address = url
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .to_owned();
    let first = said["token"].as_str().unwrap();
    assert_eq!(status(&address, "/api/v1/tokens", first), 200);
    assert_eq!(status(&address, "/api/v1/tokens", "wrong"), 401);

    let call = |args: &[&str]| {
        let output = command(args, folder.path()).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let secret = call(&["token", "create", "ci"]).trim().to_owned();
    assert_eq!(status(&address, "/api/v1/frontier", &secret), 200);
    assert_eq!(
        status(&address, "/api/v1/tokens", &secret),
        403,
        "a viewer by default"
    );
    let listed = call(&["token", "ls"]);
    assert!(
        listed.contains("ci") && !listed.contains("tdg_"),
        "{listed}"
    );
    let tokens: Value = serde_json::from_str(&call(&["token", "ls", "--json"])).unwrap();
    let token = tokens
        .as_array()
        .unwrap()
        .iter()
        .find(|token| token["name"] == "ci")
        .unwrap();
    call(&["token", "revoke", &token["token_id"].to_string()]);
    // The check of a token is cached for a second.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(status(&address, "/api/v1/frontier", &secret), 401);
    running.kill().unwrap();
    running.wait().unwrap();
}

#[test]
fn a_port_in_use_is_named_with_the_setting() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let bind = format!("server.bind={}", taken.local_addr().unwrap());
    let ended = Run::new(&["run", "--set", &bind]).run();
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("server.bind"), "{}", ended.stderr);
}
