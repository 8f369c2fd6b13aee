//! The server: REST API, live streams, metrics and the dashboard.
//!
//! Everything it shows and does goes through the store and the engine. Every request
//! passes `request_guard`; every route stands in a table of `routes` with the role
//! that it requires. Modules import downwards: `routes` names handlers, handlers use
//! `request`, `response` and `app`, and only `server` imports the tables.

mod access;
mod api;
mod app;
mod assets;
mod body_fields;
mod connections;
mod event_tail;
mod expensive;
mod history;
mod integrity;
mod metrics;
mod open_streams;
mod openapi;
mod options;
mod pages;
mod params;
mod problem;
mod rate_limit;
mod request;
mod request_guard;
mod response;
mod route;
mod routes;
mod sender;
mod server;
mod tls;

pub use access::new_secret;
pub use options::{ServerOptions, Setting};
pub use pages::source_health::Health;
pub use routes::{RouteDescription, described_routes};
pub use server::{Server, ServerError};
pub use tls::{TlsError, TlsFiles};
