//! What a poller remembers of a feed between two polls, beside the columns of
//! its row: what the policy learned, what the publisher wishes, where the feed
//! seems to move. Kept as JSON; what can't be read is learned again.

use std::time::Duration;

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
    /// How deep under its index a sitemap is, or a listing under the home page.
    pub(crate) depth: usize,
    /// The listing that led to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<String>,
    /// It goes on where another listing ends.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_older: bool,
    /// What a listing listed, and how long until that is all gone.
    #[serde(skip_serializing_if = "Shown::is_nothing")]
    pub(crate) shown: Shown,
    /// Articles of other sites that were taken lately.
    #[serde(skip_serializing_if = "External::is_none")]
    pub(crate) external: External,
    /// Its index says when it changes, so it need not be asked to find out.
    pub(crate) is_dated: bool,
}

/// The articles of a listing, each by a part of its key, and when it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shown {
    at: i64,
    articles: Vec<u32>,
    turnover_ms: Option<u64>,
}

impl Shown {
    fn is_nothing(&self) -> bool {
        self.articles.is_empty()
    }

    /// The listing as it is now, and what changed since the last time.
    pub(crate) fn next(&self, articles: Vec<u32>, now: Moment) -> Self {
        let others = articles
            .iter()
            .filter(|article| !self.articles.contains(article));
        let (others, all) = (others.count() as u64, articles.len() as u64);
        let passed = now.0.saturating_sub(self.at).max(0).unsigned_abs();
        let turnover_ms = match (self.is_nothing(), others) {
            (true, _) | (_, 0) => None,
            // Nobody knows for how long nothing of it has been there.
            (false, others) if others == all => Some(passed / 2),
            (false, others) => Some(passed.saturating_mul(all) / others),
        };
        Self {
            at: now.0,
            articles,
            turnover_ms,
        }
    }

    pub(crate) fn turnover(&self) -> Option<Duration> {
        self.turnover_ms.map(Duration::from_millis)
    }
}

/// Articles of other sites that were taken on one day since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct External {
    pub(crate) day: i64,
    pub(crate) taken: u32,
}

impl External {
    fn is_none(&self) -> bool {
        self.taken == 0
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turnover_of_a_listing_is_measured_by_what_is_gone() {
        let hour = 3_600_000;
        let first = Shown::default().next(vec![1, 2, 3, 4], Moment(0));
        let rows = [
            (vec![1, 2, 3, 4], None),
            (vec![5, 1, 2, 3], Some(4)),
            (vec![7, 6, 5, 4], Some(4 / 3)),
            (vec![9, 8, 7, 6], Some(0)),
        ];
        assert_eq!(first.turnover(), None);
        for (articles, hours) in rows {
            let turnover = first.next(articles.clone(), Moment(hour)).turnover();
            let found = turnover.map(|time| time.as_secs() / 3600);
            assert_eq!(found, hours, "{articles:?}");
        }
    }
}
