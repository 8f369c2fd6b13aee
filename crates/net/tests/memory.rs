//! What hostile peers cost in memory: 64 concurrently, of every kind, within a bound
//! that is measured. Alone in its process, so that nothing else is counted.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write as _;
use std::time::Duration;

use tidings_net::{Client, Egress, Limits, NetOptions, Purpose, Redirects, Request};
use tidings_sim::{Act, BROTLI_GIBIBYTE, RawServer, zstd_gibibyte};

/// The spec's bound for the whole process is 256 MB; this is what may be added.
const MAX_GROWTH: u64 = 96 * 1024 * 1024;

/// Peak memory of the process so far, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

fn packed(encoding: &str, body: &[u8]) -> Vec<Act> {
    let head = format!("200 OK\r\nContent-Type: text/html\r\nContent-Encoding: {encoding}");
    Act::answer(&head, body)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_hostile_peers_stay_within_the_bound() {
    // Each response is built once and repeated, so that the server holds little.
    let gzip_bomb = gzip(&vec![0; 64 << 20]);
    let zstd_bomb = zstd_gibibyte();
    let endless = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n".to_vec();
    let server = RawServer::start("127.0.0.2:0".parse().unwrap(), move |head| {
        let kind = head.split(['/', '?']).nth(1).unwrap_or_default();
        match kind {
            "gzip" => packed("gzip", &gzip_bomb),
            "zstd" => packed("zstd", &zstd_bomb),
            "brotli" => packed("br", BROTLI_GIBIBYTE),
            "twice" => packed("gzip, gzip", &gzip(&gzip_bomb)),
            "headers" => vec![
                Act::Send(b"HTTP/1.1 200 OK\r\n".to_vec()),
                Act::Repeat(b"X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n".to_vec(), 100_000),
            ],
            "slow" => vec![
                Act::Send(endless.clone()),
                Act::Drip(vec![b'x'; 100], Duration::from_millis(50)),
            ],
            _ => vec![
                Act::Send(endless.clone()),
                Act::Repeat(vec![b'x'; 16 * 1024], 10_000),
            ],
        }
    })
    .await
    .unwrap();
    let client = Client::new(NetOptions {
        limits: Limits {
            rate_window: Duration::from_secs(5),
            page_bytes: 2 * 1024 * 1024,
            ..Limits::default()
        },
        egress: Egress {
            allow: vec!["127.0.0.2/32".parse().unwrap()],
            ports: vec![1..=65535],
        },
        ..NetOptions::default()
    })
    .unwrap();
    let kinds = [
        ("gzip", "compression_bomb"),
        ("zstd", "compression_bomb"),
        ("brotli", "compression_bomb"),
        ("twice", "compression_bomb"),
        ("headers", "headers_too_large"),
        ("slow", "too_slow"),
        ("endless", "too_large"),
    ];
    let before = peak();
    let mut fetches = tokio::task::JoinSet::new();
    for at in 0..64 {
        let (kind, code) = kinds[at % kinds.len()];
        let url = format!("http://{}/{kind}?{at}", server.address());
        let (client, url) = (client.clone(), url.parse().unwrap());
        fetches.spawn(async move {
            let request = Request::get(url, Purpose::Page);
            let failure = client.fetch(request, Redirects::Follow).await;
            (kind, code, failure.map(|response| response.status))
        });
    }
    while let Some(done) = fetches.join_next().await {
        let (kind, code, response) = done.unwrap();
        let failure = response.expect_err(kind);
        assert_eq!(failure.code(), code, "{kind}: {failure}");
    }
    let growth = peak() - before;
    println!("64 hostile peers cost {} MB", growth >> 20);
    assert!(
        growth < MAX_GROWTH,
        "64 hostile peers cost {} MB",
        growth >> 20
    );
}
