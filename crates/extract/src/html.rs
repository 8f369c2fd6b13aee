//! The tree of a page: parsed once, in linear time, under caps, into an array
//! in document order. Knows HTML, nothing about articles.

mod parser;
mod tag;
mod tree;

pub(crate) use parser::{ParserLimits, parse};
pub(crate) use tag::Tag;
pub(crate) use tidings_text::entities::decode_into;
pub(crate) use tree::{Document, NodeId};
