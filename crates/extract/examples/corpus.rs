//! Extracts every page of a folder: `corpus DIR OUT.jsonl`. Prints the CPU time.

use std::io::{Read as _, Write as _};

use tidings_extract::{Options, Page, extract};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let dir = std::path::Path::new(&args[1]);
    let urls: std::collections::HashMap<String, String> =
        std::fs::read_to_string(dir.join("truth.jsonl"))
            .unwrap()
            .lines()
            .map(|line| {
                let row: serde_json::Value = serde_json::from_str(line).unwrap();
                (
                    row["id"].as_str().unwrap().to_owned(),
                    row["url"].as_str().unwrap().to_owned(),
                )
            })
            .collect();
    let mut pages = vec![];
    let mut names: Vec<_> = std::fs::read_dir(dir.join("html"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    names.sort();
    for path in names {
        let bytes = std::fs::read(&path).unwrap();
        let mut html = vec![];
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_end(&mut html)
            .unwrap();
        let id = path
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .split('.')
            .next()
            .unwrap()
            .to_owned();
        pages.push((id, html));
    }
    let now = "2026-11-15T00:00:00Z".parse().unwrap();
    let explain = args.len() > 3;
    let options = Options {
        explain,
        ..Options::default()
    };
    let run = |id: &String, html: &[u8]| {
        extract(
            &Page {
                html,
                url: &urls[id],
                charset: None,
                selectors: None,
                feed: None,
                now,
            },
            &options,
        )
    };
    if explain {
        for (id, html) in &pages {
            if *id == args[3] || args[3] == "all" {
                println!("=== {id}");
                let article = run(id, html);
                println!(
                    "meta\t{:?} {:?} {:?} {:?} {:?} {:?} {:?}",
                    article.title,
                    article.authors,
                    article.published,
                    article.modified,
                    article.page_type,
                    article.flags,
                    article.language
                );
                for (i, note) in article.blocks.iter().enumerate() {
                    let why = note
                        .why
                        .replace(", size", " size")
                        .replace(", links", " ld")
                        .replace(" to itself", "")
                        .replace(", roles", "");
                    let mark = if note.why.contains("to itself") {
                        "#"
                    } else {
                        ""
                    };
                    println!(
                        "{i} {}{mark} {why} {}\t{}",
                        note.verdict,
                        note.path.replace('[', "@@").replace(']', ""),
                        note.text.replace('\n', "\\n")
                    );
                }
            }
        }
        return;
    }
    let start = cpu_time::ThreadTime::now();
    let articles: Vec<_> = pages.iter().map(|(id, html)| run(id, html)).collect();
    let took = start.elapsed();
    println!(
        "{} pages, {:.0} pages/s",
        pages.len(),
        pages.len() as f64 / took.as_secs_f64()
    );
    let mut out = std::fs::File::create(&args[2]).unwrap();
    for ((id, _), article) in pages.iter().zip(articles) {
        let row = serde_json::json!({
            "id": id, "text": article.text, "title": article.title.map(|t| t.value), "author": article.authors.map(|a| a.value.join(", ")),
            "published": article.published.map(|p| p.value.to_string()), "page_type": article.page_type.as_str(), "method": article.method.as_str(),
            "flags": article.flags, "language": article.language.map(|l| l.value), "confidence": article.confidence,
        });
        writeln!(out, "{row}").unwrap();
    }
}
