//! One file for each command of the command line.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod run;
pub(crate) mod sim;
pub(crate) mod url;
