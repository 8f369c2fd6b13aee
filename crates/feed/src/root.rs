//! What a document is, by its first markup: skips junk in front of the root,
//! names the format, and says what it is instead when it is no feed.

use crate::defect::{DefectKind, Defects};
use crate::error::Found;
use crate::model::Format;
use crate::namespace;
use crate::tokens::{Tag, Token, Tokens};

/// How many tags may stand before the root: PHP warnings bring a handful.
const MAX_TAGS_BEFORE_ROOT: usize = 200;

pub(crate) enum Root<'a> {
    Feed {
        tokens: Box<Tokens<'a>>,
        tag: Tag<'a>,
        format: Format,
    },
    Json {
        text: &'a str,
        defects: Defects,
    },
    Sitemap {
        tokens: Box<Tokens<'a>>,
        tag: Tag<'a>,
    },
    Other(Found, Defects),
}

pub(crate) fn find(text: &str, defects: Defects) -> Root<'_> {
    let content = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if content.starts_with('{') || content.starts_with('[') {
        return Root::Json {
            text: content,
            defects,
        };
    }
    let mut tokens = Tokens::new(text, defects);
    let mut first_unknown = None;
    let mut tags = 0;
    let mut junk_ends = None;
    let mut is_html = false;
    let mut says_html = false;
    while let Some(token) = tokens.next() {
        match token {
            Token::Text(text) if !text.trim_start_matches('\u{feff}').trim().is_empty() => {
                junk_ends = Some(tokens.offset());
            }
            Token::Doctype(name) => {
                says_html |= starts_with(name.trim(), "html");
            }
            Token::Start(tag) => {
                let (_, name) = namespace::split(tag.name);
                let name = name.to_ascii_lowercase();
                match name.as_str() {
                    "rss" | "rdf" | "feed" | "channel" | "item" | "entry"
                        if !is_html && (!says_html || tags == 0) =>
                    {
                        if junk_ends.is_some() || tags > 0 {
                            let detail = "before the root element";
                            tokens
                                .defects
                                .note(DefectKind::LeadingJunk, text, 0, detail);
                        }
                        let format = format_of(&name, &tag);
                        if matches!(name.as_str(), "item" | "entry") {
                            tokens.note(DefectKind::NoRoot, tag.name);
                        }
                        let tokens = Box::new(tokens);
                        return Root::Feed {
                            tokens,
                            tag,
                            format,
                        };
                    }
                    "urlset" | "sitemapindex" | "url" | "sitemap" => {
                        if matches!(name.as_str(), "url" | "sitemap") {
                            tokens.note(DefectKind::NoRoot, tag.name);
                        }
                        let tokens = Box::new(tokens);
                        return Root::Sitemap { tokens, tag };
                    }
                    "opml" => return Root::Other(Found::Opml, tokens.defects),
                    "html" => return Root::Other(Found::Html, tokens.defects),
                    _ => {
                        is_html |= matches!(name.as_str(), "head" | "body" | "script" | "meta");
                        first_unknown.get_or_insert(tag.name);
                        tags += 1;
                        if tags > MAX_TAGS_BEFORE_ROOT {
                            break;
                        }
                    }
                }
            }
            _ => {}
        }
    }
    let found = what_else(content, is_html || says_html, first_unknown);
    Root::Other(found, tokens.defects)
}

fn what_else(content: &str, is_html: bool, first_unknown: Option<&str>) -> Found {
    if content.is_empty() {
        return Found::Empty;
    }
    let head: Vec<char> = content.chars().take(1024).collect();
    let odd =
        |c: &&char| **c == char::REPLACEMENT_CHARACTER || c.is_control() && !c.is_whitespace();
    if head.iter().filter(odd).count() * 20 > head.len() {
        return Found::Binary;
    }
    match first_unknown {
        _ if is_html => Found::Html,
        Some(name) => {
            let is_html_name = matches!(
                name.to_ascii_lowercase().as_str(),
                "a" | "b"
                    | "br"
                    | "center"
                    | "div"
                    | "h1"
                    | "h2"
                    | "i"
                    | "img"
                    | "p"
                    | "span"
                    | "table"
                    | "title"
                    | "ul"
                    | "link"
                    | "style"
                    | "section"
            );
            if is_html_name {
                Found::Html
            } else {
                Found::OtherXml(name.chars().take(40).collect())
            }
        }
        None => Found::Text,
    }
}

fn format_of(name: &str, tag: &Tag<'_>) -> Format {
    let version = tag.attributes.get("version").unwrap_or_default();
    let declares = |part: &str| {
        let mut declared = tag.attributes.iter();
        declared
            .any(|(name, uri)| name.starts_with("xmlns") && uri.to_ascii_lowercase().contains(part))
    };
    match name {
        "rss" => match version.trim() {
            "0.90" => Format::Rss090,
            "0.91" => Format::Rss091,
            "0.92" => Format::Rss092,
            "0.93" => Format::Rss093,
            "0.94" => Format::Rss094,
            "1.0" => Format::Rss10,
            version if version.starts_with('2') => Format::Rss20,
            _ => Format::RssOther,
        },
        "rdf" if declares("simple/0.9") => Format::Rss090,
        "rdf" if declares("rss1.1") => Format::Rss11,
        "rdf" => Format::Rss10,
        "channel" if declares("rss1.1") => Format::Rss11,
        "channel" if tag.name.bytes().all(|byte| byte.is_ascii_uppercase()) => Format::Cdf,
        "channel" if tag.attributes.get("href").is_some() => Format::Cdf,
        "feed" | "entry" if version == "0.3" || declares("purl.org/atom") => Format::Atom03,
        "feed" | "entry" => Format::Atom10,
        _ => Format::RssOther,
    }
}

fn starts_with(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}
