//! Cost and effect of a site memory: pages of a synthetic site, each with
//! its own text and the same few blocks between, extracted without and with one.
//! `cargo run --release -p tidings-extract --example site_memory`

use cpu_time::ThreadTime;
use tidings_extract::{Options, Page, SiteMemory, extract};

const PAGES: usize = 500;
const ROUNDS: usize = 5;
/// Boilerplate of every page that no rule about words or classes can detect.
const REPEATED: [&str; 3] = [
    "Our bakers answer every letter that reaches them before the first loaf of the day is out of the oven.",
    "The mill behind the house has ground the grain of this valley since the year in which the bridge was built.",
    "Prices change with the harvest, and the board at the shop is right whenever this page is not.",
];
const WORDS: [&str; 24] = [
    "rye", "oven", "crumb", "salt", "water", "night", "flour", "wheat", "stone", "crust", "baker",
    "village", "winter", "yeast", "table", "morning", "field", "river", "knife", "bowl", "market",
    "heat", "hand", "loaf",
];

fn main() {
    let pages: Vec<(String, String)> = (0..PAGES).map(made).collect();
    let now = "2026-01-01T00:00:00Z".parse().unwrap_or_default();
    let read = |memory: Option<&SiteMemory>, url: &str, html: &str| {
        let page = Page {
            html: html.as_bytes(),
            url,
            charset: None,
            selectors: None,
            feed: None,
            now,
        };
        let options = Options {
            site: memory,
            ..Options::default()
        };
        extract(&page, &options)
    };
    let (mut without, mut with) = (f64::MAX, f64::MAX);
    let (mut left, mut left_with) = (0, 0);
    let mut memory = SiteMemory::default();
    for _ in 0..ROUNDS {
        let start = ThreadTime::now();
        let texts: Vec<String> = pages
            .iter()
            .map(|(url, html)| read(None, url, html).text)
            .collect();
        without = without.min(start.elapsed().as_secs_f64());
        left = repeats(&texts);

        memory = SiteMemory::default();
        let start = ThreadTime::now();
        let mut texts = Vec::new();
        for (url, html) in &pages {
            let article = read(Some(&memory), url, html);
            memory.learn(url, &article);
            texts.push(article.text);
        }
        with = with.min(start.elapsed().as_secs_f64());
        left_with = repeats(&texts);
    }
    let each = |seconds: f64| seconds * 1e6 / PAGES as f64;
    println!("{PAGES} pages, {} repeated blocks", PAGES * REPEATED.len());
    println!(
        "without: {:.0} µs a page, {left} repeated blocks in the texts",
        each(without)
    );
    println!(
        "with:    {:.0} µs a page, {left_with} repeated blocks in the texts",
        each(with)
    );
    let stored = serde_json::to_string(&memory).map_or(0, |text| text.len());
    println!("memory:  {} pages, {stored} bytes as JSON", memory.pages());
}

fn repeats(texts: &[String]) -> usize {
    texts
        .iter()
        .map(|text| {
            REPEATED
                .iter()
                .filter(|block| text.contains(**block))
                .count()
        })
        .sum()
}

/// A page with twelve paragraphs of its own, and a menu.
fn made(number: usize) -> (String, String) {
    let mut state = number as u64 * 7_919 + 1;
    let mut word = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        WORDS[(state >> 33) as usize % WORDS.len()]
    };
    let mut body = String::new();
    for paragraph in 0..12 {
        let words: Vec<&str> = (0..40).map(|_| word()).collect();
        body.push_str(&format!("<p>The {}.</p>", words.join(" ")));
        if paragraph % 4 == 1 {
            body.push_str(&format!("<p>{}</p>", REPEATED[paragraph / 4]));
        }
    }
    let menu = "<li><a href=/x>A part of the site</a></li>".repeat(60);
    let html = format!(
        "<html><head><title>Page {number}</title></head><body><nav><ul>{menu}</ul></nav><article><h1>Page {number}</h1>{body}</article></body></html>"
    );
    (format!("https://bakers.example/{number}"), html)
}
