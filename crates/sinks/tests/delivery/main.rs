//! Every sink as the deliverer uses it, against servers that fail on command:
//! each fault, and any order of faults.

#![allow(clippy::unwrap_used)]

mod elasticsearch;
mod files;
#[path = "../fixture/mod.rs"]
mod fixture;
mod search;
