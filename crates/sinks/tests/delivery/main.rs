//! Every sink as the deliverer uses it, against servers that fail on command:
//! each fault, and any order of faults.

#![allow(clippy::unwrap_used)]

mod config;
mod elasticsearch;
mod files;
mod firestore;
#[path = "../fixture/mod.rs"]
mod fixture;
mod gorse;
mod search;
mod webhook;
