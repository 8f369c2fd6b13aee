//! The remaining fields: description, section, tags, image, site name,
//! canonical address, license, robots. Each from the first origin that has it.

use serde_json::Value;
use tidings_document::normalize_tag;
use url::Url;

use crate::article::Robots;
use crate::provenance::{Origin, Sourced};
use crate::structured::{JsonLd, Meta, Microdata};

const MAX_TAGS: usize = 50;

/// The structured metadata of the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statements<'a> {
    pub(crate) json_ld: &'a JsonLd,
    pub(crate) meta: &'a Meta,
    pub(crate) microdata: &'a Microdata,
    /// What relative addresses are resolved against.
    pub(crate) base: Option<&'a Url>,
}

impl Statements<'_> {
    pub(crate) fn site_name(&self) -> Option<Sourced<String>> {
        let site = self.json_ld.of_type("WebSite").find_map(|site| {
            site.get("name")
                .and_then(|value| self.json_ld.as_text(value))
        });
        self.tag("og:site_name", Origin::OpenGraph)
            .or_else(|| site.map(|name| Sourced::new(name, Origin::JsonLd)))
            .or_else(|| {
                self.json_ld
                    .text("publisher")
                    .filter(|name| !name.contains("://"))
                    .map(|name| Sourced::new(name, Origin::JsonLd))
            })
            .or_else(|| self.tag("application-name", Origin::Meta))
    }

    pub(crate) fn description(&self) -> Option<Sourced<String>> {
        self.json_ld
            .text("description")
            .map(|text| Sourced::new(text, Origin::JsonLd))
            .or_else(|| self.tag("og:description", Origin::OpenGraph))
            .or_else(|| self.tag("description", Origin::Meta))
            .or_else(|| self.tag("twitter:description", Origin::Twitter))
            .or_else(|| self.tag("dc.description", Origin::DublinCore))
            .or_else(|| {
                self.microdata
                    .get("description")
                    .map(|text| Sourced::new(text.to_owned(), Origin::Microdata))
            })
    }

    pub(crate) fn section(&self) -> Option<Sourced<String>> {
        self.json_ld
            .text("articleSection")
            .map(|text| Sourced::new(text, Origin::JsonLd))
            .or_else(|| self.tag("article:section", Origin::OpenGraph))
            .or_else(|| self.tag("section", Origin::Meta))
            .or_else(|| self.tag("parsely-section", Origin::Meta))
            .or_else(|| {
                self.microdata
                    .get("articleSection")
                    .map(|text| Sourced::new(text.to_owned(), Origin::Microdata))
            })
    }

    pub(crate) fn tags(&self) -> Option<Sourced<Vec<String>>> {
        let families: [(Vec<String>, Origin); 4] = [
            (self.json_ld.texts("keywords"), Origin::JsonLd),
            (
                self.meta.all("article:tag").map(str::to_owned).collect(),
                Origin::OpenGraph,
            ),
            (
                self.meta
                    .first(&["keywords", "news_keywords", "parsely-tags", "sailthru.tags"])
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
                Origin::Meta,
            ),
            (
                self.microdata.all("keywords").map(str::to_owned).collect(),
                Origin::Microdata,
            ),
        ];
        families.into_iter().find_map(|(raw, origin)| {
            let mut tags: Vec<String> = Vec::new();
            for tag in raw
                .iter()
                .flat_map(|line| line.split([',', ';', '、', '，']))
                .map(normalize_tag)
            {
                if !tag.is_empty()
                    && tag.chars().count() <= 60
                    && !tags.contains(&tag)
                    && tags.len() < MAX_TAGS
                {
                    tags.push(tag);
                }
            }
            (!tags.is_empty()).then(|| Sourced::new(tags, origin))
        })
    }

    pub(crate) fn image(&self) -> Option<Sourced<String>> {
        let json_ld = self.json_ld.article().and_then(|article| {
            ["image", "thumbnailUrl"]
                .into_iter()
                .find_map(|key| article.get(key))
                .and_then(|value| self.json_ld.address(value))
        });
        json_ld
            .and_then(|url| self.resolve(&url))
            .map(|url| Sourced::new(url, Origin::JsonLd))
            .or_else(|| {
                self.address(
                    &["og:image", "og:image:url", "og:image:secure_url"],
                    Origin::OpenGraph,
                )
            })
            .or_else(|| self.address(&["twitter:image", "twitter:image:src"], Origin::Twitter))
            .or_else(|| {
                self.microdata
                    .get("image")
                    .and_then(|url| self.resolve(url))
                    .map(|url| Sourced::new(url, Origin::Microdata))
            })
    }

    /// The canonical address. One that leads to the front page of the site is not
    /// that of the article and is ignored.
    pub(crate) fn canonical_url(&self) -> Option<Sourced<String>> {
        let link = self
            .meta
            .link_to("canonical")
            .and_then(|url| self.resolve(url))
            .map(|url| Sourced::new(url, Origin::Html));
        let is_page = |found: &Sourced<String>| {
            let is_front = Url::parse(&found.value)
                .is_ok_and(|url| url.path() == "/" && url.query().is_none());
            !is_front || self.base.is_none_or(|base| base.path() == "/")
        };
        link.filter(is_page)
            .or_else(|| self.address(&["og:url"], Origin::OpenGraph).filter(is_page))
    }

    pub(crate) fn license(&self) -> Option<Sourced<String>> {
        let json_ld = self
            .json_ld
            .article()
            .and_then(|article| article.get("license"))
            .and_then(|value| self.json_ld.address(value));
        json_ld
            .map(|url| Sourced::new(url, Origin::JsonLd))
            .or_else(|| {
                self.meta
                    .link_to("license")
                    .map(|url| Sourced::new(url.to_owned(), Origin::Html))
            })
            .or_else(|| {
                self.meta
                    .first(&["dcterms.license", "dc.rights", "dcterms.rights"])
                    .map(|text| Sourced::new(text.to_owned(), Origin::DublinCore))
            })
            .or_else(|| self.tag("license", Origin::Meta))
    }

    pub(crate) fn robots(&self) -> Robots {
        let mut robots = Robots::default();
        for words in self
            .meta
            .all("robots")
            .chain(self.meta.all("googlebot-news"))
        {
            for word in words
                .split(',')
                .map(|word| word.trim().to_ascii_lowercase())
            {
                robots.noindex |= matches!(word.as_str(), "noindex" | "none");
                robots.nofollow |= matches!(word.as_str(), "nofollow" | "none");
                robots.noarchive |= word == "noarchive";
            }
        }
        robots
    }

    /// Whether the structured data declares a paywall.
    pub(crate) fn says_paywall(&self) -> bool {
        let closed = |value: &Value| match value {
            Value::Bool(free) => !free,
            Value::String(text) => text.eq_ignore_ascii_case("false"),
            _ => false,
        };
        self.json_ld
            .article()
            .and_then(|article| article.get("isAccessibleForFree"))
            .is_some_and(closed)
            || self.meta.get("article:content_tier").is_some_and(|tier| {
                matches!(
                    tier.to_ascii_lowercase().as_str(),
                    "locked" | "premium" | "paid"
                )
            })
    }

    fn tag(&self, name: &str, origin: Origin) -> Option<Sourced<String>> {
        self.meta
            .get(name)
            .map(|text| Sourced::new(text.to_owned(), origin))
    }

    fn address(&self, names: &[&str], origin: Origin) -> Option<Sourced<String>> {
        names
            .iter()
            .flat_map(|name| self.meta.all(name))
            .find_map(|url| self.resolve(url))
            .map(|url| Sourced::new(url, origin))
    }

    /// An absolute address of the web; data, mail and script addresses are none.
    pub(crate) fn resolve(&self, raw: &str) -> Option<String> {
        resolve(self.base, raw)
    }
}

pub(crate) fn resolve(base: Option<&Url>, raw: &str) -> Option<String> {
    let raw = raw.trim();
    if raw.is_empty() || raw.len() > 8192 {
        return None;
    }
    let url = match base {
        Some(base) => base.join(raw),
        None => Url::parse(raw),
    };
    url.ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .map(String::from)
}
