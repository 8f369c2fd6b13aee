//! How many new URLs each source has submitted today, counted for all machines, and
//! when the day ends. Days are those of UTC.

use std::time::Duration;

use crate::engine::{Statement, Value};
use crate::error::Result;
use crate::moment::Moment;
use crate::store::Store;

const DAY_MS: i64 = 86_400_000;

/// The new URLs of a source on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewUrlsToday {
    pub count: u64,
    /// Until the count starts again.
    pub resets_in: Duration,
}

/// The name of a source's count among the shared values.
pub(crate) fn count_name(source_id: i64) -> String {
    format!("new_urls {source_id}")
}

fn day(now: Moment) -> i64 {
    now.0.div_euclid(DAY_MS)
}

impl Store {
    pub async fn new_urls_today(&self, source_id: i64) -> Result<NewUrlsToday> {
        let now = self.now().await?;
        let counted = self.shared_value(&count_name(source_id)).await?;
        let today = day(now).to_string();
        let count = counted.filter(|counted| counted.value == today);
        Ok(NewUrlsToday {
            count: count.map_or(0, |count| count.n.unsigned_abs()),
            resets_in: Moment((day(now) + 1) * DAY_MS).since(now),
        })
    }

    /// Counts URLs that were new. A crash before this call loses the count of one
    /// batch.
    pub async fn count_new_urls(&self, source_id: i64, count: u64) -> Result<()> {
        let now = self.now().await?;
        let sql = "INSERT INTO marks (name, value, n, at) VALUES ($1, $2, $3, $4)
            ON CONFLICT (name) DO UPDATE SET
                n = CASE WHEN marks.value = excluded.value THEN marks.n + excluded.n ELSE excluded.n END,
                value = excluded.value, at = excluded.at";
        let values = [
            Value::from(count_name(source_id)),
            Value::from(day(now).to_string()),
            Value::Int(i64::try_from(count).unwrap_or(i64::MAX)),
            Value::from(now),
        ];
        self.execute(Statement::volatile(sql, values))
            .await
            .map(drop)
    }
}
