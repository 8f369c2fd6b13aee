//! Services that documents are delivered to, faked: they speak the real
//! protocols, keep what they were given so that tests can count it, and fail
//! exactly as they are told. Loopback only; nothing lasts.

mod elasticsearch;
mod http;
mod mapping;

pub use elasticsearch::{ElasticsearchFault, FakeElasticsearch};
