//! What hostile feeds cost in memory beyond their own bytes, measured. Alone in its
//! process, so that nothing else is counted.

#![allow(clippy::unwrap_used)]

use std::fs;

use tidings_feed::{DefectKind, Hints, MAX_ITEMS, parse, sitemap};

/// Of each case; without a bound they cost hundreds of megabytes.
const MAX_GROWTH: u64 = 24 << 20;
/// Enough of everything to show.
const TIMES: usize = 600_000;

/// Peak memory of the process so far, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() * 1024
}

#[test]
fn feeds_of_empty_items_and_endless_lists_cost_little() {
    let rss = |items: String| format!("<rss version=\"2.0\"><channel>{items}</channel></rss>");
    let json = |items: String| format!("{{\"version\":\"1.1\",\"items\":[{items}]}}");
    let members: String = (0..TIMES).map(|at| format!("\"m{at}\":0,")).collect();
    let feeds = [
        ("empty items", rss("<item/>".repeat(TIMES)), 0),
        ("unclosed items", rss("<item>".repeat(TIMES)), 0),
        (
            "small items",
            rss("<item><guid>1</guid></item>".repeat(TIMES)),
            MAX_ITEMS,
        ),
        ("empty JSON items", json("{},".repeat(TIMES) + "{}"), 0),
        (
            "small JSON items",
            json("{\"id\":1},".repeat(TIMES) + "{}"),
            MAX_ITEMS,
        ),
        (
            "an item of many members",
            json(format!("{{{members}\"id\":\"1\"}}")),
            1,
        ),
        (
            "an item of many tags",
            json(format!("{{\"id\":1,\"tags\":[{}0]}}", "0,".repeat(TIMES))),
            1,
        ),
    ];
    for (name, text, kept) in &feeds {
        let before = peak();
        let feed = parse(text.as_bytes(), &Hints::default()).unwrap();
        assert_eq!(feed.items.len(), *kept, "{name}");
        let growth = peak() - before;
        assert!(growth < MAX_GROWTH, "{name} cost {} MB", growth >> 20);
    }
    let videos = "<video:video/>".repeat(10);
    let entry = format!("<url><loc>https://a.example/1</loc>{videos}</url>");
    let text = format!("<urlset>{}</urlset>", entry.repeat(TIMES / 10));
    let before = peak();
    let map = sitemap::parse(text.as_bytes(), &Hints::default()).unwrap();
    assert_eq!(map.entries.len(), sitemap::MAX_ENTRIES);
    let growth = peak() - before;
    assert!(growth < 2 * MAX_GROWTH, "videos cost {} MB", growth >> 20);
}

#[test]
fn what_is_left_out_is_reported_after_a_hundred_other_defects() {
    let items = "<item><title>T</title></item>".repeat(MAX_ITEMS + 7);
    let text = format!("<rss><channel>{items}</channel></rss>");
    let feed = parse(text.as_bytes(), &Hints::default()).unwrap();
    assert_eq!(feed.items.len(), MAX_ITEMS);
    let too_many = feed
        .defects
        .iter()
        .find(|defect| defect.kind == DefectKind::TooMany);
    let detail = &too_many.unwrap().detail;
    assert!(detail.contains("7 are left out"), "{detail}");
}

#[test]
fn items_without_link_id_and_title_are_dropped_and_counted() {
    let text = "<rss><channel><item><description>D</description></item><item/><item><title>T</title></item></channel></rss>";
    let feed = parse(text.as_bytes(), &Hints::default()).unwrap();
    assert_eq!(feed.items.len(), 1);
    let dropped = feed
        .defects
        .iter()
        .any(|defect| defect.detail.ends_with("id and title: 2"));
    assert!(dropped, "{:?}", feed.defects);
}
