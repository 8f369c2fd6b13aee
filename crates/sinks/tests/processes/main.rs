//! Tests that need other processes: killed writers, and external programs. In a
//! binary of their own, because a process that is being started inherits the file
//! locks of the one that starts it.

#![allow(clippy::unwrap_used)]

mod child;
mod files;
#[path = "../fixture/mod.rs"]
mod fixture;
mod nats;
mod search;
