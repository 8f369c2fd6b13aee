//! The fields of an article, each from the best witness that has it: selectors,
//! JSON-LD, meta tags, microdata, the page itself, the feed, in this order.

pub(crate) mod about;
pub(crate) mod author;
pub(crate) mod published;
pub(crate) mod title;
