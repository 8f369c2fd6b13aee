//! robots.txt (RFC 9309): what it says ([`rules`]), checking it before every
//! fetch ([`gate`]), and where it is cached between processes ([`cache`]).

mod cache;
mod gate;
mod pattern;
mod rules;

pub use cache::{RobotsCache, RobotsCacheError, RobotsRecord};
pub use gate::{Permission, RobotsGate};
pub use rules::{RobotsRules, Verdict};
