//! robots.txt (RFC 9309): what it says ([`rules`]), and asking it before every
//! fetch ([`gate`]).

mod gate;
mod pattern;
mod rules;

pub use gate::{Permission, RobotsGate};
pub(crate) use rules::READ;
pub use rules::{RobotsRules, Verdict};
