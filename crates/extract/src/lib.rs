//! HTML to article: main text, metadata with provenance, fingerprints.
//!
//! Pure: bytes in, values out. No I/O, no clock, no async; bounded whatever the
//! page contains.

mod blocks;
mod charset;
mod content;
mod html;
mod roles;
mod text;

use content::{Verdict, Witnesses};

/// What is known about a page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Page<'a> {
    pub html: &'a [u8],
    pub url: &'a str,
    pub charset: Option<&'a str>,
}

#[derive(Debug, Default)]
pub struct Article {
    pub text: String,
    pub title: Option<String>,
    pub author: Option<String>,
    pub published: Option<String>,
}

pub fn extract(page: &Page<'_>) -> Article {
    let (source, _) = charset::decode(page.html, page.charset, None);
    let document = html::parse(&source, &html::Limits::default(), &|| true);
    let blocks = blocks::cut(&document);
    let content = content::find(&document, &blocks, &Witnesses::default());
    let mut text = String::new();
    for (block, verdict) in blocks.list.iter().zip(&content.verdicts) {
        if *verdict == Verdict::Kept {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&block.text);
        }
    }
    Article { text, ..Article::default() }
}

#[doc(hidden)]
pub fn explain(page: &Page<'_>) -> Vec<(String, String)> {
    let (source, _) = charset::decode(page.html, page.charset, None);
    let document = html::parse(&source, &html::Limits::default(), &|| true);
    let blocks = blocks::cut(&document);
    let content = content::find(&document, &blocks, &Witnesses::default());
    let mut notes = vec![];
    for (i, (block, verdict)) in blocks.list.iter().zip(&content.verdicts).enumerate() {
        let path: Vec<String> = document
            .ancestors(block.first)
            .skip(1)
            .take(5)
            .map(|n| {
                let mut s = document.name(n).to_string();
                if n == content.container { s.insert_str(0, "@@"); }
                for a in ["id", "class"] {
                    if let Some(v) = document.raw_attr(n, a) {
                        s.push('.');
                        s.push_str(&v.chars().take(50).collect::<String>().replace(char::is_whitespace, "_"));
                    }
                }
                s
            })
            .collect();
        notes.push((
            format!("{i} {verdict:?} {:?} size {} ld {:.2} [{}] {}", block.kind, block.size, block.link_density(), block.roles.names(), path.join(" < ")),
            block.text.clone(),
        ));
    }
    notes
}
