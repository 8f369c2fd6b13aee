//! The dashboard: every page renders, untrusted text stays text, and the forms make
//! their changes.

use serde_json::json;
use tidings_server::described_routes;
use tidings_store::{Moment, Outcome};

use crate::access::log_in;
use crate::fixture::{ADMIN, Served, VIEWER};

/// Known attack strings.
const XSS: [&str; 7] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "'><svg/onload=alert(1)>",
    "</title><script>alert(1)</script>",
    "javascript:alert(1)",
    "{{constructor.constructor('alert(1)')()}}",
    "<a href=\"javascript:alert(1)\">x</a>",
];

/// A store where every untrusted text is an attack.
async fn attacked() -> (Served, Vec<String>) {
    let served = Served::start().await;
    let mut paths: Vec<String> = described_routes()
        .iter()
        .filter(|route| route.is_page && route.method == "GET" && !route.path.contains('{'))
        .filter(|route| !route.path.contains('.'))
        .map(|route| match route.path {
            "/explain" => "/explain?url=https%3A%2F%2Fa.example%2F".to_owned(),
            path => path.to_owned(),
        })
        .collect();
    for (n, attack) in XSS.iter().enumerate() {
        let url = format!("https://attack-{n}.example/?{}", attack.replace(' ', "%20"));
        let id = served.fetched(&url, attack).await;
        paths.push(format!("/frontier/{id}"));
        paths.push(format!("/documents/{id}"));
        let dead = format!("https://dead-{n}.example/{}", attack.replace(' ', "%20"));
        let id = served.submitted(&dead).await;
        let died = |_: &str| Outcome::Dead {
            reason: (*attack).to_owned(),
            error: Some((*attack).to_owned()),
        };
        served.complete_all(died).await;
        paths.push(format!("/frontier/{id}"));
        let host = tidings_store::HostId::of(&crate::fixture::target(&dead).host);
        served
            .store
            .block_host(host, Moment::NEVER, attack)
            .await
            .unwrap();
        paths.push(format!("/hosts/dead-{n}.example"));
        let draft = json!({ "url": url, "name": attack, "feed_url": format!("https://attack-{n}.example/feed?{}", attack.replace(' ', "%20")), "tags": [attack] });
        let source = served.post("/api/v1/sources", &draft).await.good();
        let id = source["source_id"].as_i64().unwrap();
        paths.push(format!("/sources/{id}"));
        served
            .store
            .set_source_enabled(id, Some(attack))
            .await
            .unwrap();
        let feed = served.store.feeds_of_source(id).await.unwrap().remove(0);
        paths.push(format!("/feeds/{}", feed.feed_id));
        let claim = served
            .store
            .claim_feed(feed.feed_id, std::time::Duration::from_secs(9))
            .await
            .unwrap()
            .unwrap();
        let result = tidings_store::PollResult {
            feed: tidings_store::Feed {
                consecutive_errors: 5,
                error_class: Some((*attack).to_owned()),
                last_error: Some((*attack).to_owned()),
                paused_reason: Some((*attack).to_owned()),
                ..feed
            },
            next_poll_in: std::time::Duration::from_secs(60),
            log: tidings_store::FetchLogRow {
                started_at: Moment(1_700_000_000_000),
                elapsed_ms: 1,
                outcome: "failed".to_owned(),
                items_seen: 0,
                items_new: 0,
                error_class: Some((*attack).to_owned()),
                error_message: Some((*attack).to_owned()),
                bytes: 0,
            },
        };
        served.store.complete_poll(&claim, &result).await.unwrap();
        let name = format!("sink{n}");
        served.with_dead_letter(&name, attack).await;
        paths.push(format!("/sinks/{name}"));
        served
            .post(
                "/api/v1/tokens",
                &json!({ "name": attack, "role": "viewer" }),
            )
            .await
            .good();
    }
    for query in ["q", "host", "reason"] {
        let pair = crate::fixture::url_encoded(&[(query, XSS[1])]);
        paths.push(format!("/frontier?{pair}"));
    }
    paths.push(format!(
        "/documents?{}",
        crate::fixture::url_encoded(&[("q", XSS[1]), ("source", XSS[0])])
    ));
    paths.push(format!(
        "/login?{}",
        crate::fixture::url_encoded(&[("next", XSS[1])])
    ));
    paths.push(format!(
        "/frontier?{}",
        crate::fixture::url_encoded(&[("status", XSS[0])])
    ));
    paths.push(format!(
        "/frontier?{}",
        crate::fixture::url_encoded(&[(XSS[0], "1")])
    ));
    (served, paths)
}

