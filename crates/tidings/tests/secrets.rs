//! A secret in every setting that holds one, and servers that echo what they are
//! sent. Then all output is searched: the log, pages, the API, metrics, problems,
//! the command line. None of the secrets may be in it.

#![allow(clippy::unwrap_used)]

mod tidings;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tidings_server::described_routes;
use tidings_sim::{Act, FakeApi, RawServer, postgres_database};
use tidings_store::{NewSource, Store, StoreOptions};

/// The secrets. The name says where each is configured.
const CANARIES: [(&str, &str); 11] = [
    ("DATABASE", "canary-database-7c1e"),
    ("ES_PASSWORD", "canary-es-password-7c1e"),
    ("ES_KEY", "canary-es-key-7c1e"),
    ("GORSE_KEY", "canary-gorse-7c1e"),
    ("HOOK_SECRET", "canary-hook-7c1e"),
    ("NATS_PASSWORD", "canary-nats-7c1e"),
    ("FIRE_ACCOUNT", "canary-account-7c1e"),
    ("SITE", "canary-site-7c1e"),
    ("NEWSAPI_KEY", "canary-newsapi-7c1e"),
    ("GUARDIAN_API_KEY", "canary-guardian-7c1e"),
    ("LOGIN", "tdg_canary-login-7c1e"),
];

/// `name:password` as headers carry them.
const ENCODED: [&str; 2] = [
    // me:canary-es-password-7c1e
    "bWU6Y2FuYXJ5LWVzLXBhc3N3b3JkLTdjMWU",
    // me:canary-site-7c1e
    "bWU6Y2FuYXJ5LXNpdGUtN2MxZQ",
];

fn canary(name: &str) -> &'static str {
    CANARIES.iter().find(|(known, _)| *known == name).unwrap().1
}

/// What servers received.
type Received = Arc<Mutex<String>>;

/// Echoes what it was sent: the worst that a service can do.
async fn echo_server(received: &Received) -> RawServer {
    let received = Arc::clone(received);
    RawServer::start(([127, 0, 0, 1], 0).into(), move |head| {
        received.lock().unwrap().push_str(head);
        Act::answer(
            "400 Bad Request\r\nContent-Type: text/plain",
            head.as_bytes(),
        )
    })
    .await
    .unwrap()
}

/// A site that requires a password, and never echoes it.
async fn site() -> RawServer {
    RawServer::start(([127, 0, 0, 1], 0).into(), |head| {
        let is_authorized = head.to_lowercase().contains("authorization: basic ");
        match (is_authorized, head.split(' ').nth(1)) {
            (true, Some("/story")) => {
                let words = "The pilots met at the harbour and spoke about the tide. ".repeat(20);
                let page = format!(
                    "<html><title>A story</title><article><h1>A story</h1><p>{words}</p></article>"
                );
                Act::answer("200 OK\r\nContent-Type: text/html", page.as_bytes())
            }
            (false, Some("/story" | "/feed")) => Act::answer("401 Unauthorized", b"no"),
            _ => Act::answer("404 Not Found", b""),
        }
    })
    .await
    .unwrap()
}

fn settings(store: &str, echo: &RawServer, newsapi: &FakeApi) -> String {
    let url = format!("http://{}", echo.address());
    let nats = format!("nats://{}", echo.address());
    let newsapi = newsapi.url();
    format!(
        "store = '{store}'
[server]
bind = '127.0.0.1:0'
[log]
level = 'debug'
[net]
auth_file = 'passwords'
[egress]
allow = '127.0.0.0/8'
ports = '1-65535'
[sink]
allow = '127.0.0.0/8'
[adapters.newsapi]
base_url = '{newsapi}'
[adapters.guardian]
base_url = '{url}'
[sinks.by-password]
kind = 'elasticsearch'
url = '{url}'
user = 'me'
password_env = 'ES_PASSWORD'
[sinks.by-key]
kind = 'elasticsearch'
url = '{url}'
api_key_env = 'ES_KEY'
[sinks.gorse]
kind = 'gorse'
url = '{url}'
api_key_env = 'GORSE_KEY'
[sinks.hook]
kind = 'webhook'
url = '{url}'
secret_env = 'HOOK_SECRET'
[sinks.nats]
kind = 'nats'
url = '{nats}'
user = 'me'
password_env = 'NATS_PASSWORD'
"
    )
}

