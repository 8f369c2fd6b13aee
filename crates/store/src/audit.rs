//! The audit log: changes through the API and the dashboard, by whom, and whether
//! they were allowed or denied.

use serde::Serialize;

use crate::engine::{Row, Statement, Value};
use crate::error::{Result, StoreError};
use crate::ids::new_id;
use crate::moment::Moment;
use crate::store::Store;
use crate::tokens::Role;

/// One change, or the attempt at one.
#[derive(Debug, Clone, Serialize)]
pub struct AuditEntry {
    pub audit_id: i64,
    pub at: Moment,
    /// The name of the token.
    pub who: String,
    pub role: Role,
    /// The summary of the route.
    pub action: String,
    pub method: String,
    pub path: String,
    /// The HTTP status of the response; from 400 on it was denied or failed.
    pub status: u16,
    pub request_id: String,
}

/// An audit entry to add.
#[derive(Debug, Clone, Copy)]
pub struct NewAuditEntry<'a> {
    pub who: &'a str,
    pub role: Role,
    pub action: &'a str,
    pub method: &'a str,
    pub path: &'a str,
    pub status: u16,
    pub request_id: &'a str,
}

impl Store {
    pub async fn add_audit_entry(&self, entry: &NewAuditEntry<'_>) -> Result<()> {
        let now = self.now().await?;
        let sql = "INSERT INTO audit (audit_id, at, who, role, action, method, path, status, request_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let insert = || {
            let values = [
                Value::Int(new_id(now)),
                Value::from(now),
                Value::from(entry.who),
                Value::from(entry.role.as_str()),
                Value::from(entry.action),
                Value::from(entry.method),
                Value::from(entry.path),
                Value::Int(i64::from(entry.status)),
                Value::from(entry.request_id),
            ];
            ((), vec![Statement::new(sql, values)])
        };
        self.run_with_new_ids(insert).await.map(drop)
    }

    /// The newest first; those before an earlier page with `before`.
    pub async fn audit_entries(&self, before: Option<i64>, limit: u32) -> Result<Vec<AuditEntry>> {
        let sql = "SELECT audit_id, at, who, role, action, method, path, status, request_id FROM audit WHERE audit_id < $1 ORDER BY audit_id DESC LIMIT $2";
        let before = before.unwrap_or(i64::MAX);
        let values = [Value::Int(before), Value::Int(i64::from(limit))];
        let rows = self.rows(Statement::new(sql, values)).await?;
        rows.iter().map(audit_entry).collect()
    }
}

fn audit_entry(row: &Row) -> Result<AuditEntry> {
    Ok(AuditEntry {
        audit_id: row.int(0)?,
        at: row.moment(1)?,
        who: row.text(2)?,
        role: row
            .text(3)?
            .parse()
            .map_err(|error: String| StoreError::corrupt("audit role", error))?,
        action: row.text(4)?,
        method: row.text(5)?,
        path: row.text(6)?,
        status: u16::try_from(row.int(7)?)
            .map_err(|error| StoreError::corrupt("audit status", error))?,
        request_id: row.text(8)?,
    })
}
