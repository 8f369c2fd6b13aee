//! Copies all data from one store to another, for example from SQLite to
//! PostgreSQL: table by table, page by page, resumable, verified.

use sha2::{Digest, Sha256};

use crate::engine::{Row, Statement, Value};
use crate::error::{Result, StoreError};
use crate::shared_values::CHANGE_OFFSET;
use crate::store::Store;

/// Progress of a copy.
#[derive(Debug, Clone)]
pub struct CopyProgress {
    pub table: &'static str,
    pub copied: u64,
    pub total: u64,
}

/// A table, its key, and all its columns in one order for both engines.
struct Table {
    name: &'static str,
    key: &'static [&'static str],
    columns: &'static str,
}

static TABLES: &[Table] = &[
    Table {
        name: "hosts",
        key: &["host_id"],
        columns: "host_id, head_due, gate_at, blocked_until, last_start_at, lease_until, delay_ms, errors, head_priority, in_flight, max_in_flight, host_key, block_reason",
    },
    Table {
        name: "urls",
        key: &["host_id", "url_id"],
        columns: "host_id, url_id, discovered_at, updated_at, last_fetched_at, source_id, key_tail, attempts, fetch_count, status, origin, priority, depth, retry_count, norm_v, url, reason, last_error, parent_url, item, etag, last_modified, content_hash",
    },
    Table {
        name: "aliases",
        key: &["host_id", "url_id"],
        columns: "host_id, url_id, target_host_id, target_url_id, kind, created_at",
    },
    Table {
        name: "robots",
        key: &["host_id"],
        columns: "host_id, status, body, fetched_at, expires_at",
    },
    Table {
        name: "sources",
        key: &["source_id"],
        columns: "source_id, name, url, kind, priority, enabled, reason, config, created_at, updated_at",
    },
    Table {
        name: "seeds",
        key: &["url"],
        columns: "url, seeded_at",
    },
    Table {
        name: "seen_titles",
        key: &["source_id", "title_hash"],
        columns: "source_id, title_hash, seen_at",
    },
    Table {
        name: "seen_guids",
        key: &["source_id", "guid_hash"],
        columns: "source_id, guid_hash, host_id, url_id, seen_at",
    },
    Table {
        name: "feeds",
        key: &["feed_id"],
        columns: "feed_id, source_id, kind, url, etag, last_modified, body_hash, items_checksum, item_count, last_polled_at, last_new_at, next_poll_at, lease_until, attempt, consecutive_errors, error_class, last_error, paused_reason, policy, demand_nano",
    },
    Table {
        name: "marks",
        key: &["name"],
        columns: "name, value, n, at",
    },
    Table {
        name: "feed_fetch_log",
        key: &["feed_id", "started_at"],
        columns: "feed_id, started_at, elapsed_ms, outcome, items_seen, items_new, error_class, error_message, bytes",
    },
    Table {
        name: "documents",
        key: &["host_id", "url_id"],
        columns: "host_id, url_id, key_tail, revision, source_id, title, content_hash, duplicate_of, cluster, fetched_at, body, change_id",
    },
    Table {
        name: "sketches",
        key: &["host_id", "url_id"],
        columns: "host_id, url_id, sketch",
    },
    Table {
        name: "sketch_keys",
        key: &["sketch_key", "host_id", "url_id"],
        columns: "sketch_key, host_id, url_id",
    },
    Table {
        name: "sinks",
        key: &["name"],
        columns: "name, enabled, duplicates, created_at, delivered, disabled_at, node, last_seen",
    },
    Table {
        name: "deliveries",
        key: &["sink", "host_id", "url_id"],
        columns: "sink, host_id, url_id, revision, attempts, next_attempt_at, last_error, created_at",
    },
    Table {
        name: "dead_letters",
        key: &["sink", "host_id", "url_id"],
        columns: "sink, host_id, url_id, revision, reason, died_at",
    },
    Table {
        name: "tasks",
        key: &["task_id"],
        columns: "task_id, kind, subject, status, detail, created_at, finished_at",
    },
    Table {
        name: "runs",
        key: &["run_id"],
        columns: "run_id, started_at, finished_at, metrics",
    },
    Table {
        name: "tokens",
        key: &["token_id"],
        columns: "token_id, name, role, token_hash, created_at, last_used_at, revoked_at, expires_at",
    },
    Table {
        name: "audit",
        key: &["audit_id"],
        columns: "audit_id, at, who, role, action, method, path, status, request_id",
    },
    Table {
        name: "idempotency",
        key: &["idempotency_key"],
        columns: "idempotency_key, body_hash, result, created_at",
    },
    Table {
        name: "counts",
        key: &["source_id", "origin", "status"],
        columns: "source_id, origin, status, n",
    },
];

