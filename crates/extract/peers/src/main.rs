//! Extractors side by side: `tidings-extract-peers CORPUS OUT [NAME…]` runs each
//! over the pages of a corpus (`html/ID.html.gz`, `truth.jsonl` with id and
//! url), writes `OUT/NAME.jsonl` for the scorer and prints pages per CPU second
//! of one thread. Unzipping and decoding are outside the measurement for all.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;

use cpu_time::ThreadTime;
use serde_json::{Value, json};

struct Page {
    id: String,
    url: String,
    html: String,
}

type Extractor = fn(&Page) -> Value;

const EXTRACTORS: [(&str, Extractor); 7] = [
    ("tidings", tidings),
    ("html5ever-parse-only", html5ever),
    ("dom_smoothie", dom_smoothie),
    ("trafilatura-crate", trafilatura_default),
    ("trafilatura-crate-fallback", trafilatura_fallback),
    ("trafilatura-crate-precision", trafilatura_precision),
    ("rs-trafilatura", rs_trafilatura),
];

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, corpus, out, wanted @ ..] = args.as_slice() else {
        return Err("usage: tidings-extract-peers CORPUS OUT [NAME…]".into());
    };
    let pages = read(Path::new(corpus))?;
    fs::create_dir_all(out)?;
    println!("{:28} {:>8} {:>12}", "extractor", "pages", "pages/CPU-s");
    for (name, extract) in EXTRACTORS {
        if !wanted.is_empty() && !wanted.iter().any(|one| one == name) {
            continue;
        }
        // The best of three: other programs share the machine.
        let mut best = f64::MAX;
        let mut rows = Vec::new();
        for _ in 0..3 {
            let start = ThreadTime::now();
            rows = pages.iter().map(extract).collect();
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!("{name:28} {:>8} {:>12.0}", pages.len(), pages.len() as f64 / best);
        let mut file = fs::File::create(Path::new(out).join(format!("{name}.jsonl")))?;
        for row in rows {
            writeln!(file, "{row}")?;
        }
    }
    Ok(())
}

fn read(corpus: &Path) -> Result<Vec<Page>, Box<dyn Error>> {
    let mut urls: HashMap<String, String> = HashMap::new();
    for line in fs::read_to_string(corpus.join("truth.jsonl"))?.lines() {
        let row: Value = serde_json::from_str(line)?;
        let text = |key: &str| row[key].as_str().unwrap_or("").to_owned();
        urls.insert(text("id"), text("url"));
    }
    let mut pages = Vec::new();
    for entry in fs::read_dir(corpus.join("html"))? {
        let path = entry?.path();
        let mut html = Vec::new();
        flate2::read::GzDecoder::new(fs::File::open(&path)?).read_to_end(&mut html)?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let id = name.trim_end_matches(".html.gz").to_owned();
        let url = urls.get(&id).cloned().unwrap_or_default();
        pages.push(Page { id, url, html: String::from_utf8_lossy(&html).into_owned() });
    }
    pages.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(pages)
}

fn tidings(page: &Page) -> Value {
    let now = jiff::Timestamp::now();
    let input = tidings_extract::Page { html: page.html.as_bytes(), url: &page.url, charset: Some("utf-8"), selectors: None, feed: None, now };
    let article = tidings_extract::extract(&input, &tidings_extract::Options::default());
    json!({
        "id": page.id, "text": article.text, "title": article.title.map(|title| title.value),
        "author": article.authors.map(|authors| authors.value.join(", ")),
        "published": article.published.map(|when| when.value.to_string()),
        "page_type": article.page_type.as_str(),
    })
}

fn html5ever(page: &Page) -> Value {
    let document = scraper::Html::parse_document(&page.html);
    json!({"id": page.id, "text": "", "nodes": document.tree.nodes().count()})
}

fn dom_smoothie(page: &Page) -> Value {
    let config = dom_smoothie::Config { text_mode: dom_smoothie::TextMode::Formatted, ..dom_smoothie::Config::default() };
    let article = dom_smoothie::Readability::new(page.html.as_str(), Some(&page.url), Some(config)).and_then(|mut reader| reader.parse());
    match article {
        Ok(article) => json!({"id": page.id, "text": article.text_content.to_string(), "title": article.title, "author": article.byline, "published": article.published_time}),
        Err(_) => json!({"id": page.id, "text": ""}),
    }
}

fn trafilatura(page: &Page, options: trafilatura::Options) -> Value {
    match trafilatura::extract(&page.html, &options) {
        // Its plain text has no breaks between blocks; its HTML has them.
        Ok(result) => json!({
            "id": page.id, "text": text_of(&result.content_html), "title": result.metadata.title, "author": result.metadata.author,
            "published": result.metadata.date.map(|date| date.to_string()),
        }),
        Err(_) => json!({"id": page.id, "text": ""}),
    }
}

fn trafilatura_default(page: &Page) -> Value {
    trafilatura(page, trafilatura::Options::default())
}

fn trafilatura_fallback(page: &Page) -> Value {
    trafilatura(page, trafilatura::Options::default().with_fallback(true))
}

fn trafilatura_precision(page: &Page) -> Value {
    trafilatura(page, trafilatura::Options::default().with_fallback(true).with_focus(trafilatura::ExtractionFocus::FavorPrecision))
}

fn rs_trafilatura(page: &Page) -> Value {
    match rs_trafilatura::extract(&page.html) {
        Ok(result) => json!({
            "id": page.id, "text": result.content_text, "title": result.metadata.title, "author": result.metadata.author,
            "published": result.metadata.date.map(|date| date.to_string()),
        }),
        Err(_) => json!({"id": page.id, "text": ""}),
    }
}

/// Text of a fragment with a break at every element of a block.
fn text_of(html: &str) -> String {
    const INLINE: [&str; 16] = ["a", "b", "strong", "i", "em", "span", "u", "code", "sub", "sup", "small", "mark", "q", "abbr", "s", "font"];
    let fragment = scraper::Html::parse_fragment(html);
    let mut text = String::new();
    for edge in fragment.root_element().traverse() {
        let (scraper::node::Node::Element(_), node) = (match edge {
            ego_tree::iter::Edge::Open(node) | ego_tree::iter::Edge::Close(node) => {
                if let (scraper::node::Node::Text(piece), ego_tree::iter::Edge::Open(_)) = (node.value(), edge) {
                    text.push_str(piece);
                }
                (node.value(), node)
            }
        }) else {
            continue;
        };
        if let Some(element) = node.value().as_element()
            && !INLINE.contains(&element.name())
        {
            text.push('\n');
        }
    }
    text
}
