//! Redirects and refreshes: followed to a bound, never in a circle, and nothing
//! that is for one origin goes to another.

use std::sync::{Arc, Mutex};

use tidings_net::http::{HeaderName, HeaderValue};
use tidings_net::{Client, Credentials, Redirects};
use tidings_sim::{Act, RawServer};

use crate::{OTHER_PEER, client, get, home, options, page, path, raw};

fn to(location: &str) -> Vec<Act> {
    Act::answer(&format!("302 Found\r\nLocation: {location}"), b"")
}

#[tokio::test]
async fn chains_are_followed_to_their_end() {
    let server = raw(|head| match path(head) {
        "/1" => Act::answer("301 Moved\r\nLocation: /2", b""),
        "/2" => Act::answer("308 Moved\r\nLocation: 3", b""),
        "/3" => Act::answer(
            "200 OK\r\nContent-Type: text/html",
            b"<meta http-equiv=refresh content='0; url=/4'>",
        ),
        _ => Act::answer("200 OK\r\nContent-Type: text/html", b"<p>the end"),
    })
    .await;
    let base = home(server.address());
    let response = get(&client(), &format!("{base}1")).await.unwrap();
    assert_eq!(response.url.as_str(), format!("{base}4"));
    assert_eq!(&response.body[..], b"<p>the end");
    let hops: Vec<_> = response
        .hops
        .iter()
        .map(|hop| (hop.status, hop.is_permanent()))
        .collect();
    assert_eq!(hops, [(301, true), (308, true), (200, false)]);

    let request = page(&format!("{base}1"));
    let reported = client().fetch(request, Redirects::Report).await.unwrap();
    assert_eq!((reported.status, reported.hops.len()), (301, 0));
}

#[tokio::test]
async fn circles_and_long_chains_end() {
    let server = raw(|head| match path(head) {
        "/self" => to("/self"),
        "/a" => to("/b"),
        "/b" => to("/a"),
        "/refresh" => Act::answer(
            "200 OK\r\nContent-Type: text/html",
            b"<meta http-equiv=refresh content='0; url=/a'>",
        ),
        "/reload" => Act::answer(
            "200 OK\r\nContent-Type: text/html",
            b"<meta http-equiv=refresh content='5; url=/reload'>still a page",
        ),
        numbered => {
            let n: u32 = numbered.trim_start_matches('/').parse().unwrap_or(0);
            if n == 0 {
                Act::answer("200 OK", b"end")
            } else {
                to(&format!("/{}", n - 1))
            }
        }
    })
    .await;
    let base = home(server.address());
    let client = client();
    for (start, code, requests) in [
        ("self", "redirect_loop", 1),
        ("a", "redirect_loop", 2),
        ("refresh", "redirect_loop", 3),
        ("6", "too_many_redirects", 6),
    ] {
        let before = server.connections();
        let failure = get(&client, &format!("{base}{start}")).await.unwrap_err();
        assert_eq!(failure.code(), code, "{start}");
        assert_eq!(server.connections() - before, requests, "{start}");
    }
    assert_eq!(
        get(&client, &format!("{base}5")).await.unwrap().hops.len(),
        5
    );
    assert_eq!(
        get(&client, &format!("{base}reload"))
            .await
            .unwrap()
            .hops
            .len(),
        0
    );
}

#[tokio::test]
async fn secrets_stay_with_their_origin() {
    let heads = Arc::new(Mutex::new(Vec::<String>::new()));
    let note = |heads: &Arc<Mutex<Vec<String>>>| {
        let heads = Arc::clone(heads);
        move |head: &str| heads.lock().unwrap().push(head.to_lowercase())
    };
    let noted = note(&heads);
    let other = RawServer::start(OTHER_PEER.parse().unwrap(), move |head| {
        noted(head);
        Act::answer("200 OK", b"here")
    })
    .await
    .unwrap();
    let elsewhere = home(other.address());
    let noted = note(&heads);
    let first = raw(move |head| {
        noted(head);
        match path(head) {
            "/start" => to("/same"),
            _ => to(&elsewhere),
        }
    })
    .await;
    let mut options = options();
    options.credentials = vec![Credentials::new("127.0.0.2", "me", "secret").unwrap()];
    let client = Client::new(options).unwrap();
    let mut request = page(&format!("{}start", home(first.address())));
    request.headers = vec![(
        HeaderName::from_static("x-api-key"),
        HeaderValue::from_static("canary"),
    )];
    client.fetch(request, Redirects::Follow).await.unwrap();
    let heads = heads.lock().unwrap();
    assert_eq!(heads.len(), 3);
    for head in &heads[..2] {
        assert!(
            head.contains("x-api-key: canary")
                && head.contains("authorization: basic bwu6c2vjcmv0"),
            "{head}"
        );
    }
    assert!(
        !heads[2].contains("canary") && !heads[2].contains("authorization"),
        "{}",
        heads[2]
    );
}

#[tokio::test]
async fn a_post_is_not_repeated_elsewhere() {
    let server = raw(|_| to("/again")).await;
    let mut request = page(&home(server.address()));
    request.method = tidings_net::http::Method::POST;
    request.body = "{}".into();
    let response = client().fetch(request, Redirects::Follow).await.unwrap();
    assert_eq!((response.status, server.connections()), (302, 1));
}
