//! The source registry: the sites and services that items come from, and the
//! starter sources that were offered once.

use serde::Serialize;
use serde_json::Value as Json;

use crate::daily_quota::count_name;
use crate::engine::{Row, Statement, Value};
use crate::error::{Result, StoreError};
use crate::ids::new_id;
use crate::moment::Moment;
use crate::storable::storable;
use crate::store::Store;

/// The definition of a source by an operator.
#[derive(Debug, Clone)]
pub struct NewSource {
    pub name: String,
    pub url: String,
    /// `feed`, `sitemap`, `spider`, or the name of an adapter.
    pub kind: String,
    pub priority: u8,
    /// All other settings.
    pub config: Json,
}

/// A stored source.
#[derive(Debug, Clone, Serialize)]
pub struct Source {
    pub source_id: i64,
    pub name: String,
    pub url: String,
    pub kind: String,
    pub priority: u8,
    pub enabled: bool,
    /// Why it is disabled.
    pub reason: Option<String>,
    pub config: Json,
    pub created_at: Moment,
    pub updated_at: Moment,
}

const SELECT: &str = "SELECT source_id, name, url, kind, priority, enabled, reason, config, created_at, updated_at FROM sources";

fn source(row: &Row) -> Result<Source> {
    Ok(Source {
        source_id: row.int(0)?,
        name: row.text(1)?,
        url: row.text(2)?,
        kind: row.text(3)?,
        priority: u8::try_from(row.int(4)?).unwrap_or(5),
        enabled: row.int(5)? != 0,
        reason: row.optional_text(6)?,
        config: serde_json::from_str(&row.text(7)?)
            .map_err(|error| StoreError::corrupt("source config", error))?,
        created_at: row.moment(8)?,
        updated_at: row.moment(9)?,
    })
}

