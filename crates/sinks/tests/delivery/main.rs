//! Every sink as the deliverer uses it, against servers with injected faults:
//! each fault, and any sequence of faults.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod config;
mod elasticsearch;
mod files;
mod firestore;
mod firestore_server;
#[path = "../fixture/mod.rs"]
mod fixture;
mod gorse;
mod gorse_server;
mod search;
mod webhook;