/// A folder with everything set, and `tidings` called in it.
struct Setup {
    folder: tempfile::TempDir,
}

impl Setup {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = tidings::command(args, self.folder.path());
        command.envs(
            CANARIES
                .iter()
                .filter(|(name, _)| name.contains('_'))
                .copied(),
        );
        command
    }

    /// Both outputs of a call, whatever its exit code.
    fn output(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        let both = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&both).into_owned()
    }

    fn start(&self) -> (Child, String, String) {
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let mut command = self.command(&["run", "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let Some(Ok(first)) = lines.next() else {
            panic!("it did not start: {}", self.log());
        };
        std::thread::spawn(move || lines.for_each(drop));
        let said: Json = serde_json::from_str(&first).unwrap();
        let url = said["dashboard"].as_str().unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        (
            child,
            address.to_owned(),
            said["token"].as_str().unwrap().to_owned(),
        )
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

/// One request; the whole response as text.
fn request(address: &str, token: &str, method: &str, path: &str, body: Option<&Json>) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let body = body.map_or_else(String::new, Json::to_string);
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut response = Vec::new();
    // A server that refuses may close before it has read everything.
    let _ = stream.read_to_end(&mut response);
    String::from_utf8_lossy(&response).into_owned()
}

/// Links of a page to other pages of the dashboard.
fn links(page: &str) -> impl Iterator<Item = String> + '_ {
    let parts = page.split("href=\"/").skip(1);
    parts.filter_map(|part| {
        Some(format!(
            "/{}",
            part.split('"').next()?.replace("&amp;", "&")
        ))
    })
}

/// The secrets that are in a text.
fn found_in(text: &str) -> Vec<&'static str> {
    let plain = CANARIES.iter().map(|(_, value)| *value);
    plain
        .chain(ENCODED)
        .filter(|secret| text.contains(secret))
        .collect()
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "it takes too long until {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Crawls all pages and lists of the dashboard and the API.
fn crawl(address: &str, token: &str) -> Vec<(String, String)> {
    let streams: Vec<_> = described_routes()
        .iter()
        .filter(|route| route.is_stream)
        .map(|route| route.path)
        .collect();
    let mut known: BTreeSet<String> = described_routes()
        .iter()
        .filter(|route| route.method == "GET" && !route.path.contains('{'))
        .map(|route| route.path.to_owned())
        .collect();
    let mut open: Vec<String> = known.iter().cloned().collect();
    let mut said = Vec::new();
    while let Some(path) = open.pop() {
        if streams.iter().any(|stream| path.starts_with(stream)) {
            continue;
        }
        let text = request(address, token, "GET", &path, None);
        for link in links(&text) {
            if known.insert(link.clone()) {
                open.push(link);
            }
        }
        said.push((path, text));
    }
    said
}

