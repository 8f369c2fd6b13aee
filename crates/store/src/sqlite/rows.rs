//! Plain statements and small row operations that the other files share.

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::counters::CounterDeltas;
use crate::engine::{QueryResult, Row, Statement, Value};
use crate::ids::FrontierId;
use crate::queue_head::QueueHead;

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(value) => ValueRef::Integer(*value),
            Self::Text(value) => ValueRef::Text(value.as_bytes()),
            Self::Bytes(value) => ValueRef::Blob(value),
        }))
    }
}

pub(super) fn run(
    connection: &Connection,
    statements: &[Statement],
) -> rusqlite::Result<Vec<QueryResult>> {
    statements
        .iter()
        .map(|statement| run_one(connection, statement))
        .collect()
}

fn run_one(connection: &Connection, statement: &Statement) -> rusqlite::Result<QueryResult> {
    let mut prepared = connection.prepare_cached(&statement.sql)?;
    // `$1` is a name to SQLite, not an index: values are bound by name.
    for (nth, value) in statement.values.iter().enumerate() {
        if let Some(index) = prepared.parameter_index(&format!("${}", nth + 1))? {
            prepared.raw_bind_parameter(index, value)?;
        }
    }
    let width = prepared.column_count();
    if width == 0 {
        let changed = prepared.raw_execute()? as u64;
        return Ok(QueryResult {
            rows: Vec::new(),
            changed,
        });
    }
    let mut rows = prepared.raw_query();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let columns = (0..width)
            .map(|column| Ok(value(row.get_ref(column)?)))
            .collect::<rusqlite::Result<_>>()?;
        found.push(Row(columns));
    }
    Ok(QueryResult {
        changed: found.len() as u64,
        rows: found,
    })
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Real(number) => Value::Int(number as i64),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
    }
}

/// The next level of a host's queue below a priority: its earliest row without a
/// live lease.
pub(super) const NEXT_LEVEL: &str = "SELECT q.priority, q.due_at FROM queue q WHERE q.host_id = ?1 AND q.priority < ?2
        AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.host_id = q.host_id AND l.url_id = q.url_id AND l.due_at > ?3)
     ORDER BY q.priority DESC, q.due_at LIMIT 1";

/// The head of a host's queue. One index probe for each of its priorities, and
/// usually only one: the highest is due. A leased URL is due when its lease ends.
pub(super) fn head_of(connection: &Connection, host: i64, now: i64) -> rusqlite::Result<QueueHead> {
    let mut statement = connection.prepare_cached(NEXT_LEVEL)?;
    let mut best = QueueHead::EMPTY;
    let mut below = i16::MAX;
    loop {
        let level = statement
            .query_row(params![host, below, now], |row| {
                Ok(QueueHead {
                    priority: row.get(0)?,
                    due: row.get(1)?,
                })
            })
            .optional()?;
        match level {
            Some(level) if level.due <= now => return Ok(level),
            Some(level) => {
                best = best.better(level, now);
                below = level.priority;
            }
            None => break,
        }
    }
    let leased = connection
        .prepare_cached("SELECT priority, due_at FROM leases WHERE host_id = ?1 AND due_at > ?2 ORDER BY due_at LIMIT 1")?
        .query_row(params![host, now], |row| Ok(QueueHead { priority: row.get(0)?, due: row.get(1)? }))
        .optional()?;
    Ok(leased.map_or(best, |leased| best.better(leased, now)))
}

/// Adds a URL to its host's queue.
pub(super) fn enqueue(
    connection: &Connection,
    id: FrontierId,
    position: QueueHead,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO queue (host_id, priority, due_at, url_id) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            id.host.0,
            position.priority,
            position.due,
            id.url.0
        ])?;
    Ok(())
}

/// Removes a URL from its host's queue.
pub(super) fn dequeue(
    connection: &Connection,
    id: FrontierId,
    position: QueueHead,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM queue WHERE host_id = ?1 AND priority = ?2 AND due_at = ?3 AND url_id = ?4")?
        .execute(params![id.host.0, position.priority, position.due, id.url.0])?;
    Ok(())
}

pub(super) fn add_event(
    connection: &Connection,
    id: FrontierId,
    now: i64,
    kind: &str,
    detail: &str,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO events (host_id, at, url_id, kind, detail) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![id.host.0, now, id.url.0, kind, detail])?;
    Ok(())
}

/// Persists the counter changes of a batch, once at its end.
pub(super) fn write_counter_deltas(
    connection: &Connection,
    deltas: &CounterDeltas,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO counts (source_id, origin, status, n) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (source_id, origin, status) DO UPDATE SET n = n + excluded.n",
    )?;
    for (source, origin, status, n) in deltas.changes() {
        statement.execute(params![source, origin, status, n])?;
    }
    Ok(())
}
