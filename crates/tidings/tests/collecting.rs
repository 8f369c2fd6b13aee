//! Runs and polls that a user starts over the API, their tasks, and the metrics of the
//! loops, as `tidings` serves them.

#![allow(clippy::unwrap_used)]

mod tidings;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidings_sim::{FakeApi, FakeFirestore, SimClock, SimServer, WorldConfig};

/// A process with a server.
struct Served {
    child: Option<Child>,
    address: String,
    token: String,
    folder: tempfile::TempDir,
}

impl Served {
    fn start(args: &[&str], settings: &str, environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = format!("[server]\nbind = '127.0.0.1:0'\n{settings}");
        std::fs::write(folder.path().join("tidings.toml"), file).unwrap();
        let mut child = tidings::command(&[args, &["--json"]].concat(), folder.path())
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        // What it says later is not read, and must not block it.
        std::thread::spawn(move || lines.for_each(drop));
        let url = said["dashboard"].as_str().unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        Self {
            address: address.to_owned(),
            token: said["token"].as_str().unwrap().to_owned(),
            child: Some(child),
            folder,
        }
    }

    /// The status and the body of a response.
    fn text(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let Self { address, token, .. } = self;
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let status = response.split(' ').nth(1).unwrap().parse().unwrap();
        let (_, body) = response.split_once("\r\n\r\n").unwrap();
        (status, body.to_owned())
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let text = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let (status, body) = self.text(method, path, &text);
        let body = serde_json::from_str(&body);
        (
            status,
            body.unwrap_or_else(|error| panic!("{path}: {error}")),
        )
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let (status, response) = self.send("POST", path, body);
        assert!((200..300).contains(&status), "{path}: {response}");
        response
    }

    fn get(&self, path: &str) -> Value {
        let (status, response) = self.send("GET", path, &Value::Null);
        assert_eq!(status, 200, "{path}: {response}");
        response
    }

    /// A task when it has ended.
    fn ended(&self, started: &Value) -> Value {
        let path = format!("/api/v1/tasks/{}", started["task_id"]);
        until(|| Some(self.get(&path)).filter(|task| task["status"] != "running"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            tidings::terminate(child);
        }
    }
}

/// Waits for something that must happen.
fn until<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "it takes too long");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn counts(task: &Value) -> [u64; 4] {
    let names = [
        "sources_attempted",
        "sources_succeeded",
        "items_seen",
        "items_new",
    ];
    names.map(|name| task["counts"][name].as_u64().unwrap())
}

#[test]
fn a_run_by_the_api_is_a_task_and_counts_a_url_once() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let arxiv = runtime.block_on(FakeApi::arxiv()).unwrap();
    let firestore = runtime.block_on(FakeFirestore::start()).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    arxiv.publish_many(4, now.unwrap().as_secs() as i64 - 7200, 60);
    let settings = format!(
        "[egress]\nallow = '127.0.0.0/8'\nports = '{}'\n[fetch]\nhost_delay_ms = 20\n[sink]\nallow = '127.0.0.0/8'\n\
         [adapters.arxiv]\nbase_url = '{}'\n[sinks.content]\nkind = 'firestore'\nproject = 'demo'\n",
        arxiv.port(),
        arxiv.url()
    );
    let host = firestore.host();
    let environment = [
        ("FIRESTORE_EMULATOR_HOST", host.as_str()),
        ("MAX_NEW_ITEMS_PER_RUN", "3"),
        ("FETCH_CONCURRENCY", "3"),
    ];
    let served = Served::start(&["work", "--roles", "serve"], &settings, &environment);
    for name in ["one", "three", "two"] {
        let draft = json!({ "url": "https://arxiv.org/", "name": name, "kind": "arxiv", "config": { "query": "cat:cs.AI" } });
        served.post("/api/v1/sources", &draft);
    }

    for (path, body) in [
        ("/collect?dry=true", json!({})),
        ("/collect", json!({ "dry_run": true })),
    ] {
        let dry = served.post(path, &body);
        assert_eq!(dry["dry_run"], true);
        assert_eq!(dry["items_seen"], 9, "{dry}");
        assert_eq!(dry["items_new"], 3, "the same three papers: {dry}");
    }
    assert_eq!(served.get("/api/v1/tasks")["items"], json!([]));
    assert!(firestore.documents("collection_metrics").is_empty());

    let run = served.post("/collect", &Value::Null);
    assert_eq!(run["items_new"], 3, "{run}");
    let task = served.ended(&run);
    assert_eq!(
        (&task["status"], &task["kind"]),
        (&json!("done"), &json!("collect"))
    );
    assert_eq!(counts(&task), [3, 3, 9, 3], "{task}");
    let listed = served.get("/api/v1/tasks");
    assert_eq!(listed["items"], json!([task]));
    let pending = || served.get("/api/v1/frontier/stats")["by_status"]["pending"].clone();
    assert_eq!(pending(), 3);
    let latest = firestore.documents("collection_metrics").remove("latest");
    assert_eq!(latest.unwrap()["newItemsAdded"]["integerValue"], "3");
    let state = firestore.documents("last_collection_run").remove("state");
    let stats = state.unwrap()["perSourceStats"]["mapValue"]["fields"].clone();
    let items = |name: &str| stats[name]["mapValue"]["fields"]["items"]["integerValue"].clone();
    assert_eq!(["one", "two", "three"].map(items), ["3", "0", "0"]);

    // The rest was left to the next run, which nobody waits for.
    let (status, started) = served.send("POST", "/collect?wait=false", &Value::Null);
    assert_eq!(status, 202, "{started}");
    let task = served.ended(&started);
    assert_eq!(task["status"], "done", "{task}");
    let [attempted, succeeded, _, new] = counts(&task);
    assert_eq!((attempted, succeeded, new), (3, 3, 1), "{task}");
    assert_eq!(pending(), 4);

    // A run in which every source fails has failed; one that can't start is no task.
    let draft = json!({ "url": "http://127.0.0.1:1/", "name": "closed", "feed_url": "http://127.0.0.1:1/feed" });
    let closed = served.post("/api/v1/sources", &draft);
    let run = served.post("/collect", &json!({ "sources": ["closed"] }));
    let task = served.ended(&run);
    assert_eq!(
        (&task["status"], &task["subject"]),
        (&json!("failed"), &json!("closed"))
    );
    assert_eq!(counts(&task), [1, 0, 0, 0], "{task}");
    let (status, _) = served.send("POST", "/collect", &json!({ "sources": ["nobody"] }));
    assert_eq!(status, 400);
    assert_eq!(
        served.get("/api/v1/tasks")["items"]
            .as_array()
            .unwrap()
            .len(),
        3
    );

    // So is a poll.
    let path = format!("/api/v1/sources/{}/poll", closed["source_id"]);
    let (status, started) = served.send("POST", &format!("{path}?wait=false"), &Value::Null);
    assert_eq!(status, 202, "{started}");
    let task = served.ended(&started);
    assert_eq!(
        (&task["status"], &task["kind"]),
        (&json!("failed"), &json!("poll"))
    );
    assert_eq!(counts(&task), [1, 0, 0, 0], "{task}");
    let (status, _) = served.send("POST", &path, &Value::Null);
    assert_eq!(status, 429, "once per minute");
    let page = served.get("/api/v1/tasks?limit=3");
    assert_eq!(page["items"][0], task, "the newest first");
    let rest = served.get(&format!(
        "/api/v1/tasks?after={}",
        page["next"].as_str().unwrap()
    ));
    assert_eq!(rest["items"].as_array().unwrap().len(), 1);
}