/// Rows read and written at a time. PostgreSQL accepts at most 65,535 values in
/// one statement; the widest table has 23 columns.
const PAGE_ROWS: usize = 500;

impl Table {
    /// The condition of the rows that are copied.
    fn copied_rows(&self) -> String {
        match self.name {
            // How a store continues the change ids of a copy is its own.
            "marks" => format!("name <> '{CHANGE_OFFSET}'"),
            _ => "1 = 1".to_owned(),
        }
    }

    fn columns(&self) -> Vec<&'static str> {
        self.columns.split(", ").collect()
    }

    fn key_of(&self, row: &Row) -> Vec<Value> {
        let columns = self.columns();
        let positions = self
            .key
            .iter()
            .filter_map(|key| columns.iter().position(|column| column == key));
        positions.map(|position| row.0[position].clone()).collect()
    }

    fn select(&self, after: Option<&[Value]>, limit: usize) -> Statement {
        let key = self.key.join(", ");
        let mut values: Vec<Value> = after.map(<[Value]>::to_vec).unwrap_or_default();
        let condition = if values.is_empty() {
            String::new()
        } else {
            let placeholders: Vec<_> = (1..=values.len()).map(|n| format!("${n}")).collect();
            format!(" AND ({key}) > ({})", placeholders.join(", "))
        };
        values.push(Value::Int(limit as i64));
        let sql = format!(
            "SELECT {} FROM {} WHERE {}{condition} ORDER BY {key} LIMIT ${}",
            self.columns,
            self.name,
            self.copied_rows(),
            values.len()
        );
        Statement::new(sql, values)
    }

    fn insert(&self, rows: &[Row]) -> Statement {
        let width = self.columns().len();
        let mut placeholders = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            let row: Vec<_> = (1..=width)
                .map(|column| format!("${}", row * width + column))
                .collect();
            placeholders.push(format!("({})", row.join(", ")));
        }
        // An interrupted copy resumes where it stopped: existing rows stay.
        let sql = format!(
            "INSERT INTO {} ({}) VALUES {} ON CONFLICT DO NOTHING",
            self.name,
            self.columns,
            placeholders.join(", ")
        );
        Statement::new(
            sql,
            rows.iter()
                .flat_map(|row| row.0.clone())
                .collect::<Vec<_>>(),
        )
    }
}

/// Copies all data from one store to another that is empty, or that holds an
/// interrupted copy. Verifies counts and checksums at the end. Change ids are kept,
/// so cursors of readers stay valid. Nothing else should use either store meanwhile. Events are history of the old store and stay there.
pub async fn copy_store(
    from: &Store,
    to: &Store,
    mut progress: impl FnMut(&CopyProgress),
) -> Result<()> {
    while from.fold_counts().await? {}
    for table in TABLES {
        let total = count(from, table).await?;
        let mut state = CopyProgress {
            table: table.name,
            copied: 0,
            total,
        };
        let mut after: Option<Vec<Value>> = None;
        let mut expected = 0;
        loop {
            let rows = from.rows(table.select(after.as_deref(), PAGE_ROWS)).await?;
            let Some(last) = rows.last() else {
                break;
            };
            after = Some(table.key_of(last));
            expected = add_rows(expected, &rows);
            to.execute(table.insert(&rows)).await?;
            state.copied += rows.len() as u64;
            progress(&state);
        }
        if checksum(to, table).await? != expected {
            return Err(differs(table.name, from, to));
        }
    }
    copy_queue(from, to, &mut progress).await?;
    // Readers of changes have cursors of the old store.
    match to.continue_changes_sql() {
        Some(sql) => to.execute(Statement::new(sql, [])).await.map(drop),
        None => Ok(()),
    }
}

