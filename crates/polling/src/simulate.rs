//! Polling in simulated time: generated or recorded feeds, one policy at a time, and
//! what it cost and missed. Everything follows from the seed. No I/O: traces
//! come in as text, pictures go out as text.

mod compare;
mod dates;
mod measure;
mod picture;
mod population;
mod rng;
mod run;
mod trace;
mod world;

pub use compare::{Comparison, Contestants, Row, compare};
pub use dates::Dating;
pub use measure::Measured;
pub use picture::{chart, svg};
pub use population::{Population, Recipe};
pub use run::{Spending, run};
pub use trace::{TraceError, read_trace};
pub use world::{Feed, World};
