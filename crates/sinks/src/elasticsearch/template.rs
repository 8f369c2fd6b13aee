//! The index template of `raw_content`: the fields that readers of this index
//! (the North Cloud classifier among them) know, and no others. Strict, so that
//! an unknown field is an error and not a dynamic mapping.

use serde_json::{Map, Value, json};

/// Incremented with every change of the mapping.
pub(crate) const VERSION: u64 = 2;

const DATES: &str = "strict_date_optional_time||epoch_millis";

/// A term may have 32,766 bytes, and a character four of them; longer values are
/// stored and not indexed. A page must not be rejected for one meta tag.
const MAX_KEYWORD_CHARS: u32 = 8191;

/// The template for indices whose names match.
pub(crate) fn template(pattern: &str) -> Value {
    json!({
        "index_patterns": [pattern],
        // Above the built-in templates, which have priority 100.
        "priority": 200,
        "version": VERSION,
        "template": { "mappings": mappings() },
    })
}

/// A field type of the mapping.
#[derive(Clone, Copy)]
enum FieldType {
    Keyword,
    Text,
    /// Stored, not indexed.
    StoredText,
    TextAndKeyword,
    Date,
    Integer,
    /// Stored unparsed.
    Opaque,
    Object(&'static [(&'static str, FieldType)]),
}

use FieldType::{Date, Integer, Keyword, Object, Opaque, StoredText, Text, TextAndKeyword};

const FIELDS: &[(&str, FieldType)] = &[
    ("id", Keyword),
    ("url", Keyword),
    ("source_name", Keyword),
    ("title", Text),
    ("raw_html", StoredText),
    ("raw_text", Text),
    ("og_type", Keyword),
    ("og_title", Text),
    ("og_description", Text),
    ("og_image", Keyword),
    ("og_url", Keyword),
    ("meta_description", Text),
    ("meta_keywords", Keyword),
    ("canonical_url", Keyword),
    ("author", Text),
    ("crawled_at", Date),
    ("published_date", Date),
    ("classification_status", Keyword),
    ("classified_at", Date),
    ("word_count", Integer),
    ("article_section", Keyword),
    ("content_quality", Keyword),
    ("feed_md5", Keyword),
    ("json_ld_data", Object(JSON_LD)),
    ("meta", Object(META)),
];

/// Fields that version 1 did not have. An index that lacks them and can't get them
/// goes without.
pub(crate) const ADDED_FIELDS: [&str; 2] = ["content_quality", "feed_md5"];

const JSON_LD: &[(&str, FieldType)] = &[
    ("jsonld_headline", Text),
    ("jsonld_description", Text),
    ("jsonld_article_section", Keyword),
    ("jsonld_author", Text),
    ("jsonld_publisher_name", Text),
    ("jsonld_url", Keyword),
    ("jsonld_image_url", Keyword),
    ("jsonld_date_published", Date),
    ("jsonld_date_created", Date),
    ("jsonld_date_modified", Date),
    ("jsonld_word_count", Integer),
    ("jsonld_keywords", Keyword),
    ("jsonld_schema_type", Keyword),
    ("jsonld_location", Text),
    ("jsonld_raw", Opaque),
];

const META: &[(&str, FieldType)] = &[
    ("twitter_card", Keyword),
    ("twitter_site", Keyword),
    ("og_image_width", Integer),
    ("og_image_height", Integer),
    ("og_site_name", Keyword),
    ("created_at", Date),
    ("updated_at", Date),
    ("article_opinion", Keyword),
    ("article_content_tier", Keyword),
    ("detected_content_type", TextAndKeyword),
    ("page_type", TextAndKeyword),
    ("indigenous_region", TextAndKeyword),
];

/// The mapping of the fields that version 1 did not have.
pub(crate) fn added_mappings() -> Value {
    let mut fields = properties(FIELDS);
    fields.retain(|name, _| ADDED_FIELDS.contains(&name.as_str()));
    json!({ "properties": fields })
}

pub(crate) fn mappings() -> Value {
    json!({ "dynamic": "strict", "properties": properties(FIELDS) })
}

fn properties(fields: &[(&str, FieldType)]) -> Map<String, Value> {
    let mapping =
        |(name, field_type): &(&str, FieldType)| ((*name).to_owned(), mapping(*field_type));
    fields.iter().map(mapping).collect()
}

fn mapping(field_type: FieldType) -> Value {
    match field_type {
        Keyword => json!({ "type": "keyword", "ignore_above": MAX_KEYWORD_CHARS }),
        Text => json!({ "type": "text" }),
        StoredText => json!({ "type": "text", "index": false }),
        TextAndKeyword => json!({
            "type": "text",
            "fields": { "keyword": { "type": "keyword", "ignore_above": 256 } },
        }),
        Date => json!({ "type": "date", "format": DATES }),
        Integer => json!({ "type": "integer" }),
        Opaque => json!({ "type": "object", "enabled": false }),
        Object(fields) => json!({ "type": "object", "properties": properties(fields) }),
    }
}