#[test]
fn no_secret_is_ever_said() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let received = Received::default();
    let (echo, site, newsapi) = runtime.block_on(async {
        let newsapi = FakeApi::newsapi().await.unwrap();
        (echo_server(&received).await, site().await, newsapi)
    });
    newsapi.require_key("another");
    let setup = Setup {
        folder: tempfile::tempdir().unwrap(),
    };
    let store = postgres_database().unwrap();
    let store = with_password(&store, canary("DATABASE"));
    let write =
        |name: &str, text: &str| std::fs::write(setup.folder.path().join(name), text).unwrap();
    write("tidings.toml", &settings(&store, &echo, &newsapi));
    write(
        "passwords",
        &format!("inside.localhost me:{}\n", canary("SITE")),
    );

    let (running, address, token) = setup.start();
    let post = |path: &str, body: &Json| {
        request(
            &address,
            &token,
            "POST",
            &format!("/api/v1{path}"),
            Some(body),
        )
    };
    let inside = format!("http://inside.localhost:{}", site.address().port());
    let drafts = [
        json!({ "url": inside, "name": "inside", "feed_url": format!("{inside}/feed") }),
        json!({ "url": newsapi.url(), "name": "news", "kind": "newsapi", "config": { "q": "harbour" } }),
        json!({ "url": "https://content.guardianapis.com/", "name": "guardian", "kind": "guardian",
            "config": { "q": "harbour" } }),
    ];
    for draft in &drafts {
        let said = post("/sources", draft);
        assert!(said.starts_with("HTTP/1.1 201"), "{said}");
    }
    let said = post(
        "/frontier/submit",
        &json!({ "url": format!("{inside}/story") }),
    );
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");

    let get = |path: &str| request(&address, &token, "GET", &format!("/api/v1{path}"), None);
    until("the story that needs a password is a document", || {
        get("/documents").contains("A story")
    });
    until("the services have refused their keys", || {
        get("/feeds").matches("\"consecutive_errors\":").count() == 3
            && !get("/feeds").contains("\"last_error\":null")
    });
    let sent = [
        ENCODED[0],
        canary("ES_KEY"),
        canary("GORSE_KEY"),
        canary("GUARDIAN_API_KEY"),
    ];
    until("every secret that is sent was received", || {
        let received = received.lock().unwrap();
        sent.iter().all(|secret| received.contains(secret))
    });

    let mut said = crawl(&address, &token);
    assert!(said.len() > 40, "{}", said.len());
    for (method, path, body) in [
        (
            "POST",
            "/api/v1/sources",
            json!({ "url": "x", "password": canary("LOGIN") }),
        ),
        (
            "POST",
            "/api/v1/frontier/submit",
            json!({ "url": format!("http://me:{}@inside.localhost/", canary("LOGIN")) }),
        ),
        (
            "POST",
            "/api/v1/sources/discover",
            json!({ "url": format!("http://{}/", echo.address()) }),
        ),
        (
            "POST",
            "/api/v1/sources/test",
            json!({ "url": format!("{inside}/feed") }),
        ),
        ("GET", "/api/v1/sources/1", Json::Null),
    ] {
        said.push((
            path.to_owned(),
            request(&address, &token, method, path, Some(&body)),
        ));
    }
    said.push((
        "a wrong token".to_owned(),
        request(&address, canary("LOGIN"), "GET", "/api/v1/sources", None),
    ));
    for args in [
        &["config"][..],
        &["config", "--json"],
        &["check", "--json"],
        &["doctor", "--json"],
        &[
            "doctor",
            "--store",
            "postgres://me:canary-database-7c1e@127.0.0.1:1/none",
        ],
        &["source", "ls", "--json"],
        &["sink", "ls"],
        &["sink", "test"],
        &["token", "ls", "--json"],
        &["frontier", "stats"],
        &["explain", &format!("{inside}/story")],
        &["source", "poll", "news"],
        &[
            "run",
            "--set",
            "store=postgres://me:canary-database-7c1e@127.0.0.1:1/none",
        ],
    ] {
        said.push((args.join(" "), setup.output(args)));
    }
    tidings::terminate(running);
    let account =
        "[sinks.fire]\nkind = 'firestore'\nproject = 'p'\nservice_account_env = 'FIRE_ACCOUNT'\n";
    write("tidings.toml", account);
    let refused = setup.output(&["sink", "test", "fire"]);
    assert!(refused.contains("service account"), "{refused}");
    said.push(("an account that is none".to_owned(), refused));
    said.push(("the log".to_owned(), setup.log()));
    for (place, text) in &said {
        let found = found_in(text);
        // A password that a user wrote into a URL is not shown either.
        assert!(found.is_empty(), "{place} says {found:?}:\n{text}");
        assert!(
            !text.contains(&token),
            "{place} says the token of the first start"
        );
    }
    let has = |place: &str, part: &str| {
        let at = |(path, text): &(String, String)| path == place && text.contains(part);
        said.iter().any(at)
    };
    assert!(
        has("the log", "request finished"),
        "the log is at debug level"
    );
    assert!(
        has("/settings", "***"),
        "settings are shown, with passwords hidden"
    );
    assert!(
        has("/api/v1/feeds", "[hidden]"),
        "what a service repeats is shown, with its key hidden"
    );
}