impl Store {
    /// Adds a source. Its name must be new.
    pub async fn add_source(&self, new: &NewSource) -> Result<Source> {
        let now = self.now().await?;
        let sql = "INSERT INTO sources (source_id, name, url, kind, priority, enabled, config, created_at, updated_at)
            VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $8) ON CONFLICT (name) DO NOTHING";
        let insert = || {
            let id = new_id(now);
            let values = [
                Value::Int(id),
                Value::from(storable(&new.name)),
                Value::from(storable(&new.url)),
                Value::from(storable(&new.kind)),
                Value::Int(i64::from(new.priority)),
                Value::from(new.config.to_string()),
                Value::from(now),
                Value::from(now),
            ];
            (id, vec![Statement::new(sql, values)])
        };
        let (id, results) = self.run_with_new_ids(insert).await?;
        if results.iter().all(|result| result.changed == 0) {
            return Err(StoreError::Conflict(format!(
                "there is already a source named {:?}",
                new.name
            )));
        }
        self.source(id)
            .await?
            .ok_or_else(|| StoreError::not_found(format!("source {id}")))
    }

    /// Adds many sources with their feeds (kind and URL), all or none. Names must be
    /// new; one that is added concurrently is skipped.
    pub async fn add_sources(
        &self,
        new: &[(NewSource, Vec<(&'static str, String)>)],
    ) -> Result<()> {
        let now = self.now().await?;
        let source_sql = "INSERT INTO sources (source_id, name, url, kind, priority, enabled, config, created_at, updated_at)
            VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $7) ON CONFLICT (name) DO NOTHING";
        let feed_sql = "INSERT INTO feeds (feed_id, source_id, kind, url, item_count, next_poll_at, lease_until, attempt, consecutive_errors, policy)
            SELECT $1, source_id, $3, $4, 0, $5, 0, 0, 0, '{}' FROM sources WHERE source_id = $2
            ON CONFLICT (source_id, kind, url) DO NOTHING";
        let insert = || {
            let mut statements = Vec::new();
            for (source, feeds) in new {
                let id = new_id(now);
                let values = [
                    Value::Int(id),
                    Value::from(storable(&source.name)),
                    Value::from(storable(&source.url)),
                    Value::from(storable(&source.kind)),
                    Value::Int(i64::from(source.priority)),
                    Value::from(source.config.to_string()),
                    Value::from(now),
                ];
                statements.push(Statement::new(source_sql, values));
                for (kind, url) in feeds {
                    let values = [
                        Value::Int(new_id(now)),
                        Value::Int(id),
                        Value::from(*kind),
                        Value::from(url.as_str()),
                        Value::from(now),
                    ];
                    statements.push(Statement::new(feed_sql, values));
                }
            }
            ((), statements)
        };
        self.run_with_new_ids(insert).await.map(drop)
    }

    pub async fn source(&self, id: i64) -> Result<Option<Source>> {
        let rows = self
            .rows(Statement::new(
                format!("{SELECT} WHERE source_id = $1"),
                [Value::Int(id)],
            ))
            .await?;
        rows.first().map(source).transpose()
    }

    pub async fn source_named(&self, name: &str) -> Result<Option<Source>> {
        let rows = self
            .rows(Statement::new(
                format!("{SELECT} WHERE name = $1"),
                [Value::from(name)],
            ))
            .await?;
        rows.first().map(source).transpose()
    }

    /// Sources in the order of their ids, after one of them.
    pub async fn sources_after(&self, after: i64, limit: u32) -> Result<Vec<Source>> {
        let sql = format!("{SELECT} WHERE source_id > $1 ORDER BY source_id LIMIT $2");
        let rows = self
            .rows(Statement::new(
                sql,
                [Value::Int(after), Value::Int(i64::from(limit))],
            ))
            .await?;
        rows.iter().map(source).collect()
    }

    /// Replaces the definition of a source; takes effect at its next use.
    pub async fn update_source(&self, id: i64, new: &NewSource) -> Result<()> {
        let now = self.now().await?;
        let same_name = "SELECT source_id FROM sources WHERE name = $1 AND source_id <> $2";
        let conflicting = self
            .rows(Statement::new(
                same_name,
                [Value::from(new.name.as_str()), Value::Int(id)],
            ))
            .await?;
        if !conflicting.is_empty() {
            return Err(StoreError::Conflict(format!(
                "there is already a source named {:?}",
                new.name
            )));
        }
        let sql = "UPDATE sources SET name = $1, url = $2, kind = $3, priority = $4, config = $5, updated_at = $6 WHERE source_id = $7";
        let values = [
            Value::from(storable(&new.name)),
            Value::from(storable(&new.url)),
            Value::from(storable(&new.kind)),
            Value::Int(i64::from(new.priority)),
            Value::from(new.config.to_string()),
            Value::from(now),
            Value::Int(id),
        ];
        self.change_source(id, Statement::new(sql, values)).await
    }

    /// Replaces the settings of a source if they are still those that were read; false
    /// when somebody else was first.
    pub async fn replace_source_config(
        &self,
        seen: &Source,
        config: &serde_json::Value,
    ) -> Result<bool> {
        let now = self.now().await?;
        let sql =
            "UPDATE sources SET config = $1, updated_at = $2 WHERE source_id = $3 AND config = $4";
        let values = [
            Value::from(config.to_string()),
            Value::from(now),
            Value::Int(seen.source_id),
            Value::from(seen.config.to_string()),
        ];
        Ok(self.execute(Statement::new(sql, values)).await? > 0)
    }

    /// Enables a source, or disables it with a reason for operators.
    pub async fn set_source_enabled(&self, id: i64, disabled_reason: Option<&str>) -> Result<()> {
        let now = self.now().await?;
        let sql =
            "UPDATE sources SET enabled = $1, reason = $2, updated_at = $3 WHERE source_id = $4";
        let values = [
            Value::from(disabled_reason.is_none()),
            Value::from(disabled_reason),
            Value::from(now),
            Value::Int(id),
        ];
        self.change_source(id, Statement::new(sql, values)).await
    }

    /// Removes a source and its feeds. Its URLs and documents stay.
    pub async fn remove_source(&self, id: i64) -> Result<()> {
        let statements = vec![
            Statement::new(
                "DELETE FROM feed_fetch_log WHERE feed_id IN (SELECT feed_id FROM feeds WHERE source_id = $1)",
                [Value::Int(id)],
            ),
            Statement::new("DELETE FROM feeds WHERE source_id = $1", [Value::Int(id)]),
            Statement::new(
                "DELETE FROM marks WHERE name = $1",
                [Value::from(count_name(id))],
            ),
            Statement::new("DELETE FROM sources WHERE source_id = $1", [Value::Int(id)]),
        ];
        match self.run(statements).await?.last() {
            Some(result) if result.changed > 0 => Ok(()),
            _ => Err(StoreError::not_found(format!("source {id}"))),
        }
    }

    async fn change_source(&self, id: i64, statement: Statement) -> Result<()> {
        match self.execute(statement).await? {
            0 => Err(StoreError::not_found(format!("source {id}"))),
            _ => Ok(()),
        }
    }

    /// Whether a starter source was offered before.
    pub async fn was_starter_source(&self, url: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM seeds WHERE url = $1";
        let rows = self.rows(Statement::new(sql, [Value::from(url)])).await?;
        Ok(!rows.is_empty())
    }

    /// Records a starter source as offered; false when it was offered before.
    pub async fn record_starter_source(&self, url: &str) -> Result<bool> {
        let now = self.now().await?;
        let sql = "INSERT INTO seeds (url, seeded_at) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        Ok(self
            .execute(Statement::new(sql, [Value::from(url), Value::from(now)]))
            .await?
            > 0)
    }
}
