//! Requests that bring their own limits, and connections that are not HTTP.

use std::time::Duration;

use tidings_net::{
    Client, Failure, Limits, NetOptions, Purpose, Redirects, Request, Response, Stage,
};
use tidings_sim::Act;
use tokio::io::AsyncReadExt as _;

use crate::{client, home, options, raw, url};

async fn fetch(client: &Client, request: Request) -> Result<Response, Failure> {
    client.fetch(request, Redirects::Report).await
}

#[tokio::test]
async fn a_request_may_have_more_or_less_time_than_others() {
    let slow = raw(|_| {
        let wait = Act::Wait(Duration::from_millis(600));
        std::iter::once(wait)
            .chain(Act::answer("200 OK", b"done"))
            .collect()
    })
    .await;
    let limits = Limits {
        headers: Duration::from_millis(200),
        ..options().limits
    };
    let hasty = Client::new(NetOptions {
        limits,
        ..options()
    })
    .unwrap();
    let mut request = Request::post(url(&home(slow.address())), Purpose::Api, "{}");
    let late = fetch(&hasty, request.clone()).await.unwrap_err();
    assert!(
        matches!(
            late,
            Failure::Timeout {
                stage: Stage::Headers,
                ..
            }
        ),
        "{late}"
    );
    request.time_limit = Some(Duration::from_secs(30));
    assert_eq!(fetch(&hasty, request.clone()).await.unwrap().body, "done");
    let own = Duration::from_millis(150);
    request.time_limit = Some(own);
    let late = fetch(&client(), request).await.unwrap_err();
    assert!(
        matches!(late, Failure::Timeout { limit, .. } if limit == own),
        "{late}"
    );
}

#[tokio::test]
async fn of_an_endless_response_only_the_start_is_read() {
    let endless = raw(|_| {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10000000000\r\n\r\n";
        vec![
            Act::Send(head.into()),
            Act::Repeat(vec![b'x'; 4096], 1 << 30),
        ]
    })
    .await;
    let mut request = Request::post(url(&home(endless.address())), Purpose::Api, "{}");
    request.read_at_most = Some(1000);
    let response = fetch(&client(), request).await.unwrap();
    assert_eq!(
        (response.status, response.body.len(), response.is_cut),
        (200, 1000, true)
    );
}

#[tokio::test]
async fn other_protocols_pass_the_same_guard() {
    let peer = raw(|_| vec![Act::Send(b"hello".to_vec())]).await;
    let client = client();
    let host = peer.address().ip().to_string();
    let mut stream = client.connect(&host, peer.address().port()).await.unwrap();
    tokio::io::AsyncWriteExt::shutdown(&mut stream)
        .await
        .unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).await.unwrap();
    assert_eq!(said, b"hello");
    for forbidden in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "10.0.0.1",
        "169.254.169.254",
    ] {
        let refused = client.connect(forbidden, 4222).await.unwrap_err();
        assert!(
            matches!(refused, Failure::Egress(_)),
            "{forbidden}: {refused}"
        );
    }
}
