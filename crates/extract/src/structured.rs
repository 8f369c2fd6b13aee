//! The structured metadata of a page: JSON-LD, meta tags, microdata. Collected as
//! written; precedence for each field is decided in `fields`.

mod json_ld;
mod json_repair;
mod meta;
mod microdata;

pub(crate) use json_ld::{JsonLd, article_rank};
pub(crate) use meta::Meta;
pub(crate) use microdata::Microdata;
