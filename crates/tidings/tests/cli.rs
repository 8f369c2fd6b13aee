//! The binary as a user calls it: what it prints, what it refuses, how it ends.

#![allow(clippy::unwrap_used)]

mod tidings;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use tidings::{Run, tidings};

#[test]
fn help_shows_every_command_with_examples() {
    let help = tidings(&["--help"]);
    insta::assert_snapshot!(help.stdout);
    for command in [
        "run",
        "check",
        "discover",
        "doctor",
        "explain",
        "feed",
        "fetch",
        "extract",
        "migrate-store",
        "poll",
        "source",
        "sim",
        "simulate",
        "url",
        "feed",
        "config",
        "completions",
    ] {
        let help = tidings(&[command, "--help"]);
        assert_eq!(help.code, 0);
        assert!(help.stdout.contains("Examples:"), "{command}");
    }
}

#[test]
fn a_wrong_command_line_exits_with_2() {
    let run = tidings(&["explains"]);
    assert_eq!(run.code, 2);
    assert!(
        run.stderr
            .contains("a similar subcommand exists: 'explain'"),
        "{}",
        run.stderr
    );
    assert_eq!(tidings(&["run", "--until-done"]).code, 2);
    assert_eq!(tidings(&["sim", "--sites", "0"]).code, 2);
}

#[test]
fn config_shows_each_value_and_its_origin() {
    let run = Run::new(&["config", "--set", "demo.sites=3"])
        .file("tidings.toml", "[log]\nlevel = \"warn\"\n")
        .env("LOG_FORMAT", "json")
        .run();
    insta::assert_snapshot!(run.stdout);
    let json = Run::new(&["config", "--json"]).run();
    let rows: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(rows[0]["key"], "store");
    assert_eq!(rows[0]["origin"], "default");
}