#[tokio::test]
async fn untrusted_text_stays_text_on_every_page() {
    let (served, paths) = attacked().await;
    let (cookie, _) = log_in(&served, ADMIN).await;
    assert!(paths.len() > 50);
    let mut shown = 0;
    for path in paths {
        let response = served
            .request("GET", &path)
            .header("cookie", &cookie)
            .send()
            .await;
        assert!(
            [200, 303, 400].contains(&response.status),
            "{path}: {} {}",
            response.status,
            response.text
        );
        let text = response.text.to_lowercase();
        for part in [
            "<img src=x",
            "<svg/onload",
            "<script>",
            "href=\"javascript:",
            "href='javascript:",
            "onerror=alert(1)>",
            "style=\"",
            " onclick",
        ] {
            assert!(!text.contains(part), "{path} has {part}");
        }
        assert_eq!(
            text.matches("<script").count(),
            usize::from(response.status != 303),
            "{path}: the only script is ours"
        );
        shown += usize::from(text.contains("alert(1)"));
    }
    assert!(shown > 30, "the attacks are there to be seen: {shown}");
}

#[tokio::test]
async fn forms_make_their_changes() {
    let served = Served::start().await;
    let (cookie, csrf) = log_in(&served, ADMIN).await;
    let send = async |path: &str, fields: &[(&str, &str)]| {
        let mut all = vec![("csrf", csrf.as_str())];
        all.extend(fields);
        served
            .request("POST", path)
            .header("cookie", &cookie)
            .header("sec-fetch-site", "same-origin")
            .form(&all)
            .send()
            .await
    };
    let response = send(
        "/frontier/submit",
        &[("urls", "https://a.example/1\n\nhttps://a.example/2\n")],
    )
    .await;
    assert_eq!(response.header("location"), "/frontier?done=submitted&n=2");
    served
        .complete_all(|_| Outcome::Dead {
            reason: "gone".to_owned(),
            error: None,
        })
        .await;
    let preview = send("/frontier/bulk", &[("action", "retry"), ("status", "dead")]).await;
    assert!(
        preview.text.contains("Retry 2 URLs?") && preview.text.contains("https://a.example/1"),
        "{}",
        preview.text
    );
    assert_eq!(
        served.get("/api/v1/frontier/stats").await.good()["by_status"]["dead"],
        2,
        "a preview changes nothing"
    );
    let done = send(
        "/frontier/bulk",
        &[("action", "retry"), ("status", "dead"), ("confirmed", "1")],
    )
    .await;
    assert_eq!(done.header("location"), "/frontier?done=retried&n=2");
    served
        .complete_all(|_| Outcome::Dead {
            reason: "gone".to_owned(),
            error: None,
        })
        .await;

    assert_eq!(
        send("/frontier/bulk", &[("action", "delete")]).await.status,
        400,
        "an empty filter is an error"
    );

    let fields = [
        ("url", "https://paper.example/"),
        ("name", "Paper"),
        ("feed_url", "https://paper.example/feed"),
        ("priority", "8"),
        ("tags", "x, y"),
        ("selector_title", "h1.t"),
        ("poll_policy", ""),
        ("ingestion_mode", "both"),
        ("max_depth", "3"),
        ("external_per_day", ""),
        ("article_url_patterns", "/story/[0-9]+\r\n\r\n/20[0-9]{2}/"),
    ];
    let made = send("/sources", &fields).await;
    assert_eq!(made.status, 303, "{}", made.text);
    let path = made
        .header("location")
        .split('?')
        .next()
        .unwrap()
        .to_owned();
    let page = served
        .request("GET", &path)
        .header("cookie", &cookie)
        .send()
        .await;
    for part in [
        "value=\"Paper\"",
        "value=\"https://paper.example/feed\"",
        "value=\"h1.t\"",
        "value=\"x, y\"",
        "name=\"max_depth\" value=\"3\"",
        ">/story/[0-9]+\n/20[0-9]{2}/</textarea>",
    ] {
        assert!(page.text.contains(part), "{part}");
    }
    let saved = send(
        &path,
        &[
            ("url", "https://paper.example/"),
            ("name", "Paper 2"),
            ("priority", "3"),
        ],
    )
    .await;
    assert_eq!(saved.status, 303, "{}", saved.text);
    let wrong = send(
        &path,
        &[
            ("url", "https://paper.example/"),
            ("feed_poll_interval_minutes", "often"),
        ],
    )
    .await;
    assert!(
        wrong.status == 400 && wrong.text.contains("feed_poll_interval_minutes"),
        "{}",
        wrong.text
    );
    for (action, status) in [
        ("disable", 303),
        ("enable", 303),
        ("delete", 303),
        ("delete", 404),
    ] {
        assert_eq!(
            send(&format!("{path}/{action}"), &[]).await.status,
            status,
            "{action}"
        );
    }
    let csv = send(
        "/sources/import",
        &[("format", "csv"), ("list", "url\nhttps://b.example/\n")],
    )
    .await;
    assert_eq!(csv.header("location"), "/sources?done=imported&n=1");

    let host = "/hosts/a.example";
    assert_eq!(
        send(host, &[("delay_ms", "300"), ("max_in_flight", "2")])
            .await
            .status,
        303
    );
    assert_eq!(
        send(&format!("{host}/block"), &[("reason", "their request")])
            .await
            .status,
        303
    );
    assert_eq!(send(&format!("{host}/unblock"), &[]).await.status, 303);

    served.with_dead_letter("index", "no").await;
    assert_eq!(
        send("/sinks/index/retry", &[]).await.header("location"),
        "/sinks/index?done=retried&n=1"
    );
    assert_eq!(
        send("/sinks/index/replay", &[("since", "")]).await.status,
        303
    );

    for (action, notice) in [
        ("disable", "/sinks/index?done=sink-disabled"),
        ("enable", "/sinks/index?done=sink-enabled&n=0"),
        ("delete", "/sinks?done=sink-removed"),
    ] {
        let sent = send(&format!("/sinks/index/{action}"), &[]).await;
        assert_eq!(sent.header("location"), notice);
    }

    let made = send("/tokens", &[("name", "ci"), ("role", "viewer")]).await;
    assert!(made.text.contains("tdg_"), "its secret is shown");
    let page = served
        .request("GET", "/tokens")
        .header("cookie", &cookie)
        .send()
        .await;
    assert!(!page.text.contains("tdg_"), "once");
}

