//! Canonical URLs and keys per second on one core, beside a bare `url` parse
//! of the same strings. Ratios travel between machines; the rates do not.
//!
//! Run with `cargo bench -p tidings-url`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tidings_url::{FetchUrl, Rules};

const ROUNDS: usize = 9;

fn main() {
    println!(
        "{:>9}  {:>12}  {:>12}  {:>7}",
        "urls", "bare parse/s", "keys/s", "ratio"
    );
    for count in [1_000, 10_000, 100_000] {
        let urls = news_urls(count);
        let rules = Rules::default();
        let parse = best(&urls, |url| black_box(url::Url::parse(url)).is_ok());
        let keys = best(&urls, |url| {
            FetchUrl::parse(url)
                .is_ok_and(|url| black_box(url.canonical(&rules).key()).as_bytes()[0] < 255)
        });
        let rate = |time: Duration| count as f64 / time.as_secs_f64();
        let ratio = keys.as_secs_f64() / parse.as_secs_f64();
        println!(
            "{count:>9}  {:>12.0}  {:>12.0}  {ratio:>6.2}x",
            rate(parse),
            rate(keys)
        );
    }
}

/// The best of several rounds: what the code costs when nothing disturbs it.
fn best(urls: &[String], mut work: impl FnMut(&str) -> bool) -> Duration {
    let mut round = || {
        let start = Instant::now();
        let done = urls.iter().filter(|url| work(url)).count();
        black_box(done);
        start.elapsed()
    };
    (0..ROUNDS).map(|_| round()).min().unwrap_or_default()
}

/// The shapes that feeds and sitemaps carry: dated slugs, ids, queries, one in
/// four with tracking parameters, one in sixteen with escapes.
fn news_urls(count: usize) -> Vec<String> {
    let one = |n: usize| {
        let site = n % 997;
        match n % 16 {
            0..=5 => format!(
                "https://www.paper-{site}.example/2026/11/{:02}/council-votes-on-harbour-plan-{n}",
                n % 28 + 1
            ),
            6..=8 => format!("https://news.site{site}.example/world/europe/article{n}.html"),
            9..=11 => format!("https://site{site}.example/story?id={n}&section=world"),
            12..=13 => format!(
                "https://blog{site}.example/p/{n}?utm_source=rss&utm_medium=feed&utm_campaign=daily"
            ),
            14 => format!("http://paper-{site}.example/{n}/?ref=home&page=2"),
            _ => {
                format!("https://zeitung{site}.example/wirtschaft/%c3%bcberblick-{n}%20neu?b=2&a=1")
            }
        }
    };
    (0..count).map(one).collect()
}
