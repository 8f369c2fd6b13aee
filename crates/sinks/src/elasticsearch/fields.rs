//! A document in the schema of the `raw_content` index: the metadata of the page,
//! as far as the index has a field for it, overlaid by the fields of the pipeline.
//! Pure.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use tidings_document::Document;

/// The `_source` of one index document. `known` is the mapping's `properties`.
pub(crate) fn source(
    document: &Document,
    known: &Map<String, Value>,
    text: &str,
    raw_html: Option<String>,
) -> Map<String, Value> {
    let mut fields = only_known(&document.raw_content, known);
    // Set by the classifier, which starts over with every revision.
    fields.remove("classified_at");
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value);
        }
    };
    let filled = |text: &str| (!text.is_empty()).then(|| Value::from(text));
    set("id", filled(&document.id));
    set("url", filled(document.address()));
    set("source_name", filled(&document.source_name));
    set("title", filled(&document.title));
    set("raw_text", filled(text));
    set("raw_html", raw_html.map(Value::from));
    set(
        "canonical_url",
        document.canonical_url.as_deref().and_then(filled),
    );
    set("author", filled(&document.authors.join(", ")));
    set("crawled_at", date(document.fetched_at).map(Value::from));
    set(
        "published_date",
        document.published_at.and_then(date).map(Value::from),
    );
    set("classification_status", Some(Value::from("pending")));
    // The index field has 32 bits.
    let words = i32::try_from(document.word_count).unwrap_or(i32::MAX);
    set("word_count", Some(Value::from(words)));
    set(
        "article_section",
        document.section.as_deref().and_then(filled),
    );
    set("content_quality", filled(document.content_quality.as_str()));
    set("feed_md5", document.feed_md5.as_deref().and_then(filled));
    fields.retain(|name, _| known.contains_key(name));
    fields
}

/// A strict index rejects a document for one unknown field; such fields stay in
/// our own store.
fn only_known(fields: &Map<String, Value>, known: &Map<String, Value>) -> Map<String, Value> {
    let mut known_fields = Map::new();
    for (name, value) in fields {
        let Some(mapping) = known.get(name) else {
            continue;
        };
        let value = match (value, mapping.get("properties").and_then(Value::as_object)) {
            (Value::Object(inner), Some(properties)) => {
                Value::Object(only_known(inner, properties))
            }
            _ => value.clone(),
        };
        known_fields.insert(name.clone(), value);
    }
    known_fields
}

/// A moment as `strict_date_optional_time` reads it: years have four digits.
fn date(moment: Timestamp) -> Option<String> {
    let year = moment.to_zoned(TimeZone::UTC).year();
    (0..=9999).contains(&year).then(|| format!("{moment:.3}"))
}

/// `<source name>_raw_content`, as North Cloud names it: lower case, everything
/// but letters, digits and underscores an underscore, no two in a row.
pub(crate) fn index_of_source(source_name: &str) -> String {
    let mut name = String::new();
    for c in source_name.to_lowercase().chars() {
        let is_plain = matches!(c, 'a'..='z' | '0'..='9');
        match is_plain {
            true => name.push(c),
            false if !name.ends_with('_') => name.push('_'),
            false => {}
        }
    }
    let name = name.trim_matches('_');
    // An index name may have 255 bytes, the suffix takes twelve.
    let name = name.get(..200).unwrap_or(name).trim_end_matches('_');
    match name {
        "" => "unknown_raw_content".to_owned(),
        name => format!("{name}_raw_content"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn index_names_are_those_of_north_cloud() {
        let rows = [
            ("BBC News", "bbc_news_raw_content"),
            ("example.com", "example_com_raw_content"),
            ("--A  &  B--", "a_b_raw_content"),
            ("a__b", "a_b_raw_content"),
            ("Ärzteblatt", "rzteblatt_raw_content"),
            ("新聞", "unknown_raw_content"),
            ("", "unknown_raw_content"),
        ];
        for (source, index) in rows {
            assert_eq!(index_of_source(source), index, "{source}");
        }
        assert!(index_of_source(&"x".repeat(1000)).len() <= 255);
    }

    #[test]
    fn unknown_fields_are_dropped_and_the_pipeline_overrides_the_page() {
        let mappings = super::super::template::mappings();
        let known = mappings["properties"].as_object().unwrap();
        let raw = serde_json::json!({
            "og_title": "kept", "surprise": 1, "classified_at": "2020-01-01", "word_count": 9,
            "meta": { "page_type": "article", "surprise": 2 },
            "json_ld_data": { "jsonld_raw": { "anything": { "goes": 1 } } },
        });
        let document = Document {
            id: "ab".into(),
            raw_content: raw.as_object().unwrap().clone(),
            word_count: u64::MAX,
            feed_md5: Some("ff".into()),
            fetched_at: "2026-11-15T09:00:00Z".parse().unwrap(),
            ..Document::default()
        };
        let mut older = known.clone();
        older.retain(|name, _| !super::super::template::ADDED_FIELDS.contains(&name.as_str()));
        let of_older = source(&document, &older, "text", None);
        assert!(!of_older.contains_key("feed_md5") && !of_older.contains_key("content_quality"));
        let source = Value::Object(source(&document, known, "text", None));
        assert_eq!(
            source,
            serde_json::json!({
                "id": "ab", "og_title": "kept", "raw_text": "text", "word_count": i32::MAX,
                "crawled_at": "2026-11-15T09:00:00.000Z", "classification_status": "pending",
                "content_quality": "title_only", "feed_md5": "ff",
                "meta": { "page_type": "article" },
                "json_ld_data": { "jsonld_raw": { "anything": { "goes": 1 } } },
            })
        );
    }
}
