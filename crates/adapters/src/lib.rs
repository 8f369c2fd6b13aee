//! Services with an API of their own as sources. An adapter asks one service
//! what is new since its cursor; everything else (when to ask, where items go,
//! what is remembered) is the engine's.
//!
//! Adapters never keep state, never reach the network but through the [`AdapterHttp`]
//! they are given, and never show a key.

mod adapter;
mod arxiv;
mod ask;
mod gdelt;
mod gdelt_files;
mod guardian;
mod gutenberg;
mod hackernews;
mod newsapi;
mod quota;
mod reddit;
mod schema;
mod secret;
mod window;

pub use adapter::{
    AdapterError, AdapterErrorKind, AdapterHttp, AdapterItem, HttpUnavailable, Pull, PullContext,
    Secrets, SourceAdapter, Text,
};
pub use quota::{Quota, next_pull_in};
pub use schema::ConfigError;

/// Every adapter there is: one line each.
pub fn adapters() -> &'static [&'static dyn SourceAdapter] {
    &[
        &newsapi::NewsApi,
        &guardian::Guardian,
        &arxiv::Arxiv,
        &gutenberg::Gutenberg,
        &gdelt::Gdelt,
        &hackernews::HackerNews,
        &reddit::Reddit,
    ]
}

/// The adapter of a kind of source.
pub fn adapter(kind: &str) -> Option<&'static dyn SourceAdapter> {
    adapters()
        .iter()
        .copied()
        .find(|adapter| adapter.kind() == kind)
}
