//! Firestore's values: unions with exactly one key, numbers as text. Pure.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};
use tidings_document::Document;

/// A document is limited to 1 MiB; the remainder is for the other fields.
const MAX_TEXT_BYTES: usize = 900_000;

pub(crate) fn text(value: &str) -> Value {
    json!({ "stringValue": value })
}

pub(crate) fn integer(value: i64) -> Value {
    json!({ "integerValue": value.to_string() })
}

/// Microseconds, of the years 1 to 9999; null for others.
pub(crate) fn moment(value: Timestamp) -> Value {
    let year = value.to_zoned(TimeZone::UTC).year();
    if (1..=9999).contains(&year) {
        json!({ "timestampValue": format!("{value:.6}") })
    } else {
        json!({ "nullValue": null })
    }
}

pub(crate) fn list(values: impl IntoIterator<Item = Value>) -> Value {
    json!({ "arrayValue": { "values": values.into_iter().collect::<Vec<_>>() } })
}

pub(crate) fn map(fields: Map<String, Value>) -> Value {
    json!({ "mapValue": { "fields": fields } })
}

/// The fields of a document in the `content` collection. `key` and `revision`
/// are compared with those of later writes.
pub(crate) fn fields(document: &Document) -> Map<String, Value> {
    let published = document.published_at.unwrap_or(document.fetched_at);
    let fields = [
        ("title", text(&document.title)),
        ("excerpt", text(&document.excerpt)),
        ("plain_text", text(truncate(document.exportable_text()))),
        ("tags", list(document.tags.iter().map(|tag| text(tag)))),
        ("publishedAt", moment(published)),
        ("source", text(&document.source_name)),
        ("url", text(document.address())),
        ("license", text(document.license.as_str())),
        ("contentType", text(&document.content_type)),
        ("createdAt", moment(document.fetched_at)),
        ("important", json!({ "booleanValue": document.important })),
        ("key", text(&document.id)),
        ("revision", integer(document.revision)),
    ];
    let named = fields.map(|(name, value)| (name.to_owned(), value));
    named.into_iter().collect()
}

fn truncate(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
