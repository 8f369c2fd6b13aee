//! The JSON-LD of a page: every object of every script, `@graph` and lists
//! unfolded, references resolved; the one that describes the article; and its
//! fields as strings. Decides nothing.

use serde_json::{Map, Value};

use super::json_repair;
use crate::html::{Document, Tag};
use crate::text::fold_whitespace;

/// Objects that are collected.
const MAX_OBJECTS: usize = 500;
/// Depth to which `@graph` and lists are unfolded.
const MAX_UNFOLD_DEPTH: usize = 8;

/// All JSON-LD objects of a page.
#[derive(Debug, Clone, Default)]
pub(crate) struct JsonLd {
    objects: Vec<Map<String, Value>>,
    article: Option<usize>,
    page: Option<usize>,
}

impl JsonLd {
    pub(crate) fn collect(document: &Document<'_>) -> Self {
        let mut found = Self::default();
        for node in 1..document.len() {
            if document.tag(node) != Tag::Script || document.end(node) == node + 1 {
                continue;
            }
            let is_json_ld = document
                .raw_attr(node, "type")
                .is_some_and(|kind| kind.to_ascii_lowercase().contains("ld+json"));
            if is_json_ld && let Some(value) = json_repair::parse(document.raw_text(node + 1)) {
                found.unfold(value, 0);
            }
        }
        found.article = found.best(article_rank);
        found.page = found.best(|kind| {
            u8::from(matches!(
                kind,
                "WebPage" | "ItemPage" | "AboutPage" | "FAQPage" | "CollectionPage"
            ))
        });
        found
    }

