//! Where a pull begins and what was delivered before: a since-cursor that
//! overlaps, because services list late, and ids that make the overlap harmless.
//! Also for services that list newest first and stop early: the gap is stored and
//! comes with the next pulls. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tidings_text::hex;

/// More ids than this are not stored; the frontier knows the rest.
const MAX_SEEN: usize = 20_000;

/// The cursor of services that list by date. Times are in seconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Window {
    /// All that is older was delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<i64>,
    /// Of an interrupted backfill: what is newer was delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    ceiling: Option<i64>,
    /// The newest that was delivered: the next floor.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest: Option<i64>,
    /// The oldest of this pull, and whether anything in it was new.
    #[serde(skip)]
    oldest: Option<i64>,
    #[serde(skip)]
    has_new_items: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    seen: BTreeMap<String, i64>,
}

/// The time range of a pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) from: i64,
    /// Inclusive; to the present without it.
    pub(crate) to: Option<i64>,
}

impl Window {
    /// A cursor that can't be read starts again: that repeats, and skips nothing.
    pub(crate) fn parse(cursor: Option<&str>) -> Self {
        cursor
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    }

    /// The range to request. The first pull looks `first` back.
    pub(crate) fn range(&mut self, now: Timestamp, first: Duration, overlap: Duration) -> Range {
        let first = now.as_second().saturating_sub(seconds(first));
        // Fixed with the first pull: a backfill must know where it ends.
        let floor = *self
            .floor
            .get_or_insert(first.saturating_add(seconds(overlap)));
        Range {
            from: floor.saturating_sub(seconds(overlap)),
            to: self.ceiling,
        }
    }

    /// Whether an item is new; it is known from now on.
    pub(crate) fn insert(&mut self, id: &str, at: i64) -> bool {
        self.newest = Some(self.newest.map_or(at, |newest| newest.max(at)));
        self.oldest = Some(self.oldest.map_or(at, |oldest| oldest.min(at)));
        let is_new = self.seen.insert(short(id), at).is_none();
        self.has_new_items |= is_new;
        is_new
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.seen.contains_key(&short(id))
    }

    /// Newest first, and not all came: the rest is older than what was read. A
    /// second that holds more than a pull can list is skipped in the end.
    pub(crate) fn interrupt(&mut self) {
        let is_stuck = !self.has_new_items && self.oldest == self.ceiling;
        let lower = self.oldest.map(|oldest| oldest - i64::from(is_stuck));
        self.ceiling = lower.or(self.ceiling);
    }

    /// Oldest first, as far as was read; or newest first, to the end.
    pub(crate) fn advance(&mut self) {
        self.ceiling = None;
        if let Some(newest) = self.newest {
            self.floor = Some(self.floor.map_or(newest, |floor| floor.max(newest)));
        }
    }

    /// The cursor as it is stored: ids that no pull can list again are pruned.
    pub(crate) fn to_json(&self, overlap: Duration) -> String {
        let mut stored = self.clone();
        if let Some(floor) = self.floor {
            let from = floor.saturating_sub(seconds(overlap));
            stored.seen.retain(|_, at| *at >= from);
        }
        if stored.seen.len() > MAX_SEEN {
            let mut dates: Vec<i64> = stored.seen.values().copied().collect();
            dates.sort_unstable_by(|a, b| b.cmp(a));
            let cutoff = dates[MAX_SEEN];
            stored.seen.retain(|_, at| *at > cutoff);
        }
        // Strings and numbers only: there is nothing that could fail.
        serde_json::to_string(&stored).unwrap_or_else(|_| "{}".to_owned())
    }
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

/// Enough of a hash to tell some thousand ids apart.
fn short(id: &str) -> String {
    let hash = Sha256::digest(id.as_bytes());
    hex::encode(&hash[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVERLAP: Duration = Duration::from_secs(600);
    const FIRST: Duration = Duration::from_secs(86_400);

    fn now() -> Timestamp {
        Timestamp::from_second(1_000_000).unwrap()
    }

    #[test]
    fn the_next_pull_overlaps_and_knows_what_it_meets_again() {
        let mut window = Window::default();
        let range = window.range(now(), FIRST, OVERLAP);
        assert_eq!((range.from, range.to), (1_000_000 - 86_400, None));
        assert!(window.insert("a", 990_000) && window.insert("b", 995_000));
        window.advance();
        let mut window = Window::parse(Some(&window.to_json(OVERLAP)));
        let range = window.range(now(), FIRST, OVERLAP);
        assert_eq!((range.from, range.to), (995_000 - 600, None));
        assert!(!window.insert("b", 995_000) && window.insert("late", 994_900));
        // Far below the overlap it was forgotten, and can't be met.
        assert!(!window.contains("a"));
    }

    #[test]
    fn what_a_cap_left_out_comes_before_anything_newer() {
        let mut window = Window::default();
        window.range(now(), FIRST, OVERLAP);
        window.insert("newest", 999_000);
        window.insert("older", 998_000);
        window.interrupt();
        let mut window = Window::parse(Some(&window.to_json(OVERLAP)));
        let range = window.range(now(), FIRST, OVERLAP);
        assert_eq!((range.from, range.to), (1_000_000 - 86_400, Some(998_000)));
        window.insert("oldest", 950_000);
        window.advance();
        let mut window = Window::parse(Some(&window.to_json(OVERLAP)));
        let range = window.range(now(), FIRST, OVERLAP);
        assert_eq!((range.from, range.to), (999_000 - 600, None));
    }

    #[test]
    fn a_second_with_more_than_a_page_is_left_behind() {
        let mut window = Window::default();
        window.range(now(), FIRST, OVERLAP);
        window.insert("x", 998_000);
        window.interrupt();
        let mut window = Window::parse(Some(&window.to_json(OVERLAP)));
        window.insert("x", 998_000);
        window.interrupt();
        assert_eq!(window.range(now(), FIRST, OVERLAP).to, Some(997_999));
    }

    #[test]
    fn a_cursor_that_cant_be_read_starts_again() {
        assert_eq!(Window::parse(Some("rubbish")), Window::default());
    }
}
