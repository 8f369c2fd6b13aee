//! What sinks are built with: the HTTP client, the data folder, the environment
//! and the page archive; and why one cannot be built.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;
use tidings_net::Client;

use crate::page_source::PageSource;

/// Returns the value of a variable, if it is set.
pub type Environment = dyn Fn(&str) -> Option<String> + Send + Sync;

/// What sinks are built with.
pub struct Context {
    pub client: Client,
    /// Relative paths are resolved against it.
    pub folder: PathBuf,
    /// Looks up environment variables.
    pub environment: Box<Environment>,
    /// Archived raw pages, if there is an archive.
    pub pages: Option<Arc<dyn PageSource>>,
}

impl Context {
    /// With the environment of this process, and without a page archive.
    pub fn new(client: Client, folder: impl Into<PathBuf>) -> Self {
        Self {
            client,
            folder: folder.into(),
            environment: Box::new(|name| std::env::var(name).ok()),
            pages: None,
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("folder", &self.folder)
            .field("pages", &self.pages)
            .finish_non_exhaustive()
    }
}

/// Why a sink cannot be built, and the setting to change.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct BuildError(pub(crate) String);

/// For settings that are on unless switched off.
pub(crate) fn yes() -> bool {
    true
}
