//! From a site's address to its documents, as a user does it: add, run, look.

#![allow(clippy::unwrap_used)]

mod tidings;

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tidings::{Ended, Run};
use tidings_sim::{Expected, SimClock, SimServer, WorldConfig};

struct Desk {
    _runtime: tokio::runtime::Runtime,
    sim: SimServer,
    folder: tempfile::TempDir,
    args: Vec<String>,
}

impl Desk {
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
            "fetch.keep_html=true".to_owned(),
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

    /// Until so many are fetched.
    fn wait_for(&self, fetched: u64) {
        let patience = Instant::now() + Duration::from_secs(60);
        while self.json(&["frontier", "stats"])["by_status"]["fetched"].as_u64() < Some(fetched) {
            assert!(Instant::now() < patience, "it takes too long");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

fn end(child: Child) {
    assert_eq!(tidings::terminate(child), Some(0));
}

#[test]
fn a_site_is_added_run_and_read() {
    let desk = Desk::new();
    let home = desk.sim.world().site(0).home();
    let preview = desk.ok(&["add", &home, "--dry-run", "--pause", "0"]);
    assert!(preview.contains("Latest stories of the best:"), "{preview}");
    assert_eq!(desk.ok(&["source", "ls"]), "");
    let added = desk.ok(&[
        "add",
        &home,
        "--pause",
        "0",
        "--tag",
        "harbour",
        "--option",
        "rate_limit=50",
    ]);
    assert!(added.contains("which follows http://"), "{added}");

    let site = desk.sim.world().site(0);
    let expected: Vec<_> = desk
        .sim
        .ledger()
        .entries_of(&site)
        .filter(|entry| entry.expected == Expected::Document)
        .collect();
    let running = desk.start(&["run", "--set", "server.bind=127.0.0.1:0"]);
    desk.wait_for(expected.len() as u64);
    end(running);

    let story = &expected[0];
    let document = desk.json(&["doc", &story.announced_url]);
    assert_eq!(document["title"], story.title.as_str());
    assert_eq!(document["id"], story.key.to_string());
    assert_eq!(document["tags"][0], "harbour");
    assert!(document["near_duplicates"].is_array(), "{document}");
    let text = desk.ok(&["doc", &story.url]);
    assert!(text.contains(&story.title), "{text}");
    let html = desk.ok(&["doc", &story.url, "--html"]);
    assert!(html.contains("<html"), "{html}");

    let events = desk.ok(&["tail", "--once", "--last", "500"]);
    assert!(
        events.contains("fetched") && events.contains(&story.url),
        "{events}"
    );
    let event: Value = serde_json::from_str(
        desk.ok(&["tail", "--once", "--json"])
            .lines()
            .next()
            .unwrap(),
    )
    .unwrap();
    assert!(event["url"].as_str().unwrap().starts_with("http://"));

    let ended = desk.run(&["doc", "https://elsewhere.example/"]);
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
    let desk = Desk::new();
    let home = desk.sim.world().site(1).home();
    desk.ok(&["source", "add", &home, "--pause", "0"]);
    let polling = desk.start(&["work", "--roles", "poll"]);
    let patience = Instant::now() + Duration::from_secs(60);
    while desk.json(&["frontier", "stats"])["by_status"]["pending"].as_u64() == Some(0) {
        assert!(Instant::now() < patience);
        std::thread::sleep(Duration::from_millis(100));
    }
    end(polling);
    assert_eq!(desk.json(&["frontier", "stats"])["by_status"]["fetched"], 0);
    let fetching = desk.start(&["work", "--roles", "fetch"]);
    desk.wait_for(3);
    end(fetching);
    // What is under way is finished or given back.
    assert_eq!(
        desk.json(&["frontier", "stats"])["by_status"]["fetching"],
        0
    );
}

#[test]
fn a_file_of_sources_is_applied_as_a_whole() {
    let desk = Desk::new();
    let file = |text: &str| {
        let path = desk.folder.path().join("sources.toml");
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let path = file(
        "[[source]]\nurl = 'https://a.example/'\n[[source]]\nname = 'b'\nurl = 'https://b.example/'\nfeed_url = 'https://b.example/feed'\n",
    );
    assert_eq!(
        desk.json(&["apply", &path, "--dry-run"])["added"],
        serde_json::json!(["a.example", "b"])
    );
    assert_eq!(desk.ok(&["source", "ls"]), "");
    let told = desk.ok(&["apply", &path]);
    assert!(
        told.contains("2 added, 0 changed, 0 removed, 0 as they were"),
        "{told}"
    );
    assert_eq!(desk.json(&["apply", &path])["unchanged"], 2);

    let path = file(
        "[[source]]\nname = 'b'\nurl = 'https://b.example/'\nfeed_url = 'https://b.example/feed'\npriority = 9\n",
    );
    let applied = desk.json(&["apply", &path]);
    assert_eq!(
        (
            applied["changed"][0].as_str(),
            applied["removed"].as_array().unwrap().len()
        ),
        (Some("b"), 0)
    );
    assert_eq!(
        desk.json(&["apply", &path, "--prune"])["removed"][0],
        "a.example"
    );
    assert_eq!(desk.json(&["source", "show", "b"])["priority"], 9);

    let path = file(
        "[[source]]\nurl = 'https://c.example/'\n[[source]]\nurl = 'https://d.example/'\nrate_limit = 0\n",
    );
    let ended = desk.run(&["apply", &path]);
    assert_eq!(ended.code, 1);
    assert!(
        ended
            .stderr
            .contains("source 2 (d.example): rate_limit is 0"),
        "{}",
        ended.stderr
    );
    assert_eq!(desk.run(&["source", "show", "c.example"]).code, 1);
}

#[test]
fn starters_that_were_removed_do_not_come_back() {
    let desk = Desk::new();
    let offered = desk.json(&["source", "starter", "--dry-run"]);
    let count = offered["added"].as_array().unwrap().len();
    assert!(count >= 10);
    assert_eq!(desk.ok(&["source", "ls"]), "");
    assert_eq!(
        desk.json(&["source", "starter"])["added"]
            .as_array()
            .unwrap()
            .len(),
        count
    );
    desk.ok(&["source", "rm", "BBC News"]);
    let again = desk.json(&["source", "starter"]);
    assert_eq!(
        (
            again["added"].as_array().unwrap().len(),
            again["known"].as_u64()
        ),
        (0, Some(count as u64))
    );
    assert!(!desk.ok(&["source", "ls"]).contains("BBC News"));
}

#[test]
fn selectors_are_tried_before_they_are_saved() {
    let desk = Desk::new();
    let site = desk.sim.world().site(0);
    let entry = desk
        .sim
        .ledger()
        .entries_of(&site)
        .find(|entry| entry.expected == Expected::Document)
        .unwrap();
    let shown = desk.ok(&["source", "test", &entry.url, "--selector", "title=title"]);
    assert!(shown.contains("title      title  matched 1: "), "{shown}");
    assert!(shown.contains("(selector)"), "{shown}");
    let tested = desk.json(&["source", "test", &entry.url]);
    assert_eq!(tested["article"]["title"]["value"], entry.title.as_str());
    let ended = desk.run(&["source", "test", &entry.url, "--selector", "title=h1["]);
    assert!(
        ended.stderr.contains("selectors.article.title"),
        "{}",
        ended.stderr
    );

    let article = desk.json(&["fetch", &entry.url, "--extract"]);
    assert_eq!(article["title"]["value"], entry.title.as_str());
    assert!(
        desk.ok(&["fetch", &entry.url, "--extract"])
            .contains(&entry.title)
    );
    assert_eq!(desk.ok(&["source", "tasks"]), "");
}
