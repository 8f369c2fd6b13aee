//! The dashboard in a real browser: `tidings run` on a simulated web, driven by a
//! script. `scripts/test` installs Node and Chromium; without them the test is skipped
//! with a message.

#![allow(clippy::unwrap_used)]

mod hostile;
#[path = "../tidings/mod.rs"]
mod tidings;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value as Json, json};
use tidings_sim::{
    FakeWebhook, Fault, FaultRule, RobotsKind, SimClock, SimServer, Site, Target, WebhookFault,
    When, World, WorldConfig,
};

/// Fast sites without faults, so that failures are those of the dashboard.
fn world() -> WorldConfig {
    WorldConfig {
        sites: 40,
        articles_per_site: 10,
        plain_fates: true,
        feed_window: Some(8),
        crawl_delay: Duration::from_millis(50),
        ..WorldConfig::new(11)
    }
}

/// Sites with a feed, a unique name, usual robots rules and enough articles by now.
fn ordinary(config: &WorldConfig) -> Vec<u32> {
    let world = World::new(config.clone(), 80);
    let now = SimClock::real().now();
    let mut names = BTreeSet::new();
    let is_ordinary = |site: &Site| {
        site.robots == RobotsKind::Usual
            && site.latest(now, 5).count() == 5
            && names.insert(site.name.clone())
    };
    let sites = world.sites().filter(is_ordinary);
    sites.map(|site| site.index).take(12).collect()
}

fn status(target: Target, first: u64, code: u16) -> Vec<FaultRule> {
    let retry_after = None;
    vec![FaultRule::new(
        target,
        When::First(first),
        Fault::Status { code, retry_after },
    )]
}

/// A site as the script expects it.
fn described(sim: &SimServer, index: u32) -> Json {
    let site = sim.world().site(index);
    let story = site
        .latest(sim.clock().now(), 1)
        .next()
        .map(|story| site.absolute(&story.path));
    json!({ "name": site.name, "home": site.home(), "feed": site.absolute(&site.feeds[0].path), "story": story })
}

/// Whether `scripts/test` has set up Node and Chromium.
fn has_browser() -> bool {
    let is_given = |name| std::env::var_os(name).is_some();
    is_given("TIDINGS_TEST_NODE_MODULES") && is_given("TIDINGS_TEST_CHROMIUM")
}

fn screenshot_folder() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join("screenshots")
}

const SETTINGS: &str = "
[server]
bind = '127.0.0.1:0'
[egress]
allow = '127.0.0.0/8'
ports = '1-65535'
[sink]
allow = '127.0.0.0/8'
[fetch]
host_delay_ms = 30
[sinks.archive]
kind = 'jsonl'
path = 'archive'
[sinks.hook]
kind = 'webhook'
secret_env = 'HOOK_SECRET'
";

/// `tidings run` in a folder; killed on drop.
struct Running {
    child: Child,
    said: Json,
}

impl Running {
    fn start(folder: &Path) -> Self {
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let mut child = tidings::command(&["run", "--json"], folder)
            .env("HOOK_SECRET", "of the tests")
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let Some(Ok(first)) = lines.next() else {
            panic!(
                "tidings run did not start: {}",
                std::fs::read_to_string(folder.join("log")).unwrap()
            );
        };
        let said = serde_json::from_str(&first).unwrap();
        // Later output is not used, but the pipe must be drained.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, said }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already, which the test has noticed by now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn users_complete_their_journeys_and_attacks_never_run() {
    if !has_browser() {
        let note = "skipped: TIDINGS_TEST_NODE_MODULES and TIDINGS_TEST_CHROMIUM are not set; scripts/test sets them\n";
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let mut config = world();
    let sites = ordinary(&config);
    config.scripts = BTreeMap::from([
        (sites[1], status(Target::Articles, 1, 410)),
        (sites[2], status(Target::Feeds, 3, 500)),
    ]);
    let (sim, hostile, hook) = runtime.block_on(async {
        let sim = SimServer::start(config, SimClock::real(), "127.0.0.1:0").await;
        (
            sim.unwrap(),
            hostile::start().await.unwrap(),
            FakeWebhook::start().await.unwrap(),
        )
    });
    hook.fail_next([
        WebhookFault::Status(400),
        WebhookFault::Status(422),
        WebhookFault::Status(400),
    ]);

    let folder = tempfile::tempdir().unwrap();
    let settings = format!("{SETTINGS}url = '{}'\n", hook.url());
    std::fs::write(folder.path().join("tidings.toml"), settings).unwrap();
    let running = Running::start(folder.path());

    let screenshots = screenshot_folder();
    std::fs::create_dir_all(&screenshots).unwrap();
    let others: Vec<_> = sites[3..]
        .iter()
        .map(|site| described(&sim, *site))
        .collect();
    let given = json!({
        "dashboard": running.said["dashboard"],
        "token": running.said["token"],
        "screenshots": screenshots,
        "sites": {
            "news": described(&sim, sites[0]),
            "gone": described(&sim, sites[1]),
            "failing": described(&sim, sites[2]),
            "others": others,
        },
        "hook": "hook",
        "hostile": format!("http://hostile.localhost:{}", hostile.address().port()),
        "corpus": hostile::CORPUS,
    });
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/journeys.mjs");
    let ended = Command::new("node")
        .arg(script)
        .arg(given.to_string())
        .output()
        .unwrap();
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let last: Vec<_> = log.lines().rev().take(30).collect();
    assert!(
        ended.status.success(),
        "{}\n{}\nthe end of the log, last line first:\n{}",
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr),
        last.join("\n")
    );
    let said = [b"\n".as_slice(), &ended.stdout].concat();
    std::io::stderr().write_all(&said).unwrap();
}
