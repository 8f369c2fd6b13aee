//! Where documents go: search indexes, recommenders, streams and files.
//!
//! A [`Sink`] delivers a batch and returns a [`Verdict`] for each document. It
//! never waits, retries or stores undelivered documents: that is the outbox's.
//! All HTTP goes through `tidings_net::Client`; time comes in as an argument.

mod config;
mod context;
mod document_ids;
mod elasticsearch;
mod endpoint;
mod firestore;
mod gorse;
mod jsonl;
mod licensed_text;
mod nats;
mod page_source;
mod rotating_files;
mod run_report;
mod search;
mod secret;
mod sink;
mod warc;
mod webhook;

pub use config::{SinkConfig, build};
pub use context::{BuildError, Context, Environment};
pub use document_ids::DocumentIds;
pub use elasticsearch::ElasticsearchConfig;
pub use firestore::FirestoreConfig;
pub use gorse::GorseConfig;
pub use jsonl::JsonlConfig;
pub use nats::NatsConfig;
pub use page_source::{Page, PageSource};
pub use run_report::{RunReport, SourceReport};
pub use search::{
    Hit, SearchConfig, SearchError, SearchIndex, SearchQuery, SearchResults, Snippet, rebuild,
};
pub use sink::{BatchLimits, Finding, Report, Sink, Verdict};
pub use warc::WarcConfig;
pub use webhook::{WebhookConfig, signature};