#[test]
fn a_wrong_configuration_exits_with_78_and_says_what_was_meant() {
    let run = Run::new(&["config"])
        .file("tidings.toml", "[demo]\nsite = 3\n")
        .run();
    assert_eq!((run.code, run.stdout.as_str()), (78, ""));
    insta::assert_snapshot!(run.stderr, @r#"error: tidings.toml: unknown setting "demo.site"; did you mean "demo.sites"?"#);

    let run = tidings(&["config", "--config", "nowhere.toml"]);
    assert_eq!(run.code, 78);
    assert!(
        run.stderr.contains("nowhere.toml can't be read"),
        "{}",
        run.stderr
    );

    let run = tidings(&["config", "--set", "log.level"]);
    assert_eq!(run.code, 78);
    assert!(
        run.stderr.contains("KEY=VALUE is expected"),
        "{}",
        run.stderr
    );
}

#[test]
fn too_little_memory_for_the_largest_body_is_a_wrong_configuration() {
    let run = tidings(&["run", "--set", "memory.bodies_mib=64"]);
    assert_eq!(run.code, 78, "{}", run.stderr);
    assert!(
        run.stderr.contains("memory.bodies_mib = 64 is too small")
            && run.stderr.contains("at least 121"),
        "{}",
        run.stderr
    );
}

#[test]
fn url_shows_the_identity() {
    let run = tidings(&["url", "HTTP://Example.com:80/a/?utm_source=x&id=1#top"]);
    insta::assert_snapshot!(run.stdout, @"
    fetch url      http://example.com/a/?utm_source=x&id=1
    canonical url  https://example.com/a?id=1
    url key        2b5c08add8bd85d31fb90ee4b334f6e0bdd29df5fa92b250572a917c81548d96
    host key       example.com
    site           example.com
    ");
    let run = tidings(&[
        "url",
        "--keep",
        "ref",
        "--proxy-host",
        "hub.example",
        "https://hub.example/bbc/?ref=1",
    ]);
    assert!(
        run.stdout
            .contains("canonical url  https://hub.example/bbc?ref=1"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.contains("host key       hub.example/bbc"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_refused_url_fails_the_command_and_not_the_others() {
    let run = Run::new(&["url", "--json", "-"])
        .stdin("https://example.com/a\nftp://example.com/\nhttps://example.com/b\n")
        .run();
    assert_eq!(run.code, 1);
    let rows: Vec<serde_json::Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[1]["url"], "ftp://example.com/");
    assert_eq!(
        rows[1]["error"],
        "only http and https are accepted, not \"ftp\""
    );
    assert_eq!(rows[2]["canonical_url"], "https://example.com/b");
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = tidings(&["completions", shell]);
        assert_eq!(run.code, 0, "{shell}");
        assert!(run.stdout.contains("tidings"), "{shell}");
    }
}

/// Ends with the test, also when the test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has usually exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a long-running command, calls `probe` with its first line, and stops it
/// with a signal as an operator would.
fn while_running(args: &[&str], signal: &str, probe: impl Fn(&str)) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let child = tidings::command(args, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let mut stdout = BufReader::new(running.0.stdout.take().unwrap());
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    probe(first.trim());
    // The shell's own `kill`: the program of that name is not everywhere.
    let kill = format!("kill {signal} {}", running.0.id());
    let sent = Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert!(sent.success());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    (running.0.wait().unwrap().code().unwrap(), rest)
}

fn http_get(address: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn sim_serves_a_web_until_a_shutdown_is_requested() {
    for signal in ["-TERM", "-INT"] {
        let (code, rest) = while_running(
            &["sim", "--sites", "3", "--seed", "7", "--port", "0"],
            signal,
            |first| {
                let address = first
                    .trim_start_matches("Simulated web: http://")
                    .trim_end_matches('/');
                let index = http_get(address, address);
                let home = index.split("<td><a href=\"http://").nth(1).unwrap();
                let host = home.split('/').next().unwrap();
                assert!(http_get(address, host).contains("class=\"card\""));
            },
        );
        assert_eq!(code, 0, "{signal}");
        assert!(rest.ends_with("1 requests served.\n"), "{rest}");
    }
}

#[test]
fn a_port_in_use_is_an_error_that_says_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let run = tidings(&["sim", "--port", &port]);
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.contains(&format!(
            "cannot bind port {port} on 127.0.0.1; try another --port"
        )),
        "{}",
        run.stderr
    );
}

#[test]
fn the_demo_runs_and_ends_cleanly() {
    let (code, rest) = while_running(
        &["run", "--demo", "--sites", "5", "--articles", "4", "--json"],
        "-INT",
        |first| {
            let started: serde_json::Value = serde_json::from_str(first).unwrap();
            assert!(started["published"].as_u64().unwrap() > 0);
        },
    );
    assert_eq!(code, 0);
    let last = rest.trim().lines().last().unwrap();
    let ended: serde_json::Value = serde_json::from_str(last).unwrap();
    for none in ["lost", "duplicated", "unknown", "politeness_violations"] {
        assert_eq!(ended["ledger"][none], 0, "{ended}");
    }
}

#[test]
fn logs_go_to_standard_error_as_one_json_object_per_line() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["sim", "--sites", "1", "--port", "0", "--log-format", "json"];
    let child = tidings::command(&args, folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let mut line = String::new();
    let mut stderr = BufReader::new(running.0.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(event["message"], "simulated web started");
    assert_eq!(
        (&event["level"], &event["sites"]),
        (&"INFO".into(), &1.into())
    );
}

const FEED: &str = "<rss version=\"2.0\"><channel><title>Gazette</title><link>https://gazette.example/</link>
<item><title>Fish & chips</title><link>/1</link><guid>one</guid><pubDate>Tue, 10 Nov 2020 12:00:00 GMT</pubDate></item>
<item><title>Second</title><link>https://gazette.example/2</link><pubDate>31 Feb 2020</pubDate></item>
";

#[test]
fn feed_shows_the_items_and_what_was_repaired() {
    let run = Run::new(&["feed", "news.xml"]).file("news.xml", FEED).run();
    insta::assert_snapshot!(run.stdout, @"
    format     RSS 2.0
    title      Gazette
    home page  https://gazette.example/
    items      2
    defects    4

    PUBLISHED             TITLE         LINK
    2020-11-10T12:00:00Z  Fish & chips  /1
                          Second        https://gazette.example/2
    ");
    let run = Run::new(&["feed", "--check", "news.xml"])
        .file("news.xml", FEED)
        .run();
    insta::assert_snapshot!(run.stdout, @"
    news.xml:2 (byte 101)  stray markup: &
    news.xml:2 (byte 88)  relative link: /1
    news.xml:3 (byte 273)  bad date: 31 Feb 2020
    news.xml:4 (byte 311)  truncated: the document ends before its last element does
    ");
    let run = Run::new(&[
        "feed",
        "--json",
        "--base",
        "https://gazette.example/feed",
        "news.xml",
    ])
    .file("news.xml", FEED)
    .run();
    let feed: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(feed["kind"], "feed");
    assert_eq!(feed["items"][0]["link"], "https://gazette.example/1");
}

#[test]
fn feed_recognises_sitemaps_and_says_what_else_it_got() {
    let map =
        "<urlset><url><loc>https://a.example/1</loc><lastmod>2026-11-10</lastmod></url></urlset>";
    let run = Run::new(&["feed", "map.xml"]).file("map.xml", map).run();
    insta::assert_snapshot!(run.stdout, @"
    format   sitemap
    lastmod  trusted
    entries  1
    defects  0

    PUBLISHED             TITLE  LINK
    2026-11-10T00:00:00Z         https://a.example/1
    ");
    let run = Run::new(&["feed", "page"])
        .file("page", "<html><body>404</body></html>")
        .run();
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stderr, @"
    error: page can't be read as a feed
      because: not a feed: the document is an HTML page; look for its feeds with discovery
    ");
    let run = tidings(&["feed", "http://127.0.0.1/feed"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("egress.allow"), "{}", run.stderr);
}

#[test]
fn feed_dumps_a_folder_line_by_line() {
    let run = Run::new(&["feed", "--dump", "."])
        .file("a.xml", FEED)
        .file("b.txt", "no feed")
        .run();
    insta::assert_snapshot!(run.stdout, @r#"
    {"file":"a.xml","items":[{"link":"/1","title":"Fish & chips","published":"2020-11-10T12:00:00Z","guid":"one"},{"link":"https://gazette.example/2","title":"Second","published":null,"guid":null}]}
    {"file":"b.txt","error":"not a feed: the document is plain text","items":[]}
    "#);
}
