//! Compares our parser with the results of another one over a folder of feeds:
//! the number of entries, and every link, title and date that the other found.
//!
//! `cargo run -p tidings-feed --example compare -- FOLDER RESULTS.jsonl [--all]`
//! The results come from `scripts/feed-reference.py`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use tidings_feed::{Hints, Item, parse};

#[derive(Deserialize)]
struct Reference {
    file: String,
    content_type: Option<String>,
    url: Option<String>,
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    link: Option<String>,
    title: Option<String>,
    dates: Vec<i64>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, results, ..] = args.as_slice() else {
        return Err("usage: compare FOLDER RESULTS.jsonl [--all]".into());
    };
    let shows_all = args.iter().any(|arg| arg == "--all");
    let (mut files, mut with_entries, mut agreeing) = (0, 0, 0);
    let mut classes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for line in std::fs::read_to_string(results)?.lines() {
        let reference: Reference = serde_json::from_str(line)?;
        let bytes = std::fs::read(Path::new(folder).join(&reference.file))?;
        let url = reference
            .url
            .as_deref()
            .and_then(|url| url::Url::parse(url).ok());
        let hints = Hints {
            content_type: reference.content_type.as_deref(),
            url: url.as_ref(),
            ..Hints::default()
        };
        let ours = parse(&bytes, &hints);
        files += 1;
        if reference.entries.is_empty() {
            continue;
        }
        with_entries += 1;
        let difference = match ours {
            Err(error) => Some(("not read", error.to_string())),
            Ok(feed) => difference(&reference.entries, &feed.items),
        };
        match difference {
            None => agreeing += 1,
            Some((class, detail)) => {
                let detail = format!("{}: {detail}", reference.file);
                classes.entry(class).or_default().push(detail);
            }
        }
    }
    let share = 100.0 * f64::from(agreeing) / f64::from(with_entries.max(1));
    println!("{files} files, {with_entries} with entries, {agreeing} agree ({share:.2} %)");
    for (class, details) in classes {
        println!("{class}: {}", details.len());
        let shown = if shows_all { details.len() } else { 5 };
        for detail in details.iter().take(shown) {
            println!("  {detail}");
        }
    }
    Ok(())
}

fn difference(theirs: &[Entry], ours: &[Item]) -> Option<(&'static str, String)> {
    if theirs.len() != ours.len() {
        let detail = format!("{} entries, ours {}", theirs.len(), ours.len());
        return Some(("number of entries", detail));
    }
    theirs.iter().zip(ours).find_map(|(theirs, ours)| {
        let link = theirs
            .link
            .as_deref()
            .map(str::trim)
            .filter(|link| !link.is_empty());
        if link.is_some() && link != ours.link.as_deref() {
            return Some(("link", format!("{link:?}, ours {:?}", ours.link)));
        }
        let title = theirs
            .title
            .as_deref()
            .map(plain)
            .filter(|title| !title.is_empty());
        let our_title = ours.title.as_deref().map(plain);
        if title.is_some() && title != our_title {
            return Some(("title", format!("{title:?}, ours {our_title:?}")));
        }
        let date = ours.date().map(|date| date.as_second());
        if let Some(theirs) = theirs.dates.first()
            && date != Some(*theirs)
        {
            return Some(("date", format!("{theirs}, ours {date:?}")));
        }
        None
    })
}

/// A title without tags, references and white space, to compare by.
fn plain(title: &str) -> String {
    // Parsers differ in how much of the markup they leave standing.
    let once = stripped(title);
    stripped(&once)
}

fn stripped(title: &str) -> String {
    let mut text = String::new();
    let mut rest = title;
    while let Some(open) = rest.find('<') {
        let Some(close) = rest[open..].find('>') else {
            break;
        };
        text.push_str(&rest[..open]);
        rest = &rest[open + close + 1..];
    }
    text.push_str(rest);
    for (reference, character) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&amp;", "&"),
        ("&#38;", "&"),
        ("&#x26;", "&"),
    ] {
        text = text.replace(reference, character);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
