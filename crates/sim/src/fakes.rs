//! Services that documents are delivered to, and services that stories come
//! from, faked: they speak the real protocols, know what they were given or have
//! published so that tests can count it, and fail on command.
//! Loopback only; nothing lasts.

mod api;
mod arxiv;
mod elasticsearch;
mod firestore;
mod gdelt;
mod gorse;
mod guardian;
mod gutenberg;
mod hackernews;
mod http;
mod mapping;
mod newsapi;
mod reddit;
mod webhook;

pub use api::{ApiFault, FakeApi, Story};
pub use elasticsearch::{ElasticsearchFault, FakeElasticsearch};
pub use firestore::{FakeFirestore, FirestoreFault};
pub use gorse::{FakeGorse, GorseFault};
pub use webhook::{FakeWebhook, WebhookCall, WebhookFault};
