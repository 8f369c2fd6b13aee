//! Invalid input on every route: a problem that names the field.

use serde_json::json;
use tidings_server::described_routes;

use crate::fixture::{ADMIN, OPERATOR, Served};
use crate::roles::filled;

#[tokio::test]
async fn every_parameter_of_every_route_is_checked_and_named() {
    let served = Served::start().await;
    let mut checked = 0;
    for route in described_routes().iter().filter(|route| !route.is_page) {
        for (name, wrong) in &route.invalid {
            let place = format!("{{{name}}}");
            let path = match route.path.contains(&place) {
                true => filled(&route.path.replace(&place, wrong)),
                false => format!("{}?{name}={wrong}", filled(route.path)),
            };
            let response = served
                .request(route.method, &path)
                .token(ADMIN)
                .send()
                .await;
            response.assert_problem(400, name);
            checked += 1;
        }
        let path = format!("{}?surprise=1", filled(route.path));
        let response = served
            .request(route.method, &path)
            .token(ADMIN)
            .send()
            .await;
        response.assert_problem(400, "surprise");
    }
    assert!(checked > 40, "{checked}");
}

#[tokio::test]
async fn an_invalid_body_is_reported_with_its_field() {
    let served = Served::start().await;
    served.with_dead_letter("index", "no").await;
    let source = served
        .post(
            "/api/v1/sources",
            &json!({ "url": "https://a.example/", "feed_url": "https://a.example/feed" }),
        )
        .await
        .good();
    let source = format!("/api/v1/sources/{}", source["source_id"]);
    served.submitted("https://host.example/x").await;
    let host = "/api/v1/hosts/host.example".to_owned();
    let api = |path: &str| format!("/api/v1/{path}");
    let rows = [
        ("POST", api("frontier/submit"), json!({}), "url"),
        (
            "POST",
            api("frontier/submit"),
            json!({ "url": "ftp://a.example/" }),
            "url",
        ),
        ("POST", api("frontier/submit"), json!({ "url": 7 }), "url"),
        (
            "POST",
            api("frontier/submit"),
            json!({ "url": "https://a.example/", "priority": 11 }),
            "priority",
        ),
        (
            "POST",
            api("frontier/submit"),
            json!({ "url": "https://a.example/", "source_id": 99 }),
            "source_id",
        ),
        (
            "POST",
            api("frontier/submit"),
            json!({ "url": "https://a.example/", "ulr": 1 }),
            "ulr",
        ),
        ("POST", api("frontier/submit"), json!([1]), "body"),
        ("POST", api("frontier/submit/bulk"), json!([]), "body"),
        (
            "POST",
            api("frontier/submit/bulk"),
            json!({ "url": "x" }),
            "body",
        ),
        (
            "POST",
            api("frontier/submit/bulk"),
            json!([{ "url": "https://a.example/", "priority": "high" }]),
            "priority",
        ),
        ("POST", api("frontier/bulk"), json!({}), "action"),
        (
            "POST",
            api("frontier/bulk"),
            json!({ "action": "burn" }),
            "action",
        ),
        (
            "POST",
            api("frontier/bulk"),
            json!({ "action": "retry" }),
            "filter",
        ),
        (
            "POST",
            api("frontier/bulk"),
            json!({ "action": "retry", "filter": { "status": "lost" } }),
            "filter.status",
        ),
        (
            "POST",
            api("frontier/bulk"),
            json!({ "action": "retry", "filter": { "colour": "red" } }),
            "filter.colour",
        ),
        ("POST", api("sources"), json!({ "name": "x" }), "url"),
        (
            "POST",
            api("sources"),
            json!({ "url": "https://b.example/", "feed_poll_interval_minutes": 0 }),
            "feed_poll_interval_minutes",
        ),
        (
            "POST",
            api("sources"),
            json!({ "url": "https://b.example/", "feed_ulr": "x" }),
            "feed_ulr",
        ),
        (
            "POST",
            api("sources"),
            json!({ "url": "https://b.example/", "rate_limit": 1e9 }),
            "rate_limit",
        ),
        (
            "POST",
            api("sources"),
            json!({ "url": "https://b.example/", "selectors": { "article": { "title": "h1[" } } }),
            "selectors",
        ),
        (
            "POST",
            api("sources"),
            json!({ "url": "https://b.example/", "name": "red \u{1b}[31m" }),
            "name",
        ),
        (
            "PUT",
            source.clone(),
            json!({ "url": "https://a.example/", "user_agent": "a\r\nx-b: c" }),
            "user_agent",
        ),
        (
            "PUT",
            source.clone(),
            json!({ "url": "https://a.example/", "poll_policy": "often" }),
            "poll_policy",
        ),
        ("POST", format!("{source}/disable"), json!({}), "reason"),
        (
            "POST",
            api("sources/discover"),
            json!({ "url": "nothing" }),
            "url",
        ),
        (
            "POST",
            api("sources/test"),
            json!({ "url": "https://a.example/", "selectors": { "article": { "body": "p[" } } }),
            "selectors.article.body",
        ),
        ("PUT", host.clone(), json!({ "delay_ms": -1 }), "delay_ms"),
        (
            "PUT",
            host.clone(),
            json!({ "max_in_flight": 0 }),
            "max_in_flight",
        ),
        (
            "POST",
            format!("{host}/block"),
            json!({ "seconds": 5 }),
            "reason",
        ),
        (
            "POST",
            format!("{host}/block"),
            json!({ "reason": "x", "seconds": 0 }),
            "seconds",
        ),
        (
            "POST",
            api("sinks/index/replay"),
            json!({ "since": "yesterday" }),
            "since",
        ),
        ("POST", api("tokens"), json!({ "role": "viewer" }), "name"),
        (
            "POST",
            api("tokens"),
            json!({ "name": "x", "role": "king" }),
            "role",
        ),
    ];
    for (method, path, body, field) in rows {
        let response = served
            .request(method, &path)
            .token(ADMIN)
            .json(&body)
            .send()
            .await;
        response.assert_problem(400, field);
    }
    let cursors = [
        "frontier",
        "documents",
        "documents/changes",
        "documents/stream",
    ];
    for path in cursors {
        served
            .get(&format!("/api/v1/{path}?after=nonsense"))
            .await
            .assert_problem(400, "after");
    }
}

