//! One file for each command of the command line.

pub(crate) mod add;
pub(crate) mod apply;
pub(crate) mod bench;
pub(crate) mod collect;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod discover;
pub(crate) mod doc;
pub(crate) mod explain;
pub(crate) mod extract;
pub(crate) mod feed;
pub(crate) mod fetch;
pub(crate) mod frontier;
pub(crate) mod migrate_store;
pub(crate) mod poll;
pub(crate) mod reading;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod sim;
pub(crate) mod simulate;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod tail;
pub(crate) mod token;
pub(crate) mod url;
pub(crate) mod work;
