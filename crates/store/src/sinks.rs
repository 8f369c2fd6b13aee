//! The registered sinks: which are enabled, which process serves each, and what was
//! missed while one was disabled. Only an operator disables, enables, moves or
//! removes a sink; a process only registers those of its own configuration.

use std::time::Duration;

use crate::deliveries::OutboxState;
use crate::engine::{Statement, Value};
use crate::error::Result;
use crate::moment::{Moment, millis};
use crate::store::Store;

/// How often `last_seen` is written at most.
const SEEN_INTERVAL: Duration = Duration::from_secs(30);
/// A sink that was not seen for this long is served by no live process.
const UNSERVED_AFTER: Duration = Duration::from_secs(120);
/// A completion may have begun before a sink was disabled and end after it.
const LONGEST_COMPLETION: Duration = Duration::from_secs(600);

/// Whether a process may deliver to a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkService {
    /// It serves the sink.
    Served,
    Disabled,
    /// The sink's files are on this other node.
    OtherNode(String),
    Removed,
}

impl OutboxState {
    /// Whether documents are queued for it and no live process delivers them.
    pub fn is_unserved(&self, now: Moment) -> bool {
        let is_late = |seen: Moment| now.since(seen) >= UNSERVED_AFTER;
        self.enabled && self.last_seen.is_none_or(is_late)
    }
}

impl Store {
    /// Registers a sink of this process; from now on every document gets a delivery
    /// to it. One that was disabled stays disabled.
    pub async fn register_sink(&self, name: &str, wants_duplicates: bool) -> Result<()> {
        let now = self.now().await?;
        let sql = "INSERT INTO sinks (name, enabled, duplicates, created_at, last_seen) VALUES ($1, 1, $2, $3, $3)
            ON CONFLICT (name) DO UPDATE SET duplicates = excluded.duplicates";
        let values = [
            Value::from(name),
            Value::from(wants_duplicates),
            Value::from(now),
        ];
        self.execute(Statement::new(sql, values)).await.map(drop)
    }

    /// Whether a process may deliver to a sink now, and that it is alive. A sink with
    /// files of its own belongs to the first `node` that serves it.
    pub async fn serve_sink(&self, name: &str, node: Option<&str>) -> Result<SinkService> {
        let now = self.now().await?;
        if let Some(node) = node {
            let sql = "UPDATE sinks SET node = $1 WHERE name = $2 AND node IS NULL";
            let values = [Value::from(node), Value::from(name)];
            let read = "SELECT 1 FROM sinks WHERE name = $1 AND node IS NULL";
            let unowned = Statement::new(read, [Value::from(name)]);
            if !self.rows(unowned).await?.is_empty() {
                self.execute(Statement::new(sql, values)).await?;
            }
        }
        let sql = "SELECT enabled, node, last_seen FROM sinks WHERE name = $1";
        let rows = self.rows(Statement::new(sql, [Value::from(name)])).await?;
        let Some(row) = rows.first() else {
            return Ok(SinkService::Removed);
        };
        if let (Some(owner), Some(node)) = (row.optional_text(1)?, node)
            && owner != node
        {
            return Ok(SinkService::OtherNode(owner));
        }
        let seen = row.optional_moment(2)?;
        if seen.is_none_or(|seen| now.since(seen) >= SEEN_INTERVAL) {
            let sql = "UPDATE sinks SET last_seen = $1 WHERE name = $2";
            let values = [Value::from(now), Value::from(name)];
            self.execute(Statement::volatile(sql, values)).await?;
        }
        Ok(match row.int(0)? {
            0 => SinkService::Disabled,
            _ => SinkService::Served,
        })
    }

    /// Disables a sink: nothing is delivered, and no document gets a delivery to it.
    /// False if it is not registered.
    pub async fn disable_sink(&self, name: &str) -> Result<bool> {
        let now = self.now().await?;
        let sql =
            "UPDATE sinks SET enabled = 0, disabled_at = COALESCE(disabled_at, $1) WHERE name = $2";
        let values = [Value::from(now), Value::from(name)];
        Ok(self.execute(Statement::new(sql, values)).await? > 0)
    }

    /// Enables a sink, and queues a delivery for every document that changed while it
    /// was disabled; returns their number. None if it is not registered.
    pub async fn enable_sink(&self, name: &str) -> Result<Option<u64>> {
        // `disabled_at` stays until the deliveries are there: after a crash in
        // between, enabling it once more completes it.
        let enable = "UPDATE sinks SET enabled = 1 WHERE name = $1";
        let changed = self.execute(Statement::new(enable, [Value::from(name)]));
        if changed.await? == 0 {
            return Ok(None);
        }
        // Completions that still see it disabled are visible to what follows.
        self.wait_for_completions().await?;
        let now = self.now().await?;
        let missed = "INSERT INTO deliveries (sink, host_id, url_id, revision, attempts, next_attempt_at, created_at)
            SELECT s.name, d.host_id, d.url_id, d.revision, 0, $1, $1 FROM documents d, sinks s
            WHERE s.name = $2 AND d.fetched_at >= s.disabled_at - $3 AND (s.duplicates = 1 OR d.duplicate_of IS NULL)
            ORDER BY d.host_id, d.url_id
            ON CONFLICT (sink, host_id, url_id) DO UPDATE
                SET revision = excluded.revision, attempts = 0, next_attempt_at = excluded.next_attempt_at
                WHERE deliveries.revision < excluded.revision";
        let values = [
            Value::from(now),
            Value::from(name),
            Value::Int(millis(LONGEST_COMPLETION)),
        ];
        let done = "UPDATE sinks SET disabled_at = NULL WHERE name = $1 AND enabled = 1";
        let statements = vec![
            Statement::new(missed, values),
            Statement::new(done, [Value::from(name)]),
        ];
        let results = self.run(statements).await?;
        Ok(Some(results.first().map_or(0, |result| result.changed)))
    }

    /// Removes a sink with its deliveries and dead letters; false if it is not
    /// registered.
    pub async fn remove_sink(&self, name: &str) -> Result<bool> {
        let name = [Value::from(name)];
        let sink = Statement::new("DELETE FROM sinks WHERE name = $1", name.clone());
        let is_removed = self.execute(sink).await? > 0;
        // Completions that still see it have added their deliveries.
        self.wait_for_completions().await?;
        let statements = vec![
            Statement::new("DELETE FROM deliveries WHERE sink = $1", name.clone()),
            Statement::new("DELETE FROM dead_letters WHERE sink = $1", name),
        ];
        self.run(statements).await?;
        Ok(is_removed)
    }

    /// Makes a sink belong to another node; false if it is not registered.
    pub async fn move_sink(&self, name: &str, node: &str) -> Result<bool> {
        let sql = "UPDATE sinks SET node = $1, last_seen = NULL WHERE name = $2";
        let values = [Value::from(node), Value::from(name)];
        Ok(self.execute(Statement::new(sql, values)).await? > 0)
    }

    /// Waits until every completion that has begun is committed.
    async fn wait_for_completions(&self) -> Result<()> {
        match self.wait_for_completions_sql() {
            // With a second statement it is a transaction, which the lock needs.
            Some(lock) => {
                let statements = [lock, "SELECT 1"].map(|sql| Statement::new(sql, []));
                self.run(statements.into()).await.map(drop)
            }
            None => Ok(()),
        }
    }
}
