//! The API, route by route.

use serde_json::{Value as Json, json};
use tidings_sim::{SimClock, SimServer, WorldConfig};
use tidings_store::Outcome;

use crate::fixture::{ADMIN, Served};

#[tokio::test]
async fn the_frontier_is_listed_changed_and_explained() {
    let served = Served::start().await;
    for n in 0..7 {
        let url = format!("https://site-{n}.example/story");
        let response = served
            .post(
                "/api/v1/frontier/submit",
                &json!({ "url": url, "priority": 7 }),
            )
            .await
            .good();
        assert_eq!(response["verdict"], "new");
    }
    let mut seen = Vec::new();
    let mut path = "/api/v1/frontier?limit=3&status=pending".to_owned();
    loop {
        let page = served.get(&path).await.good();
        seen.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| row["url"].to_string()),
        );
        match page["next"].as_str() {
            Some(next) => path = format!("/api/v1/frontier?limit=3&status=pending&after={next}"),
            None => break,
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 7);
    let stats = served.get("/api/v1/frontier/stats").await.good();
    assert_eq!(stats["by_status"]["pending"], 7);
    let stats = served
        .get("/api/v1/frontier/stats?host=site-1.example")
        .await
        .good();
    assert_eq!(stats["by_status"]["pending"], 1);

    let dead = |_: &str| Outcome::Dead {
        reason: "not_found".to_owned(),
        error: Some("status 404".to_owned()),
    };
    served.complete_all(dead).await;
    let story = served
        .get("/api/v1/explain?url=https%3A%2F%2Fsite-1.example%2Fstory")
        .await
        .good();
    assert_eq!(story["row"]["status"], "dead");
    let id = story["id"].as_str().unwrap();
    let events = served
        .get(&format!("/api/v1/frontier/{id}/events"))
        .await
        .good();
    assert_eq!(events["items"][0]["kind"], "discovered");
    assert_eq!(
        served.get(&format!("/api/v1/frontier/{id}")).await.good()["reason"],
        "not_found"
    );

    let bulk = |preview: bool| json!({ "action": "retry", "filter": { "status": "dead", "reason": "not_found" }, "preview": preview });
    let preview = served
        .post("/api/v1/frontier/bulk", &bulk(true))
        .await
        .good();
    assert_eq!(
        preview,
        json!({ "matched": 7, "changed": 0, "preview": true })
    );
    let done = served
        .post("/api/v1/frontier/bulk", &bulk(false))
        .await
        .good();
    assert_eq!(done["changed"], 7);
    let one = served
        .request("DELETE", &format!("/api/v1/frontier/{id}"))
        .token(ADMIN)
        .send()
        .await
        .good();
    assert_eq!(one["changed"], 1);
    let all = json!({ "action": "delete", "all": true });
    assert_eq!(
        served.post("/api/v1/frontier/bulk", &all).await.good()["changed"],
        6
    );
    assert_eq!(
        served.get("/api/v1/frontier").await.good()["items"],
        json!([])
    );
}

#[tokio::test]
async fn one_url_is_retried() {
    let served = Served::start().await;
    let id = served.submitted("https://a.example/x").await;
    served
        .complete_all(|_| Outcome::Dead {
            reason: "gone".to_owned(),
            error: None,
        })
        .await;
    let response = served
        .post(&format!("/api/v1/frontier/{id}/retry"), &json!({}))
        .await
        .good();
    assert_eq!(response["changed"], 1);
    assert_eq!(
        served.get(&format!("/api/v1/frontier/{id}")).await.good()["status"],
        "pending"
    );
}

