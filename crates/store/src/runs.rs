//! Collection runs: one pass over all sources, and its metrics.

use serde::Serialize;

use crate::engine::{Row, Statement, Value};
use crate::error::{Result, StoreError};
use crate::ids::new_id;
use crate::moment::Moment;
use crate::store::Store;

/// One run; its metrics are JSON.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    pub run_id: i64,
    pub started_at: Moment,
    pub finished_at: Option<Moment>,
    pub metrics: String,
}

impl Store {
    pub async fn start_run(&self) -> Result<i64> {
        let now = self.now().await?;
        let sql = "INSERT INTO runs (run_id, started_at, metrics) VALUES ($1, $2, '{}')";
        let insert = || {
            let id = new_id(now);
            let values = [Value::Int(id), Value::from(now)];
            (id, vec![Statement::new(sql, values)])
        };
        Ok(self.run_with_new_ids(insert).await?.0)
    }

    pub async fn finish_run(&self, id: i64, metrics: &str) -> Result<()> {
        let now = self.now().await?;
        let sql = "UPDATE runs SET finished_at = $1, metrics = $2 WHERE run_id = $3";
        match self
            .execute(Statement::new(
                sql,
                [Value::from(now), Value::from(metrics), Value::Int(id)],
            ))
            .await?
        {
            0 => Err(StoreError::not_found(format!("run {id}"))),
            _ => Ok(()),
        }
    }

    /// The newest runs first; those before an earlier page with `before`.
    pub async fn runs(&self, before: Option<i64>, limit: u32) -> Result<Vec<Run>> {
        let sql = "SELECT run_id, started_at, finished_at, metrics FROM runs WHERE run_id < $1 ORDER BY run_id DESC LIMIT $2";
        let before = before.unwrap_or(i64::MAX);
        let values = [Value::Int(before), Value::Int(i64::from(limit))];
        let rows = self.rows(Statement::new(sql, values)).await?;
        let run = |row: &Row| -> Result<Run> {
            Ok(Run {
                run_id: row.int(0)?,
                started_at: row.moment(1)?,
                finished_at: row.optional_moment(2)?,
                metrics: row.text(3)?,
            })
        };
        rows.iter().map(run).collect()
    }
}