async fn queue_page(store: &Store, after: &[Value]) -> Result<Vec<Row>> {
    let values: Vec<Value> = after
        .iter()
        .cloned()
        .chain([Value::Int(PAGE_ROWS as i64)])
        .collect();
    store
        .rows(Statement::new(store.queue_statements().select, values))
        .await
}

const QUEUE_START: [Value; 2] = [Value::Int(i64::MIN), Value::Bytes(Vec::new())];

async fn queue_checksum(store: &Store) -> Result<(u64, u128)> {
    let (mut count, mut sum) = (0, 0);
    let mut after = QUEUE_START.to_vec();
    loop {
        let rows = queue_page(store, &after).await?;
        let Some(last) = rows.last() else {
            return Ok((count, sum));
        };
        after = last.0[..2].to_vec();
        count += rows.len() as u64;
        sum = add_rows(sum, &rows);
    }
}

async fn copy_queue(
    from: &Store,
    to: &Store,
    progress: &mut impl FnMut(&CopyProgress),
) -> Result<()> {
    let (total, expected) = queue_checksum(from).await?;
    let mut state = CopyProgress {
        table: "queue",
        copied: 0,
        total,
    };
    let mut after = QUEUE_START.to_vec();
    loop {
        let rows = queue_page(from, &after).await?;
        let Some(last) = rows.last() else {
            break;
        };
        after = last.0[..2].to_vec();
        let inserts = to.queue_statements().insert;
        let statements = rows.iter().flat_map(|row| {
            inserts
                .iter()
                .map(|sql| Statement::new(*sql, row.0.clone()))
        });
        to.run(statements.collect()).await?;
        state.copied += rows.len() as u64;
        progress(&state);
    }
    if queue_checksum(to).await?.1 != expected {
        return Err(differs("queue", from, to));
    }
    Ok(())
}

fn differs(table: &str, from: &Store, to: &Store) -> StoreError {
    StoreError::Conflict(format!(
        "the table {table} differs between {} and {} after the copy; stop every process that uses either store and copy again",
        from.location(),
        to.location()
    ))
}

async fn count(store: &Store, table: &Table) -> Result<u64> {
    let rows = store
        .rows(Statement::new(
            format!(
                "SELECT count(*) FROM {} WHERE {}",
                table.name,
                table.copied_rows()
            ),
            [],
        ))
        .await?;
    Ok(rows
        .first()
        .map(|row| row.int(0))
        .transpose()?
        .unwrap_or(0)
        .unsigned_abs())
}

/// A sum over rows that does not depend on their order: the two databases may
/// sort texts differently.
fn add_rows(sum: u128, rows: &[Row]) -> u128 {
    rows.iter().fold(sum, |sum, row| {
        let hash: [u8; 32] = Sha256::digest(format!("{row:?}")).into();
        let mut half = [0; 16];
        half.copy_from_slice(&hash[..16]);
        sum.wrapping_add(u128::from_be_bytes(half))
    })
}

async fn checksum(store: &Store, table: &Table) -> Result<u128> {
    let mut sum = 0;
    let mut after: Option<Vec<Value>> = None;
    loop {
        let rows = store
            .rows(table.select(after.as_deref(), PAGE_ROWS))
            .await?;
        let Some(last) = rows.last() else {
            return Ok(sum);
        };
        after = Some(table.key_of(last));
        sum = add_rows(sum, &rows);
    }
}
