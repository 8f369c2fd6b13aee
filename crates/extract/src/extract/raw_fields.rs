//! Fills the fields of the `raw_content` index from an article and the metadata of
//! its page.

use serde_json::{Map, Value};

use crate::article::{Article, PageType};
use crate::dates::When;
use crate::raw_content::{JsonLdData, MetaData, RawContent};
use crate::structured::{JsonLd, Meta, article_rank};

/// The fields of an article that is otherwise complete.
pub(super) fn fill(article: &Article, url: &str, json_ld: &JsonLd, meta: &Meta) -> RawContent {
    let tag = |name: &str| meta.get(name).map(str::to_owned);
    RawContent {
        url: url.to_owned(),
        title: article.title.as_ref().map(|title| title.value.clone()),
        raw_text: article.text.clone(),
        og_type: tag("og:type"),
        og_title: tag("og:title"),
        og_description: tag("og:description"),
        og_image: meta
            .first(&["og:image", "og:image:url", "og:image:secure_url"])
            .map(str::to_owned),
        og_url: tag("og:url"),
        meta_description: tag("description"),
        meta_keywords: meta
            .first(&["keywords", "news_keywords"])
            .map(str::to_owned),
        canonical_url: article.canonical_url.as_ref().map(|url| url.value.clone()),
        author: article
            .authors
            .as_ref()
            .map(|authors| authors.value.join(", ")),
        published_date: article.published.as_ref().map(|when| when.value),
        word_count: article.word_count,
        article_section: article
            .section
            .as_ref()
            .map(|section| section.value.clone()),
        json_ld_data: json_ld_data(json_ld),
        meta: meta_data(article, meta, json_ld),
    }
}

fn json_ld_data(json_ld: &JsonLd) -> JsonLdData {
    let Some(object) = json_ld.article() else {
        return JsonLdData::default();
    };
    let date = |key: &str| json_ld.text(key).and_then(|text| When::parse(&text));
    let location = [
        "contentLocation",
        "locationCreated",
        "dateline",
        "spatialCoverage",
    ]
    .into_iter()
    .find_map(|key| json_ld.text(key));
    let authors = json_ld.texts("author");
    JsonLdData {
        jsonld_headline: json_ld.text("headline").or_else(|| json_ld.text("name")),
        jsonld_description: json_ld.text("description"),
        jsonld_article_section: json_ld.text("articleSection"),
        jsonld_author: (!authors.is_empty()).then(|| authors.join(", ")),
        jsonld_publisher_name: json_ld.text("publisher"),
        jsonld_url: object
            .get("url")
            .or_else(|| object.get("mainEntityOfPage"))
            .and_then(|value| {
                json_ld
                    .address(value)
                    .or_else(|| value.get("@id").and_then(Value::as_str).map(str::to_owned))
            }),
        jsonld_image_url: object
            .get("image")
            .or_else(|| object.get("thumbnailUrl"))
            .and_then(|value| json_ld.address(value)),
        jsonld_date_published: date("datePublished"),
        jsonld_date_created: date("dateCreated"),
        jsonld_date_modified: date("dateModified"),
        jsonld_word_count: json_ld.text("wordCount").and_then(|text| {
            text.split(['.', ' '])
                .next()
                .and_then(|number| number.parse().ok())
        }),
        jsonld_keywords: json_ld
            .texts("keywords")
            .iter()
            .flat_map(|line| line.split(','))
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect(),
        jsonld_schema_type: json_ld.article_type(),
        jsonld_location: location,
        jsonld_raw: flattened(json_ld, object),
    }
}

/// Nested objects become their names or addresses: the index keeps this field
/// as it is, and readers expect texts. The body is left out: it is `raw_text`.
fn flattened(json_ld: &JsonLd, object: &Map<String, Value>) -> Map<String, Value> {
    let mut raw = Map::new();
    for (key, value) in object {
        if matches!(
            key.as_str(),
            "articleBody" | "text" | "comment" | "hasPart" | "reviewBody"
        ) {
            continue;
        }
        let flat = match value {
            Value::Array(list) if list.iter().all(Value::is_string) => Value::String(
                list.iter()
                    .filter_map(Value::as_str)
                    .collect::<Vec<_>>()
                    .join(", "),
            ),
            Value::Object(_) | Value::Array(_) => match json_ld.as_text(value) {
                Some(text) => Value::String(text),
                None => continue,
            },
            scalar => scalar.clone(),
        };
        raw.insert(key.clone(), flat);
    }
    raw
}

fn meta_data(article: &Article, meta: &Meta, json_ld: &JsonLd) -> MetaData {
    let tag = |name: &str| meta.get(name).map(str::to_owned);
    let number = |name: &str| {
        meta.get(name)
            .and_then(|text| text.trim_end_matches("px").trim().parse().ok())
    };
    let date = |names: &[&str]| meta.first(names).and_then(When::parse);
    let is_article = |kind: &str| article_rank(kind) >= 4;
    let detected = json_ld
        .article_type()
        .map(|kind| {
            if is_article(&kind) {
                "article".to_owned()
            } else {
                kind.to_lowercase()
            }
        })
        .or_else(|| (article.page_type == PageType::Article).then(|| "article".to_owned()))
        .or_else(|| tag("og:type"));
    MetaData {
        twitter_card: tag("twitter:card"),
        twitter_site: tag("twitter:site"),
        og_image_width: number("og:image:width"),
        og_image_height: number("og:image:height"),
        og_site_name: tag("og:site_name"),
        created_at: date(&[
            "article:published_time",
            "dcterms.created",
            "dc.date.created",
            "created_at",
            "created",
        ]),
        updated_at: date(&[
            "article:modified_time",
            "og:updated_time",
            "dcterms.modified",
            "updated_at",
            "last-modified",
        ]),
        article_opinion: tag("article:opinion"),
        article_content_tier: tag("article:content_tier"),
        detected_content_type: detected,
        page_type: Some(article.page_type.as_str().to_owned()),
        indigenous_region: tag("indigenous_region"),
    }
}
