//! The id that a document has in a recommender and in its document store: the same
//! in both, so that what one recommends is found in the other.

use serde::Deserialize;
use tidings_document::Document;
use tidings_url::legacy::flattened_url_id;

/// `ids = "md5-20" | "url-key"`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum DocumentIds {
    /// 20 hex digits of the flattened address, as older collectors have them.
    /// Addresses that differ only in punctuation share one.
    #[default]
    #[serde(rename = "md5-20")]
    Md5,
    /// The id of the document: 64 hex digits, one per URL.
    #[serde(rename = "url-key")]
    UrlKey,
}

impl DocumentIds {
    pub(crate) fn id_of(self, document: &Document) -> String {
        match self {
            Self::Md5 => flattened_url_id(document.address()),
            Self::UrlKey => document.id.clone(),
        }
    }
}
