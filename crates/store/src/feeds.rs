//! Feeds and sitemaps: due time, last response, lease and the log of every poll.
//! When to poll next is the poller's decision.

use std::time::Duration;

use serde::Serialize;

use crate::engine::{Row, Statement, Value};
use crate::error::{Result, StoreError};
use crate::ids::new_id;
use crate::moment::{Moment, millis};
use crate::shared_values::POLLS;
use crate::storable::storable;
use crate::store::Store;

/// The state of one feed or sitemap.
#[derive(Debug, Clone, Serialize)]
pub struct Feed {
    pub feed_id: i64,
    pub source_id: i64,
    pub kind: String,
    pub url: String,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub body_hash: Option<String>,
    pub items_checksum: Option<String>,
    pub item_count: i64,
    pub last_polled_at: Option<Moment>,
    pub last_new_at: Option<Moment>,
    pub next_poll_at: Moment,
    pub consecutive_errors: i64,
    pub error_class: Option<String>,
    pub last_error: Option<String>,
    pub paused_reason: Option<String>,
    /// The polling model, as JSON.
    pub policy: String,
    /// Its demand on the request budget, times 10⁹.
    pub demand_nano: i64,
}

/// The right to poll a feed, until the lease ends.
#[derive(Debug, Clone)]
pub struct FeedClaim {
    pub feed: Feed,
    pub attempt: i64,
}

/// The result of a poll, and when to poll next.
#[derive(Debug, Clone)]
pub struct PollResult {
    /// Replaces url, validators, checksums, error state and policy.
    pub feed: Feed,
    pub next_poll_in: Duration,
    pub log: FetchLogRow,
}

/// One row of the fetch log.
#[derive(Debug, Clone, Serialize)]
pub struct FetchLogRow {
    pub started_at: Moment,
    pub elapsed_ms: i64,
    /// `ok`, `not_modified`, `redundant` or `failed`.
    pub outcome: String,
    pub items_seen: i64,
    pub items_new: i64,
    pub error_class: Option<String>,
    pub error_message: Option<String>,
    pub bytes: i64,
}

const COLUMNS: &str = "feed_id, source_id, kind, url, etag, last_modified, body_hash, items_checksum, item_count, last_polled_at,
    last_new_at, next_poll_at, consecutive_errors, error_class, last_error, paused_reason, policy, demand_nano";

fn feed(row: &Row) -> Result<Feed> {
    Ok(Feed {
        feed_id: row.int(0)?,
        source_id: row.int(1)?,
        kind: row.text(2)?,
        url: row.text(3)?,
        etag: row.optional_text(4)?,
        last_modified: row.optional_text(5)?,
        body_hash: row.optional_text(6)?,
        items_checksum: row.optional_text(7)?,
        item_count: row.int(8)?,
        last_polled_at: row.optional_moment(9)?,
        last_new_at: row.optional_moment(10)?,
        next_poll_at: row.moment(11)?,
        consecutive_errors: row.int(12)?,
        error_class: row.optional_text(13)?,
        last_error: row.optional_text(14)?,
        paused_reason: row.optional_text(15)?,
        policy: row.text(16)?,
        demand_nano: row.int(17)?,
    })
}

fn claim(row: &Row) -> Result<FeedClaim> {
    Ok(FeedClaim {
        feed: feed(row)?,
        attempt: row.int(18)?,
    })
}

/// Feeds of one source that are polled at once, over all machines.
const MAX_IN_FLIGHT: i64 = 2;

/// Due feeds that a claim looks at.
const WINDOW: i64 = 500;

/// Feeds of one source that are due at once; the rest is spread over the next seconds.
const MAX_DUE: i64 = 10;

/// Values in one list of a statement.
const MAX_LIST: usize = 1000;

