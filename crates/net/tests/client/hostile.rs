//! Peers that are slow, endless, dishonest or explosive: each ends with its own
//! typed failure, or with exactly the bytes that were promised.

use std::sync::Arc;

use tidings_net::{Media, Redirects};
use tidings_sim::{Act, HostileResponse, RawServer, hostile_responses};

use crate::{client, get, home, page, path, raw};

#[tokio::test]
async fn every_hostile_answer_has_its_own_end() {
    let cases = Arc::new(hostile_responses());
    let script = Arc::clone(&cases);
    let server = raw(move |head| {
        let at: usize = path(head).trim_start_matches('/').parse().unwrap();
        script[at].acts.clone()
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
        let (at, response) = done.unwrap();
        let HostileResponse { name, ends, .. } = &cases[at];
        let failure = response.map(|response| response.status).expect_err(name);
        assert_eq!(failure.code(), *ends, "{name}: {failure}");
    }
    assert_eq!(
        client.idle_connections(),
        0,
        "no broken connection is pooled"
    );
}

#[tokio::test]
async fn odd_responses_are_read_as_they_are_meant() {
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
        "/plain-gzip" => Act::answer(
            "200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip",
            b"<p>not packed at all</p>",
        ),
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
        let response = get(&client, &format!("{}{name}", home(server.address())))
            .await
            .unwrap();
        assert_eq!(
            (response.status, &response.body[..]),
            (status, body.as_bytes()),
            "{name}"
        );
    }
}

/// Each member is whole and decodes to nothing: only what is received counts.
#[tokio::test]
async fn a_body_that_never_decodes_to_anything_is_too_large_all_the_same() {
    const EMPTY_MEMBER: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0";
    let server = raw(|head| {
        let members = match path(head) {
            "/few" => 100,
            _ => 20_000,
        };
        let body = EMPTY_MEMBER.repeat(members);
        Act::answer("200 OK\r\nContent-Encoding: gzip", &body)
    })
    .await;
    let client = client();
    let few = get(&client, &format!("{}few", home(server.address()))).await;
    assert_eq!(few.unwrap().body.len(), 0);
    let failure = get(&client, &home(server.address())).await.unwrap_err();
    assert_eq!(failure.code(), "too_large", "{failure}");
}

#[tokio::test]
async fn a_film_is_left_after_the_first_bytes() {
    let film = [b"\0\0\0\x18ftypmp42".to_vec(), vec![7; 200 * 1024]].concat();
    let server = raw(move |_| Act::answer("200 OK\r\nContent-Type: text/html", &film)).await;
    let client = client();
    let response = get(&client, &home(server.address())).await.unwrap();
    assert!(response.is_cut);
    assert_eq!(
        (response.media, response.body.len()),
        (Media::Video, 64 * 1024)
    );
    assert_eq!(client.idle_connections(), 0);
}

#[tokio::test]
async fn a_closed_port_is_a_failure_to_connect() {
    // Nothing listens on port 1, and no test uses it.
    let failure = get(&client(), "http://127.0.0.2:1/").await.unwrap_err();
    assert_eq!(failure.code(), "connect");
}

#[tokio::test]
async fn a_connection_is_used_again_and_a_dead_one_replaced() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // Two responses per connection, then it closes when the third request comes.
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
                    let response = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{body}");
                    stream.write_all(response.as_bytes()).await.unwrap();
                }
            });
        }
    });
    let client = client();
    let mut bodies = String::new();
    for _ in 0..5 {
        let response = get(&client, &home(address)).await.unwrap();
        bodies.push_str(&response.text().text);
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
    let mut named = crate::options();
    named.user_agent = "NorthCloud-Crawler/1.0".to_owned();
    named.contact = "https://example.org/bot".to_owned();
    let named = tidings_net::Client::new(named).unwrap();
    get(&named, &home(server.address())).await.unwrap();
    let heads = heads.lock().unwrap();
    assert!(heads[2].contains("user-agent: northcloud-crawler/1.0 (+https://example.org/bot)\r\n"));
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
