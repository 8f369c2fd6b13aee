//! How fast feeds and sitemaps are read on one core, beside feed-rs on the same
//! bytes. Ratios travel between machines; the rates do not.
//!
//! Run with `cargo bench -p tidings-feed`.

use std::fmt::Write as _;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tidings_feed::{Hints, parse, parse_each};

const ROUNDS: usize = 5;

fn main() {
    println!(
        "{:<34} {:>8} {:>9} {:>9} {:>7}",
        "feeds", "MB", "MB/s", "feed-rs", "ratio"
    );
    let mix = mix();
    row("mix of 200, shaped like real ones", &mix);
    let short = [rss(33_000, Body::Short)];
    row("RSS, short items", &short);
    let full = [rss(2_500, Body::Escaped)];
    row("RSS, full text, escaped", &full);
    let full = [rss(2_500, Body::CData)];
    row("RSS, full text, CDATA", &full);
    let atom = [atom(2_500)];
    row("Atom, full text", &atom);
    sitemap();
    memory();
}

fn sitemap() {
    const URLS: usize = 50_000;
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for n in 0..URLS {
        let _ = writeln!(
            text,
            "  <url>\n    <loc>https://gazette.example/2026/11/{:02}/council-votes-on-harbour-plan-{n}</loc>\n\
             \x20   <lastmod>2026-11-{:02}T12:00:00+00:00</lastmod>\n    <changefreq>daily</changefreq>\n\
             \x20   <priority>0.8</priority>\n  </url>",
            n % 28 + 1,
            n % 28 + 1,
        );
    }
    text.push_str("</urlset>\n");
    let time = best(|| {
        let sitemap = tidings_feed::sitemap::parse(text.as_bytes(), &Hints::default());
        assert_eq!(black_box(sitemap).expect("a sitemap").entries.len(), URLS);
    });
    println!(
        "\nsitemap of {URLS} URLs, {:.1} MB: {:.0} URLs/s, {:.0} MB/s",
        text.len() as f64 / 1e6,
        URLS as f64 / time.as_secs_f64(),
        text.len() as f64 / 1e6 / time.as_secs_f64(),
    );
}

/// The peak of the whole process above what it held before, where the system
/// reports it (Linux). Runs last, and item by item first: a peak never falls.
fn memory() {
    let document = rss(100_000, Body::Short);
    let Some(before) = reset_peak().and_then(|()| peak_kilobytes()) else {
        return;
    };
    let mut count = 0;
    let each = |item| {
        black_box(item);
        count += 1;
        ControlFlow::Continue(())
    };
    parse_each(document.as_bytes(), &Hints::default(), each).expect("a feed");
    let streamed = peak_kilobytes().unwrap_or(before) - before;
    let feed = parse(document.as_bytes(), &Hints::default()).expect("a feed");
    let collected = peak_kilobytes().unwrap_or(before) - before;
    assert_eq!((count, feed.items.len()), (100_000, 100_000));
    println!(
        "100,000 items, {:.0} MB: +{:.1} MB item by item, +{:.0} MB collected",
        document.len() as f64 / 1e6,
        streamed as f64 / 1024.0,
        collected as f64 / 1024.0,
    );
}

fn reset_peak() -> Option<()> {
    std::fs::write("/proc/self/clear_refs", "5").ok()
}

fn peak_kilobytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn row(name: &str, documents: &[String]) {
    let bytes: usize = documents.iter().map(String::len).sum();
    let ours = best(|| {
        for document in documents {
            let feed = parse(document.as_bytes(), &Hints::default());
            assert!(!black_box(feed).expect("a feed").items.is_empty());
        }
    });
    let streamed = best(|| {
        for document in documents {
            let each = |item| {
                black_box(item);
                ControlFlow::Continue(())
            };
            black_box(parse_each(document.as_bytes(), &Hints::default(), each)).expect("a feed");
        }
    });
    let theirs = best(|| {
        for document in documents {
            let feed = feed_rs::parser::parse(document.as_bytes());
            assert!(!black_box(feed).expect("a feed").entries.is_empty());
        }
    });
    let rate = |time: Duration| bytes as f64 / 1e6 / time.as_secs_f64();
    println!(
        "{name:<34} {:>8.1} {:>9.0} {:>9.0} {:>6.1}x   (item by item: {:.0} MB/s)",
        bytes as f64 / 1e6,
        rate(ours),
        rate(theirs),
        theirs.as_secs_f64() / ours.as_secs_f64(),
        rate(streamed),
    );
}

/// The best of several rounds: what the code costs when nothing disturbs it.
fn best(mut work: impl FnMut()) -> Duration {
    let began = Instant::now();
    let mut round = || {
        let start = cpu_time().unwrap_or_else(|| began.elapsed());
        work();
        cpu_time().unwrap_or_else(|| began.elapsed()) - start
    };
    (0..ROUNDS).map(|_| round()).min().unwrap_or_default()
}

