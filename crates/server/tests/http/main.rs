//! The server as its users meet it: real HTTP over loopback, on a store of its
//! own and, where pages are fetched, on a simulated web.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod access;
mod api;
mod fixture;
mod fuzz;
mod input;
mod pages;
mod roles;
mod streams;
