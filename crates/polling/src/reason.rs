//! Why a poll is due when it is.

use serde::{Deserialize, Serialize};

/// Why a feed is polled when it is, for users to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It was never polled.
    First,
    /// The interval of the policy has passed.
    Interval,
    /// The expected waiting is worth a request.
    Price,
    /// Later, items could have left the document unseen.
    Window,
    /// The publisher, or our own floor, allows it no sooner.
    Floor,
    /// However quiet, it is polled once in a while.
    Ceiling,
    /// The publisher skips the hours before.
    SkippedHours,
    /// It failed.
    Error,
}
