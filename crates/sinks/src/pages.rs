//! The pages that documents were made of, as far as somebody kept them. Sinks
//! that want them (raw HTML in the index, WARC) ask for one at a time, so that
//! a batch never holds all of them in memory.

use std::fmt;
use std::io;

use async_trait::async_trait;
use tidings_document::Document;

/// A page as it came from its server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Decoded, in its own charset.
    pub body: Vec<u8>,
    /// Names and values as they were received; may be empty.
    pub headers: Vec<(String, String)>,
}

/// Where pages are kept.
#[async_trait]
pub trait Pages: fmt::Debug + Send + Sync {
    /// The page of a document; none if it was not kept.
    async fn page(&self, document: &Document) -> io::Result<Option<Page>>;
}
