//! Embedded search, the sink that needs no server: a tantivy index in a folder.
//! A delivery is accepted when it is committed. One process writes, any number
//! read; the index can be rebuilt from the documents at any time.

mod generations;
mod query;
mod schema;
mod tokenizer;
mod writer;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;
use thiserror::Error;
use tidings_document::Document;

use crate::context::{Context, yes};
use crate::licensed_text;
use crate::sink::{BatchLimits, Report, Sink, Verdict};

pub use query::{Hit, SearchIndex, SearchQuery, SearchResults, Snippet};
pub use writer::rebuild;

use schema::Entry;
use writer::Writer;

/// `kind = "search"`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchConfig {
    /// The folder of the index.
    #[serde(default = "default_path")]
    pub path: PathBuf,
    /// False: only what the licence allows to export is indexed.
    #[serde(default = "yes")]
    pub full_text: bool,
    #[serde(default = "max_docs")]
    pub max_docs: usize,
}

impl SearchConfig {
    /// The folder of the index, for readers.
    pub fn folder(&self, context: &Context) -> PathBuf {
        context.folder.join(&self.path)
    }
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self {
            path: default_path(),
            full_text: true,
            max_docs: max_docs(),
        }
    }
}

fn default_path() -> PathBuf {
    PathBuf::from("search")
}

fn max_docs() -> usize {
    2000
}

/// Why the index cannot be read or written.
#[derive(Debug, Error)]
pub enum SearchError {
    #[error("no search index at {}: nothing was delivered to it yet", .0.display())]
    None(PathBuf),
    #[error(
        "the search index at {} has the schema of another version; rebuild it with: tidings sink rebuild NAME",
        .0.display()
    )]
    Outdated(PathBuf),
    #[error(
        "the search index at {} is damaged ({}); rebuild it with: tidings sink rebuild NAME",
        .0.display(), .1.display()
    )]
    Damaged(PathBuf, PathBuf),
    #[error("another process writes to the search index at {}; stop it first", .0.display())]
    Locked(PathBuf),
    #[error("search index error: {0}")]
    Engine(#[from] tantivy::TantivyError),
    #[error("search index error: {0}")]
    Io(#[from] std::io::Error),
}

#[derive(Debug)]
pub(crate) struct Search {
    name: String,
    folder: PathBuf,
    full_text: bool,
    max_docs: usize,
    /// Opened by the first delivery, and again after a failure.
    writer: Arc<Mutex<Option<Writer>>>,
}

impl Search {
    pub(crate) fn new(name: &str, config: &SearchConfig, context: &Context) -> Self {
        Self {
            name: name.to_owned(),
            folder: config.folder(context),
            full_text: config.full_text,
            max_docs: config.max_docs.max(1),
            writer: Arc::default(),
        }
    }

    /// Runs an operation on the writer, on a blocking thread.
    async fn with_writer<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Writer) -> Result<T, SearchError> + Send + 'static,
    ) -> Result<T, SearchError> {
        let (shared, folder) = (Arc::clone(&self.writer), self.folder.clone());
        let task = tokio::task::spawn_blocking(move || {
            let mut slot = shared.lock().unwrap_or_else(PoisonError::into_inner);
            // Taken out, so that a failed writer is dropped with its uncommitted
            // changes.
            let mut writer = match slot.take() {
                Some(writer) => writer,
                None => Writer::open(&folder)?,
            };
            let done = operation(&mut writer)?;
            *slot = Some(writer);
            Ok(done)
        });
        task.await
            .unwrap_or_else(|error| Err(SearchError::Io(std::io::Error::other(error))))
    }
}

#[async_trait]
impl Sink for Search {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_local(&self) -> bool {
        true
    }

    fn limits(&self) -> BatchLimits {
        BatchLimits {
            max_docs: self.max_docs,
            max_bytes: 16 * 1024 * 1024,
        }
    }

    async fn deliver(&self, batch: &[Document], _now: Timestamp) -> Vec<Verdict> {
        if batch.is_empty() {
            return Vec::new();
        }
        // Field ids depend only on the order of the fields.
        let (_, fields) = schema::schema();
        let entry = |document: &Document| {
            Entry::of(
                document,
                licensed_text::of(document, self.full_text),
                fields,
            )
        };
        let entries: Vec<Entry> = batch.iter().map(entry).collect();
        let written = self.with_writer(move |writer| writer.write(entries)).await;
        let verdict = match written {
            Ok(()) => Verdict::Accepted,
            Err(error) => Verdict::retry(error.to_string()),
        };
        vec![verdict; batch.len()]
    }

    async fn check(&self, _now: Timestamp) -> Report {
        let mut report = Report::default();
        let count = self.with_writer(|writer| writer.count()).await;
        // While `tidings run` writes, the index is still readable.
        let count = match count {
            Err(SearchError::Locked(folder)) => {
                let read = move || SearchIndex::open(folder)?.count();
                let reading = tokio::task::spawn_blocking(read).await;
                reading.unwrap_or_else(|error| Err(SearchError::Io(std::io::Error::other(error))))
            }
            count => count,
        };
        let found = count
            .map(|count| format!("{} holds {count} documents", self.folder.display()))
            .map_err(|error| error.to_string());
        if report.record("index", found) {
            let folder = self.folder.clone();
            let check = move || SearchIndex::check_integrity(&folder);
            let checked = tokio::task::spawn_blocking(check).await;
            let checked =
                checked.unwrap_or_else(|error| Err(SearchError::Io(std::io::Error::other(error))));
            let intact = checked
                .map(|()| "every file has its checksum".to_owned())
                .map_err(|error| error.to_string());
            report.record("integrity", intact);
        }
        report
    }
}
