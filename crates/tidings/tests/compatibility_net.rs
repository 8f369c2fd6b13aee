//! What the reference systems could do on the network, through the running program:
//! gateways, canonical pages, retries, names of the crawler, links to other sites,
//! their environment, and a first start.

#![allow(clippy::unwrap_used)]

mod tidings;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tidings::{Ended, Run};
use tidings_sim::{Act, RawServer};

const HTML: &str = "200 OK\r\nContent-Type: text/html; charset=utf-8";
const RSS: &str = "200 OK\r\nContent-Type: application/rss+xml";
const TEXT: &str = "200 OK\r\nContent-Type: text/plain";

/// A site whose responses a test sets by path, and the requests that it received.
struct Site {
    raw: RawServer,
    responses: Arc<Mutex<HashMap<String, Vec<Act>>>>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Site {
    async fn start(address: &str) -> Self {
        let responses: Arc<Mutex<HashMap<String, Vec<Act>>>> = Arc::default();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (script, seen) = (Arc::clone(&responses), Arc::clone(&heads));
        let raw = RawServer::start(address.parse().unwrap(), move |head| {
            seen.lock().unwrap().push(head.to_lowercase());
            let path = head.split(' ').nth(1).unwrap_or_default();
            let response = script.lock().unwrap().get(path).cloned();
            response.unwrap_or_else(|| Act::answer("404 Not Found", b""))
        });
        Self {
            raw: raw.await.unwrap(),
            responses,
            heads,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.raw.address())
    }

    fn set(&self, path: &str, head: &str, body: impl AsRef<[u8]>) {
        let acts = Act::answer(head, body.as_ref());
        self.responses.lock().unwrap().insert(path.to_owned(), acts);
    }

    fn set_feed(&self, path: &str, items: &[String]) {
        let item = |url: &String| {
            format!("<item><title>Item {url}</title><link>{url}</link><guid>{url}</guid></item>")
        };
        let items: String = items.iter().map(item).collect();
        let feed = format!(
            "<rss version='2.0'><channel><title>News</title><link>{}</link>{items}</channel></rss>",
            self.url("/")
        );
        self.set(path, RSS, feed);
    }

    fn requests(&self, path: &str) -> usize {
        let start = format!("get {path} ");
        let heads = self.heads.lock().unwrap();
        heads.iter().filter(|head| head.starts_with(&start)).count()
    }
}

/// A page with a story that no other has.
fn story(title: &str, head: &str) -> String {
    let paragraph = |n: usize| {
        let words: Vec<String> = (0..30)
            .map(|word| {
                format!(
                    "{}{}",
                    &title[..title.len().min(9)].to_lowercase().replace(' ', "x"),
                    (word * 7 + n * 31) % 97
                )
            })
            .collect();
        format!(
            "<p>The {n}th part of {title} says that {}.</p>",
            words.join(" ")
        )
    };
    let text: String = (0..6).map(paragraph).collect();
    format!(
        "<html><head><title>{title}</title>{head}</head><body><article><h1>{title}</h1>{text}</article></body></html>"
    )
}

struct Setup {
    _runtime: tokio::runtime::Runtime,
    folder: tempfile::TempDir,
    ports: String,
}

impl Setup {
    /// One site for each address, of which the program may reach all.
    fn new(addresses: &[&str]) -> (Self, Vec<Site>) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let start = |address: &&str| runtime.block_on(Site::start(address));
        let sites: Vec<Site> = addresses.iter().map(start).collect();
        let ports: Vec<String> = sites
            .iter()
            .map(|site| site.raw.address().port().to_string())
            .collect();
        let setup = Self {
            _runtime: runtime,
            folder: tempfile::tempdir().unwrap(),
            ports: format!("egress.ports={}", ports.join(", ")),
        };
        (setup, sites)
    }

    fn all<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let ours = [
            "--set",
            "egress.allow=127.0.0.0/8",
            "--set",
            &self.ports,
            "--set",
            "fetch.host_delay_ms=10",
            "--data-dir",
            self.folder.path().to_str().unwrap(),
        ];
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