/// The value of a sample, if it is there.
fn sample(metrics: &str, name: &str) -> Option<f64> {
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.and_then(|value| value.parse().ok())
}

#[test]
fn the_metrics_have_fetches_polls_and_sinks() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let world = WorldConfig {
        sites: 1,
        articles_per_site: 5,
        crawl_delay: Duration::from_millis(20),
        ..WorldConfig::new(5)
    };
    let start = SimServer::start(world, SimClock::real(), "127.0.0.1:0");
    let sim = runtime.block_on(start).unwrap();
    let settings = format!(
        "[egress]\nallow = '127.0.0.0/8'\nports = '{}'\n[fetch]\nhost_delay_ms = 20\n",
        sim.address().port()
    );
    let served = Served::start(&["run"], &settings, &[]);
    let metrics = || served.text("GET", "/metrics", "").1;
    let first = metrics();
    for name in [
        "tidings_fetch_seconds_count",
        "tidings_fetch_responses_total{class=\"5xx\"}",
        "tidings_fetch_bytes_total",
        "tidings_poll_results_total{result=\"failed\"}",
        "tidings_failing_feeds",
        "tidings_broken_feeds",
        "tidings_sink_seconds_count{sink=\"search\"}",
    ] {
        assert_eq!(sample(&first, name), Some(0.0), "{name}: {first}");
    }
    let site = sim.world().sites().next().unwrap();
    let feed = site.url(&site.feeds[0].path);
    for (name, url, feed) in [
        ("paper", site.home(), feed.as_str().to_owned()),
        (
            "closed",
            "http://127.0.0.1:1/".to_owned(),
            "http://127.0.0.1:1/feed".to_owned(),
        ),
    ] {
        let draft = json!({ "url": url, "name": name, "feed_url": feed });
        served.post("/api/v1/sources", &draft);
    }
    let expected = [
        "tidings_fetch_seconds_count",
        "tidings_fetch_seconds_sum",
        "tidings_fetch_responses_total{class=\"2xx\"}",
        "tidings_fetch_responses_total{class=\"failed\"}",
        "tidings_fetch_bytes_total",
        "tidings_poll_results_total{result=\"ok\"}",
        "tidings_poll_results_total{result=\"failed\"}",
        "tidings_failing_feeds",
        "tidings_sink_seconds_count{sink=\"search\"}",
        "tidings_sink_seconds_bucket{le=\"+Inf\",sink=\"search\"}",
    ];
    let is_there = |text: &String| {
        let is_counted = |name: &&str| sample(text, name).is_some_and(|value| value > 0.0);
        expected.iter().all(is_counted)
    };
    let last = until(|| Some(metrics()).filter(is_there));
    assert_eq!(sample(&last, "tidings_failing_feeds"), Some(1.0));
    assert_eq!(sample(&last, "tidings_broken_feeds"), Some(0.0));
    let _keep = &served.folder;
}
