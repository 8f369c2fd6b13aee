//! Tasks: actions that a user started and may query later, such as polling a
//! source now.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::engine::{Row, Statement, Value};
use crate::error::{Result, StoreError};
use crate::ids::new_id;
use crate::moment::{Moment, millis};
use crate::storable::storable;
use crate::store::Store;

/// A task and its status.
#[derive(Debug, Clone, Serialize)]
pub struct Task {
    pub task_id: i64,
    pub kind: String,
    pub subject: String,
    /// `running`, `done` or `failed`.
    pub status: String,
    pub detail: String,
    /// None while it is running, and when it failed before it began.
    pub counts: Option<TaskCounts>,
    pub created_at: Moment,
    pub finished_at: Option<Moment>,
}

/// What a task has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCounts {
    pub sources_attempted: u64,
    pub sources_succeeded: u64,
    pub items_seen: u64,
    pub items_new: u64,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskResult {
    pub has_failed: bool,
    pub detail: String,
    pub counts: Option<TaskCounts>,
}

/// The column `detail` of a finished task.
#[derive(Serialize, Deserialize)]
struct StoredDetail {
    detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counts: Option<TaskCounts>,
}

impl StoredDetail {
    /// Of an older version it is plain text.
    fn parse(text: String) -> Self {
        serde_json::from_str(&text).unwrap_or(Self {
            detail: text,
            counts: None,
        })
    }
}

/// The result of starting a task.
#[derive(Debug)]
pub enum StartedTask {
    Started(Task),
    /// The same task started less than `interval` ago.
    TooSoon {
        last: Moment,
    },
}

const SELECT: &str =
    "SELECT task_id, kind, subject, status, detail, created_at, finished_at FROM tasks";

fn task(row: &Row) -> Result<Task> {
    let status = match row.text(3)? {
        // Of an older version.
        status if status == "error" => "failed".to_owned(),
        status => status,
    };
    let StoredDetail { detail, counts } = StoredDetail::parse(row.text(4)?);
    Ok(Task {
        task_id: row.int(0)?,
        kind: row.text(1)?,
        subject: row.text(2)?,
        status,
        detail,
        counts,
        created_at: row.moment(5)?,
        finished_at: row.optional_moment(6)?,
    })
}

impl Store {
    /// Starts a task unless the same ran within `interval`. Decided by the
    /// database, so two machines can't both start it.
    pub async fn start_task(
        &self,
        kind: &str,
        subject: &str,
        interval: Duration,
    ) -> Result<StartedTask> {
        let now = self.now().await?;
        // The marker row of a kind and subject is locked first: concurrent starts
        // are serialised there, and the second sees the first.
        let marker = format!("task:{kind}:{subject}");
        let acquire = "INSERT INTO idempotency (idempotency_key, body_hash, created_at) VALUES ($1, $2, $3)
            ON CONFLICT (idempotency_key) DO UPDATE SET created_at = excluded.created_at WHERE idempotency.created_at <= $4";
        let since = now.0.saturating_sub(millis(interval));
        let values = [
            Value::from(marker.as_str()),
            Value::Bytes(Vec::new()),
            Value::from(now),
            Value::Int(since),
        ];
        if self.execute(Statement::new(acquire, values)).await? == 0 {
            let sql = "SELECT created_at FROM idempotency WHERE idempotency_key = $1";
            let rows = self
                .rows(Statement::new(sql, [Value::from(marker)]))
                .await?;
            let last = rows
                .first()
                .map(|row| row.moment(0))
                .transpose()?
                .unwrap_or(now);
            return Ok(StartedTask::TooSoon { last });
        }
        let sql = "INSERT INTO tasks (task_id, kind, subject, status, detail, created_at) VALUES ($1, $2, $3, 'running', '', $4)";
        let insert = || {
            let id = new_id(now);
            let values = [
                Value::Int(id),
                Value::from(kind),
                Value::from(subject),
                Value::from(now),
            ];
            (id, vec![Statement::new(sql, values)])
        };
        let (id, _) = self.run_with_new_ids(insert).await?;
        let started = self
            .task(id)
            .await?
            .ok_or_else(|| StoreError::not_found(format!("task {id}")))?;
        Ok(StartedTask::Started(started))
    }

    /// The newest tasks first; those before an earlier page with `before`.
    pub async fn tasks(&self, before: Option<i64>, limit: u32) -> Result<Vec<Task>> {
        let sql = format!("{SELECT} WHERE task_id < $1 ORDER BY task_id DESC LIMIT $2");
        let before = before.unwrap_or(i64::MAX);
        let values = [Value::Int(before), Value::Int(i64::from(limit))];
        let rows = self.rows(Statement::new(sql, values)).await?;
        rows.iter().map(task).collect()
    }

    pub async fn task(&self, id: i64) -> Result<Option<Task>> {
        let rows = self
            .rows(Statement::new(
                format!("{SELECT} WHERE task_id = $1"),
                [Value::Int(id)],
            ))
            .await?;
        rows.first().map(task).transpose()
    }

    /// Finishes a task.
    pub async fn finish_task(&self, id: i64, result: &TaskResult) -> Result<()> {
        let now = self.now().await?;
        let status = match result.has_failed {
            false => "done",
            true => "failed",
        };
        let detail = StoredDetail {
            detail: storable(&result.detail),
            counts: result.counts,
        };
        let detail = serde_json::to_string(&detail).unwrap_or_default();
        let sql = "UPDATE tasks SET status = $1, detail = $2, finished_at = $3 WHERE task_id = $4";
        let values = [
            Value::from(status),
            Value::from(detail),
            Value::from(now),
            Value::Int(id),
        ];
        match self.execute(Statement::new(sql, values)).await? {
            0 => Err(StoreError::not_found(format!("task {id}"))),
            _ => Ok(()),
        }
    }
}
