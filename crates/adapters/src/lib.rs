//! Services with an API of their own as sources. An adapter fetches from one
//! service what is new since its cursor; everything else (when to poll, where items
//! go, what is stored) is the engine's.
//!
//! Adapters have no state, reach the network only through the [`AdapterHttp`] of
//! their context, and never show a key.

mod adapter;
mod arxiv;
mod gdelt;
mod gdelt_files;
mod guardian;
mod gutenberg;
mod hackernews;
mod newsapi;
mod quota;
mod reddit;
mod requests;
mod schema;
mod secret;
mod window;

pub use adapter::{
    AdapterError, AdapterErrorKind, AdapterHttp, AdapterItem, HttpUnavailable, Pull, PullContext,
    Secrets, ServiceOptions, SourceAdapter, Text,
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

/// Removes from a stored config what only the configuration file may set; true when
/// there was something.
pub fn strip_configuration_only(config: &mut serde_json::Value) -> bool {
    let Some(fields) = config.as_object_mut() else {
        return false;
    };
    let before = fields.len();
    fields.retain(|name, _| !schema::CONFIGURATION_ONLY.contains(&name.as_str()));
    fields.len() < before
}

/// The adapter of a kind of source.
pub fn adapter(kind: &str) -> Option<&'static dyn SourceAdapter> {
    adapters()
        .iter()
        .copied()
        .find(|adapter| adapter.kind() == kind)
}
