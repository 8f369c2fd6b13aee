//! Peers that are slow, endless, dishonest or explosive: each ends with its own
//! typed failure, or with exactly the bytes that were promised.

use std::sync::Arc;
use std::time::Duration;

use tidings_net::{Media, Redirects};
use tidings_sim::{Act, RawServer};

use crate::{client, get, home, page, path, raw};

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
pub(crate) fn gzip_gibibyte() -> Vec<u8> {
    let mut compress = flate2::Compress::new(flate2::Compression::best(), false);
    let mut block = Vec::with_capacity(1 << 16);
    compress
        .compress_vec(&vec![0; 1 << 20], &mut block, flate2::FlushCompress::Full)
        .unwrap();
    let mut bomb = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    for _ in 0..1024 {
        bomb.extend_from_slice(&block);
    }
    bomb.extend_from_slice(&[3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    bomb
}

/// Zstandard of a gibibyte: blocks of 128 KiB that repeat one byte.
pub(crate) fn zstd_gibibyte() -> Vec<u8> {
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    for at in 0..8192_u32 {
        let is_last = u32::from(at == 8191);
        let header = is_last | 1 << 1 | (128 * 1024) << 3;
        bomb.extend_from_slice(&header.to_le_bytes()[..3]);
        bomb.push(b'a');
    }
    bomb
}

pub(crate) const BROTLI_GIBIBYTE: &[u8] = include_bytes!("../data/gigabyte.br");

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// What each path of the hostile server does, and how it must end.
fn cases() -> Vec<(&'static str, Vec<Act>, &'static str)> {
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
            "no answer",
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
            "a 304 that nobody asked for",
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
            "an encoding that nobody knows",
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

#[tokio::test]
async fn every_hostile_answer_has_its_own_end() {
    let cases = Arc::new(cases());
    let script = Arc::clone(&cases);
    let server = raw(move |head| {
        let at: usize = path(head).trim_start_matches('/').parse().unwrap();
        script[at].1.clone()
    })
    .await;
    let mut options = crate::options();
    options.limits.page_bytes = 10 << 20;
    let client = tidings_net::Client::new(options).unwrap();
    let mut fetches = tokio::task::JoinSet::new();
    for at in 0..cases.len() {
        let (client, address) = (client.clone(), format!("{}{at}", home(server.address())));
        fetches.spawn(async move { (at, get(&client, &address).await) });
    }
    while let Some(done) = fetches.join_next().await {
        let (at, answer) = done.unwrap();
        let (name, _, code) = &cases[at];
        let failure = answer.map(|answer| answer.status).expect_err(name);
        assert_eq!(failure.code(), *code, "{name}: {failure}");
    }
    assert_eq!(client.idle_connections(), 0, "no broken connection is kept");
}

#[tokio::test]
async fn odd_answers_are_read_as_they_are_meant() {
    let server = raw(|head| match path(head) {
        "/more-than-promised" => vec![Act::Send(
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more".to_vec(),
        )],
        "/hints" => vec![Act::Send(
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                .to_vec(),
        )],
        "/999" => Act::answer("999 Go Away", b"no"),
        "/old" => vec![Act::Send(b"HTTP/1.0 200 OK\r\n\r\nuntil the close".to_vec())],
        "/plain-gzip" => encoded("gzip", b"<p>not packed at all</p>"),
        _ => Act::answer("404 Not Found", b"nothing here"),
    })
    .await;
    let client = client();
    let rows = [
        ("more-than-promised", 200, "hello"),
        ("hints", 200, "ok"),
        ("999", 999, "no"),
        ("old", 200, "until the close"),
        ("plain-gzip", 200, "<p>not packed at all</p>"),
        ("elsewhere", 404, "nothing here"),
    ];
    for (name, status, body) in rows {
        let answer = get(&client, &format!("{}{name}", home(server.address())))
            .await
            .unwrap();
        assert_eq!(
            (answer.status, &answer.body[..]),
            (status, body.as_bytes()),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_film_is_left_after_the_first_bytes() {
    let film = [b"\0\0\0\x18ftypmp42".to_vec(), vec![7; 200 * 1024]].concat();
    let server = raw(move |_| Act::answer("200 OK\r\nContent-Type: text/html", &film)).await;
    let client = client();
    let answer = get(&client, &home(server.address())).await.unwrap();
    assert!(answer.is_cut);
    assert_eq!((answer.media, answer.body.len()), (Media::Video, 64 * 1024));
    assert_eq!(client.idle_connections(), 0);
}

#[tokio::test]
async fn nobody_at_home_is_a_failure_to_connect() {
    // Nothing listens on port 1, and no test is given it.
    let failure = get(&client(), "http://127.0.0.2:1/").await.unwrap_err();
    assert_eq!(failure.code(), "connect");
}

#[tokio::test]
async fn a_connection_is_used_again_and_a_dead_one_replaced() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // Two answers a connection, then it closes when the third request comes.
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                for nth in 1.. {
                    if stream.read(&mut request).await.unwrap_or(0) == 0 || nth == 3 {
                        return;
                    }
                    let body = format!("{nth}");
                    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{body}");
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    let client = client();
    let mut bodies = String::new();
    for _ in 0..5 {
        let answer = get(&client, &home(address)).await.unwrap();
        bodies.push_str(&answer.text().text);
    }
    assert_eq!(bodies, "12121");
}

#[tokio::test]
async fn what_we_have_is_not_sent_again() {
    let server = raw(|head| {
        let head = head.to_lowercase();
        let knows = head.contains("if-none-match: \"v1\"")
            && head.contains("if-modified-since: sun, 15 nov 2026 08:00:00 gmt");
        match knows {
            true => vec![Act::Send(b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec())],
            false => Act::answer("200 OK\r\nETag: \"v1\"", b"text"),
        }
    })
    .await;
    let mut request = page(&home(server.address()));
    let client = client();
    let first = client
        .fetch(request.clone(), Redirects::Follow)
        .await
        .unwrap();
    assert_eq!((first.status, first.header("etag")), (200, Some("\"v1\"")));
    request.etag = first.header("etag").map(str::to_owned);
    request.last_modified = Some("Sun, 15 Nov 2026 08:00:00 GMT".to_owned());
    let again = client.fetch(request, Redirects::Follow).await.unwrap();
    assert_eq!((again.status, again.body.len()), (304, 0));
}

#[tokio::test]
async fn we_say_who_we_are_and_what_we_read() {
    let heads = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    let server = RawServer::start(crate::PEER.parse().unwrap(), move |head| {
        seen.lock().unwrap().push(head.to_lowercase());
        Act::answer("200 OK", b"")
    })
    .await
    .unwrap();
    let mut options = crate::options();
    options.contact = "https://example.org/bot".to_owned();
    let client = tidings_net::Client::new(options).unwrap();
    get(&client, &format!("{}a?b=1", home(server.address())))
        .await
        .unwrap();
    let mut special = page(&home(server.address()));
    special.user_agent = Some("Special/1".to_owned());
    client.fetch(special, Redirects::Follow).await.unwrap();
    let heads = heads.lock().unwrap();
    assert!(
        heads[0].starts_with("get /a?b=1 http/1.1\r\n"),
        "{}",
        heads[0]
    );
    assert!(heads[0].contains(&format!("host: {}\r\n", server.address())));
    assert!(heads[0].contains("user-agent: tidings/"));
    assert!(heads[0].contains("(+https://example.org/bot)\r\n"));
    assert!(heads[0].contains("accept-encoding: gzip, deflate, br, zstd\r\n"));
    assert!(heads[1].contains("user-agent: special/1\r\n"));
}