/// The due feeds that a claim looks at (index `feeds_due`), each with its place among
/// those of its source, after those in flight (index `feeds_leased`). $1 is now, $2
/// the size of the window.
const PLACES: &str = "due AS MATERIALIZED (
        SELECT feed_id, source_id, next_poll_at FROM feeds WHERE next_poll_at <= $1 AND lease_until <= $1 AND paused_reason IS NULL
            AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.source_id = feeds.source_id AND s.enabled = 0)
        ORDER BY next_poll_at, feed_id LIMIT $2),
    leased AS MATERIALIZED (
        SELECT source_id, count(*) AS n FROM feeds WHERE lease_until > 0 AND lease_until > $1 GROUP BY source_id),
    places AS MATERIALIZED (
        SELECT feed_id AS due_id, next_poll_at AS due_at,
            row_number() OVER (PARTITION BY source_id ORDER BY next_poll_at, feed_id)
                + coalesce((SELECT n FROM leased WHERE leased.source_id = due.source_id), 0) AS place
        FROM due)";

/// `$n, …` for a list of ids, and the values.
fn id_list(ids: &[i64], first: usize) -> (String, Vec<Value>) {
    let names: Vec<String> = (first..first + ids.len())
        .map(|n| format!("${n}"))
        .collect();
    let values = ids.iter().map(|id| Value::Int(*id)).collect();
    (names.join(", "), values)
}

const MAX_ERROR_CHARS: usize = 500;

fn short(text: Option<&String>) -> Value {
    Value::from(text.map(|text| storable(&text.chars().take(MAX_ERROR_CHARS).collect::<String>())))
}

impl Store {
    /// Adds a feed or sitemap of a source, due now; returns the stored one if it is
    /// known.
    pub async fn add_feed(&self, source_id: i64, kind: &str, url: &str) -> Result<Feed> {
        let now = self.now().await?;
        let insert = "INSERT INTO feeds (feed_id, source_id, kind, url, item_count, next_poll_at, lease_until, attempt, consecutive_errors, policy)
            VALUES ($1, $2, $3, $4, 0, $5, 0, 0, 0, '{}') ON CONFLICT (source_id, kind, url) DO NOTHING";
        let select =
            format!("SELECT {COLUMNS} FROM feeds WHERE source_id = $1 AND kind = $2 AND url = $3");
        let key = [Value::Int(source_id), Value::from(kind), Value::from(url)];
        let add = || {
            let values = [&[Value::Int(new_id(now))], &key[..], &[Value::from(now)]].concat();
            let select = Statement::new(select.as_str(), key.clone());
            ((), vec![Statement::new(insert, values), select])
        };
        let (_, results) = self.run_with_new_ids(add).await?;
        let row = results[1].rows.first();
        feed(row.ok_or_else(|| StoreError::not_found(format!("feed {url}")))?)
    }

    /// Adds feeds that another one references (the sitemaps of an index, a listing of
    /// a listing) in one transaction, due now, with their URLs and initial policies;
    /// known ones are unchanged.
    pub async fn add_child_feeds(
        &self,
        source_id: i64,
        kind: &str,
        feeds: &[(String, String)],
    ) -> Result<()> {
        if feeds.is_empty() {
            return Ok(());
        }
        let now = self.now().await?;
        let insert = |feeds: &[(String, String)]| {
            let mut values = vec![Value::Int(source_id), Value::from(kind), Value::from(now)];
            let mut rows = Vec::new();
            for (url, policy) in feeds {
                let n = values.len();
                let (id, address, state) = (n + 1, n + 2, n + 3);
                rows.push(format!(
                    "(${id}, $1, $2, ${address}, 0, $3, 0, 0, 0, ${state})"
                ));
                values.push(Value::Int(new_id(now)));
                values.extend([Value::from(url.as_str()), Value::from(policy.as_str())]);
            }
            let sql = format!(
                "INSERT INTO feeds (feed_id, source_id, kind, url, item_count, next_poll_at, lease_until, attempt, consecutive_errors, policy)
                 VALUES {} ON CONFLICT (source_id, kind, url) DO NOTHING",
                rows.join(", ")
            );
            Statement::volatile(sql, values)
        };
        let add = || ((), feeds.chunks(MAX_LIST).map(insert).collect());
        self.run_with_new_ids(add).await.map(drop)
    }

    pub async fn feed(&self, feed_id: i64) -> Result<Option<Feed>> {
        let sql = format!("SELECT {COLUMNS} FROM feeds WHERE feed_id = $1");
        self.rows(Statement::new(sql, [Value::Int(feed_id)]))
            .await?
            .first()
            .map(feed)
            .transpose()
    }

