//! A document on its way into the store: as it comes from extraction, and prepared
//! for the engines. Pure.

use tidings_document::Sketch;
use tidings_url::UrlKey;

use crate::ids::split;
use crate::storable::storable;

/// A document as it comes from extraction.
#[derive(Debug, Clone)]
pub struct NewDocument {
    /// The url key of the final URL: the id of the document everywhere.
    pub key: UrlKey,
    pub source_id: i64,
    pub title: String,
    /// Hash of the normalised text; `None` for empty ones, so they never collide.
    pub content_hash: Option<Vec<u8>>,
    /// For finding near-duplicates; `None` for texts that are too short.
    pub sketch: Option<Sketch>,
    /// Everything, as JSON.
    pub body: String,
}

/// [`NewDocument`] in the shape of its row.
#[derive(Debug, Clone)]
pub(crate) struct PreparedDocument {
    pub(crate) key_tail: [u8; 16],
    pub(crate) source_id: i64,
    pub(crate) title: String,
    pub(crate) content_hash: Option<Vec<u8>>,
    pub(crate) sketch: Option<Sketch>,
    pub(crate) body: String,
}

pub(crate) fn prepare_document(document: &NewDocument) -> PreparedDocument {
    PreparedDocument {
        key_tail: split(&document.key).1,
        source_id: document.source_id,
        title: storable(&document.title),
        content_hash: document.content_hash.clone(),
        sketch: document.sketch.clone(),
        body: storable(&document.body),
    }
}
