//! From a site's address to URLs in the frontier, as a user does it.

#![allow(clippy::unwrap_used)]

mod tidings;

use serde_json::Value;
use tidings::{Ended, Run};
use tidings_sim::{FakeApi, SimClock, SimServer, SiteTrap, WorldConfig};

struct Setup {
    _runtime: tokio::runtime::Runtime,
    sim: SimServer,
    folder: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        Self::with(WorldConfig {
            sites: 3,
            ..WorldConfig::new(5)
        })
    }

    fn with(config: WorldConfig) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
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
    let setup = Setup::new();
    let site = setup.sim.world().site(0);
    let added = setup.ok(&[
        "source",
        "add",
        &site.home(),
        "--name",
        "paper",
        "--delay",
        "0",
        "--tag",
        "local",
    ]);
    assert!(
        added.contains("\nadded paper, which polls http://"),
        "{added}"
    );
    assert!(
        setup
            .ok(&["source", "ls"])
            .starts_with("paper  not polled yet")
    );

    let polled = setup.ok(&["poll", "--once"]);
    let items = site.feeds[0]
        .window
        .min(site.published_by(setup.sim.clock().now()));
    assert!(
        polled.contains(&format!("{items} items, {items} new; next poll in ")),
        "{polled}"
    );
    let stats = setup.json(&["frontier", "stats"]);
    assert_eq!(stats["by_status"]["pending"], items);
    assert_eq!(stats["by_origin"]["feed"], items);
    assert_eq!(setup.ok(&["poll", "--once"]), "0 polled, 0 new, 0 failed\n");

    // The hints of the feed are stored with the URL, and the source's priority counts.
    let row = setup.json(&["frontier", "ls", "--limit", "1"]);
    assert_eq!(
        (&row["priority"], &row["origin"]),
        (&7.into(), &"feed".into())
    );

    let shown = setup.json(&["source", "show", "paper"]);
    assert_eq!(shown["polls"][0]["outcome"], "ok");
    assert_eq!(shown["config"]["tags"][0], "local");

    setup.ok(&[
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
    let shown = setup.json(&["source", "show", "paper"]);
    assert_eq!(shown["config"]["feed_poll_interval_minutes"], 30);
    assert_eq!(
        shown["config"]["tags"][0], "local",
        "what was not named stays"
    );

    setup.ok(&["source", "disable", "paper", "--reason", "asked to stop"]);
    assert!(
        setup
            .ok(&["source", "ls"])
            .starts_with("paper  disabled: asked to stop")
    );
    setup.ok(&["source", "enable", "paper"]);
    assert_eq!(setup.ok(&["source", "rm", "paper"]), "removed paper\n");
    assert_eq!(setup.ok(&["source", "ls"]), "");
}

#[test]
fn a_source_that_can_not_be_added_is_explained() {
    let setup = Setup::new();
    let missing = setup.run(&["source", "show", "nobody"]);
    assert_eq!(missing.code, 1);
    assert!(
        missing
            .stderr
            .contains("there is no source named \"nobody\""),
        "{}",
        missing.stderr
    );

    let site = setup.sim.world().site(1);
    let feed = site.absolute(&site.feeds[0].path);
    setup.ok(&[
        "source",
        "add",
        &site.home(),
        "--feed",
        &feed,
        "--name",
        "a",
    ]);
    let twice = setup.run(&[
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

    let rarely = setup.run(&["source", "edit", "a", "--interval", "0"]);
    assert_eq!(rarely.code, 1);
    assert!(
        rarely.stderr.contains("from 1 to 10080"),
        "{}",
        rarely.stderr
    );

    // A page is not a feed: the poll says so, and follows the one that it names.
    setup.ok(&[
        "source",
        "add",
        &site.home(),
        "--feed",
        &site.home(),
        "--name",
        "page",
    ]);
    let polled = setup.ok(&["poll", "--once"]);
    assert!(
        polled.contains("failed: a page, not a feed; its feed"),
        "{polled}"
    );
    assert!(!setup.ok(&["source", "ls"]).contains("failed "));
}

#[test]
fn a_source_is_polled_once_per_minute_and_previewed_at_any_time() {
    let setup = Setup::new();
    let site = setup.sim.world().site(2);
    let feed = site.absolute(&site.feeds[0].path);
    setup.ok(&[
        "source",
        "add",
        &site.home(),
        "--feed",
        &feed,
        "--name",
        "a",
    ]);
    let preview = setup.ok(&["source", "poll", "a", "--dry-run"]);
    let items = preview.lines().count();
    assert!(
        items > 0 && preview.lines().all(|line| line.starts_with("NEW    http")),
        "{preview}"
    );
    assert_eq!(
        setup.json(&["frontier", "stats"])["by_status"]["pending"],
        0,
        "a dry run writes nothing"
    );

    let polled = setup.ok(&["source", "poll", "a"]);
    assert_eq!(polled, format!("ok: {items} items, {items} new\n"));
    let preview = setup.ok(&["source", "poll", "a", "--dry-run"]);
    assert!(
        preview.lines().all(|line| line.starts_with("KNOWN  http")),
        "{preview}"
    );
    let again = setup.run(&["source", "poll", "a"]);
    assert_eq!(again.code, 1);
    assert!(
        again.stderr.contains("at most one manual poll per minute"),
        "{}",
        again.stderr
    );

    setup.ok(&[
        "source",
        "add",
        &site.home(),
        "--feed",
        &site.absolute("/none"),
        "--name",
        "b",
    ]);
    let failed = setup.run(&["source", "poll", "b"]);
    assert_eq!(failed.code, 1);
    assert!(
        failed.stderr.contains("b was not polled: status 404"),
        "{}",
        failed.stderr
    );
}

#[test]
fn lists_are_imported_and_exported_and_invalid_rows_are_named() {
    let setup = Setup::new();
    let write = |name: &str, text: &str| {
        let path = setup.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };

    let mut opml = String::from("<opml version='2.0'><body>\n");
    for n in 0..5000 {
        let url = match n % 1000 {
            7 => "ftp://old.example/feed".to_owned(),
            _ => format!("https://site{n}.example/feed?a=1&amp;b={n}"),
        };
        opml.push_str(&format!("<outline text='Site {n}' xmlUrl='{url}'/>\n"));
    }
    let opml = write("list.opml", &(opml + "</body></opml>"));
    let preview = setup.ok(&["source", "import", &opml, "--dry-run"]);
    assert!(
        preview.ends_with("4995 would be added, 0 known, 5 invalid\n"),
        "{preview}"
    );
    assert_eq!(setup.ok(&["source", "ls"]), "", "a dry run writes nothing");
    let report = setup.ok(&["source", "import", &opml]);
    assert!(
        report.ends_with("4995 added, 0 known, 5 invalid\n"),
        "{report}"
    );
    assert!(
        report.contains("list.opml:9: ") && report.contains("ftp"),
        "{report}"
    );
    assert!(
        setup
            .ok(&["source", "import", &opml])
            .ends_with("0 added, 4995 known, 5 invalid\n")
    );

    let csv = write(
        "list.csv",
        "name,url,feed_url,priority,poll_policy,tags\n\
         Good,https://good.example/,https://good.example/feed,7,fixed,a;b\n\
         \"Comma, Inc.\",,https://comma.example/feed,,,\n\
         No address,,,5,,\n\
         Too urgent,https://u.example/,https://u.example/feed,99,,\n\
         Odd policy,https://o.example/,https://o.example/feed,5,often,\n\
         Good,https://double.example/,https://double.example/feed,5,,\n",
    );
    let report = setup.ok(&["source", "import", &csv]);
    for (line, why) in [
        (4, "neither url nor feed_url is given"),
        (5, "priority \"99\" is not a number from 1 to 10"),
        (6, "unknown variant `often`"),
    ] {
        assert!(
            report.contains(&format!("list.csv:{line}: {why}")),
            "{report}"
        );
    }
    assert!(
        report.ends_with("3 added, 0 known, 3 invalid\n"),
        "{report}"
    );
    let good = setup.json(&["source", "show", "Good"]);
    assert_eq!(
        (&good["priority"], &good["config"]["poll_policy"]),
        (&7.into(), &"fixed".into())
    );
    assert_eq!(good["config"]["tags"][1], "b");
    assert_eq!(good["feed"]["url"], "https://good.example/feed");
    setup.ok(&["source", "show", "Good 2"]);

    // An exported list can be imported elsewhere.
    for (format, ending) in [("opml", "opml"), ("csv", "csv"), ("jsonl", "jsonl")] {
        let exported = setup.ok(&["source", "export", "--format", format]);
        let other = Setup::new();
        let path = other.folder.path().join(format!("list.{ending}"));
        std::fs::write(&path, exported).unwrap();
        let report = other.ok(&["source", "import", &path.display().to_string()]);
        assert_eq!(report, "4998 added, 0 known, 0 invalid\n", "{format}");
    }
    let wrong = setup.run(&["source", "import", "list.pdf"]);
    assert!(
        wrong.stderr.contains("unknown extension"),
        "{}",
        wrong.stderr
    );
    let wrong = setup.run(&["source", "import", &write("page.xml", "<html></html>")]);
    assert!(
        wrong.stderr.contains("not an OPML list"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn a_service_is_added_by_file_and_collected_from() {
    let setup = Setup::new();
    let fake = setup._runtime.block_on(FakeApi::hackernews()).unwrap();
    let now = jiff::Timestamp::now().as_second();
    fake.publish_many(7, now - 700, 60);
    let file = setup.folder.path().join("sources.toml");
    let text = "[[source]]\nname = \"hn\"\nurl = \"https://news.ycombinator.com/\"\nkind = \"hackernews\"\n\
         config = { list = \"all\" }\n";
    let config = setup.folder.path().join("tidings.toml");
    let table = format!("[adapters.hackernews]\nbase_url = \"{}\"\n", fake.url());
    std::fs::write(&config, table).unwrap();
    let config = config.to_str().unwrap();
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let port = format!("egress.ports={}", fake.port());
    let run = |args: &[&str]| {
        let folder = setup.folder.path().display().to_string();
        let open = [
            "--config",
            config,
            "--set",
            "egress.allow=127.0.0.0/8",
            "--set",
            &port,
            "--data-dir",
            &folder,
        ];
        Run::new(&[args, &open].concat()).run()
    };
    assert_eq!(run(&["apply", file]).code, 0);
    let dry = run(&["collect", "--dry-run"]);
    assert!(
        dry.stdout.ends_with("1 of 1 sources, 7 would be new\n"),
        "{}{}",
        dry.stdout,
        dry.stderr
    );
    let real: Value = serde_json::from_str(&run(&["collect", "--json"]).stdout).unwrap();
    assert_eq!(real["items_new"], 7);
    assert_eq!(real["sources"][0]["kind"], "hackernews");
    let again = run(&["collect", "--source", "hn"]);
    assert!(
        again.stdout.ends_with("1 of 1 sources, 0 new\n"),
        "{}{}",
        again.stdout,
        again.stderr
    );
    let nobody = run(&["collect", "--source", "nobody"]);
    assert_eq!(nobody.code, 1);
    assert!(
        nobody
            .stderr
            .contains("there is no source named \"nobody\""),
        "{}",
        nobody.stderr
    );
    // An invalid adapter config is reported before anything is stored.
    std::fs::write(file, text.replace("list = ", "lists = ")).unwrap();
    let wrong = run(&["apply", file]);
    assert!(
        wrong.stderr.contains("config.lists: is unknown"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn a_site_without_a_feed_is_read_by_its_pages() {
    let setup = Setup::with(WorldConfig {
        sites: 2,
        without_feeds: true,
        plain_fates: true,
        traps: [(0, SiteTrap::Calendar)].into(),
        crawl_delay: std::time::Duration::from_millis(20),
        ..WorldConfig::new(5)
    });
    let home = setup.sim.world().site(0).home();
    let quick = ["--set", "fetch.host_delay_ms=10"];
    let added = setup.ok(&[
        "source", "add", &home, "--name", "paper", "--mode", "spider",
    ]);
    assert_eq!(
        added,
        format!("added paper, which polls the pages of {home}\n")
    );
    setup.ok(&[&["poll", "--once"], &quick[..]].concat());
    let shown = setup.ok(&["source", "show", "paper"]);
    assert!(shown.contains("/section/sport"), "{shown}");
    assert!(
        shown.contains("ok; not followed into traps: calendar"),
        "{shown}"
    );
    let found = setup.ok(&["frontier", "ls", "--json"]);
    assert!(found.lines().count() > 30, "{found}");
    assert!(
        found.lines().all(|line| line.contains("\"spider\"")),
        "{found}"
    );
    let dry = setup.ok(&[&["source", "poll", "paper", "--dry-run"], &quick[..]].concat());
    assert!(dry.lines().all(|line| line.starts_with("KNOWN")), "{dry}");
}

#[test]
fn a_service_is_added_by_flags_and_its_fields_are_checked() {
    let setup = Setup::new();
    let add = |more: &[&str]| {
        let url = "https://news.ycombinator.com/";
        setup.run(&[&["source", "add", url, "--name", "hn"], more].concat())
    };
    let rows: [(&[&str], &str); 4] = [
        (&["--kind", "hackernew"], "valid: feed, newsapi"),
        (
            &["--kind", "hackernews", "--adapter-config", "{\"lsit\": 1}"],
            "config.lsit: is unknown",
        ),
        (
            &["--kind", "hackernews", "--adapter-config", "{list}"],
            "is not JSON",
        ),
        (&["--adapter-config", "{}"], "--kind"),
    ];
    for (args, message) in rows {
        let ended = add(args);
        assert_ne!(ended.code, 0, "{args:?}");
        assert!(ended.stderr.contains(message), "{args:?}: {}", ended.stderr);
    }
    let added = add(&[
        "--kind",
        "hackernews",
        "--adapter-config",
        "{\"list\": \"all\"}",
    ]);
    assert_eq!(added.code, 0, "{}", added.stderr);
    assert_eq!(
        added.stdout,
        "added hn, which polls the adapter hackernews\n"
    );
}
