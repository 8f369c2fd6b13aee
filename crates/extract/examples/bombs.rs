//! CPU time and memory of hostile pages: `cargo run --release --example bombs`. One line
//! for each, with CPU time and the peak memory so far (Linux).

use cpu_time::ThreadTime;
use tidings_extract::{Options, Page, extract};

const STORY: &str = "<article><h1>A story</h1><p>The council voted on Monday to tear down the old bridge, and to build a new one in its place at once.</p></article>";

fn main() {
    let attributes: String = (0..80_000).map(|n| format!(" a{n}=x")).collect();
    let bombs: Vec<(&str, Vec<u8>)> = vec![
        (
            "40,000 nested tags",
            format!("{STORY}{}", "<div>".repeat(40_000)).into_bytes(),
        ),
        (
            "40,000 nested inline tags",
            format!("{STORY}{}", "<b>".repeat(40_000)).into_bytes(),
        ),
        (
            "40,000 nested tables",
            format!("{STORY}{}", "<table><tr><td>".repeat(40_000)).into_bytes(),
        ),
        (
            "1,000,000 end tags, deep",
            format!("{STORY}{}{}", "<i>".repeat(600), "</b>".repeat(1_000_000)).into_bytes(),
        ),
        (
            "80,000 attributes on one tag",
            format!("<div{attributes}>{STORY}</div>").into_bytes(),
        ),
        ("50 MB of one text", "word ".repeat(10 << 20).into_bytes()),
        (
            "50 MB of one script",
            format!("<script>{}", "a<b;".repeat(12 << 20)).into_bytes(),
        ),
        (
            "10 MB of script",
            format!("<script>{}</script>{STORY}", "a<b;".repeat(2_500_000)).into_bytes(),
        ),
        (
            "10 MB of small texts",
            "<i>a</i> ".repeat(1_100_000).into_bytes(),
        ),
        (
            "10 MB of paragraphs",
            "<p>The council voted on Monday to tear down the old bridge.</p>"
                .repeat(160_000)
                .into_bytes(),
        ),
        (
            "10 MB of unended comments",
            "<!-- ".repeat(2_000_000).into_bytes(),
        ),
        (
            "10 MB of unended titles",
            "<title>".repeat(1_400_000).into_bytes(),
        ),
        (
            "10 MB of entities",
            "&eacute;".repeat(1_200_000).into_bytes(),
        ),
        ("10 MB of NUL", vec![0; 10 << 20]),
        (
            "10 MB that are in no charset",
            (0..10_u32 << 20)
                .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8 | 0x80)
                .collect(),
        ),
        (
            "1 MB of brackets as JSON-LD",
            format!(
                "<script type='application/ld+json'>{}</script>{STORY}",
                "[{\"a\":".repeat(170_000)
            )
            .into_bytes(),
        ),
        (
            "50,000 captions of one figure",
            format!(
                "{STORY}<figure>{}",
                "<figcaption>a</figcaption>".repeat(50_000)
            )
            .into_bytes(),
        ),
        (
            "50,000 buttons that say Read more",
            format!(
                "{STORY}{}",
                "<button><b>Read more</b></button>".repeat(50_000)
            )
            .into_bytes(),
        ),
        (
            "50,000 different labels",
            format!(
                "{STORY}{}",
                (0..50_000)
                    .map(|i| format!("<p>Share this {i}</p>"))
                    .collect::<String>()
            )
            .into_bytes(),
        ),
        (
            "100,000 links",
            format!(
                "{STORY}{}",
                "<a href=/x>headline of a story</a> ".repeat(100_000)
            )
            .into_bytes(),
        ),
        (
            "100,000 classes",
            format!(
                "<div class='{}'>{STORY}",
                "post-body related ".repeat(100_000)
            )
            .into_bytes(),
        ),
    ];
    let now = "2026-11-15T00:00:00Z".parse().expect("a moment");
    println!(
        "{:32} {:>8} {:>8} {:>6} {:>8}",
        "page", "MB", "CPU ms", "cut", "peak MB"
    );
    for (name, html) in bombs {
        let start = ThreadTime::now();
        let article = extract(
            &Page {
                html: &html,
                url: "https://a.example/",
                charset: None,
                selectors: None,
                feed: None,
                now,
            },
            &Options::default(),
        );
        let took = start.elapsed();
        println!(
            "{name:32} {:>8.1} {:>8.1} {:>6} {:>8}",
            html.len() as f64 / 1e6,
            took.as_secs_f64() * 1e3,
            article.cut,
            peak_megabytes()
        );
    }
}

/// `VmHWM` of this process; 0 where there is none.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1))
        .and_then(|kb| kb.parse::<u64>().ok())
        .map_or(0, |kb| kb / 1024)
}