/// What this thread has spent on a processor, where the system reports it (Linux):
/// other programs on the machine don't count then.
fn cpu_time() -> Option<Duration> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = statistics.split_whitespace().next()?;
    nanoseconds.parse().ok().map(Duration::from_nanos)
}

#[derive(Clone, Copy)]
enum Body {
    /// A teaser of two sentences.
    Short,
    Escaped,
    CData,
}

/// Two hundred feeds with the shares of formats, bodies and sizes that were
/// counted in captured ones: median 80 KB and 15 items, some of 2 MB.
fn mix() -> Vec<String> {
    let one = |n: usize| match n % 10 {
        0 | 1 => rss(40, Body::Short),
        2 => rss(15 + n / 4, Body::CData),
        3 => rss(20, Body::CData),
        4 => rss(10, Body::Escaped),
        5 => rss(15 + n / 8, Body::Escaped),
        6 if n > 180 => rss(1_000, Body::Short),
        6 => rss(100, Body::Short),
        7 | 8 => atom(15),
        _ => atom(10 + n / 2),
    };
    (0..200).map(one).collect()
}

fn rss(items: usize, body: Body) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><rss version=\"2.0\"\n\
         \txmlns:content=\"http://purl.org/rss/1.0/modules/content/\"\n\
         \txmlns:dc=\"http://purl.org/dc/elements/1.1/\"\n\
         \txmlns:atom=\"http://www.w3.org/2005/Atom\">\n<channel>\n\
         \t<title>The Harbour Gazette</title>\n\
         \t<atom:link href=\"https://gazette.example/feed/\" rel=\"self\" type=\"application/rss+xml\" />\n\
         \t<link>https://gazette.example</link>\n\t<description>News of the harbour</description>\n",
    );
    for n in 0..items {
        let _ = write!(
            text,
            "\t<item>\n\t\t<title>Council votes on harbour plan &#8211; part {n} &amp; more</title>\n\
             \t\t<link>https://gazette.example/2026/11/{:02}/council-votes-{n}/</link>\n\
             \t\t<dc:creator><![CDATA[Jo Doe]]></dc:creator>\n\
             \t\t<pubDate>Tue, {:02} Nov 2026 12:{:02}:00 +0000</pubDate>\n\
             \t\t<category><![CDATA[News]]></category>\n\
             \t\t<guid isPermaLink=\"false\">https://gazette.example/?p={n}</guid>\n",
            n % 28 + 1,
            n % 28 + 1,
            n % 60,
        );
        let _ = match body {
            Body::Short => writeln!(
                text,
                "\t\t<description><![CDATA[{SENTENCE} {SENTENCE}]]></description>\n\t</item>"
            ),
            Body::CData => writeln!(
                text,
                "\t\t<description><![CDATA[{SENTENCE}]]></description>\n\
                 \t\t<content:encoded><![CDATA[{}]]></content:encoded>\n\t</item>",
                article(n)
            ),
            Body::Escaped => writeln!(
                text,
                "\t\t<description>{}</description>\n\t</item>",
                escaped(&article(n))
            ),
        };
    }
    text.push_str("</channel>\n</rss>\n");
    text
}

fn atom(entries: usize) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
         <title>Notes of a keeper</title><link href=\"https://notes.example/\"/>\n\
         <id>https://notes.example/</id><updated>2026-11-10T12:00:00Z</updated>\n",
    );
    for n in 0..entries {
        let _ = writeln!(
            text,
            "<entry><title type=\"html\">On lamps, number {n}</title>\n\
             <link href=\"https://notes.example/{n}.html\" rel=\"alternate\" type=\"text/html\"/>\n\
             <id>https://notes.example/{n}</id><published>2026-11-10T12:00:00+00:00</published>\n\
             <updated>2026-11-10T12:00:00+00:00</updated><author><name>Jo Doe</name></author>\n\
             <content type=\"html\" xml:base=\"https://notes.example/{n}.html\">{}</content></entry>",
            escaped(&article(n))
        );
    }
    text.push_str("</feed>\n");
    text
}

const SENTENCE: &str = "The council met on Tuesday evening to vote on the plan for the \
                        old harbour, which had been debated for more than a year.";

/// Eight kilobytes of HTML.
fn article(n: usize) -> String {
    let mut html = String::new();
    for paragraph in 0..18 {
        let _ = writeln!(
            html,
            "<p>{SENTENCE} &ldquo;{SENTENCE}&rdquo; said <a href=\"https://gazette.example/people/{n}?a=1&amp;b={paragraph}\" \
             class=\"name\">the mayor</a>. <em>{SENTENCE}</em></p>"
        );
    }
    html
}

fn escaped(html: &str) -> String {
    html.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