#[tokio::test]
async fn bulk_has_a_verdict_on_each_and_is_idempotent() {
    let served = Served::start().await;
    served.submitted("https://known.example/").await;
    let rows = [
        ("application/json", json!(["https://known.example/", "nonsense", { "url": "https://json.example/", "priority": 9 }]).to_string()),
        ("application/x-ndjson", "\"https://known.example/\"\n\n{\"url\":\"nonsense\"}\n\"https://jsonl.example/\"\n".to_owned()),
        ("text/csv", "url,priority\nhttps://known.example/,1\nnonsense,\nhttps://csv.example/,9\n".to_owned()),
    ];
    for (kind, body) in &rows {
        let request = || {
            served
                .request("POST", "/api/v1/frontier/submit/bulk")
                .token(ADMIN)
                .header("idempotency-key", kind)
                .body(kind, body)
        };
        let first = request().send().await;
        let report = first.good();
        let verdicts: Vec<_> = report["verdicts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line["verdict"].as_str().unwrap())
            .collect();
        assert_eq!(verdicts, ["known", "invalid", "new"], "{kind}");
        assert_eq!(
            (&report["total"], &report["new"], &report["invalid"]),
            (&json!(3), &json!(1), &json!(1))
        );
        assert_eq!(first.header("idempotency-replayed"), "");
        let again = request().send().await;
        assert_eq!(again.good(), report, "the first response again");
        assert_eq!(again.header("idempotency-replayed"), "true");
        let changed = request().body(kind, &format!("{body}\n")).send().await;
        assert_eq!(changed.status, 409, "{kind}: {}", changed.text);
    }
}

#[tokio::test]
async fn a_replay_of_a_long_bulk_response_has_the_totals_alone() {
    let served = Served::start().await;
    let lines: String = (0..1500)
        .map(|n| format!("\"https://site-{}.example/{n}\"\n", n % 50))
        .collect();
    let request = || {
        served
            .request("POST", "/api/v1/frontier/submit/bulk")
            .token(ADMIN)
            .header("idempotency-key", "long")
            .body("application/x-ndjson", &lines)
    };
    let first = request().send().await;
    assert!(first.text.len() > tidings_store::MAX_STORED_RESPONSE);
    assert_eq!(first.good()["verdicts"].as_array().unwrap().len(), 1500);
    let again = request().send().await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(
        again.good(),
        json!({ "total": 1500, "new": 1500, "raised": 0, "known": 0, "invalid": 0,
            "verdicts": [], "verdicts_omitted": true })
    );
}

/// Only the verdicts are tested here; the benchmarks measure the time.
#[tokio::test]
async fn bulk_accepts_many_urls() {
    let served = Served::start().await;
    let lines: String = (0..20_000)
        .map(|n| format!("\"https://site-{}.example/{n}\"\n", n % 500))
        .collect();
    let response = served
        .request("POST", "/api/v1/frontier/submit/bulk")
        .token(ADMIN)
        .body("application/x-ndjson", &lines)
        .send()
        .await;
    let report = response.good();
    assert_eq!(report["new"], 20_000);
    assert_eq!(report["verdicts"].as_array().unwrap().len(), 20_000);
}

#[tokio::test]
async fn sources_are_added_changed_paused_and_deleted() {
    let served = Served::start().await;
    let draft = json!({ "url": "https://paper.example/", "name": "Paper", "feed_url": "https://paper.example/feed", "tags": ["a"] });
    let made = served.post("/api/v1/sources", &draft).await;
    assert_eq!(made.status, 201);
    let path = format!("/api/v1/sources/{}", made.json()["source_id"]);
    assert_eq!(
        served.post("/api/v1/sources", &draft).await.status,
        409,
        "the name is taken"
    );
    let one = served.get(&path).await.good();
    assert_eq!(one["feeds"][0]["url"], "https://paper.example/feed");
    let changed = json!({ "url": "https://paper.example/", "name": "The Paper", "priority": 9 });
    let changed = served
        .request("PUT", &path)
        .token(ADMIN)
        .json(&changed)
        .send()
        .await
        .good();
    assert_eq!(
        (&changed["name"], &changed["priority"]),
        (&json!("The Paper"), &json!(9))
    );
    let paused = served
        .post(&format!("{path}/disable"), &json!({ "reason": "too loud" }))
        .await
        .good();
    assert_eq!(
        (&paused["enabled"], &paused["reason"]),
        (&json!(false), &json!("too loud"))
    );
    assert_eq!(
        served
            .post(&format!("{path}/enable"), &json!({}))
            .await
            .good()["enabled"],
        true
    );
    assert_eq!(
        served.get(&format!("{path}/fetch-log")).await.good()["items"][0]["log"],
        json!([])
    );
    assert!(
        served.get("/api/v1/sources/schemas").await.good()["properties"]["feed_url"].is_object()
    );
    served
        .request("DELETE", &path)
        .token(ADMIN)
        .send()
        .await
        .good();
    assert_eq!(served.get(&path).await.status, 404);
}

#[tokio::test]
async fn sources_are_imported_and_exported() {
    let served = Served::start().await;
    let csv = "name,url,feed_url\nA,https://a.example/,https://a.example/feed\nB,nonsense,\n";
    let import = |query: &str| {
        served
            .request("POST", &format!("/api/v1/sources/import?format=csv{query}"))
            .token(ADMIN)
            .body("text/csv", csv)
    };
    let dry = import("&dry_run=true").send().await.good();
    assert_eq!(
        (&dry["added"], &dry["bad"][0]["line"]),
        (&json!(1), &json!(3))
    );
    assert_eq!(
        served.get("/api/v1/sources").await.good()["items"],
        json!([])
    );
    assert_eq!(import("").send().await.good()["added"], 1);
    assert_eq!(import("").send().await.good()["known"], 1);
    for (format, part) in [
        ("opml", "xmlUrl=\"https://a.example/feed\""),
        ("csv", "A,https://a.example/"),
        ("jsonl", "\"name\":\"A\""),
    ] {
        let response = served
            .get(&format!("/api/v1/sources/export?format={format}"))
            .await;
        assert!(response.text.contains(part), "{}", response.text);
        assert!(
            response
                .header("content-disposition")
                .starts_with("attachment"),
            "{format}"
        );
    }
}

#[tokio::test]
async fn an_exported_cell_is_never_a_formula() {
    let served = Served::start().await;
    for name in ["=1+1", "+1", "-1", "@x"] {
        let draft = json!({ "url": format!("https://{}.example/", name.len()), "name": name });
        served.post("/api/v1/sources", &draft).await.good();
    }
    let csv = served.get("/api/v1/sources/export?format=csv").await.text;
    for line in csv.lines().skip(1) {
        assert!(line.starts_with("\"'"), "{line}");
    }
}

#[tokio::test]
async fn a_site_is_discovered_polled_and_tested() {
    let served = Served::start().await;
    let config = WorldConfig {
        sites: 3,
        ..WorldConfig::new(5)
    };
    let start = config.start;
    let sim = SimServer::start(config, SimClock::manual(start), "127.0.0.1:0")
        .await
        .unwrap();
    let site = sim
        .world()
        .sites()
        .find(|site| !site.feeds.is_empty())
        .unwrap();
    let url = site.url("/").as_str().to_owned();
    let found = served
        .post("/api/v1/sources/discover", &json!({ "url": url }))
        .await
        .good();
    let feed = found["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["candidate"]["kind"] == "feed");
    assert!(feed.is_some(), "{found}");
    let feed = site.url(&site.feeds[0].path);
    let source = served
        .post(
            "/api/v1/sources",
            &json!({ "url": url, "feed_url": feed.as_str() }),
        )
        .await
        .good();
    let path = format!("/api/v1/sources/{}", source["source_id"]);
    let dry = served
        .post(&format!("{path}/poll?dry_run=true"), &json!({}))
        .await
        .good();
    let items = dry["items"].as_array().unwrap();
    assert!(
        !items.is_empty() && items.iter().all(|item| item["is_new"] == true),
        "{dry}"
    );
    let polled = served
        .post(&format!("{path}/poll"), &json!({}))
        .await
        .good();
    assert_eq!(polled["poll"]["items_new"], items.len(), "{polled}");
    let again = served.post(&format!("{path}/poll"), &json!({})).await;
    assert_eq!(again.status, 429, "once per minute");
    assert_eq!(again.header("retry-after"), "60");
    let log = served.get(&format!("{path}/fetch-log")).await.good();
    assert_eq!(log["items"][0]["log"][0]["outcome"], "ok");
    let page = items[0]["url"].as_str().unwrap();
    let tested = served
        .post(
            "/api/v1/sources/test",
            &json!({ "url": page, "selectors": { "article": { "title": "h1" } } }),
        )
        .await
        .good();
    assert!(tested["text"].as_str().unwrap().len() > 50, "{tested}");
    let feeds = served.get("/api/v1/feeds").await.good();
    let feed = format!("/api/v1/feeds/{}", feeds["items"][0]["feed_id"]);
    assert_eq!(
        served.get(&feed).await.good()["log"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    served
        .post(&format!("{feed}/resume"), &json!({}))
        .await
        .good();
}

#[tokio::test]
async fn sources_are_collected_from() {
    let served = Served::start().await;
    let config = WorldConfig {
        sites: 2,
        ..WorldConfig::new(5)
    };
    let start = config.start;
    let sim = SimServer::start(config, SimClock::manual(start), "127.0.0.1:0");
    let sim = sim.await.unwrap();
    let site = sim.world().sites().find(|site| !site.feeds.is_empty());
    let site = site.unwrap();
    let feed = site.url(&site.feeds[0].path);
    let draft = json!({ "name": "good", "url": site.url("/").as_str(), "feed_url": feed.as_str() });
    served.post("/api/v1/sources", &draft).await.good();
    let broken = json!({ "name": "broken", "url": "http://127.0.0.1:1/", "feed_url": "http://127.0.0.1:1/feed" });
    served.post("/api/v1/sources", &broken).await.good();

    let dry = served.get("/collect/test?source=good").await.good();
    let new = dry["items_new"].as_u64().unwrap();
    assert!(new > 0, "{dry}");
    assert_eq!(dry["items"].as_array().unwrap().len() as u64, new);
    let gone = served.get("/collect/test?source=broken").await.good();
    assert!(gone["error"].is_string(), "{gone}");
    let stats = served.get("/api/v1/frontier/stats").await.good();
    assert_eq!(stats["by_status"]["pending"], 0, "a test writes nothing");
    let nobody = served.get("/collect/test?source=nobody").await;
    assert_eq!(nobody.status, 400);
    assert_eq!(nobody.json()["field"], "source");

    let run = served
        .post("/collect", &json!({ "max_new_items": 2 }))
        .await
        .good();
    assert_eq!(
        (run["attempted"].as_u64(), run["succeeded"].as_u64()),
        (Some(2), Some(1)),
        "{run}"
    );
    assert_eq!(run["items_new"], 2);
    assert_eq!(run["items_left"], new - 2);
    let run = served
        .post("/collect", &json!({ "sources": ["good"] }))
        .await
        .good();
    assert_eq!(run["items_new"], new - 2);
    let first = served.get("/api/v1/runs?limit=1").await.good();
    assert_eq!(first["items"][0]["run_id"], run["run_id"]);
    let path = format!(
        "/api/v1/runs?limit=1&after={}",
        first["next"].as_str().unwrap()
    );
    let second = served.get(&path).await.good();
    assert_eq!(second["items"][0]["metrics"]["attempted"], 2);
    assert_eq!(second["next"], Json::Null);
    for wrong in [json!({ "sources": "good" }), json!({ "sources": [1] })] {
        let response = served.post("/collect", &wrong).await;
        assert_eq!(response.json()["field"], "sources");
    }
}

#[tokio::test]
async fn private_addresses_are_not_fetched() {
    let served = Served::start().await;
    for url in ["http://10.0.0.1/", "http://169.254.169.254/latest"] {
        let response = served
            .post("/api/v1/sources/discover", &json!({ "url": url }))
            .await;
        response.assert_problem(422, "url");
        assert!(
            !response.text.contains("169.254") && !response.text.contains("10.0.0.1"),
            "{}",
            response.text
        );
    }
}

#[tokio::test]
async fn hosts_are_limited_blocked_and_unblocked() {
    let served = Served::start().await;
    served.submitted("https://slow.example/x").await;
    let path = "/api/v1/hosts/slow.example";
    assert_eq!(
        served.get("/api/v1/hosts").await.good()["items"][0]["host"],
        "slow.example"
    );
    let limits = json!({ "delay_ms": 2500, "max_in_flight": 2 });
    let host = served
        .request("PUT", path)
        .token(ADMIN)
        .json(&limits)
        .send()
        .await
        .good();
    assert_eq!(
        (&host["delay_ms"], &host["max_in_flight"]),
        (&json!(2500), &json!(2))
    );
    let blocked = served
        .post(
            &format!("{path}/block"),
            &json!({ "reason": "their request", "seconds": 60 }),
        )
        .await
        .good();
    assert_eq!(blocked["block_reason"], "their request");
    let open = served
        .post(&format!("{path}/unblock"), &json!({}))
        .await
        .good();
    assert_eq!(open["blocked_until"], Json::Null);
    assert_eq!(
        served.get(path).await.good()["urls"]["by_status"]["pending"],
        1
    );
}

#[tokio::test]
async fn a_document_lists_its_near_duplicates() {
    let served = Served::start().await;
    let title = "How the harbour council came to vote for a new pier after a long night";
    let id = served.fetched("https://a.example/1", title).await;
    let copy = format!("{title} of talks");
    let copy_id = served.fetched("https://b.example/2", &copy).await;
    let other_id = served.fetched("https://c.example/3", "Bees").await;
    let one = served.get(&format!("/api/v1/documents/{id}")).await.good();
    assert_eq!(one["cluster"], json!(id));
    let others = one["near_duplicates"].as_array().unwrap();
    assert_eq!(others.len(), 1, "{one}");
    assert_eq!(others[0]["frontier_id"], json!(copy_id));
    assert_eq!(others[0]["url"], "https://b.example/2");
    let page = served.get(&format!("/documents/{copy_id}")).await;
    let link = format!("href=\"/documents/{id}\"");
    for expected in ["Near-duplicates", &link] {
        assert!(page.text.contains(expected), "{expected}: {}", page.text);
    }
    let page = served.get(&format!("/documents/{other_id}")).await;
    assert!(!page.text.contains("Near-duplicates"), "{}", page.text);
}

#[tokio::test]
async fn documents_are_listed_followed_and_read() {
    let served = Served::start().await;
    let id = served.fetched("https://a.example/1", "First").await;
    served.fetched("https://b.example/2", "Second").await;
    let list = served.get("/api/v1/documents?limit=1").await.good();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let next = list["next"].as_str().unwrap();
    let rest = served
        .get(&format!("/api/v1/documents?limit=5&after={next}"))
        .await
        .good();
    assert_eq!(
        (rest["items"].as_array().unwrap().len(), &rest["next"]),
        (1, &Json::Null)
    );
    let one = served.get(&format!("/api/v1/documents/{id}")).await.good();
    assert_eq!(
        (&one["title"], &one["frontier_id"]),
        (&json!("First"), &json!(id))
    );
    let changes = served.get("/api/v1/documents/changes?limit=1").await.good();
    assert_eq!(changes["items"][0]["document"]["title"], "First");
    let next = changes["next"].as_str().unwrap();
    let changes = served
        .get(&format!("/api/v1/documents/changes?after={next}"))
        .await
        .good();
    assert_eq!(changes["items"][0]["document"]["title"], "Second");
    let none = served.get("/api/v1/documents/search?q=first").await.good();
    assert_eq!(none["total"], 0, "nothing was delivered to the search yet");
}

#[tokio::test]
async fn sinks_runs_and_tasks_are_shown() {
    let served = Served::start().await;
    served
        .with_dead_letter("index", "the mapping refuses it")
        .await;
    let sinks = served.get("/api/v1/sinks").await.good();
    assert_eq!(sinks["items"][0]["dead"], 1);
    let dead = served.get("/api/v1/sinks/index/dead").await.good();
    assert_eq!(dead["items"][0]["reason"], "the mapping refuses it");
    assert_eq!(
        served
            .post("/api/v1/sinks/index/retry", &json!({}))
            .await
            .good(),
        json!({ "changed": 1, "missing_documents": 0 })
    );
    let replay = served
        .post(
            "/api/v1/sinks/index/replay",
            &json!({ "since": "2020-01-01T00:00:00Z" }),
        )
        .await
        .good();
    assert_eq!(replay["changed"], 0, "it is pending already");
    for (action, is_enabled) in [("disable", false), ("enable", true)] {
        let path = format!("/api/v1/sinks/index/{action}");
        served.post(&path, &json!({})).await.good();
        let sinks = served.get("/api/v1/sinks").await.good();
        assert_eq!(sinks["items"][0]["enabled"], is_enabled);
    }
    let audit = served.get("/api/v1/audit").await.good();
    assert_eq!(audit["items"][0]["path"], "/api/v1/sinks/index/enable");
    let run = served.store.start_run().await.unwrap();
    served
        .store
        .finish_run(run, "{\"fetched\":3}")
        .await
        .unwrap();
    assert_eq!(
        served.get("/api/v1/runs").await.good()["items"][0]["metrics"]["fetched"],
        3
    );
    let task = served
        .store
        .start_task("poll", "x", std::time::Duration::ZERO)
        .await
        .unwrap();
    let tidings_store::StartedTask::Started(task) = task else {
        panic!("{task:?}")
    };
    let response = served
        .get(&format!("/api/v1/tasks/{}", task.task_id))
        .await
        .good();
    assert_eq!(response["status"], "running");
}

#[tokio::test]
async fn health_and_metrics_are_served() {
    let served = Served::start().await;
    for path in ["/healthz", "/health", "/readyz"] {
        let response = served.request("GET", path).send().await;
        assert_eq!(response.good()["status"], "ok");
    }
    served.with_dead_letter("a \"quoted\" sink", "x").await;
    let never = served.get("/metrics").await.text;
    let zero = "tidings_maintenance_last_run_timestamp_seconds 0.0";
    assert!(never.lines().any(|line| line == zero), "{never}");
    let removed = std::collections::BTreeMap::from([("events", 7)]);
    served.store.record_maintenance(&removed).await.unwrap();
    let report = served.store.maintenance_report().await.unwrap();
    let maintained = report.unwrap().at.0 as f64 / 1000.0;
    let maintained = format!("tidings_maintenance_last_run_timestamp_seconds {maintained:?}");
    let metrics = served.get("/metrics").await;
    assert_eq!(
        metrics.header("content-type"),
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    let text = metrics.text;
    for line in [
        "tidings_frontier_urls{status=\"fetched\"} 1",
        "tidings_sink_dead{sink=\"a \\\"quoted\\\" sink\"} 1",
        "tidings_http_requests_total{route=\"/healthz\",status=\"200\"} 1",
        "# TYPE tidings_polls counter",
        "# TYPE tidings_http_request_seconds histogram",
        "tidings_http_request_seconds_count{route=\"/healthz\",status=\"200\"} 1",
        "tidings_polls_total 0",
        "tidings_maintenance_removed_rows_total{table=\"events\"} 7",
        &maintained,
        "# EOF",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
    let openapi = served.get("/api/v1/openapi.json").await.good();
    assert_eq!(openapi["openapi"], "3.1.0");
    assert!(openapi["paths"]["/api/v1/frontier/{id}"]["delete"].is_object());
}
