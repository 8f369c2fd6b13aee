//! Pages and feeds that are hostile to their parser, and the CPU time they cost.

use std::fmt::Write as _;

use jiff::Timestamp;
use tidings_extract::{Options, Page, extract};
use tidings_feed::{Hints, parse, sitemap};
use tidings_sim::cpu_seconds;

use crate::scenario::Measured;
use crate::setting::Setting;

/// CPU time for one document, in seconds; debug builds are slower.
const MAX_CPU_SECONDS: f64 = if cfg!(debug_assertions) { 4.0 } else { 2.0 };

const STORY: &str = "<article><h1>A story</h1><p>The council voted on Monday to tear down the old bridge, and to build a new one in its place.</p>\
    <p>It will close in May and reopen two years later, when the trains run again and the ferries stop for good.</p></article>";

/// The cost of each, the slowest first, as a line of the report.
fn judged(mut costs: Vec<(&'static str, f64)>, what: &str) -> Measured {
    costs.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut text = format!("{} {what}; slowest:", costs.len());
    for (name, cost) in costs.iter().take(3) {
        // Writing to a string can't fail.
        let _ = write!(text, " {name} {cost:.2} s,");
    }
    let text = text.trim_end_matches(',');
    Measured::new(costs.iter().all(|(_, cost)| *cost <= MAX_CPU_SECONDS), text)
}

/// CPU time of the thread that parses.
fn cost(read: impl FnOnce()) -> f64 {
    let before = cpu_seconds("thread-self");
    read();
    cpu_seconds("thread-self") - before
}

pub(crate) async fn hostile_pages(setting: Setting) -> anyhow::Result<Measured> {
    let attributes: String = (0..80_000).map(|n| format!(" a{n}=x")).collect();
    let rows: Vec<(&'static str, Vec<u8>)> = vec![
        ("40,000 nested div", nested("<div>")),
        ("40,000 nested b", nested("<b>")),
        ("40,000 nested tables", nested("<table>")),
        (
            "100,000 list items never closed",
            format!("{STORY}{}", "<ul><li>".repeat(50_000)).into_bytes(),
        ),
        (
            "80,000 attributes",
            format!("<body><div{attributes}>{STORY}</div>").into_bytes(),
        ),
        ("50 MB of text", "word ".repeat(10 << 20).into_bytes()),
        (
            "10 MB of script",
            format!("<script>{}</script>{STORY}", "x<y;".repeat(2_500_000)).into_bytes(),
        ),
        (
            "comments without end",
            format!("{STORY}{}", "<!--".repeat(50_000)).into_bytes(),
        ),
        (
            "100,000 links",
            format!("{STORY}{}", "<a href=/x>more</a> ".repeat(100_000)).into_bytes(),
        ),
        (
            "1 MB of JSON-LD, nested",
            format!(
                "<script type='application/ld+json'>{}</script>{STORY}",
                "{\"a\":[".repeat(150_000)
            )
            .into_bytes(),
        ),
        ("NUL bytes", STORY.replace(' ', "\0").into_bytes()),
        (
            "UTF-16 that says it is UTF-8",
            STORY.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        ),
        (
            "noise",
            (0..setting.size(1_000_000, 5_000_000_u32))
                .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
                .collect(),
        ),
    ];
    let costs = tokio::task::spawn_blocking(move || {
        let read = |html: &[u8]| {
            let page = Page {
                html,
                url: "https://a.example/story",
                charset: None,
                selectors: None,
                feed: None,
                now: Timestamp::UNIX_EPOCH,
            };
            extract(&page, &Options::default())
        };
        let cost = |(name, html): (&'static str, Vec<u8>)| (name, cost(|| drop(read(&html))));
        rows.into_iter().map(cost).collect()
    })
    .await?;
    Ok(judged(costs, "pages"))
}

fn nested(tag: &str) -> Vec<u8> {
    format!("{STORY}{}deep", tag.repeat(40_000)).into_bytes()
}

pub(crate) async fn hostile_feeds(_: Setting) -> anyhow::Result<Measured> {
    let rss = |items: &str| {
        format!("<rss version='2.0'><channel><title>x</title>{items}</channel></rss>").into_bytes()
    };
    let laughs: String = (1..10)
        .map(|n| format!("<!ENTITY l{n} \"{}\">", format!("&l{};", n - 1).repeat(10)))
        .collect();
    let item = |n: u32| {
        format!(
            "<item><title>Story {n}</title><link>https://a.example/{n}</link><pubDate>Mon, 02 Nov 2026 10:00:00 GMT</pubDate></item>"
        )
    };
    let attributes: String = (0..80_000).map(|n| format!(" a{n}='x'")).collect();
    let spaces: String = (0..80_000).map(|n| format!(" xmlns:a{n}='x'")).collect();
    let rows: Vec<(&'static str, Vec<u8>)> = vec![
        ("billion laughs", format!("<!DOCTYPE rss [<!ENTITY l0 \"ha\">{laughs}]><rss version='2.0'><channel><title>&l9;</title></channel></rss>").into_bytes()),
        ("200,000 nested elements", rss(&"<a>".repeat(200_000))),
        ("80,000 attributes", rss(&format!("<item{attributes}><title>x</title></item>"))),
        ("80,000 namespaces", rss(&format!("<item{spaces}><title>x</title></item>"))),
        ("100,000 items", rss(&(0..100_000).map(item).collect::<String>())),
        ("an external entity", b"<!DOCTYPE r [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><rss version='2.0'><channel><title>&x;</title></channel></rss>".to_vec()),
        ("10 MB of CDATA", rss(&format!("<item><description><![CDATA[{}]]></description></item>", "x".repeat(10 << 20)))),
        ("ampersands", rss(&format!("<item><title>{}</title></item>", "&".repeat(1_000_000)))),
        ("UTF-16 that says it is UTF-8", String::from_utf8_lossy(&rss(&item(1))).encode_utf16().flat_map(u16::to_be_bytes).collect()),
        ("half a feed", rss(&item(1))[..80].to_vec()),
    ];
    let mut leaked = false;
    let mut costs = Vec::new();
    for (name, bytes) in rows {
        let spent = cost(|| {
            let parsed = format!("{:?}", parse(&bytes, &Hints::default()));
            leaked |= parsed.contains("root:");
            drop(sitemap::parse(&bytes, &Hints::default()));
        });
        costs.push((name, spent));
    }
    let measured = judged(costs, "feeds, each parsed as a sitemap too");
    Ok(measured.and(
        !leaked,
        format!("content of a file leaked through an external entity: {leaked}"),
    ))
}
