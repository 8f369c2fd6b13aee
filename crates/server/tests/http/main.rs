//! The server over real HTTP on loopback, with a store of its own and, where pages
//! are fetched, a simulated web.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod access;
mod api;
mod connections;
mod fixture;
mod fuzz;
mod input;
mod pages;
mod roles;
mod streams;