    fn lines(&self, args: &[&str]) -> Vec<Value> {
        let text = self.ok(&[args, &["--json"]].concat());
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn add_feed(&self, site: &Site, feed: &str) {
        let (home, feed) = (site.url("/"), site.url(feed));
        self.ok(&["add", &home, "--feed", &feed, "--name", &feed]);
    }

    fn rows(&self) -> HashMap<String, Value> {
        let rows = self.lines(&["frontier", "ls", "--all"]);
        rows.into_iter()
            .map(|row| (row["url"].as_str().unwrap().to_owned(), row))
            .collect()
    }

    /// Runs the program until the frontier is as expected.
    fn run_until(&self, args: &[&str], is_done: impl Fn(&HashMap<String, Value>) -> bool) {
        let args = [&["run", "--set", "server.bind=127.0.0.1:0"], args].concat();
        let child = self.start(&args);
        let deadline = Instant::now() + Duration::from_secs(90);
        while !is_done(&self.rows()) {
            assert!(
                Instant::now() < deadline,
                "it takes too long: {:#?}",
                self.rows()
            );
            std::thread::sleep(Duration::from_millis(200));
        }
        assert_eq!(tidings::terminate(child), Some(0));
    }

    fn start(&self, args: &[&str]) -> Child {
        tidings::command(&self.all(args), self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }
}

fn has_ended(rows: &HashMap<String, Value>, urls: &[String]) -> bool {
    let is_ended = |url: &String| {
        let status = rows.get(url).map(|row| row["status"].as_str().unwrap());
        matches!(status, Some("fetched" | "dead"))
    };
    urls.iter().all(is_ended)
}

#[test]
fn a_gateway_has_one_host_for_each_first_path_segment_on_all_machines() {
    let (setup, sites) = Setup::new(&["127.0.0.1:0"]);
    let gateway = &sites[0];
    let urls = ["/bbc/one", "/bbc/two", "/nyt/one"].map(|path| gateway.url(path));
    for (url, path) in urls.iter().zip(["/bbc/one", "/bbc/two", "/nyt/one"]) {
        gateway.set(path, HTML, story(&format!("Story of {path}"), ""));
        assert!(url.ends_with(path));
    }
    gateway.set_feed("/bbc/feed", &urls[..2]);
    gateway.set_feed("/nyt/feed", &urls[2..]);
    setup.add_feed(gateway, "/bbc/feed");
    setup.add_feed(gateway, "/nyt/feed");
    let address = gateway.raw.address().to_string();
    let listed = format!("net.proxy_hosts={address}");
    setup.run_until(&["--set", &listed], |rows| has_ended(rows, &urls));

    let rows = setup.rows();
    let hosts = urls
        .each_ref()
        .map(|url| rows[url]["host"].as_str().unwrap());
    let (bbc, nyt) = (format!("{address}/bbc"), format!("{address}/nyt"));
    assert_eq!(hosts, [&bbc, &bbc, &nyt]);
    // A gateway has one robots.txt.
    assert_eq!(gateway.requests("/robots.txt"), 1);
    // A machine without the setting uses the list of the store.
    let found = setup.lines(&["explain", &urls[0]]);
    assert_eq!(found[0]["row"]["status"], "fetched", "{found:?}");
    let again = setup.ok(&["frontier", "add", &urls[0]]);
    assert!(again.contains("0 new"), "{again}");
    // One with another list is told.
    let doctor = setup.run(&["doctor", "--set", "net.proxy_hosts=rsshub.example"]);
    let difference =
        format!("net.proxy_hosts is \"rsshub.example\" here, and {address:?} in the store");
    assert!(doctor.stdout.contains(&difference), "{}", doctor.stdout);
    let doctor = setup.run(&["doctor", "--set", &listed]);
    assert!(
        !doctor.stdout.contains("net.proxy_hosts"),
        "{}",
        doctor.stdout
    );
    // An empty list that is set counts: the next start stores it.
    setup.run_until(&["--set", "net.proxy_hosts="], |_| {
        let plain = setup.run(&["explain", &urls[0]]);
        plain.stderr.contains("was never submitted")
    });
}

#[test]
fn canonical_pages_merge_versions_and_swallow_no_stories() {
    let (setup, sites) = Setup::new(&["127.0.0.1:0"]);
    let site = &sites[0];
    let canonical = |path: &str| format!("<link rel='canonical' href='{}'>", site.url(path));
    let pages = [
        ("/harbour", "Harbour opens", "/harbour"),
        ("/amp/harbour", "Harbour opens", "/harbour"),
        ("/bridge", "Bridge closes", "/harbour"),
        ("/market", "Market moves", "/harbour"),
        ("/school", "School begins", "/"),
    ];
    for (path, title, named) in pages {
        site.set(path, HTML, story(title, &canonical(named)));
    }
    let urls = pages.map(|(path, ..)| site.url(path));
    site.set_feed("/feed", &urls);
    setup.add_feed(site, "/feed");
    setup.run_until(&[], |rows| has_ended(rows, &urls));
    let rows = setup.rows();
    let status = |path: &str| rows[&site.url(path)]["status"].as_str().unwrap().to_owned();
    assert_eq!(status("/amp/harbour"), "dead");
    for path in ["/harbour", "/bridge", "/market", "/school"] {
        assert_eq!(status(path), "fetched", "{path}");
    }
    let reason = rows[&site.url("/amp/harbour")]["reason"].as_str();
    assert!(
        matches!(reason, Some("canonical" | "redirect")),
        "{reason:?}"
    );
    for (path, title, _) in pages {
        let document = &setup.lines(&["doc", &site.url(path)])[0];
        assert_eq!(document["title"], title, "{path}");
    }
}

#[test]
fn retries_follow_the_preset_and_the_number_of_attempts() {
    let (setup, sites) = Setup::new(&["127.0.0.1:0"]);
    let site = &sites[0];
    let url = site.url("/down");
    site.set("/down", "503 Service Unavailable", "");
    setup.ok(&["frontier", "add", &url]);
    let preset = ["--set", "retry.preset=media-cloud"];
    setup.run_until(&preset, |rows| rows[&url]["status"] == "failed");
    let explained = &setup.lines(&["explain", &url])[0];
    let events = explained["events"].as_array().unwrap();
    let failed = events
        .iter()
        .find(|event| event["kind"] == "failed")
        .unwrap();
    let wait = failed["detail"]["retry_in_ms"].as_u64().unwrap() / 60_000;
    assert!((54..=66).contains(&wait), "{failed}");

    let other = site.url("/down-too");
    site.set("/down-too", "503 Service Unavailable", "");
    setup.ok(&["frontier", "add", &other]);
    let once = ["--set", "retry.max_attempts=1"];
    setup.run_until(&once, |rows| rows[&other]["status"] == "dead");
    assert_eq!(setup.rows()[&other]["reason"], "max_retries");
    assert_eq!(site.requests("/down-too"), 1);
}

#[test]
fn the_name_of_the_crawler_is_sent_and_obeyed_in_robots_txt() {
    let (setup, sites) = Setup::new(&["127.0.0.1:0"]);
    let site = &sites[0];
    site.set(
        "/robots.txt",
        TEXT,
        "User-agent: Tidings\nDisallow: /\n\nUser-agent: NorthCloud-Crawler\nDisallow: /private",
    );
    let urls = ["/open", "/private/page"].map(|path| site.url(path));
    site.set("/open", HTML, story("Open to all", ""));
    site.set("/private/page", HTML, story("Private to some", ""));
    setup.ok(&["frontier", "add", &urls[0], &urls[1]]);
    let named = [
        "--set",
        "net.user_agent=NorthCloud-Crawler/1.0",
        "--set",
        "net.contact=https://us.example/bot",
    ];
    setup.run_until(&named, |rows| has_ended(rows, &urls));
    let rows = setup.rows();
    assert_eq!(rows[&urls[0]]["status"], "fetched");
    assert_eq!(rows[&urls[1]]["reason"], "robots_blocked");
    let heads = site.heads.lock().unwrap();
    let name = "user-agent: northcloud-crawler/1.0 (+https://us.example/bot)\r\n";
    assert!(heads.iter().all(|head| head.contains(name)), "{heads:?}");
}

#[test]
fn links_to_other_sites_are_followed_with_lower_priority_if_a_source_wants_them() {
    let (setup, sites) = Setup::new(&["127.0.0.1:0", "127.0.0.2:0"]);
    let (home, other) = (&sites[0], &sites[1]);
    let own: Vec<String> = (0..4)
        .map(|n| home.url(&format!("/2026/11/15/harbour-council-votes-again-{n}")))
        .collect();
    let external: Vec<String> = (0..3)
        .map(|n| other.url(&format!("/2026/11/15/ferry-company-changes-plans-{n}")))
        .collect();
    let link = |url: &String| {
        format!("<article><h2><a href='{url}'>A headline of several words here</a></h2></article>")
    };
    let links: String = own.iter().chain(&external).map(link).collect();
    home.set(
        "/",
        HTML,
        format!("<html><head><title>Home</title></head><body><main>{links}</main></body></html>"),
    );
    for (site, urls) in [(home, &own), (other, &external)] {
        for url in urls {
            let path = url.strip_prefix(&site.url("")).unwrap();
            site.set(path, HTML, story(&format!("Story at {path}"), ""));
        }
    }
    setup.ok(&[
        "add",
        &home.url("/"),
        "--mode",
        "spider",
        "--option",
        "external_per_day=2",
        "--delay",
        "0",
    ]);
    let count = |rows: &HashMap<String, Value>| {
        let fetched = external.iter().filter(|url| {
            let row = rows.get(*url);
            row.is_some_and(|row| row["status"] == "fetched")
        });
        fetched.count()
    };
    setup.run_until(&[], |rows| has_ended(rows, &own) && count(rows) == 2);
    let rows = setup.rows();
    assert_eq!(
        external
            .iter()
            .filter(|url| rows.contains_key(*url))
            .count(),
        2
    );
    let priority = |url: &String| rows[url]["priority"].as_i64().unwrap();
    for url in external.iter().filter(|url| rows.contains_key(*url)) {
        assert_eq!(priority(url), priority(&own[0]) - 2, "{url}");
        assert_eq!(rows[url]["origin"], "spider");
    }
}

#[test]
fn the_environment_of_the_reference_fetchers_is_read_or_refused_by_name() {
    let mut run = Run::new(&["config", "--json"]);
    let names = [
        ("WORKER_COUNT", "16", "fetch.concurrency", "16"),
        (
            "USER_AGENT",
            "NorthCloud-Crawler/1.0",
            "net.user_agent",
            "NorthCloud-Crawler/1.0",
        ),
        ("REQUEST_TIMEOUT", "45s", "net.total_seconds", "45"),
        ("MAX_RETRIES", "3", "retry.max_attempts", "3"),
        ("CLAIM_RETRY_DELAY", "5s", "fetch.claim_interval_ms", "5000"),
        ("FRONTIER_DB_URL", "sqlite:a.db", "store", "sqlite:a.db"),
        ("LOG_LEVEL", "debug", "log.level", "debug"),
        ("LOG_FORMAT", "json", "log.format", "json"),
    ];
    for (name, value, ..) in names {
        run = run.env(name, value);
    }
    let ended = run.run();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let rows: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
    for (name, _, key, expected) in names {
        let row = rows.iter().find(|row| row["key"] == key).unwrap();
        assert_eq!(row["value"], expected, "{name}");
        assert_eq!(row["origin"], format!("environment {name}"));
    }

    let refused = Run::new(&["config"])
        .env("SOURCE_MANAGER_URL", "http://source-manager:8050")
        .run();
    assert_eq!(refused.code, 78);
    assert!(
        refused.stderr.contains(
            "environment SOURCE_MANAGER_URL: there is no such setting; sources are in the store"
        ),
        "{}",
        refused.stderr
    );
    // The index is a sink.
    let sinks = Run::new(&["sink", "ls"])
        .env("ELASTICSEARCH_URL", "http://127.0.0.1:9200")
        .run();
    assert_eq!(sinks.code, 0, "{}", sinks.stderr);
    assert!(sinks.stdout.contains("elasticsearch"), "{}", sinks.stdout);
}

#[test]
fn init_writes_a_configuration_once_and_the_first_start_adds_sources() {
    let (ended, folder) = Run::new(&["init", "--contact", "https://us.example/bot"]).run_keeping();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stdout.contains("Wrote tidings.toml."),
        "{}",
        ended.stdout
    );
    let file = folder.path().join("tidings.toml");
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.contains("contact = \"https://us.example/bot\""));

