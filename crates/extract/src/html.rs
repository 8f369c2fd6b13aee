//! The tree of a page: parsed once, in linear time, under caps, into an array
//! in document order. Knows HTML, nothing about articles.

mod entities;
mod parser;
mod tag;
mod tree;

pub(crate) use entities::decode_into;
pub(crate) use parser::{ParserLimits, parse};
pub(crate) use tag::Tag;
pub(crate) use tree::{Document, NodeId};
