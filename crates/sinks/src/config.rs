//! The configuration of a sink, and the sink built from it. Unknown keys are
//! rejected; secrets are named by variable or file, never written inline.

use serde::Deserialize;

use crate::context::{BuildError, Context};
use crate::elasticsearch::{Elasticsearch, ElasticsearchConfig};
use crate::firestore::{Firestore, FirestoreConfig};
use crate::gorse::{Gorse, GorseConfig};
use crate::jsonl::{Jsonl, JsonlConfig};
use crate::nats::{Nats, NatsConfig};
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
