//! Responses that are slow, endless, dishonest or explosive, and every way to
//! spell this machine's own address: what a client on the open web must survive.

use std::io::Write as _;
use std::time::Duration;

use flate2::write::GzEncoder;
use flate2::{Compress, Compression, FlushCompress};

use crate::raw::Act;

const SLOW: Duration = Duration::from_millis(40);

fn chunked(head: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{head}Transfer-Encoding: chunked\r\n\r\n")
}

fn encoded(encoding: &str, body: &[u8]) -> Vec<Act> {
    Act::answer(
        &format!("200 OK\r\nContent-Type: text/html\r\nContent-Encoding: {encoding}"),
        body,
    )
}

/// Gzip of a gibibyte of zeros: one mebibyte, closed with a full flush, over
/// and over.
fn gzip_gibibyte() -> Vec<u8> {
    let mut compress = Compress::new(Compression::best(), false);
    let mut block = Vec::with_capacity(1 << 16);
    let packed = compress.compress_vec(&vec![0; 1 << 20], &mut block, FlushCompress::Full);
    packed.expect("zeros can be packed, and there is room for them");
    let mut bomb = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    for _ in 0..1024 {
        bomb.extend_from_slice(&block);
    }
    bomb.extend_from_slice(&[3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    bomb
}

/// Zstandard of a gibibyte: blocks of 128 KiB that repeat one byte.
pub fn zstd_gibibyte() -> Vec<u8> {
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    for at in 0..8192_u32 {
        let is_last = u32::from(at == 8191);
        let header = is_last | 1 << 1 | (128 * 1024) << 3;
        bomb.extend_from_slice(&header.to_le_bytes()[..3]);
        bomb.push(b'a');
    }
    bomb
}

/// Brotli of a gibibyte.
pub const BROTLI_GIBIBYTE: &[u8] = include_bytes!("../data/gigabyte.br");

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .expect("memory can be written to")
}

/// A hostile response, and the code of the failure that it must end with: in a
/// client with a timeout of seconds for the head, at least a kilobyte per second
/// and at most ten mebibytes for the body.
#[derive(Debug, Clone)]
pub struct HostileResponse {
    pub name: &'static str,
    pub acts: Vec<Act>,
    pub ends: &'static str,
}

/// Every response that is known to have harmed a client.
pub fn hostile_responses() -> Vec<HostileResponse> {
    let response = |(name, acts, ends)| HostileResponse { name, acts, ends };
    table().into_iter().map(response).collect()
}

fn table() -> Vec<(&'static str, Vec<Act>, &'static str)> {
    let ok = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
    let send = |text: &str| Act::Send(text.as_bytes().to_vec());
    let headers = |n: usize, size: usize| format!("X-Filler: {}\r\n", "x".repeat(size)).repeat(n);
    let bomb = gzip_gibibyte();
    vec![
        (
            "one byte of the head at a time",
            vec![Act::Drip(ok.as_bytes().to_vec(), SLOW * 5)],
            "timeout",
        ),
        (
            "no response",
            vec![Act::Wait(Duration::from_secs(60))],
            "timeout",
        ),
        (
            "one byte of the body at a time",
            vec![
                send(&format!("{ok}Content-Length: 5000\r\n\r\n")),
                Act::Drip(vec![b'x'; 5000], SLOW),
            ],
            "too_slow",
        ),
        (
            "a body that stops",
            vec![
                send(&format!("{ok}Content-Length: 5000\r\n\r\nabc")),
                Act::Wait(Duration::from_secs(60)),
            ],
            "too_slow",
        ),
        (
            "a body without end, by chunks",
            vec![
                send(&chunked("")),
                Act::Repeat(
                    format!("1000\r\n{}\r\n", "x".repeat(4096)).into_bytes(),
                    1_000_000,
                ),
            ],
            "too_large",
        ),
        (
            "a body without end, until the close",
            vec![
                send(&format!("{ok}\r\n")),
                Act::Repeat(vec![b'x'; 4096], 1_000_000),
            ],
            "too_large",
        ),
        (
            "a body that never ends, though fast enough",
            std::iter::once(send(&chunked("")))
                .chain((0..100).flat_map(|_| {
                    let chunk = format!("800\r\n{}\r\n", "x".repeat(2048));
                    [Act::Send(chunk.into_bytes()), Act::Wait(SLOW * 2)]
                }))
                .collect(),
            "timeout",
        ),
        (
            "half of what was promised",
            vec![send(&format!(
                "{ok}Content-Length: 1000\r\n\r\n{}",
                "x".repeat(500)
            ))],
            "truncated",
        ),
        (
            "a close in a chunk",
            vec![send(&chunked("")), send("1000\r\nabc")],
            "truncated",
        ),
        (
            "chunks without an end",
            vec![send(&chunked("")), send("3\r\nabc\r\n")],
            "truncated",
        ),
        (
            "a reset in the body",
            vec![
                send(&format!("{ok}Content-Length: 1000\r\n\r\nabc")),
                Act::Wait(SLOW),
                Act::Reset,
            ],
            "truncated",
        ),
        (
            "two lengths",
            vec![send(&format!(
                "{ok}Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde"
            ))],
            "protocol",
        ),
        (
            "a negative length",
            vec![send(&format!("{ok}Content-Length: -3\r\n\r\nabc"))],
            "protocol",
        ),
        (
            "headers of 80 KB",
            vec![send(&format!("{ok}{}\r\n", headers(80, 1000)))],
            "headers_too_large",
        ),
        (
            "one header of 1 MB",
            vec![send(&format!("{ok}{}\r\n", headers(1, 1_000_000)))],
            "headers_too_large",
        ),
        (
            "ten thousand cookies",
            vec![send(&format!(
                "{ok}{}\r\n",
                "Set-Cookie: a=b\r\n".repeat(10_000)
            ))],
            "headers_too_large",
        ),
        (
            "a location of 100 KB",
            vec![send(&format!(
                "HTTP/1.1 302 Found\r\nLocation: /{}\r\n\r\n",
                "x".repeat(100_000)
            ))],
            "headers_too_large",
        ),
        (
            "a location of 20 KB",
            vec![send(&format!(
                "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /{}\r\n\r\n",
                "x".repeat(20_000)
            ))],
            "bad_redirect",
        ),
        (
            "a redirect without a location",
            Act::answer("302 Found", b""),
            "bad_redirect",
        ),
        (
            "a redirect to a file",
            Act::answer("302 Found\r\nLocation: file:///etc/passwd", b""),
            "bad_redirect",
        ),
        (
            "an unconditional 304",
            vec![send("HTTP/1.1 304 Not Modified\r\n\r\n")],
            "unasked_not_modified",
        ),
        ("HTTP/0.9", vec![send("<html>hello</html>")], "protocol"),
        ("noise", vec![Act::Send((0..=255).collect())], "protocol"),
        ("a close without a word", vec![], "disconnected"),
        ("a reset without a word", vec![Act::Reset], "disconnected"),
        (
            "a close after 100 Continue",
            vec![send("HTTP/1.1 100 Continue\r\n\r\n")],
            "disconnected",
        ),
        (
            "a close in the head",
            vec![send("HTTP/1.1 200 OK\r\nContent-")],
            "disconnected",
        ),
        ("a gzip bomb", encoded("gzip", &bomb), "compression_bomb"),
        (
            "a brotli bomb",
            encoded("br", BROTLI_GIBIBYTE),
            "compression_bomb",
        ),
        (
            "a zstd bomb",
            encoded("zstd", &zstd_gibibyte()),
            "compression_bomb",
        ),
        (
            "a gzip bomb twice packed",
            encoded("gzip, gzip", &gzip(&bomb)),
            "compression_bomb",
        ),
        (
            "a gzip bomb in brotli's name",
            encoded("br", &bomb),
            "bad_encoding",
        ),
        (
            "three encodings",
            encoded("gzip, gzip, br", b"x"),
            "too_many_encodings",
        ),
        (
            "ten encodings",
            encoded(&["gzip"; 10].join(", "), b"x"),
            "too_many_encodings",
        ),
        (
            "an unknown encoding",
            encoded("rot13", b"x"),
            "bad_encoding",
        ),
        (
            "half a gzip",
            encoded("gzip", &gzip(&[b'x'; 5000])[..20]),
            "truncated",
        ),
    ]
}

/// Names of this machine, as attackers spell them in links.
pub const LOOPBACK_SPELLINGS: &[&str] = &[
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "0177.1",
    "017700000001",
    "0x7f.0x0.0x0.0x1",
    "127.0.0.1.",
    "１２７.０.０.１",
    "127。0。0。1",
    "①②⑦.0.0.1",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "0",
    "0.0.0.0",
    "0x0",
    "00",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
];