    pub async fn feeds_after(&self, after: i64, limit: u32) -> Result<Vec<Feed>> {
        let sql =
            format!("SELECT {COLUMNS} FROM feeds WHERE feed_id > $1 ORDER BY feed_id LIMIT $2");
        let rows = self
            .rows(Statement::new(
                sql,
                [Value::Int(after), Value::Int(i64::from(limit))],
            ))
            .await?;
        rows.iter().map(feed).collect()
    }

    /// The feeds and sitemaps of one source.
    pub async fn feeds_of_source(&self, source_id: i64) -> Result<Vec<Feed>> {
        let sql = format!("SELECT {COLUMNS} FROM feeds WHERE source_id = $1 ORDER BY kind, url");
        let rows = self
            .rows(Statement::new(sql, [Value::Int(source_id)]))
            .await?;
        rows.iter().map(feed).collect()
    }

    /// Deletes feeds and their logs.
    pub async fn remove_feeds(&self, feed_ids: &[i64]) -> Result<()> {
        let delete = |ids: &[i64]| {
            let (list, values) = id_list(ids, 1);
            ["feed_fetch_log", "feeds"].map(|table| {
                let sql = format!("DELETE FROM {table} WHERE feed_id IN ({list})");
                Statement::new(sql, values.clone())
            })
        };
        let statements: Vec<_> = feed_ids.chunks(MAX_LIST).flat_map(delete).collect();
        match statements.is_empty() {
            true => Ok(()),
            false => self.run(statements).await.map(drop),
        }
    }

    /// Makes feeds due at a moment, unless they are due before; resumes paused ones.
    pub async fn resume_feeds(&self, feed_ids: &[i64], at: Moment) -> Result<()> {
        let resume = |ids: &[i64]| {
            let (list, ids) = id_list(ids, 2);
            let sql = format!(
                "UPDATE feeds SET paused_reason = NULL,
                     next_poll_at = CASE WHEN next_poll_at < $1 THEN next_poll_at ELSE $1 END
                 WHERE feed_id IN ({list})"
            );
            Statement::new(sql, [vec![Value::from(at)], ids].concat())
        };
        let statements: Vec<_> = feed_ids.chunks(MAX_LIST).map(resume).collect();
        match statements.is_empty() {
            true => Ok(()),
            false => self.run(statements).await.map(drop),
        }
    }

    /// Makes a feed due at a moment, unless it is due before; resumes a paused one.
    pub async fn resume_feed(&self, feed_id: i64, at: Moment) -> Result<()> {
        let sql = "UPDATE feeds SET paused_reason = NULL,
                next_poll_at = CASE WHEN next_poll_at < $1 THEN next_poll_at ELSE $2 END
            WHERE feed_id = $3";
        let values = [Value::from(at), Value::from(at), Value::Int(feed_id)];
        match self.execute(Statement::new(sql, values)).await? {
            0 => Err(StoreError::not_found(format!("feed {feed_id}"))),
            _ => Ok(()),
        }
    }