#[tokio::test]
async fn bodies_have_size_limits_and_media_types() {
    let served = Served::start().await;
    let long = "x".repeat(300 << 10);
    let response = served
        .post("/api/v1/frontier/submit", &json!({ "url": long }))
        .await;
    response.assert_problem(413, "body");
    let bulk = || {
        served
            .request("POST", "/api/v1/frontier/submit/bulk")
            .token(ADMIN)
    };
    bulk()
        .body("text/html", "https://a.example/")
        .send()
        .await
        .assert_problem(415, "content-type");
    bulk()
        .body("text/csv", "address\nhttps://a.example/")
        .send()
        .await
        .assert_problem(400, "body");
    bulk()
        .body("application/x-ndjson", "{broken")
        .send()
        .await
        .assert_problem(400, "body");
    let many = "\"https://a.example/\"\n".repeat(100_001);
    bulk()
        .body("application/x-ndjson", &many)
        .send()
        .await
        .assert_problem(413, "body");
    let response = served
        .request("POST", "/api/v1/frontier/submit")
        .token(ADMIN)
        .body("text/plain", "x")
        .send()
        .await;
    response.assert_problem(415, "content-type");
    let opml = served
        .request("POST", "/api/v1/sources/import?format=csv")
        .token(ADMIN)
        .body("text/csv", "a,b\n1,2")
        .send()
        .await;
    opml.assert_problem(400, "body");
}

#[tokio::test]
async fn missing_rows_are_reported_as_not_found() {
    let served = Served::start().await;
    let none = "0".repeat(48);
    for path in [
        format!("frontier/{none}"),
        format!("frontier/{none}/events"),
        format!("documents/{none}"),
        "explain?url=https%3A%2F%2Fa.example%2F".to_owned(),
        "sources/1".to_owned(),
        "feeds/1".to_owned(),
        "hosts/nobody.example".to_owned(),
        "sinks/nothing/dead".to_owned(),
        "tasks/1".to_owned(),
    ] {
        let response = served.get(&format!("/api/v1/{path}")).await;
        assert_eq!(
            (response.status, response.header("content-type")),
            (404, "application/problem+json"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn expensive_operations_have_a_rate_by_token() {
    let served = Served::start().await;
    // Refused as early as possible: what is counted is the start.
    let start = async |token: &str, path: &str| {
        let request = served.request("POST", path).token(token);
        request.json(&json!({ "unknown": 1 })).send().await
    };
    for (path, max) in [
        ("/api/v1/sources/discover", 10),
        ("/api/v1/sources/test", 30),
        ("/collect", 10),
    ] {
        for n in 0..max {
            assert_eq!(start(OPERATOR, path).await.status, 400, "{path} {n}");
        }
        let refused = start(OPERATOR, path).await;
        assert_eq!(refused.status, 429, "{path}: {}", refused.text);
        let wait: u64 = refused.header("retry-after").parse().unwrap();
        assert!((1..=61).contains(&wait), "{wait}");
        assert_eq!(start(ADMIN, path).await.status, 400, "another token");
    }
    let form = served.request("POST", "/sources/discover").token(OPERATOR);
    let refused = form.form(&[("url", "https://a.example")]).send().await;
    assert_eq!(refused.status, 429, "the dashboard shares the rate");
}

#[tokio::test]
async fn an_imported_name_with_control_characters_is_refused_alone() {
    let served = Served::start().await;
    let rows = [
        json!({ "name": "a\nb", "url": "https://a.example/" }),
        json!({ "name": "plain", "url": "https://b.example/" }),
    ];
    let lines = rows.map(|row| row.to_string()).join("\n");
    let request = served.request("POST", "/api/v1/sources/import?format=jsonl");
    let request = request.token(ADMIN).body("application/x-ndjson", &lines);
    let report = request.send().await.good();
    assert_eq!(report["added"], 1, "{report}");
    assert!(report.to_string().contains("control character"), "{report}");
}
