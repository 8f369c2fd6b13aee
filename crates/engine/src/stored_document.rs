//! A document as the store holds it: the JSON body, with identity, revision,
//! duplicate and cluster from its row. Pure.

use tidings_document::Document;
use tidings_store::StoredDocument;

/// Parses a stored document; the columns of its row override the body.
pub fn stored_document(stored: &StoredDocument) -> serde_json::Result<Document> {
    let document: Document = serde_json::from_str(&stored.body)?;
    Ok(Document {
        id: stored.id.to_string(),
        revision: i64::from(stored.revision),
        duplicate_of: stored.duplicate_of.map(|key| key.to_string()),
        cluster: Some(stored.cluster.to_string()),
        ..document
    })
}
