//! Services that documents are delivered to, faked: they speak the real
//! protocols, keep what they were given so that tests can count it, and fail
//! exactly as they are told. Loopback only; nothing lasts.

mod elasticsearch;
mod firestore;
mod gorse;
mod http;
mod mapping;
mod webhook;

pub use elasticsearch::{ElasticsearchFault, FakeElasticsearch};
pub use firestore::{FakeFirestore, FirestoreFault};
pub use gorse::{FakeGorse, GorseFault};
pub use webhook::{FakeWebhook, WebhookCall, WebhookFault};
