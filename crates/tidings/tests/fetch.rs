//! `tidings fetch` against real servers on loopback, as a user calls it.

#![allow(clippy::unwrap_used)]

mod tidings;

use std::io::Write as _;
use std::net::SocketAddr;

use serde_json::Value;
use tidings::{Ended, Run};
use tidings_sim::{Act, RawServer};

const PAGE: &str = "<!DOCTYPE html><meta charset=utf-8><title>Größe</title><p>Größe zählt.</p>";

/// A site with a page, a redirect to it, a feed and a robots.txt.
fn site() -> (tokio::runtime::Runtime, RawServer, SocketAddr) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let server = runtime.block_on(RawServer::start(
        "127.0.0.1:0".parse().unwrap(),
        |head| match head.split(' ').nth(1).unwrap_or_default() {
            "/robots.txt" => Act::answer(
                "200 OK",
                b"User-agent: *\nCrawl-delay: 2\nDisallow: /private\n",
            ),
            "/old" => Act::answer("301 Moved\r\nLocation: /page", b""),
            "/page" => {
                let mut gzip =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
                gzip.write_all(PAGE.as_bytes()).unwrap();
                Act::answer(
                    "200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nX-Odd: a\tb",
                    &gzip.finish().unwrap(),
                )
            }
            _ => Act::answer("404 Not Found\r\nContent-Type: text/plain", b"nothing here"),
        },
    ));
    let server = server.unwrap();
    let address = server.address();
    (runtime, server, address)
}

fn fetch(address: SocketAddr, path: &str, more: &[&str]) -> Ended {
    let url = format!("http://{address}{path}");
    let ports = format!("egress.ports={}", address.port());
    let open = [
        "fetch",
        &url,
        "--set",
        "egress.allow=127.0.0.0/8",
        "--set",
        &ports,
    ];
    Run::new(&[&open, more].concat()).run()
}

#[test]
fn a_page_is_shown_with_its_response() {
    let (_runtime, _server, address) = site();
    let run = fetch(address, "/old", &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let text = run.stdout.replace(&address.to_string(), "SITE");
    let is_timed = |line: &&str| !line.starts_with("time ");
    let lines: Vec<_> = text.lines().filter(is_timed).collect();
    insta::assert_snapshot!(lines.join("\n"));
    assert!(text.contains("first byte"), "{text}");

    let run = fetch(address, "/old", &["--json"]);
    let json: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(json["status"], 200);
    assert_eq!(json["url"], format!("http://{address}/page"));
    assert_eq!(json["redirects"][0]["status"], 301);
    assert_eq!(json["charset"], "UTF-8");
    assert_eq!(json["charset_from"], "meta");
    assert_eq!(json["decoded_bytes"], PAGE.len());
    assert_eq!(json["robots"]["crawl_delay_seconds"], 2.0);
    assert!(json["timings_ms"]["total"].as_f64().unwrap() > 0.0);

    assert_eq!(fetch(address, "/page", &["--body"]).stdout, PAGE);
    assert!(
        fetch(address, "/none", &[])
            .stdout
            .contains("404 over HTTP/1.1")
    );
}

#[test]
fn a_refused_fetch_is_explained() {
    let (_runtime, server, address) = site();
    let run = fetch(address, "/private/x", &[]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(
        run.stderr
            .contains("robots.txt of 127.0.0.1 disallows it by the rule \"Disallow: /private\""),
        "{}",
        run.stderr
    );

    let before = server.connections();
    let url = format!("http://{address}/page");
    let ports = format!("egress.ports={}", address.port());
    let run = Run::new(&["fetch", &url, "--set", &ports]).run();
    assert_eq!(run.code, 1);
    assert!(
        run.stderr
            .contains("loopback (127.0.0.0/8); egress.allow opens a range by name"),
        "{}",
        run.stderr
    );

    let run = Run::new(&["fetch", "http://127.0.0.1:22/", "--json"]).run();
    let json: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (run.code, &json["error"], &json["class"]),
        (1, &"egress".into(), &"policy".into())
    );
    assert!(json["message"].as_str().unwrap().contains("egress.ports"));
    assert_eq!(
        server.connections(),
        before,
        "a blocked address was dialled"
    );

    let run = Run::new(&["fetch", "ftp://example.com/"]).run();
    assert_eq!(run.code, 2, "{}", run.stderr);
}

#[test]
fn wrong_network_settings_are_named() {
    let rows = [
        ("egress.allow=10.1.2.3/99", "is not a range"),
        ("egress.ports=80-", "is not a port"),
        ("net.dns=ns.example", "is not an address and port"),
        ("net.redirects=many", "is not a whole number"),
        (
            "net.ca_file=none.pem",
            "net.ca_file none.pem can't be loaded",
        ),
        (
            "net.auth_file=none.txt",
            "net.auth_file none.txt can't be read",
        ),
    ];
    for (setting, message) in rows {
        let run = Run::new(&["fetch", "http://127.0.0.1/", "--set", setting]).run();
        assert_eq!(run.code, 78, "{setting}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{setting}: {}", run.stderr);
    }
    // A list in the file is a list.
    let run = Run::new(&["config", "--json"])
        .file(
            "tidings.toml",
            "[egress]\nallow = [\"10.0.0.0/8\", \"::1/128\"]\n",
        )
        .run();
    assert!(run.stdout.contains("10.0.0.0/8, ::1/128"), "{}", run.stdout);
}
