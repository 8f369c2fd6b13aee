//! Polite requests: a host permit before each request, robots.txt before each
//! address, the host's delay between any two, and a delay that adapts to how the
//! host responds. Knows nothing of sources, feeds or pages.

mod fetch_context;
mod host_throttle;
mod leased_fetch;
mod polite_fetch;
mod robots_cache;

pub use fetch_context::FetchContext;
pub use robots_cache::StoreRobotsCache;

pub(crate) use host_throttle::Politeness;
pub(crate) use leased_fetch::{FetchResult, safe_lease_window};
pub(crate) use polite_fetch::PoliteFetch;
