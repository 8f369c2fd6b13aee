//! The dashboard: pages as values, built by functions that escape whatever they are
//! given. No inline script, no inline style, no link but to http and https.

pub(crate) mod audit;
mod chart;
pub(crate) mod documents;
pub(crate) mod feeds;
mod format;
mod forms;
pub(crate) mod frontier;
pub(crate) mod hosts;
mod layout;
mod links;
pub(crate) mod login;
mod notice;
pub(crate) mod overview;
mod problems;
pub(crate) mod reference;
pub(crate) mod selectors;
pub(crate) mod settings;
pub(crate) mod sinks;
pub(crate) mod source;
mod source_form;
pub(crate) mod source_health;
pub(crate) mod sources;
mod status;
pub(crate) mod timeline;
pub(crate) mod tokens;

pub(crate) use layout::{problem_page, redirect_to_login};
pub(crate) use notice::NOTICES;
