//! The raw pages that documents were extracted from, as far as they are archived.
//! Sinks that need them (raw HTML in the index, WARC) read one at a time, so that
//! a batch never holds all of them in memory.

use std::fmt;
use std::io;

use async_trait::async_trait;
use tidings_document::Document;

/// A page as its server sent it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Without content encoding, in its own charset.
    pub body: Vec<u8>,
    /// Response headers as received; may be empty.
    pub headers: Vec<(String, String)>,
}

/// Reads archived pages.
#[async_trait]
pub trait PageSource: fmt::Debug + Send + Sync {
    /// The page of a document; none if it is not archived.
    async fn page(&self, document: &Document) -> io::Result<Option<Page>>;
}