    /// When the next feed is due, if any is; may be in the past.
    pub async fn next_feed_due(&self) -> Result<Option<Moment>> {
        let sql = "SELECT min(CASE WHEN lease_until > next_poll_at THEN lease_until ELSE next_poll_at END)
            FROM feeds WHERE paused_reason IS NULL
              AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.source_id = feeds.source_id AND s.enabled = 0)";
        let rows = self.rows(Statement::new(sql, [])).await?;
        let due = rows.first().map(|row| row.optional_moment(0)).transpose()?;
        Ok(due.flatten())
    }

    /// Leases one feed now, due or not, unless it is leased; for manual polls.
    pub async fn claim_feed(&self, feed_id: i64, lease: Duration) -> Result<Option<FeedClaim>> {
        let now = self.now().await?;
        let sql = format!(
            "UPDATE feeds SET lease_until = $1, attempt = attempt + 1 WHERE feed_id = $2 AND lease_until <= $3
             RETURNING {COLUMNS}, attempt"
        );
        let values = [
            Value::from(now.plus(lease)),
            Value::Int(feed_id),
            Value::from(now),
        ];
        let rows = self.rows(Statement::volatile(sql, values)).await?;
        rows.first().map(claim).transpose()
    }

    /// Releases a feed without having polled it; it is due again after `wait`.
    pub async fn defer_feed(&self, claim: &FeedClaim, wait: Duration) -> Result<()> {
        let at = self.now().await?.plus(wait);
        let sql = "UPDATE feeds SET lease_until = 0, next_poll_at = $1 WHERE feed_id = $2 AND attempt = $3";
        let values = [
            Value::from(at),
            Value::Int(claim.feed.feed_id),
            Value::Int(claim.attempt),
        ];
        self.execute(Statement::volatile(sql, values))
            .await
            .map(drop)
    }

    /// Extends the lease of a long poll; false when it was lost.
    pub async fn extend_feed_lease(&self, claim: &FeedClaim, lease: Duration) -> Result<bool> {
        let until = self.now().await?.plus(lease);
        let sql = "UPDATE feeds SET lease_until = $1 WHERE feed_id = $2 AND attempt = $3";
        let values = [
            Value::from(until),
            Value::Int(claim.feed.feed_id),
            Value::Int(claim.attempt),
        ];
        Ok(self.execute(Statement::volatile(sql, values)).await? > 0)
    }

    /// Leases feeds that are due: of each source the one that is due longest, then
    /// the second of each. A source has at most [`MAX_IN_FLIGHT`] in flight and
    /// [`MAX_DUE`] due, so that one with thousands of feeds can't keep the others
    /// waiting. No two pollers get the same feed, and none waits for another.
    pub async fn claim_feeds(&self, limit: u32, lease: Duration) -> Result<Vec<FeedClaim>> {
        let now = self.now().await?;
        let skip_locked = self.engine().skip_locked();
        // The next is due a second later: a host permits no more anyway.
        let spread = format!(
            "WITH {PLACES}, surplus AS MATERIALIZED (
                 SELECT f.feed_id AS surplus_id, place FROM places JOIN feeds f ON f.feed_id = due_id
                 WHERE place > $3 {skip_locked})
             UPDATE feeds SET next_poll_at = $1 + surplus.place * 1000 FROM surplus WHERE feed_id = surplus_id"
        );
        let lease_due = format!(
            "WITH {PLACES}, chosen AS MATERIALIZED (
                 SELECT f.feed_id AS chosen_id FROM places JOIN feeds f ON f.feed_id = due_id
                 WHERE place <= $3 AND f.next_poll_at <= $1 AND f.lease_until <= $1
                 ORDER BY place, due_at, due_id LIMIT $4 {skip_locked})
             UPDATE feeds SET lease_until = $5, attempt = attempt + 1 WHERE feed_id IN (SELECT chosen_id FROM chosen)
             RETURNING {COLUMNS}, attempt"
        );
        let window = [Value::from(now), Value::Int(WINDOW)];
        let mut claims: Vec<FeedClaim> = Vec::new();
        loop {
            let room = i64::from(limit) - claims.len() as i64;
            let most = [Value::Int(MAX_IN_FLIGHT), Value::Int(room)];
            let until = [Value::from(now.plus(lease))];
            let results = self
                .run(vec![
                    Statement::volatile(&*spread, [&window[..], &[Value::Int(MAX_DUE)]].concat()),
                    Statement::volatile(&*lease_due, [&window[..], &most, &until].concat()),
                ])
                .await?;
            for row in &results[1].rows {
                claims.push(claim(row)?);
            }
            // What filled the window may have hidden feeds of other sources.
            let is_enough = claims.len() as i64 >= i64::from(limit);
            if is_enough || results[0].changed == 0 {
                return Ok(claims);
            }
        }
    }

    /// Completes a poll: state and log in one transaction. The items were made
    /// durable when they were submitted; losing this costs one poll. False when the
    /// lease was lost; nothing is written then.
    pub async fn complete_poll(&self, claim: &FeedClaim, result: &PollResult) -> Result<bool> {
        let now = self.now().await?;
        let feed = &result.feed;
        let update = "UPDATE feeds SET url = $1, etag = $2, last_modified = $3, body_hash = $4, items_checksum = $5, item_count = $6,
                last_polled_at = $7, last_new_at = $8, next_poll_at = $9, lease_until = 0, consecutive_errors = $10, error_class = $11,
                last_error = $12, paused_reason = $13, policy = $14, demand_nano = $17, kind = $18
            WHERE feed_id = $15 AND attempt = $16";
        let log = &result.log;
        let values = [
            Value::from(feed.url.as_str()),
            Value::from(feed.etag.as_deref()),
            Value::from(feed.last_modified.as_deref()),
            Value::from(feed.body_hash.as_deref()),
            Value::from(feed.items_checksum.as_deref()),
            Value::Int(feed.item_count),
            Value::from(now),
            Value::from(feed.last_new_at),
            Value::Int(now.0.saturating_add(millis(result.next_poll_in))),
            Value::Int(feed.consecutive_errors),
            Value::from(feed.error_class.as_deref()),
            short(feed.last_error.as_ref()),
            Value::from(feed.paused_reason.as_deref()),
            Value::from(storable(&feed.policy)),
            Value::Int(claim.feed.feed_id),
            Value::Int(claim.attempt),
            Value::Int(feed.demand_nano),
            Value::from(feed.kind.as_str()),
        ];
        let insert = "INSERT INTO feed_fetch_log (feed_id, started_at, elapsed_ms, outcome, items_seen, items_new, error_class, error_message, bytes)
            SELECT feed_id, $1, $2, $3, $4, $5, $6, $7, $8 FROM feeds WHERE feed_id = $9 AND attempt = $10 ON CONFLICT DO NOTHING";
        let log_values = [
            Value::from(log.started_at),
            Value::Int(log.elapsed_ms),
            Value::from(log.outcome.as_str()),
            Value::Int(log.items_seen),
            Value::Int(log.items_new),
            Value::from(log.error_class.as_deref()),
            short(log.error_message.as_ref()),
            Value::Int(log.bytes),
            Value::Int(claim.feed.feed_id),
            Value::Int(claim.attempt),
        ];
        let count = "INSERT INTO marks (name, value, n, at) VALUES ($1, '', 1, $2)
            ON CONFLICT (name) DO UPDATE SET n = marks.n + 1, at = excluded.at";
        let results = self
            .run(vec![
                Statement::volatile(update, values),
                Statement::volatile(insert, log_values),
                Statement::volatile(count, [Value::from(POLLS), Value::from(now)]),
            ])
            .await?;
        Ok(results[0].changed > 0)
    }

    /// The number of polls of a source's feeds of one kind since a moment.
    pub async fn polls_since(&self, source_id: i64, kind: &str, since: Moment) -> Result<u64> {
        let sql = "SELECT count(*) FROM feeds f JOIN feed_fetch_log l ON l.feed_id = f.feed_id
            WHERE f.source_id = $1 AND f.kind = $2 AND l.started_at >= $3";
        let values = [Value::Int(source_id), Value::from(kind), Value::from(since)];
        let rows = self.rows(Statement::new(sql, values)).await?;
        let count = rows.first().map(|row| row.int(0)).transpose()?;
        Ok(count.unwrap_or(0).unsigned_abs())
    }

    /// The polls of a feed, newest first.
    pub async fn fetch_log(&self, feed_id: i64, limit: u32) -> Result<Vec<FetchLogRow>> {
        let sql = "SELECT started_at, elapsed_ms, outcome, items_seen, items_new, error_class, error_message, bytes
            FROM feed_fetch_log WHERE feed_id = $1 ORDER BY started_at DESC LIMIT $2";
        let rows = self
            .rows(Statement::new(
                sql,
                [Value::Int(feed_id), Value::Int(i64::from(limit))],
            ))
            .await?;
        let log_row = |row: &Row| -> Result<FetchLogRow> {
            Ok(FetchLogRow {
                started_at: row.moment(0)?,
                elapsed_ms: row.int(1)?,
                outcome: row.text(2)?,
                items_seen: row.int(3)?,
                items_new: row.int(4)?,
                error_class: row.optional_text(5)?,
                error_message: row.optional_text(6)?,
                bytes: row.int(7)?,
            })
        };
        rows.iter().map(log_row).collect()
    }
}
