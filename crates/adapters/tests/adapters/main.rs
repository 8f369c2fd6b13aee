//! Every adapter against the fake of its service: the first pull, pulls over
//! restarts without loss or repetition, caps, limits, keys, and invalid
//! responses. One program, so that it links once.

#![allow(clippy::unwrap_used)]

mod arxiv;
mod gdelt;
mod guardian;
mod gutenberg;
mod hackernews;
mod newsapi;
mod reddit;
mod rig;