    fn unfold(&mut self, value: Value, depth: usize) {
        if self.objects.len() >= MAX_OBJECTS || depth > MAX_UNFOLD_DEPTH {
            return;
        }
        match value {
            Value::Array(list) => {
                for value in list {
                    self.unfold(value, depth + 1);
                }
            }
            Value::Object(mut map) => {
                let graph = map.remove("@graph");
                // An article is often wrapped in the page that it is the main thing of.
                let inner = [
                    "mainEntity",
                    "mainEntityOfPage",
                    "liveBlogUpdate",
                    "hasPart",
                ]
                .into_iter()
                .filter_map(|key| map.get(key))
                .filter(|value| {
                    value
                        .get("@type")
                        .is_some_and(|kind| types(kind).any(|kind| article_rank(kind) > 1))
                })
                .take(1)
                .cloned()
                .collect::<Vec<_>>();
                if map.len() > 1 || graph.is_none() {
                    self.objects.push(map);
                }
                for value in inner.into_iter().chain(graph) {
                    self.unfold(value, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// The first object of the highest rank, the richest if there are several.
    fn best(&self, rank: impl Fn(&str) -> u8) -> Option<usize> {
        let score = |object: &Map<String, Value>| {
            let rank = object
                .get("@type")
                .map_or(0, |kind| types(kind).map(&rank).max().unwrap_or(0));
            if rank == 0 {
                return 0;
            }
            let fields = ["headline", "datePublished", "author", "articleBody"];
            usize::from(rank) * 10
                + fields
                    .iter()
                    .filter(|key| object.contains_key(**key))
                    .count()
        };
        let best = self
            .objects
            .iter()
            .map(score)
            .max()
            .filter(|score| *score > 0)?;
        self.objects.iter().position(|object| score(object) == best)
    }

    /// The object that describes the article.
    pub(crate) fn article(&self) -> Option<&Map<String, Value>> {
        self.article.map(|index| &self.objects[index])
    }

    /// The object that describes the web page.
    pub(crate) fn page(&self) -> Option<&Map<String, Value>> {
        self.page.map(|index| &self.objects[index])
    }

    /// All objects of a type.
    pub(crate) fn of_type<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = &'a Map<String, Value>> {
        self.objects.iter().filter(move |object| {
            object
                .get("@type")
                .is_some_and(|kind| types(kind).any(|kind| kind == name))
        })
    }

    /// The type of the article object, the first if it has several.
    pub(crate) fn article_type(&self) -> Option<String> {
        let kinds = self.article()?.get("@type")?;
        types(kinds)
            .max_by_key(|kind| article_rank(kind))
            .map(str::to_owned)
    }

    /// A field of the article as text; empty counts as missing.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.article()?
            .get(key)
            .and_then(|value| self.as_text(value))
    }

    /// A field of the article as a list of texts.
    pub(crate) fn texts(&self, key: &str) -> Vec<String> {
        let Some(value) = self.article().and_then(|article| article.get(key)) else {
            return Vec::new();
        };
        match value {
            Value::Array(list) => list
                .iter()
                .take(100)
                .filter_map(|value| self.as_text(value))
                .collect(),
            value => self.as_text(value).into_iter().collect(),
        }
    }

    /// A value as one text: the name or address of an object, the first of a list.
    pub(crate) fn as_text(&self, value: &Value) -> Option<String> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Array(list) => return list.iter().find_map(|value| self.as_text(value)),
            Value::Object(object) => {
                let named = [
                    "name",
                    "headline",
                    "@value",
                    "url",
                    "contentUrl",
                    "addressLocality",
                ]
                .into_iter()
                .find_map(|key| match object.get(key) {
                    Some(Value::String(text)) if !text.trim().is_empty() => Some(text.clone()),
                    Some(Value::Array(list)) => {
                        list.first().and_then(Value::as_str).map(str::to_owned)
                    }
                    _ => None,
                });
                match named {
                    Some(named) => named,
                    None => {
                        return self
                            .resolve(object)
                            .and_then(|target| self.as_text_of(target));
                    }
                }
            }
            Value::Bool(flag) => flag.to_string(),
            Value::Null => return None,
        };
        let mut decoded = String::with_capacity(text.len());
        crate::html::decode_into(&text, &mut decoded);
        let folded = fold_whitespace(&decoded);
        (!folded.is_empty()).then_some(folded)
    }

    fn as_text_of(&self, object: &Map<String, Value>) -> Option<String> {
        ["name", "headline", "url", "contentUrl"]
            .into_iter()
            .find_map(|key| object.get(key).and_then(Value::as_str))
            .map(fold_whitespace)
    }

    /// The object that a bare `@id` points to.
    fn resolve(&self, reference: &Map<String, Value>) -> Option<&Map<String, Value>> {
        let id = reference.get("@id")?.as_str()?;
        self.objects.iter().find(|object| {
            object.len() > 1 && object.get("@id").and_then(Value::as_str) == Some(id)
        })
    }

    /// The address of an image or thing: a text, or the `url` of an object.
    pub(crate) fn address(&self, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            Value::Array(list) => list.iter().find_map(|value| self.address(value)),
            Value::Object(object) => {
                let object = if object.contains_key("url") || object.contains_key("contentUrl") {
                    object
                } else {
                    self.resolve(object)?
                };
                ["url", "contentUrl", "@id"]
                    .into_iter()
                    .find_map(|key| object.get(key).and_then(Value::as_str))
                    .map(|text| text.trim().to_owned())
            }
            _ => None,
        }
    }
}

fn types(value: &Value) -> impl Iterator<Item = &str> {
    let list = match value {
        Value::Array(list) => list.as_slice(),
        single => std::slice::from_ref(single),
    };
    list.iter()
        .filter_map(Value::as_str)
        .map(|kind| kind.rsplit(['/', '#', ':']).next().unwrap_or(kind))
}

/// How certainly a type is the article of its page; 0 if it is none.
pub(crate) fn article_rank(kind: &str) -> u8 {
    match kind {
        "NewsArticle"
        | "ReportageNewsArticle"
        | "AnalysisNewsArticle"
        | "OpinionNewsArticle"
        | "BackgroundNewsArticle"
        | "ReviewNewsArticle"
        | "AskPublicNewsArticle"
        | "LiveBlogPosting"
        | "SatiricalArticle" => 5,
        "Article"
        | "BlogPosting"
        | "Report"
        | "ScholarlyArticle"
        | "TechArticle"
        | "MedicalScholarlyArticle"
        | "AdvertiserContentArticle"
        | "SocialMediaPosting"
        | "Blogposting"
        | "HowTo"
        | "DiscussionForumPosting" => 4,
        "Recipe" | "Review" | "MedicalWebPage" | "QAPage" | "PodcastEpisode" | "VideoObject" => 2,
        "CreativeWork" => 1,
        _ => 0,
    }
}