#[tokio::test]
async fn a_viewer_sees_no_buttons_of_operators() {
    let served = Served::start().await;
    served.with_dead_letter("index", "no").await;
    let (cookie, _) = log_in(&served, VIEWER).await;
    for path in ["/", "/frontier", "/sources", "/sinks/index", "/hosts"] {
        let page = served
            .request("GET", path)
            .header("cookie", &cookie)
            .send()
            .await;
        let forms = page.text.matches("method=\"post\"").count();
        assert_eq!(forms, 1, "{path}: only the one to log out");
        assert!(!page.text.contains("/tokens"), "{path}");
    }
}

#[tokio::test]
async fn pages_never_show_secrets() {
    let canary = "canary-5f1c";
    let served = Served::start_with(|options| {
        options.settings = vec![tidings_server::Setting {
            key: "store".to_owned(),
            value: "postgres://me:***@db/tidings".to_owned(),
            origin: "default".to_owned(),
        }];
    })
    .await;
    // A secret that is sent in the wrong place is never echoed.
    served
        .request("GET", "/api/v1/frontier")
        .token(canary)
        .send()
        .await;
    served
        .request("POST", "/login")
        .form(&[("token", canary)])
        .send()
        .await;
    for route in described_routes()
        .iter()
        .filter(|route| route.method == "GET" && !route.is_stream)
    {
        let response = served.get(&crate::roles::filled(route.path)).await;
        assert!(
            !response.text.contains(canary) && !response.text.contains(ADMIN),
            "{}",
            route.path
        );
    }
    assert!(
        served
            .get("/settings")
            .await
            .text
            .contains("postgres://me:***@db/tidings")
    );
}
