//! The handlers of the API, one file per subject. They translate between HTTP and
//! the store or the engine, and decide nothing.

pub(crate) mod audit;
pub(crate) mod bulk;
mod bulk_body;
pub(crate) mod collect;
pub(crate) mod documents;
pub(crate) mod feeds;
pub(crate) mod frontier;
pub(crate) mod health;
pub(crate) mod hosts;
pub(crate) mod metrics;
pub(crate) mod openapi;
pub(crate) mod sinks;
pub(crate) mod sources;
pub(crate) mod stream;
pub(crate) mod tasks;
pub(crate) mod tokens;
