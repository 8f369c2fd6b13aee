//! The server: REST API, live streams, metrics and the dashboard.
//!
//! Everything it shows and does goes through the store and the engine; it has no
//! way of its own to the data. Every request passes one door (`door`), and every
//! route stands in one table (`routes`) with the role that it needs.

mod access;
mod api;
mod app;
mod assets;
mod call;
mod door;
mod history;
mod openapi;
mod pages;
mod problem;
mod routes;
mod server;
mod tail;

pub use access::new_secret;
pub use pages::health::Health;
pub use routes::{Described, described_routes};
pub use server::{Server, ServerError, ServerOptions, Setting};
