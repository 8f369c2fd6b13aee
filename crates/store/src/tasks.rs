//! Tasks: actions that a user started and may query later, such as polling a
//! source now.

use std::time::Duration;

use serde::Serialize;

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
    /// `running`, `done` or `error`.
    pub status: String,
    pub detail: String,
    pub created_at: Moment,
    pub finished_at: Option<Moment>,
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
    Ok(Task {
        task_id: row.int(0)?,
        kind: row.text(1)?,
        subject: row.text(2)?,
        status: row.text(3)?,
        detail: row.text(4)?,
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

    /// The latest tasks, newest first.
    pub async fn tasks(&self, limit: u32) -> Result<Vec<Task>> {
        let sql = format!("{SELECT} ORDER BY created_at DESC, task_id DESC LIMIT $1");
        let values = [Value::Int(i64::from(limit))];
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

    /// Finishes a task, with success or an error.
    pub async fn finish_task(
        &self,
        id: i64,
        result: std::result::Result<&str, &str>,
    ) -> Result<()> {
        let now = self.now().await?;
        let (status, detail) = match result {
            Ok(detail) => ("done", detail),
            Err(detail) => ("error", detail),
        };
        let sql = "UPDATE tasks SET status = $1, detail = $2, finished_at = $3 WHERE task_id = $4";
        let values = [
            Value::from(status),
            Value::from(storable(detail)),
            Value::from(now),
            Value::Int(id),
        ];
        match self.execute(Statement::new(sql, values)).await? {
            0 => Err(StoreError::not_found(format!("task {id}"))),
            _ => Ok(()),
        }
    }
}
