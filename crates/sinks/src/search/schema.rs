//! The schema of the index. A change here makes older indexes outdated: they must
//! be rebuilt.

use tantivy::TantivyDocument;
use tantivy::schema::{
    FAST, Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
    Value as _,
};
use tidings_document::Document;

use super::tokenizer::TOKENIZER;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    pub(crate) id: Field,
    pub(crate) revision: Field,
    pub(crate) url: Field,
    pub(crate) title: Field,
    pub(crate) text: Field,
    pub(crate) source: Field,
    pub(crate) tags: Field,
    pub(crate) language: Field,
    /// Milliseconds since 1970, as all moments here.
    pub(crate) published: Field,
    pub(crate) fetched: Field,
    /// When it was published, or else fetched: the sort and filter field.
    pub(crate) date: Field,
}

pub(crate) fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let words = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let words = TextOptions::default()
        .set_indexing_options(words)
        .set_stored();
    let fields = Fields {
        id: schema.add_text_field("id", STRING | STORED),
        revision: schema.add_i64_field("revision", FAST | STORED),
        url: schema.add_text_field("url", STORED),
        title: schema.add_text_field("title", words.clone()),
        text: schema.add_text_field("text", words),
        source: schema.add_text_field("source", STRING | STORED),
        tags: schema.add_text_field("tags", STRING | STORED),
        language: schema.add_text_field("language", STRING | STORED),
        published: schema.add_i64_field("published", STORED),
        fetched: schema.add_i64_field("fetched", STORED),
        date: schema.add_i64_field("date", FAST),
    };
    (schema.build(), fields)
}

/// A document as it is indexed.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) revision: i64,
    pub(crate) body: TantivyDocument,
}

impl Entry {
    pub(crate) fn of(document: &Document, text: &str, fields: Fields) -> Self {
        let published = document.published_at.map(|moment| moment.as_millisecond());
        let fetched = document.fetched_at.as_millisecond();
        let mut body = TantivyDocument::new();
        body.add_text(fields.id, &document.id);
        body.add_i64(fields.revision, document.revision);
        body.add_text(fields.url, document.address());
        body.add_text(fields.title, &document.title);
        body.add_text(fields.text, text);
        body.add_text(fields.source, &document.source_name);
        for tag in &document.tags {
            body.add_text(fields.tags, tag);
        }
        if let Some(language) = &document.language {
            body.add_text(fields.language, language);
        }
        if let Some(published) = published {
            body.add_i64(fields.published, published);
        }
        body.add_i64(fields.fetched, fetched);
        body.add_i64(fields.date, published.unwrap_or(fetched));
        Self {
            id: document.id.clone(),
            revision: document.revision,
            body,
        }
    }
}

pub(crate) fn text_of(body: &TantivyDocument, field: Field) -> String {
    let value = body.get_first(field);
    value
        .and_then(|value| value.as_str())
        .unwrap_or_default()
        .to_owned()
}

pub(crate) fn number_of(body: &TantivyDocument, field: Field) -> Option<i64> {
    body.get_first(field)?.as_i64()
}
