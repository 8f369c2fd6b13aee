//! The configuration of a sink, and the sink built from it. Unknown keys are
//! rejected; secrets are named by variable or file, never written inline.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use thiserror::Error;
use tidings_net::Client;

use crate::elasticsearch::{Elasticsearch, ElasticsearchConfig};
use crate::firestore::{Firestore, FirestoreConfig};
use crate::gorse::{Gorse, GorseConfig};
use crate::jsonl::{Jsonl, JsonlConfig};
use crate::nats::{Nats, NatsConfig};
use crate::page_source::PageSource;
use crate::search::{Search, SearchConfig};
use crate::sink::Sink;
use crate::warc::{Warc, WarcConfig};
use crate::webhook::{Webhook, WebhookConfig};

/// One table of the configuration: `[sinks.NAME]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SinkConfig {
    #[serde(alias = "opensearch")]
    Elasticsearch(ElasticsearchConfig),
    Search(SearchConfig),
    Jsonl(JsonlConfig),
    Warc(WarcConfig),
    Webhook(WebhookConfig),
    Gorse(GorseConfig),
    Firestore(FirestoreConfig),
    Nats(NatsConfig),
}

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

/// Builds a sink without connecting to it.
pub fn build(
    name: &str,
    config: &SinkConfig,
    context: &Context,
) -> Result<Box<dyn Sink>, BuildError> {
    let built: Result<Box<dyn Sink>, BuildError> = match config {
        SinkConfig::Elasticsearch(config) => {
            Elasticsearch::new(name, config, context).map(|sink| Box::new(sink) as _)
        }
        SinkConfig::Search(config) => Ok(Box::new(Search::new(name, config, context))),
        SinkConfig::Jsonl(config) => Ok(Box::new(Jsonl::new(name, config, context))),
        SinkConfig::Warc(config) => Ok(Box::new(Warc::new(name, config, context))),
        SinkConfig::Webhook(config) => {
            Webhook::new(name, config, context).map(|sink| Box::new(sink) as _)
        }
        SinkConfig::Gorse(config) => {
            Gorse::new(name, config, context).map(|sink| Box::new(sink) as _)
        }
        SinkConfig::Firestore(config) => {
            Firestore::new(name, config, context).map(|sink| Box::new(sink) as _)
        }
        SinkConfig::Nats(config) => {
            Nats::new(name, config, context).map(|sink| Box::new(sink) as _)
        }
    };
    built.map_err(|BuildError(error)| BuildError(format!("sink {name:?}: {error}")))
}

/// For settings that are on unless switched off.
pub(crate) fn yes() -> bool {
    true
}
