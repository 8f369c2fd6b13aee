//! When to poll a feed: policies as pure functions, and the simulation that
//! proves them. No I/O, no clock, no async; time and random numbers are arguments.
//!
//! The poller calls [`next_poll`] after every poll and stores the [`State`] and
//! the [`Due`]; [`PriceControl`] turns a request budget into the one price that
//! all adaptive feeds pay. `docs/POLLING.md` explains the policy.
//!
//! ```
//! use jiff::Timestamp;
//! use tidings_polling::{
//!     Budget, Demand, Hints, Outcome, Policy, Poll, PriceControl, Sighting, State, next_poll,
//! };
//!
//! let now: Timestamp = "2026-11-15T06:00:00Z".parse()?;
//! let budget = Budget { requests_per_day: 10_000.0 };
//! let state = State::from_json("{}"); // as the store has it
//! let poll = Poll {
//!     feed_id: 7,
//!     policy: Policy::Adaptive,
//!     outcome: Outcome::Read(Sighting { listed: &[Some(now), None], new: &[Some(now)] }),
//!     hints: &Hints::default(),
//!     weight: 1.0,
//!     price: PriceControl::new(now).price(Demand(0.3), budget),
//!     now,
//!     random: 0.5,
//! };
//! let (state, due) = next_poll(&state, &poll);
//! assert!(due.at > now);
//! assert_eq!(State::from_json(&state.to_json()), state);
//! # Ok::<(), jiff::Error>(())
//! ```

mod adaptive;
mod backoff;
mod beat;
mod burst;
mod dates;
mod forecast;
mod hints;
mod listing;
mod policy;
mod price;
mod rate;
mod reason;
mod rhythm;
pub mod simulate;
mod spread;
mod state;
mod units;

pub use backoff::{ErrorClass, LONG_FAILURE, MAX_BACKOFF, MAX_RETRY_AFTER, MAX_WAIT, backoff};
pub use hints::{FLOOR, Hints};
pub use policy::{DOUBLING_FROM, DOUBLING_TO, Due, Outcome, Policy, Poll, first_poll, next_poll};
pub use price::{Budget, Demand, Price, PriceControl};
pub use reason::Reason;
pub use spread::{jitter, next_on_grid, phase};
pub use state::{Sighting, State};
