//! Extracts every page of a folder: `corpus DIR OUT.jsonl`. Prints the CPU time.

use std::io::{Read as _, Write as _};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let mut pages = vec![];
    let mut names: Vec<_> = std::fs::read_dir(&args[1]).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    for path in names {
        let bytes = std::fs::read(&path).unwrap();
        let mut html = vec![];
        flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut html).unwrap();
        let id = path.file_name().unwrap().to_str().unwrap().split('.').next().unwrap().to_owned();
        pages.push((id, html));
    }
    if args.len() > 3 {
        for (id, html) in &pages {
            if *id == args[3] || args[3] == "all" {
                println!("=== {id}");
                for (note, text) in tidings_extract::explain(&tidings_extract::Page { html, ..Default::default() }) {
                    let note = note.split_whitespace().collect::<Vec<_>>().join(" ");
                    println!("{note}\t{text}", text = text.replace('\n', "\\n"));
                }
            }
        }
        return;
    }
    let start = std::time::Instant::now();
    let articles: Vec<_> = pages
        .iter()
        .map(|(_, html)| tidings_extract::extract(&tidings_extract::Page { html, ..Default::default() }))
        .collect();
    let took = start.elapsed();
    println!("{} pages, {:.0} pages/s", pages.len(), pages.len() as f64 / took.as_secs_f64());
    let mut out = std::fs::File::create(&args[2]).unwrap();
    for ((id, _), article) in pages.iter().zip(articles) {
        let row = serde_json::json!({"id": id, "text": article.text, "title": article.title, "author": article.author, "published": article.published});
        writeln!(out, "{row}").unwrap();
    }
}
