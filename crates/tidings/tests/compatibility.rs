//! What users of the earlier systems had, through the running program: each test is
//! named in docs/COMPATIBILITY.md.

#![allow(clippy::unwrap_used)]

mod tidings;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidings::{Ended, Run};
use tidings_sim::{Act, FakeApi, FakeElasticsearch, RawServer, Story};

/// What a web server has, by path: status and type, and body.
type Files = Arc<Mutex<BTreeMap<String, (&'static str, String)>>>;

/// A web server, and a folder with a configuration in which it may be reached.
struct Setup {
    runtime: tokio::runtime::Runtime,
    server: RawServer,
    files: Files,
    requests: Arc<Mutex<Vec<String>>>,
    folder: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (files, requests): (Files, Arc<Mutex<Vec<String>>>) = (Arc::default(), Arc::default());
        let (served, log) = (Arc::clone(&files), Arc::clone(&requests));
        let respond = move |head: &str| {
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let found = served.lock().unwrap().get(&path).cloned();
            log.lock().unwrap().push(path);
            let (head, body) = found.unwrap_or(("404 Not Found", String::new()));
            Act::answer(head, body.as_bytes())
        };
        let server = runtime.block_on(RawServer::start("127.0.0.1:0".parse().unwrap(), respond));
        let setup = Self {
            server: server.unwrap(),
            runtime,
            files,
            requests,
            folder: tempfile::tempdir().unwrap(),
        };
        setup.configure(&[], "");
        setup
    }

    /// Writes the configuration: further ports that may be reached, and further tables.
    fn configure(&self, ports: &[u16], tables: &str) {
        let own = self.server.address().port();
        let ports: Vec<String> = ports.iter().chain([&own]).map(u16::to_string).collect();
        let file = format!(
            "data_dir = '{}'\n[server]\nbind = '127.0.0.1:0'\n[egress]\nallow = '127.0.0.0/8'\nports = '{}'\n\
             [fetch]\nhost_delay_ms = 0\n[sink]\nallow = '127.0.0.0/8'\n{tables}",
            self.folder.path().display(),
            ports.join(",")
        );
        std::fs::write(self.folder.path().join("tidings.toml"), file).unwrap();
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address())
    }

    fn serve(&self, path: &str, head: &'static str, body: String) {
        let mut files = self.files.lock().unwrap();
        files.insert(path.to_owned(), (head, body));
    }

    fn serve_feed(&self, path: &str, items: &str) {
        let feed = format!(
            "<rss version='2.0' xmlns:content='http://purl.org/rss/1.0/modules/content/'><channel><title>News</title>\
             <language>en</language>{items}</channel></rss>"
        );
        self.serve(
            path,
            "200 OK\r\nContent-Type: application/rss+xml",
            feed.replace("{url}", &self.url("")),
        );
    }

    fn serve_page(&self, path: &str, title: &str, extra: &str) {
        let text = format!(
            "<p>The council voted on {title} after nine hours of debate, and the harbour will be \
             rebuilt over the next three years, with a new pier for the ferries.</p>"
        );
        self.serve(
            path,
            "200 OK\r\nContent-Type: text/html; charset=utf-8",
            format!(
                "<html><head><title>{title}</title>{extra}</head><body><article><h1>{title}</h1>{}</article></body></html>",
                text.repeat(6)
            ),
        );
    }

    fn requested(&self, path: &str) -> usize {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|known| *known == path).count()
    }

    fn config(&self) -> String {
        let path = self.folder.path().join("tidings.toml");
        path.display().to_string()
    }

    fn run(&self, args: &[&str]) -> Ended {
        Run::new(&[args, &["--config", &self.config()]].concat()).run()
    }

    fn ok(&self, args: &[&str]) -> String {
        let ended = self.run(args);
        assert_eq!(ended.code, 0, "{args:?}: {}{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    /// Each line of the output.
    fn lines(&self, args: &[&str]) -> Vec<Value> {
        let text = self.ok(&[args, &["--json"]].concat());
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        self.lines(args).remove(0)
    }

    /// Adds a source with a feed, by name.
    fn add(&self, name: &str, feed: &str, options: &[&str]) {
        let (home, feed) = (self.url("/"), self.url(feed));
        let args = ["source", "add", &home, "--name", name, "--feed", &feed];
        self.ok(&[&args[..], options].concat());
    }

    /// Runs the program until `is_done`, and calls its API then: a path of the API to
    /// its response.
    fn run_until(
        &self,
        is_done: impl Fn(&Self) -> bool,
        then: impl FnOnce(&dyn Fn(&str) -> Value),
    ) {
        let config = self.config();
        let args = ["run", "--json", "--config", &config];
        let mut running = tidings::command(&args, self.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
        let said: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let rest = std::thread::spawn(move || lines.map_while(Result::ok).count());
        let token = match said["token"].as_str() {
            Some(token) => token.to_owned(),
            None => self
                .ok(&["token", "create", "test", "--role", "admin"])
                .trim()
                .to_owned(),
        };
        let deadline = Instant::now() + Duration::from_secs(120);
        while !is_done(self) {
            assert!(Instant::now() < deadline, "it takes too long");
            std::thread::sleep(Duration::from_millis(200));
        }
        let url = said["dashboard"].as_str().unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        then(&|path: &str| api(address, path, &token));
        assert_eq!(tidings::terminate(running), Some(0));
        rest.join().unwrap();
    }

    /// Runs the program until this many URLs are fetched, and none waits.
    fn fetch(&self, fetched: u64) {
        self.run_until(|setup| setup.has_fetched(fetched), |_| {});
    }

    fn has_fetched(&self, fetched: u64) -> bool {
        let stats = self.json(&["frontier", "stats"]);
        let count = |status: &str| stats["by_status"][status].as_u64().unwrap();
        count("fetched") >= fetched && count("pending") + count("fetching") == 0
    }

    fn doc(&self, path: &str) -> Value {
        self.json(&["doc", &self.url(path)])
    }

    /// The URLs of the frontier.
    fn urls(&self) -> Vec<String> {
        let rows = self.lines(&["frontier", "ls"]).into_iter();
        let mut urls: Vec<String> = rows
            .map(|row| row["url"].as_str().unwrap().to_owned())
            .collect();
        urls.sort();
        urls
    }
}

/// The JSON at a path of the API.
fn api(address: &str, path: &str, token: &str) -> Value {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let body = response.split("\r\n\r\n").nth(1).unwrap();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {response}"))
}

const LONG: &str = "A summary of more than one hundred characters, which says what the council of the harbour voted on, when, and why.";

/// Full text, summary, stub, title only, and two items without a link.
fn items() -> String {
    format!(
        "<item><title>Full</title><link>{{url}}/q1</link><guid isPermaLink='false'>q1</guid><description>Short.</description>\
           <content:encoded>&lt;p&gt;The whole story of the harbour plan.&lt;/p&gt;&lt;p&gt;Its second part.&lt;/p&gt;</content:encoded></item>\
         <item><title>Summary</title><link>{{url}}/q2</link><description>{LONG}</description></item>\
         <item><title>Stub</title><link>{{url}}/q3</link><description>Short.</description></item>\
         <item><title>Title only</title><link>{{url}}/q4</link></item>\
         <item><title>Note</title><guid isPermaLink='false'>tag:a.example,2026:5</guid><description>A note without a page.</description></item>\
         <item><title>Other note</title><description>Neither page nor guid.</description></item>"
    )
}

#[test]
fn items_of_a_feed_become_documents_and_no_page_is_fetched() {
    let setup = Setup::new();
    let index = setup.runtime.block_on(FakeElasticsearch::start()).unwrap();
    let port: u16 = index.url().rsplit(':').next().unwrap().parse().unwrap();
    setup.configure(
        &[port],
        &format!(
            "[sinks.index]\nkind = 'elasticsearch'\nurl = '{}'\n",
            index.url()
        ),
    );
    setup.serve_feed("/feed.xml", &items());
    setup.add("news", "/feed.xml", &["--option", "as_documents=true"]);
    let is_done = |setup: &Setup| setup.has_fetched(6) && index.documents("raw_content").len() == 6;
    let mut listed = Value::Null;
    setup.run_until(is_done, |api| listed = api("/api/v1/documents"));

    let rows = [
        (
            "/q1",
            "full",
            "The whole story of the harbour plan.\n\nIts second part.",
        ),
        ("/q2", "summary", LONG),
        ("/q3", "stub", "Short."),
        ("/q4", "title_only", "Title only"),
    ];
    for (path, quality, text) in rows {
        let document = setup.doc(path);
        assert_eq!(document["content_quality"], quality, "{path}");
        assert_eq!(document["body_text"], text, "{path}");
        assert_eq!(document["language"], "en", "{path}");
        assert_eq!(setup.requested(path), 0, "{path}");
    }
    // Items without a link have the address of the feed, and their own identity.
    let feed = setup.url("/feed.xml?tidings-item=");
    let urls = setup.urls();
    let kept: Vec<&String> = urls.iter().filter(|url| url.starts_with(&feed)).collect();
    assert_eq!(kept.len(), 2, "{urls:?}");
    let notes: Vec<Value> = kept.iter().map(|url| setup.json(&["doc", url])).collect();
    let note = notes.iter().find(|note| note["title"] == "Note").unwrap();
    assert_eq!(note["feed"]["guid"], "tag:a.example,2026:5");
    assert_eq!(note["body_text"], "A note without a page.");
    assert_eq!(note["content_quality"], "stub");
    assert!(notes.iter().any(|note| note["title"] == "Other note"));

    // The same in the API and in the index.
    let items = listed["items"].as_array().unwrap();
    assert_eq!(items.len(), 6);
    let stored = index.documents("raw_content");
    for document in items {
        let id = document["id"].as_str().unwrap();
        let (_, indexed) = &stored[id];
        for field in ["content_quality", "feed_md5"] {
            assert!(document[field].is_string(), "{field}: {document}");
            assert_eq!(indexed[field], document[field], "{field}");
        }
    }
}

#[test]
fn items_without_a_link_are_counted_with_a_reason() {
    let setup = Setup::new();
    setup.serve_page("/q1", "Full", "");
    let items = items();
    let linked = items.find("<item><title>Summary").unwrap();
    let unlinked = items.find("<item><title>Note").unwrap();
    setup.serve_feed(
        "/feed.xml",
        &[&items[..linked], &items[unlinked..]].concat(),
    );
    setup.add("news", "/feed.xml", &[]);
    let shown = setup.ok(&["source", "poll", "news", "--dry-run"]);
    assert!(shown.contains("SKIP   no link  Note"), "{shown}");
    let listed = setup.lines(&["source", "poll", "news", "--dry-run"]);
    let skipped = listed.iter().filter(|item| item["skipped"] == "no link");
    assert_eq!(skipped.count(), 2, "{listed:?}");
    setup.fetch(1);
    let source = setup.json(&["source", "show", "news"]);
    let feed = &source["feed"];
    assert_eq!(feed["error_class"], "skipped", "{feed}");
    assert_eq!(feed["last_error"], "2 items skipped: no link");
    assert_eq!(feed["consecutive_errors"], 0);
    let polled = setup.json(&["source", "poll", "news"]);
    assert_eq!(polled["outcome"], "same_body", "{polled}");
    let source = setup.json(&["source", "show", "news"]);
    assert_eq!(
        source["feed"]["last_error"], "2 items skipped: no link",
        "as long as the feed is the same"
    );
}

fn item(path: &str, title: &str, guid: &str) -> String {
    format!(
        "<item><title>{title}</title><link>{{url}}{path}</link><guid isPermaLink='false'>{guid}</guid></item>"
    )
}

#[test]
fn an_item_with_a_known_guid_and_a_new_url_is_the_same() {
    let setup = Setup::new();
    for path in ["/a0", "/b0", "/c0"] {
        setup.serve_page(path, "the harbour plan", "");
    }
    let first = item("/a0", "Plan", "story-0");
    setup.serve_feed("/feed.xml", &first);
    setup.add("news", "/feed.xml", &[]);
    setup.serve_feed("/other.xml", &item("/c0", "Plan", "story-0"));
    setup.add(
        "urls",
        "/other.xml",
        &["--option", "guid_is_identity=false"],
    );
    setup.fetch(2);

    let moved = item("/b0", "Plan", "story-0");
    setup.serve_feed("/feed.xml", &moved);
    // The dry run judges by the same rules.
    let seen = setup.json(&["source", "poll", "news", "--dry-run"]);
    assert_eq!(
        (&seen["is_new"], &seen["known_by"]),
        (&json!(false), &json!("guid"))
    );
    let dry = setup.lines(&["collect", "--source", "news", "--dry-run"]);
    let dry = dry.last().unwrap();
    assert_eq!(dry["items_new"], 0, "{dry}");
    let polled = setup.json(&["source", "poll", "news"]);
    assert_eq!(polled["items_new"], 0, "{polled}");
    assert_eq!(setup.urls(), [setup.url("/a0"), setup.url("/c0")]);
    let explained = setup.json(&["explain", &setup.url("/b0")]);
    let known = setup.json(&["explain", &setup.url("/a0")]);
    assert_eq!(explained["alias_of"], known["row"]["id"]);
    assert_eq!(setup.doc("/b0")["url"], setup.url("/a0"));
    let shown = setup.ok(&["explain", &setup.url("/b0")]);
    assert!(shown.contains("Alias of"), "{shown}");

    // A source that says that its guids mean nothing has two documents.
    setup.serve_feed("/other.xml", &item("/b1", "Plan", "story-0"));
    let polled = setup.json(&["source", "poll", "urls"]);
    assert_eq!(polled["items_new"], 1, "{polled}");
}

#[test]
fn guids_that_repeat_lose_no_item() {
    let setup = Setup::new();
    for path in ["/a", "/b", "/c", "/d"] {
        setup.serve_page(path, path, "");
    }
    // All the same, and (in the other feed) numbers that count positions.
    setup.serve_feed(
        "/same.xml",
        &[item("/a", "A", "x"), item("/b", "B", "x")].concat(),
    );
    setup.add("same", "/same.xml", &[]);
    setup.serve_feed("/moving.xml", &item("/c", "C", "first"));
    setup.add("moving", "/moving.xml", &[]);
    setup.fetch(3);
    // The guid of the first place belongs to another item now.
    let items = [item("/d", "D", "first"), item("/c", "C", "second")].concat();
    setup.serve_feed("/moving.xml", &items);
    let polled = setup.json(&["source", "poll", "moving"]);
    assert_eq!(polled["items_new"], 1, "{polled}");
    setup.fetch(4);
    assert_eq!(setup.doc("/d")["url"], setup.url("/d"));
}

#[test]
fn a_preset_polls_judges_and_retries_as_the_earlier_system() {
    let setup = Setup::new();
    setup.serve("/gone", "503 Service Unavailable", String::new());
    setup.serve_page("/kept", "Kept", "");
    let items = [item("/gone", "Gone", "g1"), item("/kept", "Kept", "g2")].concat();
    setup.serve_feed("/feed.xml", &items);
    setup.add("mc", "/feed.xml", &["--preset", "media-cloud"]);
    let retried = |setup: &Setup| {
        let stats = setup.json(&["frontier", "stats"]);
        stats["by_status"]["failed"] == 1 && stats["by_status"]["fetched"] == 1
    };
    let mut in_api = Value::Null;
    setup.run_until(retried, |api| in_api = api("/api/v1/sources"));
    assert_eq!(in_api["items"][0]["config"]["preset"], "media-cloud");
    // The first retry is after an hour.
    let row = &setup.json(&["explain", &setup.url("/gone")])["row"];
    let time = |field: &str| {
        let text = row[field].as_str().unwrap_or_else(|| panic!("{row}"));
        text.parse::<jiff::Timestamp>().unwrap()
    };
    let minutes = time("next_fetch_at")
        .duration_since(time("updated_at"))
        .as_mins();
    assert!((50..=70).contains(&minutes), "{minutes}");
    // Titles count within a week.
    let other = [item("/again", "Kept", "g3"), item("/new", "New", "g4")].concat();
    setup.serve_feed("/feed.xml", &other);
    let listed = setup.lines(&["source", "poll", "mc", "--dry-run"]);
    let known: Vec<_> = listed.iter().map(|item| &item["known_by"]).collect();
    assert_eq!(known, [&json!("title"), &Value::Null]);

    // What a source sets itself wins; the preset can be changed.
    let settings = || setup.json(&["source", "show", "mc"])["config"].clone();
    setup.ok(&[
        "source",
        "edit",
        "mc",
        "--preset",
        "sembr",
        "--interval",
        "5",
    ]);
    let changed = settings();
    assert_eq!(changed["preset"], "sembr");
    assert_eq!(changed["feed_poll_interval_minutes"], 5);
    assert_eq!(changed.get("poll_policy"), None, "{changed}");
    let refused = setup.run(&["source", "edit", "mc", "--preset", "rss"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("north-cloud"), "{}", refused.stderr);
    let refused = setup.run(&["source", "edit", "mc", "--option", "preset=rss"]);
    assert!(
        refused.stderr.contains("unknown variant `rss`"),
        "{}",
        refused.stderr
    );
}

#[test]
fn tags_have_one_spelling_and_documents_can_be_important() {
    let setup = Setup::new();
    let tags = "<meta name='keywords' content='World News, Harbour'>";
    setup.serve_page("/a", "A", tags);
    setup.serve_page("/b", "B", "<meta name='flag' content='breaking'>");
    setup.serve_page("/c", "C", "");
    let category = "<item><title>T</title><link>{url}/t</link><category>American poetry -- 19th century</category></item>";
    setup.serve_feed("/tags.xml", category);
    let items = [
        item("/a", "A", "a1"),
        item("/b", "B", "b1"),
        item("/c", "C", "c1"),
    ]
    .concat();
    setup.serve_feed("/feed.xml", &items);
    let options = [
        "--tag",
        "Local Wire",
        "--option",
        "important_tags=[\"WORLD news\"]",
        "--option",
        "selectors={\"article\":{\"important\":\"meta[name=flag]\"}}",
    ];
    setup.add("news", "/feed.xml", &options);
    let options = [
        "--option",
        "as_documents=true",
        "--option",
        "important=true",
    ];
    setup.add("poems", "/tags.xml", &options);
    setup.fetch(4);
    let a = setup.doc("/a");
    assert_eq!(a["tags"], json!(["local-wire", "world-news", "harbour"]));
    assert_eq!(a["important"], true, "by its tag");
    assert_eq!(setup.doc("/b")["important"], true, "by the selector");
    assert_eq!(setup.doc("/c").get("important"), None);
    let poem = setup.doc("/t");
    assert_eq!(poem["tags"], json!(["american-poetry-19th-century"]));
    assert_eq!(poem["important"], true, "by its source");
}

#[test]
fn entries_of_a_sitemap_without_a_date_are_taken_or_skipped() {
    let setup = Setup::new();
    let now = jiff::Timestamp::now();
    let map = format!(
        "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>\
         <url><loc>{0}</loc><lastmod>{now:.0}</lastmod></url><url><loc>{1}</loc></url></urlset>",
        setup.url("/dated"),
        setup.url("/undated")
    );
    setup.serve("/map.xml", "200 OK\r\nContent-Type: application/xml", map);
    let (home, map) = (setup.url("/"), setup.url("/map.xml"));
    for (name, undated) in [("takes", "take"), ("skips", "skip")] {
        let sources = setup.folder.path().join("sources.toml");
        let source = format!(
            "[[source]]\nname = '{name}'\nurl = '{home}'\nsitemap_url = '{map}'\nsitemap_undated = '{undated}'\n"
        );
        std::fs::write(&sources, source).unwrap();
        setup.ok(&["apply", &sources.display().to_string()]);
    }
    let listed = |name: &str| -> Vec<Value> {
        let items = setup.lines(&["source", "poll", name, "--dry-run"]);
        items.iter().map(|item| item["url"].clone()).collect()
    };
    assert_eq!(listed("skips"), [json!(setup.url("/dated"))]);
    assert_eq!(listed("takes").len(), 2);
    setup.ok(&["source", "rm", "takes"]);
    setup.run_until(|setup| !setup.urls().is_empty(), |_| {});
    assert_eq!(setup.urls(), [setup.url("/dated")]);
}

#[test]
fn the_gutenberg_catalogue_is_read_with_a_content_encoding() {
    let setup = Setup::new();
    let gutenberg = setup.runtime.block_on(FakeApi::gutenberg()).unwrap();
    gutenberg.encode_files();
    let day = 86_400;
    gutenberg.publish(Story {
        title: "Harbour Songs".to_owned(),
        subject: "English poetry".to_owned(),
        text: "The boats are in.\r\nThe harbour sleeps.".to_owned(),
        at: jiff::Timestamp::now().as_second() - 2 * day,
        ..Story::default()
    });
    let table = format!("[adapters.gutenberg]\nbase_url = '{}'\n", gutenberg.url());
    setup.configure(&[gutenberg.port()], &table);
    let args = [
        "source",
        "add",
        "https://www.gutenberg.org/",
        "--name",
        "poems",
    ];
    let options = ["--kind", "gutenberg", "--option", "as_documents=true"];
    setup.ok(&[&args[..], &options].concat());
    setup.fetch(1);
    let poem = setup.json(&["doc", "https://www.gutenberg.org/ebooks/1"]);
    assert_eq!(poem["title"], "Harbour Songs");
    assert_eq!(poem["content_quality"], "full");
    assert!(poem["feed_md5"].is_string(), "{poem}");
}
