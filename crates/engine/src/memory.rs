//! What a poller remembers of a feed between two polls, beside the columns of
//! its row: what the policy learned, what the publisher wishes, where the feed
//! seems to move. Kept as JSON; what can't be read is learned again.

use serde::{Deserialize, Serialize};
use tidings_polling::{Hints, State};
use tidings_store::Moment;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Memory {
    pub(crate) polling: State,
    pub(crate) hints: Hints,
    /// When the whole document was last asked for without conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) full_at: Option<i64>,
    /// A permanent redirect that was seen on the last poll.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) moving_to: Option<String>,
    /// When the site was last searched for its feed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) searched_at: Option<i64>,
    /// Where an adapter goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cursor: Option<String>,
    /// How deep under its index a sitemap is.
    pub(crate) depth: usize,
    /// Its index says when it changes, so it need not be asked to find out.
    pub(crate) is_dated: bool,
}

/// Some servers confirm an old ETag for a new body: once a day nothing is said
/// of what we have.
const FULL_EVERY_MS: i64 = 24 * 3_600_000;

impl Memory {
    pub(crate) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    pub(crate) fn to_json(&self) -> String {
        // Strings, numbers and lists only: there is nothing that could fail.
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }

    pub(crate) fn wants_everything(&self, now: Moment) -> bool {
        self.full_at.is_none_or(|at| now.0 - at >= FULL_EVERY_MS)
    }
}
