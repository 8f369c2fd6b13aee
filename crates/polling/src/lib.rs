//! When to poll a feed: policies as pure functions, and the simulation that
//! proves them. No I/O, no clock, no async; time and chance are arguments.
//!
//! The poller calls [`next_poll`] after every poll and keeps the [`State`] and
//! the [`Due`]; [`PriceControl`] turns a request budget into the one price that
//! all adaptive feeds pay. `docs/POLLING.md` explains the policy.

mod adaptive;
mod backoff;
mod beat;
mod burst;
mod dates;
mod forecast;
mod hints;
mod policy;
mod price;
mod rate;
mod rhythm;
pub mod simulate;
mod spread;
mod state;
mod units;

pub use backoff::{
    ErrorClass, LONG_FAILURE, LONGEST_BACKOFF, LONGEST_RETRY_AFTER, LONGEST_WAIT, backoff,
};
pub use hints::{FLOOR, Hints};
pub use policy::{
    DOUBLING_FROM, DOUBLING_TO, Due, Outcome, Policy, Poll, Reason, first_poll, next_poll,
};
pub use price::{Budget, Demand, Price, PriceControl};
pub use spread::{jitter, next_on_grid, phase};
pub use state::{Sighting, State};
