//! What a bulk submit costs in memory, whatever its body is. Alone in its process, so
//! that nothing else is counted.

#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;

use tidings_net::{Client, NetOptions};
use tidings_server::{Server, ServerOptions};
use tidings_store::{Role, Store, StoreOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const TOKEN: &str = "tdg_operator-of-the-memory-test";
const BODY_BYTES: usize = 32 << 20;
/// Less than one body: a hundred thousand URLs, and never the body itself.
const MAX_GROWTH: u64 = 24 << 20;

/// Peak memory of the process so far, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

/// Sends a body of the largest size: a start, and then one part again and again.
async fn send(address: SocketAddr, media_type: &str, start: &str, part: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /api/v1/frontier/submit/bulk HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: {media_type}\r\ncontent-length: {BODY_BYTES}\r\nconnection: close\r\n\r\n{start}"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let block = part.repeat((64 << 10) / part.len());
    let mut left = BODY_BYTES - start.len();
    while left > 0 {
        let length = left.min(block.len());
        stream.write_all(&block.as_bytes()[..length]).await.unwrap();
        left -= length;
    }
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_bulk_body_costs_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let store = Store::open(&address, &StoreOptions::default())
        .await
        .unwrap();
    let added = store.add_token("operator", Role::Operator, TOKEN, None);
    added.await.unwrap();
    let options = ServerOptions::new("127.0.0.1:0".parse().unwrap());
    let client = Client::new(NetOptions::default()).unwrap();
    let server = Server::bind(options, store, client).await.unwrap();
    let address = server.address();
    tokio::spawn(server.run(std::future::pending()));
    let too_long = "item 1 is longer than 65536 bytes";
    let entries = [
        ("application/json", "[", "0,", "item 1 is neither"),
        ("application/json", "[\"", "a", too_long),
        ("application/json", "[{\"url\":[", "0,", too_long),
        ("application/json", "[", "\"x\",", "more than 100000 URLs"),
        ("application/x-ndjson", "\"", "a", too_long),
        ("application/x-ndjson", "", "\n", "the body has no URL"),
        ("text/csv", "url\n\"", "a", too_long),
        ("text/csv", "url\n", "x\n", "more than 100000 URLs"),
    ];
    // The first request of a process has costs of its own.
    let said = send(address, entries[0].0, entries[0].1, entries[0].2).await;
    assert!(said.contains("\"field\":\"body\""), "{said}");
    let before = peak();
    for (media_type, start, part, expected) in entries {
        let said = send(address, media_type, start, part).await;
        assert!(said.contains(expected), "{start}{part:?}: {said}");
        let growth = peak() - before;
        assert!(growth < MAX_GROWTH, "{start}{part:?}: {growth} bytes more");
    }
}
