//! What a web page says about feeds: `<link>`, `<a>`, `<base>`, the generator.
//! Scans the tags in one pass and builds no tree.

use tidings_text::charset;
use url::Url;

use super::Link;
use crate::attributes::Attributes;
use crate::html::{self, tag_end, tag_name};

/// Pages link to this many feeds at most before it is a directory of feeds.
const MAX_LINKS: usize = 40;

#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) feeds: Vec<Link>,
    pub(super) sitemaps: Vec<Link>,
    pub(super) anchors: Vec<Link>,
    /// The content of `<meta name=generator>`, in lower case.
    pub(super) generator: String,
    /// The channel that a YouTube page belongs to.
    pub(super) youtube_channel: Option<String>,
}

impl Page {
    pub(super) fn read(bytes: &[u8], url: &Url) -> Self {
        let text = charset::decode(bytes, &charset::Hints::default()).text;
        let mut page = Self::default();
        let mut base = url.clone();
        let mut rest = text.as_ref();
        while let Some(at) = memchr::memchr(b'<', rest.as_bytes()) {
            rest = &rest[at..];
            let bytes = rest.as_bytes();
            if rest.starts_with("<!--") {
                let end = memchr::memmem::find(bytes, b"-->");
                rest = &rest[end.map_or(rest.len(), |end| end + 3)..];
                continue;
            }
            let name = tag_name(&bytes[1..]);
            if name.is_empty() {
                rest = &rest[1..];
                continue;
            }
            let (name_end, end) = (1 + name.len(), tag_end(bytes));
            let name = name.to_ascii_lowercase();
            let inside = rest[..end].trim_end_matches('>');
            let attributes = Attributes::new(inside.get(name_end..).unwrap_or(""));
            match name.as_slice() {
                b"base" => {
                    if let Some(href) = attributes.get("href")
                        && let Ok(joined) = url.join(&href)
                    {
                        base = joined;
                    }
                }
                b"link" => page.link(attributes, &base),
                b"a" => page.anchor(attributes, &base),
                b"meta" => page.meta(attributes),
                _ => {}
            }
            rest = &rest[end..];
            if matches!(name.as_slice(), b"script" | b"style") {
                page.script(rest);
                rest = &rest[html::end_of_hidden(rest.as_bytes(), &name)..];
            }
        }
        // Links to the same site first: others are often social buttons.
        page.anchors.sort_by_key(|link| {
            let host = Url::parse(&link.url).ok();
            host.is_none_or(|host| host.host_str() != url.host_str())
        });
        page
    }

    fn link(&mut self, attributes: Attributes<'_>, base: &Url) {
        let relation = attributes
            .get("rel")
            .unwrap_or_default()
            .to_ascii_lowercase();
        let kind = attributes
            .get("type")
            .unwrap_or_default()
            .to_ascii_lowercase();
        let Some(link) = resolved(attributes, base, "title") else {
            return;
        };
        let has = |wanted: &str| relation.split_ascii_whitespace().any(|part| part == wanted);
        let is_feed_type = match kind.split(';').next().unwrap_or_default().trim() {
            "application/rss+xml"
            | "application/atom+xml"
            | "application/rdf+xml"
            | "application/feed+json"
            | "application/x.atom+xml"
            | "application/x-atom+xml"
            | "application/xml"
            | "text/xml"
            | "text/rss+xml"
            | "text/atom+xml"
            | "application/rss"
            | "application/atom"
            | "text/rss"
            | "application/x-rss+xml" => true,
            // WordPress offers its API in the same way.
            "application/json" => !link.url.contains("/wp-json"),
            _ => false,
        };
        if has("sitemap") {
            push(&mut self.sitemaps, link);
        } else if (has("alternate") && is_feed_type) || has("feed") {
            push(&mut self.feeds, link);
        }
    }

    fn anchor(&mut self, attributes: Attributes<'_>, base: &Url) {
        let Some(link) = resolved(attributes, base, "title") else {
            return;
        };
        if looks_like_feed(&link.url) {
            push(&mut self.anchors, link);
        }
    }

    fn meta(&mut self, attributes: Attributes<'_>) {
        let content = || attributes.get("content").unwrap_or_default();
        let is = |attribute: &str, value: &str| {
            let found = attributes.get(attribute);
            found.is_some_and(|found| found.eq_ignore_ascii_case(value))
        };
        if is("name", "generator") {
            self.generator.push_str(&content().to_ascii_lowercase());
        } else if is("itemprop", "channelId") || is("itemprop", "identifier") {
            self.youtube_channel = Some(content().into_owned()).filter(|id| is_channel(id));
        }
    }

    /// YouTube names the channel in its scripts.
    fn script(&mut self, rest: &str) {
        if self.youtube_channel.is_some() {
            return;
        }
        let key = "\"channelId\":\"";
        let window = &rest.as_bytes()[..rest.len().min(1 << 20)];
        if let Some(at) = memchr::memmem::find(window, key.as_bytes()) {
            let id: String = rest[at + key.len()..].chars().take(24).collect();
            self.youtube_channel = Some(id).filter(|id| is_channel(id));
        }
    }
}

fn resolved(attributes: Attributes<'_>, base: &Url, title: &str) -> Option<Link> {
    let href = attributes.get("href").filter(|href| !href.is_empty())?;
    let url = base.join(&href).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let title = attributes.get(title).map(|title| html::collapse(&title));
    Some(Link {
        url: url.into(),
        title: title.filter(|title| !title.is_empty()),
    })
}

fn push(links: &mut Vec<Link>, link: Link) {
    if links.len() < MAX_LINKS {
        links.push(link);
    }
}

/// By the end of the path, or a part of it that is a word for feeds.
fn looks_like_feed(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else {
        return false;
    };
    let path = url.path().to_ascii_lowercase();
    let ends = [".rss", ".rdf", ".atom", ".xml"]
        .iter()
        .any(|end| path.ends_with(end));
    let is_sitemap = path.contains("sitemap");
    let has_word = path
        .split(['/', '-', '_', '.'])
        .any(|part| matches!(part, "rss" | "rss2" | "feed" | "feeds" | "atom" | "rdf"));
    let in_query = url.query().is_some_and(|query| {
        [
            "feed=rss",
            "feed=atom",
            "format=rss",
            "format=feed",
            "type=rss",
        ]
        .iter()
        .any(|part| query.contains(part))
    });
    (ends || has_word || in_query) && !is_sitemap
}

fn is_channel(id: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    id.len() == 24 && id.starts_with("UC") && id.bytes().all(is_word)
}
