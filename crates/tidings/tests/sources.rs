//! From a site's address to URLs in the frontier, as a user does it.

#![allow(clippy::unwrap_used)]

mod tidings;

use serde_json::Value;
use tidings::{Ended, Run};
use tidings_sim::{SimClock, SimServer, WorldConfig};

struct Desk {
    _runtime: tokio::runtime::Runtime,
    sim: SimServer,
    folder: tempfile::TempDir,
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
            ..WorldConfig::new(5)
        };
        let sim = runtime.block_on(SimServer::start(config, SimClock::real(), "127.0.0.1:0"));
        Self {
            sim: sim.unwrap(),
            _runtime: runtime,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn run(&self, args: &[&str]) -> Ended {
        let ports = format!("egress.ports={}", self.sim.address().port());
        let folder = self.folder.path().display().to_string();
        let open = [
            "--set",
            "egress.allow=127.0.0.0/8",
            "--set",
            &ports,
            "--data-dir",
            &folder,
        ];
        Run::new(&[args, &open].concat()).run()
    }

    fn ok(&self, args: &[&str]) -> String {
        let ended = self.run(args);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.stderr);
        ended.stdout
    }

    fn json(&self, args: &[&str]) -> Value {
        let text = self.ok(&[args, &["--json"]].concat());
        serde_json::from_str(text.lines().next().unwrap()).unwrap()
    }
}

#[test]
fn a_site_becomes_a_source_and_its_stories_arrive() {
    let desk = Desk::new();
    let site = desk.sim.world().site(0);
    let added = desk.ok(&[
        "source",
        "add",
        &site.home(),
        "--name",
        "paper",
        "--pause",
        "0",
        "--tag",
        "local",
    ]);
    assert!(
        added.starts_with("added paper, which follows http://"),
        "{added}"
    );
    assert!(
        desk.ok(&["source", "ls"])
            .starts_with("paper  not polled yet")
    );

    let polled = desk.ok(&["poll", "--once"]);
    let items = site.feeds[0]
        .window
        .min(site.published_by(desk.sim.clock().now()));
    assert!(
        polled.contains(&format!("{items} items, {items} new; again in ")),
        "{polled}"
    );
    let stats = desk.json(&["frontier", "stats"]);
    assert_eq!(stats["by_status"]["pending"], items);
    assert_eq!(stats["by_origin"]["feed"], items);
    assert_eq!(desk.ok(&["poll", "--once"]), "0 polled, 0 new, 0 failed\n");

    // What the feed said travels with the URL, and the source's priority counts.
    let row = desk.json(&["frontier", "ls", "--limit", "1"]);
    assert_eq!(
        (&row["priority"], &row["origin"]),
        (&7.into(), &"feed".into())
    );

    let shown = desk.json(&["source", "show", "paper"]);
    assert_eq!(shown["polls"][0]["outcome"], "ok");
    assert_eq!(shown["config"]["tags"][0], "local");

    desk.ok(&[
        "source",
        "edit",
        "paper",
        "--policy",
        "fixed",
        "--interval",
        "30",
        "--priority",
        "9",
    ]);
    let shown = desk.json(&["source", "show", "paper"]);
    assert_eq!(shown["config"]["feed_poll_interval_minutes"], 30);
    assert_eq!(
        shown["config"]["tags"][0], "local",
        "what was not named stays"
    );

    desk.ok(&["source", "disable", "paper", "--reason", "asked to stop"]);
    assert!(
        desk.ok(&["source", "ls"])
            .starts_with("paper  disabled: asked to stop")
    );
    desk.ok(&["source", "enable", "paper"]);
    assert_eq!(desk.ok(&["source", "rm", "paper"]), "removed paper\n");
    assert_eq!(desk.ok(&["source", "ls"]), "");
}

#[test]
fn what_can_not_be_added_is_explained() {
    let desk = Desk::new();
    let missing = desk.run(&["source", "show", "nobody"]);
    assert_eq!(missing.code, 1);
    assert!(
        missing
            .stderr
            .contains("there is no source named \"nobody\""),
        "{}",
        missing.stderr
    );

    let site = desk.sim.world().site(1);
    let feed = site.absolute(&site.feeds[0].path);
    desk.ok(&[
        "source",
        "add",
        &site.home(),
        "--feed",
        &feed,
        "--name",
        "a",
    ]);
    let twice = desk.run(&[
        "source",
        "add",
        &site.home(),
        "--feed",
        &feed,
        "--name",
        "a",
    ]);
    assert_eq!(twice.code, 1);
    assert!(
        twice.stderr.contains("already a source named \"a\""),
        "{}",
        twice.stderr
    );

    let rarely = desk.run(&["source", "edit", "a", "--interval", "0"]);
    assert_eq!(rarely.code, 1);
    assert!(
        rarely.stderr.contains("from 1 to 10080"),
        "{}",
        rarely.stderr
    );

    // A page is not a feed: the poll says so, and so does the source.
    desk.ok(&[
        "source",
        "add",
        &site.home(),
        "--feed",
        &site.home(),
        "--name",
        "page",
    ]);
    let polled = desk.ok(&["poll", "--once"]);
    assert!(
        polled.contains("failed: not a feed: the document is an HTML page"),
        "{polled}"
    );
    assert!(
        desk.ok(&["source", "ls"])
            .contains("failing 1 times: not a feed")
    );
}
