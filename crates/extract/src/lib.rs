//! HTML to article: main text, metadata with provenance, fingerprints.
//!
//! Pure: bytes in, values out. No I/O, no clock, no async; bounded whatever the
//! page contains.

mod blocks;
mod charset;
mod content;
mod fields;
mod html;
mod provenance;
mod roles;
mod structured;
mod text;
mod when;

pub use provenance::{Origin, Sourced};
pub use structured::JsonLd;
pub use when::When;

use content::{Verdict, Witnesses};
use structured::{Meta, Microdata};

/// What is known about a page.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    pub html: &'a [u8],
    pub url: &'a str,
    pub charset: Option<&'a str>,
    pub now: jiff::Timestamp,
}

#[derive(Debug, Default)]
pub struct Article {
    pub text: String,
    pub title: Option<Sourced<String>>,
    pub authors: Option<Sourced<Vec<String>>>,
    pub published: Option<Sourced<When>>,
    pub modified: Option<Sourced<When>>,
    pub notes: Vec<(String, String)>,
    pub candidates: String,
}

pub fn extract(page: &Page<'_>, explain: bool) -> Article {
    let (source, _) = charset::decode(page.html, page.charset, None);
    let document = html::parse(&source, &html::Limits::default(), &|| true);
    let blocks = blocks::cut(&document);
    let json_ld = JsonLd::collect(&document);
    let meta = Meta::collect(&document);
    let microdata = Microdata::collect(&document);
    let site_name = meta.get("og:site_name").or_else(|| meta.get("application-name")).map(str::to_owned).or_else(|| json_ld.of_type("WebSite").find_map(|site| site.get("name").and_then(|v| json_ld.as_text(v))));
    let content = content::find(&document, &blocks, &Witnesses { titles: [&json_ld.text("headline"), &meta.get("og:title").map(str::to_owned), &meta.title].into_iter().flatten().cloned().collect(), authors: fields::author::declared(&json_ld, &meta, &microdata) });
    let first_paragraph = content.verdicts.iter().zip(&blocks.list).position(|(v, b)| *v == Verdict::Kept && b.size > 80).unwrap_or(blocks.list.len());
    let candidates = fields::title::TitleCandidates {
        headings: blocks.list[..first_paragraph].iter().filter(|b| !b.roles.has(roles::Roles::NAV | roles::Roles::FOOTER | roles::Roles::HIDDEN| roles::Roles::CONSENT)).filter_map(|b| match b.kind { blocks::Kind::Heading(level) => Some((level, b.text.replace('\n', " "))), _ => None }).collect(),
        json_ld: json_ld.text("headline").or_else(|| json_ld.text("name")),
        open_graph: meta.get("og:title").map(str::to_owned),
        twitter: meta.get("twitter:title").map(str::to_owned),
        dublin_core: meta.first(&["dc.title", "dcterms.title"]).map(str::to_owned),
        microdata: microdata.get("headline").or(microdata.get("name")).map(str::to_owned),
        tag: meta.title.clone(),
        site_name: site_name.clone(),
        host: page.url.split("://").nth(1).unwrap_or("").split('/').next().unwrap_or("").trim_start_matches("www.").to_owned(),
    };
    let title = fields::title::choose(&candidates);
    let evidence = fields::published::Evidence { document: &document, blocks: &blocks, container: content.container, json_ld: &json_ld, meta: &meta, microdata: &microdata, url: page.url, now: page.now };
    let published = fields::published::published(&evidence);
    let modified = fields::published::modified(&evidence);
    let authors = fields::author::find(&document, &blocks, content.container, &json_ld, &meta, &microdata, site_name.as_deref());
    let mut text = String::new();
    for (block, verdict) in blocks.list.iter().zip(&content.verdicts) {
        if *verdict == Verdict::Kept {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&block.text);
        }
    }
    let mut article = Article { text, title, authors, published, modified, ..Article::default() };
    if explain {
        article.notes = explain_blocks(&document, &blocks, &content);
        article.candidates = format!("{candidates:?}");
    }
    article
}

fn explain_blocks(document: &html::Document<'_>, blocks: &blocks::Blocks, content: &content::Content) -> Vec<(String, String)> {
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
            format!("{i} {verdict:?}{} {:?} size {} ld {:.2} [{}] {}", if block.to_itself {"#"} else {""}, block.kind, block.size, block.link_density(), block.roles.names(), path.join(" < ")),
            block.text.clone(),
        ));
    }
    notes
}
