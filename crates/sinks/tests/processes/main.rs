//! What needs other processes: writers that are killed, and programs that others
//! wrote. Apart from the rest, because a process that is being started holds on
//! to the locks of the one that starts it.

#![allow(clippy::unwrap_used)]

mod child;
mod files;
#[path = "../fixture/mod.rs"]
mod fixture;
mod nats;
mod search;