/// Whoever may add sources chooses neither what is sent nor where to: not through the
/// API, not by a list, not by a row that an older version has stored.
#[test]
fn a_source_can_send_no_variable_to_a_stranger() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let received = Received::default();
    let stranger = runtime.block_on(echo_server(&received));
    let url = format!("http://{}", stranger.address());
    let setup = Setup {
        folder: tempfile::tempdir().unwrap(),
    };
    let write =
        |name: &str, text: &str| std::fs::write(setup.folder.path().join(name), text).unwrap();
    write(
        "tidings.toml",
        &format!(
            "[server]\nbind = '127.0.0.1:0'\n[egress]\nallow = '127.0.0.0/8'\nports = '{}'\n",
            stranger.address().port()
        ),
    );
    let (running, address, admin) = setup.start();
    let created = request(
        &address,
        &admin,
        "POST",
        "/api/v1/tokens",
        Some(&json!({ "name": "op", "role": "operator" })),
    );
    let created: Json = serde_json::from_str(created.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let token = created["token"].as_str().unwrap();
    // The name of every adapter that has a key, and both settings by themselves.
    let configs = [
        json!({ "q": "x", "base_url": url, "key_env": "ES_KEY" }),
        json!({ "q": "x", "base_url": url }),
        json!({ "q": "x", "key_env": "ES_KEY" }),
    ];
    let mut rows = Vec::new();
    for kind in ["newsapi", "guardian"] {
        for config in &configs {
            let name = format!("{kind} {}", rows.len());
            rows.push(json!({ "name": name, "url": url, "kind": kind, "config": config }));
        }
    }
    for row in &rows {
        let said = request(&address, token, "POST", "/api/v1/sources", Some(row));
        assert!(
            said.starts_with("HTTP/1.1 400") || said.starts_with("HTTP/1.1 422"),
            "{said}"
        );
        let is_named = [
            "\"field\":\"config.base_url\"",
            "\"field\":\"config.key_env\"",
        ]
        .iter()
        .any(|field| said.contains(field));
        assert!(is_named && said.contains("configuration file"), "{said}");
        let config = row["config"].to_string();
        let kind = row["kind"].as_str().unwrap();
        let said = setup.output(&["add", &url, "--kind", kind, "--adapter-config", &config]);
        assert!(said.contains("configuration file"), "{said}");
    }
    let lines: Vec<String> = rows.iter().map(Json::to_string).collect();
    write("list.jsonl", &lines.join("\n"));
    let said = setup.output(&["source", "import", "list.jsonl"]);
    for line in 1..=rows.len() {
        assert!(
            said.contains(&format!("list.jsonl:{line}: config.")),
            "{said}"
        );
    }
    write(
        "list.csv",
        &format!(
            "name,url,kind,config\na,{url},newsapi,\"{{\"\"q\"\":\"\"x\"\",\"\"base_url\"\":\"\"{url}\"\"}}\"\n"
        ),
    );
    let said = setup.output(&["source", "import", "list.csv"]);
    assert!(said.contains("list.csv:2: config.base_url"), "{said}");
    write(
        "sources.toml",
        &format!(
            "[[source]]\nname = 'a'\nurl = '{url}'\nkind = 'guardian'\nconfig = {{ base_url = '{url}' }}\n"
        ),
    );
    let said = setup.output(&["apply", "sources.toml"]);
    assert!(said.contains("source 1 (a): config.base_url"), "{said}");

    // As an older version has stored them.
    runtime.block_on(async {
        let store = setup.folder.path().join("tidings-data/tidings.db");
        let address = format!("sqlite:{}", store.display());
        let store = Store::open(&address, &StoreOptions::default())
            .await
            .unwrap();
        for row in &rows {
            let kind = row["kind"].as_str().unwrap();
            let new = NewSource {
                name: row["name"].as_str().unwrap().to_owned(),
                url: url.clone(),
                kind: kind.to_owned(),
                priority: 5,
                config: json!({ "kind": kind, "config": row["config"] }),
            };
            let source = store.add_source(&new).await.unwrap();
            store.add_feed(source.source_id, kind, &url).await.unwrap();
        }
    });
    let feeds = || request(&address, token, "GET", "/api/v1/feeds", None);
    until("all stored sources were polled", || {
        let feeds = feeds();
        feeds.matches("\"last_polled_at\":\"").count() == rows.len()
    });
    let doctor = setup.output(&["doctor"]);
    assert!(
        doctor.contains("base_url or key_env of 6 sources"),
        "{doctor}"
    );
    tidings::terminate(running);
    let received = received.lock().unwrap();
    assert_eq!(*received, "", "the stranger was sent something");
}

fn with_password(address: &str, password: &str) -> String {
    let (start, rest) = address.split_once("://").unwrap();
    let (user, rest) = rest.split_once('@').unwrap();
    let user = user.split(':').next().unwrap();
    format!("{start}://{user}:{password}@{rest}")
}
