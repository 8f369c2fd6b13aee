//! What is simulated: feeds with the moments of their items, and the time that
//! is played and judged. Where the feeds come from is not its business.

use jiff::Timestamp;

use crate::simulate::dates::Dating;

/// A feed as it will be: every item that it publishes, and when.
#[derive(Debug, Clone)]
pub struct Feed {
    pub id: i64,
    /// How many items its document lists, the newest.
    pub window: usize,
    /// Milliseconds since 1970, in order.
    pub published: Vec<i64>,
    /// What the document says about each, by [`Dating`].
    pub(crate) dates: Vec<Option<Timestamp>>,
}

impl Feed {
    pub fn new(id: i64, window: usize, mut published: Vec<i64>) -> Self {
        published.sort_unstable();
        let dates = Dating::Exact.dates(&published);
        Self {
            id,
            window: window.max(1),
            published,
            dates,
        }
    }

    /// How many items are out at `now`.
    pub(crate) fn count_by(&self, now: i64) -> usize {
        self.published.partition_point(|at| *at <= now)
    }
}

/// A population of feeds and a stretch of time, in milliseconds since 1970. The
/// first third is for learning: it is played, but not judged.
#[derive(Debug, Clone)]
pub struct World {
    pub name: String,
    pub feeds: Vec<Feed>,
    pub start: i64,
    pub judged_from: i64,
    pub end: i64,
}

impl World {
    pub fn new(name: &str, feeds: Vec<Feed>, start: i64, end: i64) -> Self {
        Self {
            name: name.to_owned(),
            feeds,
            start,
            judged_from: start + (end - start) / 3,
            end,
        }
    }

    /// The same world in feeds that date their items in another way.
    #[must_use]
    pub fn dated(mut self, dating: Dating) -> Self {
        for feed in &mut self.feeds {
            feed.dates = dating.dates(&feed.published);
        }
        self
    }

    /// The same world, played for fewer days.
    #[must_use]
    pub fn first_days(self, days: u32) -> Self {
        let end = self.start.saturating_add(i64::from(days) * 86_400_000);
        if end >= self.end {
            return self;
        }
        let mut feeds = self.feeds;
        for feed in &mut feeds {
            feed.published.retain(|at| *at < end);
            feed.dates.truncate(feed.published.len());
        }
        Self::new(&self.name, feeds, self.start, end)
    }

    pub fn judged_days(&self) -> f64 {
        (self.end - self.judged_from) as f64 / 86_400_000.0
    }
}
