//! The state of a feed between two polls beyond the columns of its row: the state
//! of the policy, the hints of the publisher, a pending move. Stored as JSON; an
//! unreadable state is reset.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidings_polling::{Hints, State};
use tidings_store::Moment;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FeedState {
    pub(crate) polling: State,
    pub(crate) hints: Hints,
    /// When the feed was last fetched without conditional headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) full_at: Option<i64>,
    /// A permanent redirect that was seen on the last poll.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) moving_to: Option<String>,
    /// When the site was last searched for its feed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) searched_at: Option<i64>,
    /// The cursor of an adapter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cursor: Option<String>,
    /// How deep under its index a sitemap is, or a listing under the home page.
    pub(crate) depth: usize,
    /// The listing that led to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<String>,
    /// It continues another listing (an older page).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_older: bool,
    /// The articles of a listing, and its turnover time.
    #[serde(skip_serializing_if = "Shown::is_empty")]
    pub(crate) shown: Shown,
    /// Articles of other sites that were submitted today.
    #[serde(skip_serializing_if = "External::is_none")]
    pub(crate) external: External,
    /// Its guids were seen with more than one item each.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) repeats_guids: bool,
    /// Its index has dates, so it need not be polled to detect changes.
    pub(crate) is_dated: bool,
}

/// The articles of a listing, each by a prefix of its key, and when it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shown {
    at: i64,
    articles: Vec<u32>,
    turnover_ms: Option<u64>,
}

impl Shown {
    fn is_empty(&self) -> bool {
        self.articles.is_empty()
    }

    /// The listing as it is now, with the turnover since the last visit.
    pub(crate) fn next(&self, articles: Vec<u32>, now: Moment) -> Self {
        let others = articles
            .iter()
            .filter(|article| !self.articles.contains(article));
        let (others, all) = (others.count() as u64, articles.len() as u64);
        let elapsed = now.0.saturating_sub(self.at).max(0).unsigned_abs();
        let turnover_ms = match (self.is_empty(), others) {
            (true, _) | (_, 0) => None,
            // All articles are other ones; since when is unknown.
            (false, others) if others == all => Some(elapsed / 2),
            (false, others) => Some(elapsed.saturating_mul(all) / others),
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

/// Articles of other sites submitted on one day (days since 1970).
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

/// Interval of fetches without conditional headers: some servers confirm an old
/// ETag for a new body.
const FULL_FETCH_INTERVAL_MS: i64 = 24 * 3_600_000;

impl FeedState {
    pub(crate) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    pub(crate) fn to_json(&self) -> String {
        // Strings, numbers and lists only: there is nothing that could fail.
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }

    pub(crate) fn is_full_fetch_due(&self, now: Moment) -> bool {
        self.full_at
            .is_none_or(|at| now.0 - at >= FULL_FETCH_INTERVAL_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turnover_of_a_listing_is_measured_by_replaced_articles() {
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