    let call = |args: &[&str]| {
        let output = tidings::command(args, folder.path()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code().unwrap(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (code, _, why) = call(&["init", "--yes"]);
    assert_eq!(code, 1);
    assert!(why.contains("tidings.toml exists already"), "{why}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), written);
    let (code, shown, why) = call(&["config", "--json"]);
    assert_eq!(code, 0, "{why}");
    let rows: Vec<Value> = serde_json::from_str(&shown).unwrap();
    let set: Vec<&str> = rows
        .iter()
        .filter(|row| row["origin"] != "default")
        .map(|row| row["key"].as_str().unwrap())
        .collect();
    assert_eq!(set, ["net.contact", "source.starter"]);

    let sources = || {
        let (code, shown, why) = call(&["source", "ls", "--json"]);
        assert_eq!(code, 0, "{why}");
        shown.lines().count()
    };
    // Nothing may be reached: only what the start itself does is looked at.
    let start = || {
        let args = [
            "run",
            "--set",
            "server.enabled=false",
            "--set",
            "egress.ports=1",
        ];
        let mut child = tidings::command(&args, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        while !said.contains("Press Ctrl-C") {
            assert!(output.read_line(&mut said).unwrap() > 0, "{said}");
        }
        assert_eq!(tidings::terminate(child), Some(0));
        said
    };
    assert!(start().contains("Added 18 starter sources."));
    let all = sources();
    assert_eq!(all, 18);
    // One that is removed stays removed.
    let (code, _, why) = call(&["source", "rm", "LWN"]);
    assert_eq!(code, 0, "{why}");
    assert!(!start().contains("Added"));
    assert_eq!(sources(), all - 1);

    let named = Run::new(&[
        "init",
        "--yes",
        "--no-sources",
        "--config",
        "other.toml",
        "--json",
    ]);
    let (ended, folder) = named.run_keeping();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(shown["starter_sources"], false);
    assert!(folder.path().join("other.toml").exists());
}
