//! `tidings discover` and `tidings feed URL` on the simulated web.

#![allow(clippy::unwrap_used)]

mod tidings;

use serde_json::Value;
use tidings::{Ended, Run};
use tidings_sim::{Act, RawServer, SimClock, SimServer, SitemapKind, WorldConfig};

fn web() -> (tokio::runtime::Runtime, SimServer) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let config = WorldConfig {
        sites: 12,
        ..WorldConfig::new(5)
    };
    let sim = runtime.block_on(SimServer::start(config, SimClock::real(), "127.0.0.1:0"));
    (runtime, sim.unwrap())
}

fn run(port: u16, args: &[&str]) -> Ended {
    let ports = format!("egress.ports={port}");
    let open = ["--set", "egress.allow=127.0.0.0/8", "--set", &ports];
    Run::new(&[args, &open].concat()).run()
}

#[test]
fn the_feeds_and_sitemaps_of_every_site_are_discovered() {
    let (_runtime, sim) = web();
    for site in sim.world().sites() {
        let ended = run(
            sim.address().port(),
            &["discover", &site.home(), "--delay", "0", "--json"],
        );
        assert_eq!(ended.code, 0, "{}: {}", site.host, ended.stderr);
        let found: Value = serde_json::from_str(&ended.stdout).unwrap();
        let addresses = |kind: &str| -> Vec<String> {
            let of_kind = found.as_array().unwrap().iter();
            of_kind
                .filter(|row| row["candidate"]["kind"] == kind)
                .map(|row| row["candidate"]["url"].as_str().unwrap().to_owned())
                .collect()
        };
        for feed in &site.feeds {
            let url = site.absolute(&feed.path);
            assert!(addresses("feed").contains(&url), "{}: {found}", site.host);
        }
        let has_sitemap = site.sitemap != SitemapKind::None;
        assert_eq!(
            !addresses("sitemap").is_empty(),
            has_sitemap,
            "{}",
            site.host
        );
    }
    let site = sim.world().site(0);
    let text = run(
        sim.address().port(),
        &["discover", &site.home(), "--delay", "0"],
    )
    .stdout;
    assert!(
        text.starts_with("feed ") && text.contains(" per day"),
        "{text}"
    );
}

#[test]
fn a_site_without_feeds_is_an_error() {
    let (runtime, _sim) = web();
    let bare = runtime.block_on(RawServer::start(
        "127.0.0.1:0".parse().unwrap(),
        |head| match head.split(' ').nth(1) {
            Some("/") => Act::answer("200 OK\r\nContent-Type: text/html", b"<p>Nothing here"),
            _ => Act::answer("404 Not Found", b""),
        },
    ));
    let bare = bare.unwrap();
    let url = format!("http://{}/", bare.address());
    let ended = run(bare.address().port(), &["discover", &url, "--delay", "0"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert!(
        ended.stderr.contains("no feed or sitemap found on"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_feed_is_read_from_its_url() {
    let (_runtime, sim) = web();
    let site = sim.world().site(0);
    let feed = site.absolute(&site.feeds[0].path);
    let ended = run(sim.address().port(), &["feed", &feed, "--json"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let parsed: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(parsed["kind"], "feed");
    let newest = site.latest(sim.clock().now(), 1).next().unwrap();
    let links = parsed["items"].as_array().unwrap().iter();
    let has_newest = links.clone().any(|item| {
        item["link"]
            .as_str()
            .unwrap()
            .contains(newest.announced_path())
    });
    assert!(has_newest, "{parsed}");
    let missing = run(
        sim.address().port(),
        &["feed", &site.absolute("/no-such-page")],
    );
    assert_eq!(missing.code, 1);
    assert!(
        missing.stderr.contains("responded with status 404"),
        "{}",
        missing.stderr
    );
}
