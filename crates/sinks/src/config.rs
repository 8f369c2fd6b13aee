//! What can be said of a sink in the configuration, and the sink that is built
//! of it. Keys that don't exist are refused; secrets are named, never written.

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
use crate::pages::Pages;
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

/// Gives the value of a variable, if it is set.
pub type Environment = dyn Fn(&str) -> Option<String> + Send + Sync;

/// What sinks are built with.
pub struct Context {
    pub client: Client,
    /// Where relative paths start.
    pub folder: PathBuf,
    /// Looks up environment variables.
    pub environment: Box<Environment>,
    /// Where pages are kept, if they are.
    pub pages: Option<Arc<dyn Pages>>,
}

impl Context {
    /// With the environment of this process, and without pages.
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

/// Why a sink can't be built, with what to change.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct BuildError(pub(crate) String);

/// Builds a sink. Connects to nothing yet.
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
    built.map_err(|BuildError(why)| BuildError(format!("sink {name:?}: {why}")))
}

/// For settings that are on unless switched off.
pub(crate) fn yes() -> bool {
    true
}
