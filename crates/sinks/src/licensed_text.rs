//! The text of a document that a sink may receive, and the document as JSON. The
//! user's own stores get the full text unless the configuration says otherwise;
//! exporters get what the licence allows.

use std::borrow::Cow;

use tidings_document::Document;

/// The full text, or the part that the licence allows.
pub(crate) fn of(document: &Document, full_text: bool) -> &str {
    if full_text {
        &document.body_text
    } else {
        document.exportable_text()
    }
}

/// The document with that text.
pub(crate) fn document(document: &Document, full_text: bool) -> Cow<'_, Document> {
    if full_text {
        return Cow::Borrowed(document);
    }
    let body_text = document.exportable_text().to_owned();
    Cow::Owned(Document {
        body_text,
        ..document.clone()
    })
}

/// The document with that text, as JSON.
pub(crate) fn json(document: &Document, full_text: bool) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(self::document(document, full_text).as_ref())
}
