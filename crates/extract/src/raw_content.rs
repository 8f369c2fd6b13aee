//! The fields of the `raw_content` index, as far as the page has them. Names
//! and types are those of the index, which refuses others: dates are dates,
//! numbers are numbers, what is missing is left out. What only the pipeline
//! knows (id, source, crawl time, raw HTML) is added by the sink.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::dates::When;

#[derive(Debug, Clone, Default, Serialize)]
pub struct RawContent {
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub raw_text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub og_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub og_title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub og_description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub og_image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub og_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta_description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta_keywords: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canonical_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_date: Option<When>,
    pub word_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub article_section: Option<String>,
    pub json_ld_data: JsonLdData,
    pub meta: MetaData,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct JsonLdData {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonld_headline: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonld_description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonld_article_section: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonld_author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonld_publisher_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonld_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonld_image_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonld_date_published: Option<When>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonld_date_created: Option<When>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonld_date_modified: Option<When>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonld_word_count: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jsonld_keywords: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonld_schema_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonld_location: Option<String>,
    /// The object itself, without the body; nested things as text.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub jsonld_raw: Map<String, Value>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct MetaData {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twitter_card: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twitter_site: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub og_image_width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub og_image_height: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub og_site_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<When>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<When>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub article_opinion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub article_content_tier: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detected_content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indigenous_region: Option<String>,
}
