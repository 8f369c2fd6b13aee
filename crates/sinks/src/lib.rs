//! Where documents go: search indexes, recommenders, streams and files.
//!
//! A [`Sink`] takes a batch and gives a [`Verdict`] on each document. It never
//! waits, retries or remembers what it has not delivered: that is the outbox's.
//! All HTTP goes through `tidings_net::Client`; time comes in as an argument.

mod config;
mod elasticsearch;
mod endpoint;
mod files;
mod firestore;
mod gorse;
mod jsonl;
mod nats;
mod pages;
mod search;
mod secret;
mod sink;
mod text;
mod warc;
mod webhook;

pub use config::{BuildError, Context, Environment, SinkConfig, build};
pub use elasticsearch::ElasticsearchConfig;
pub use firestore::{CollectionMetrics, Firestore, FirestoreConfig, RunState, SourceError};
pub use gorse::GorseConfig;
pub use jsonl::JsonlConfig;
pub use nats::NatsConfig;
pub use pages::{Page, Pages};
pub use search::{
    Hit, SearchConfig, SearchError, SearchIndex, SearchQuery, SearchResults, Snippet, rebuild,
};
pub use sink::{BatchLimits, Finding, Report, Sink, Verdict};
pub use warc::WarcConfig;
pub use webhook::{WebhookConfig, signature};
