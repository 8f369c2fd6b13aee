//! From a site's address to its documents, as a user does it: add, run, read.

#![allow(clippy::unwrap_used)]

mod tidings;

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tidings::{Ended, Run};
use tidings_sim::{Expected, SimClock, SimServer, WorldConfig};

struct Setup {
    _runtime: tokio::runtime::Runtime,
    sim: SimServer,
    folder: tempfile::TempDir,
    args: Vec<String>,
}

impl Setup {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let config = WorldConfig {
            sites: 3,
            articles_per_site: 8,
            crawl_delay: Duration::from_millis(20),
            feed_window: Some(200),
            ..WorldConfig::new(5)
        };
        let start = SimServer::start(config, SimClock::real(), "127.0.0.1:0");
        let sim = runtime.block_on(start).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let args = [
            "--set".to_owned(),
            "egress.allow=127.0.0.0/8".to_owned(),
            "--set".to_owned(),
            format!("egress.ports={}", sim.address().port()),
            "--set".to_owned(),
            "fetch.host_delay_ms=20".to_owned(),
            "--set".to_owned(),
            "fetch.archive_html=true".to_owned(),
            "--data-dir".to_owned(),
            folder.path().display().to_string(),
        ];
        Self {
            sim,
            _runtime: runtime,
            folder,
            args: args.to_vec(),
        }
    }

    fn all<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let ours = self.args.iter().map(String::as_str);
        args.iter().copied().chain(ours).collect()
    }

    fn run(&self, args: &[&str]) -> Ended {
        Run::new(&self.all(args)).run()
    }

    fn ok(&self, args: &[&str]) -> String {
        let ended = self.run(args);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.stderr);
        ended.stdout
    }

    fn json(&self, args: &[&str]) -> Value {
        let text = self.ok(&[args, &["--json"]].concat());
        serde_json::from_str(text.lines().last().unwrap()).unwrap()
    }

    fn start(&self, args: &[&str]) -> Child {
        tidings::command(&self.all(args), self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Waits until this many URLs are fetched.
    fn wait_for(&self, fetched: u64) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.json(&["frontier", "stats"])["by_status"]["fetched"].as_u64() < Some(fetched) {
            assert!(Instant::now() < deadline, "it takes too long");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

fn end(child: Child) {
    assert_eq!(tidings::terminate(child), Some(0));
}

#[test]
fn a_site_is_added_run_and_read() {
    let setup = Setup::new();
    let home = setup.sim.world().site(0).home();
    let preview = setup.ok(&["add", &home, "--dry-run", "--delay", "0"]);
    assert!(preview.contains("Latest items of the best:"), "{preview}");
    assert_eq!(setup.ok(&["source", "ls"]), "");
    let added = setup.ok(&[
        "add",
        &home,
        "--delay",
        "0",
        "--tag",
        "harbour",
        "--option",
        "rate_limit=50",
    ]);
    assert!(added.contains("which polls http://"), "{added}");

    let site = setup.sim.world().site(0);
    let expected: Vec<_> = setup
        .sim
        .ledger()
        .entries_of(&site)
        .filter(|entry| entry.expected == Expected::Document)
        .collect();
    let running = setup.start(&["run", "--set", "server.bind=127.0.0.1:0"]);
    setup.wait_for(expected.len() as u64);
    end(running);

    let story = &expected[0];
    let document = setup.json(&["doc", &story.announced_url]);
    assert_eq!(document["title"], story.title.as_str());
    assert_eq!(document["id"], story.key.to_string());
    assert_eq!(document["tags"][0], "harbour");
    assert!(document["near_duplicates"].is_array(), "{document}");
    let text = setup.ok(&["doc", &story.url]);
    assert!(text.contains(&story.title), "{text}");
    let html = setup.ok(&["doc", &story.url, "--html"]);
    assert!(html.contains("<html"), "{html}");

    let events = setup.ok(&["tail", "--no-follow", "--lines", "500"]);
    assert!(
        events.contains("fetched") && events.contains(&story.url),
        "{events}"
    );
    let event: Value = serde_json::from_str(
        setup
            .ok(&["tail", "--no-follow", "--json"])
            .lines()
            .next()
            .unwrap(),
    )
    .unwrap();
    assert!(event["url"].as_str().unwrap().starts_with("http://"));

    let ended = setup.run(&["doc", "https://elsewhere.example/"]);
    assert_eq!(ended.code, 1);
    assert!(
        ended
            .stderr
            .contains("tidings explain https://elsewhere.example/"),
        "{}",
        ended.stderr
    );
}

#[test]
fn roles_can_run_apart() {
    let setup = Setup::new();
    let home = setup.sim.world().site(1).home();
    setup.ok(&["source", "add", &home, "--delay", "0"]);
    let polling = setup.start(&["work", "--roles", "poll"]);
    let deadline = Instant::now() + Duration::from_secs(60);
    while setup.json(&["frontier", "stats"])["by_status"]["pending"].as_u64() == Some(0) {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(100));
    }
    end(polling);
    assert_eq!(
        setup.json(&["frontier", "stats"])["by_status"]["fetched"],
        0
    );
    let fetching = setup.start(&["work", "--roles", "fetch"]);
    setup.wait_for(3);
    end(fetching);
    // What is in flight is finished or released.
    assert_eq!(
        setup.json(&["frontier", "stats"])["by_status"]["fetching"],
        0
    );
}

#[test]
fn a_file_of_sources_is_applied_as_a_whole() {
    let setup = Setup::new();
    let file = |text: &str| {
        let path = setup.folder.path().join("sources.toml");
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let path = file(
        "[[source]]\nurl = 'https://a.example/'\n[[source]]\nname = 'b'\nurl = 'https://b.example/'\nfeed_url = 'https://b.example/feed'\n",
    );
    assert_eq!(
        setup.json(&["apply", &path, "--dry-run"])["added"],
        serde_json::json!(["a.example", "b"])
    );
    assert_eq!(setup.ok(&["source", "ls"]), "");
    let report = setup.ok(&["apply", &path]);
    assert!(
        report.contains("2 added, 0 changed, 0 removed, 0 unchanged"),
        "{report}"
    );
    assert_eq!(setup.json(&["apply", &path])["unchanged"], 2);

    let path = file(
        "[[source]]\nname = 'b'\nurl = 'https://b.example/'\nfeed_url = 'https://b.example/feed'\npriority = 9\n",
    );
    let applied = setup.json(&["apply", &path]);
    assert_eq!(
        (
            applied["changed"][0].as_str(),
            applied["removed"].as_array().unwrap().len()
        ),
        (Some("b"), 0)
    );
    assert_eq!(
        setup.json(&["apply", &path, "--prune"])["removed"][0],
        "a.example"
    );
    assert_eq!(setup.json(&["source", "show", "b"])["priority"], 9);

    let path = file(
        "[[source]]\nurl = 'https://c.example/'\n[[source]]\nurl = 'https://d.example/'\nrate_limit = 0\n",
    );
    let ended = setup.run(&["apply", &path]);
    assert_eq!(ended.code, 1);
    assert!(
        ended
            .stderr
            .contains("source 2 (d.example): rate_limit is 0"),
        "{}",
        ended.stderr
    );
    assert_eq!(setup.run(&["source", "show", "c.example"]).code, 1);
}

#[test]
fn starter_sources_that_were_removed_are_not_added_again() {
    let setup = Setup::new();
    let offered = setup.json(&["source", "starter", "--dry-run"]);
    let count = offered["added"].as_array().unwrap().len();
    assert!(count >= 10);
    assert_eq!(setup.ok(&["source", "ls"]), "");
    assert_eq!(
        setup.json(&["source", "starter"])["added"]
            .as_array()
            .unwrap()
            .len(),
        count
    );
    setup.ok(&["source", "rm", "BBC News"]);
    let again = setup.json(&["source", "starter"]);
    assert_eq!(
        (
            again["added"].as_array().unwrap().len(),
            again["known"].as_u64()
        ),
        (0, Some(count as u64))
    );
    assert!(!setup.ok(&["source", "ls"]).contains("BBC News"));
}

#[test]
fn selectors_are_tried_before_they_are_saved() {
    let setup = Setup::new();
    let site = setup.sim.world().site(0);
    let entry = setup
        .sim
        .ledger()
        .entries_of(&site)
        .find(|entry| entry.expected == Expected::Document)
        .unwrap();
    let shown = setup.ok(&["source", "test", &entry.url, "--selector", "title=title"]);
    assert!(shown.contains("title      title  matched 1: "), "{shown}");
    assert!(shown.contains("(selector)"), "{shown}");
    let tested = setup.json(&["source", "test", &entry.url]);
    assert_eq!(tested["article"]["title"]["value"], entry.title.as_str());
    let ended = setup.run(&["source", "test", &entry.url, "--selector", "title=h1["]);
    assert!(
        ended.stderr.contains("selectors.article.title"),
        "{}",
        ended.stderr
    );

    let article = setup.json(&["fetch", &entry.url, "--extract"]);
    assert_eq!(article["title"]["value"], entry.title.as_str());
    assert!(
        setup
            .ok(&["fetch", &entry.url, "--extract"])
            .contains(&entry.title)
    );
    assert_eq!(setup.ok(&["source", "tasks"]), "");
}
