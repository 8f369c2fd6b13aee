//! Plain statements and small row operations that the other files share.

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::engine::{Answer, Row, Statement, Value};
use crate::head::Head;
use crate::ids::FrontierId;
use crate::moves::Moves;

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
) -> rusqlite::Result<Vec<Answer>> {
    statements
        .iter()
        .map(|statement| run_one(connection, statement))
        .collect()
}

fn run_one(connection: &Connection, statement: &Statement) -> rusqlite::Result<Answer> {
    let mut prepared = connection.prepare_cached(&statement.sql)?;
    // `$1` is a name to SQLite, not a number: values are bound by name.
    for (nth, value) in statement.values.iter().enumerate() {
        if let Some(place) = prepared.parameter_index(&format!("${}", nth + 1))? {
            prepared.raw_bind_parameter(place, value)?;
        }
    }
    let width = prepared.column_count();
    if width == 0 {
        let changed = prepared.raw_execute()? as u64;
        return Ok(Answer {
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
    Ok(Answer {
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

/// The next level of a host's queue below a priority: its earliest row that no
/// one is fetching.
const NEXT_LEVEL: &str = "SELECT q.priority, q.due_at FROM queue q WHERE q.host_id = ?1 AND q.priority < ?2
        AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.host_id = q.host_id AND l.url_id = q.url_id AND l.due_at > ?3)
     ORDER BY q.priority DESC, q.due_at LIMIT 1";

/// The head of a host's queue. One probe for each priority that it has, and
/// usually only one: the highest is due. What is being fetched waits for the
/// end of its lease.
pub(super) fn head_of(connection: &Connection, host: i64, now: i64) -> rusqlite::Result<Head> {
    let mut statement = connection.prepare_cached(NEXT_LEVEL)?;
    let mut best = Head::EMPTY;
    let mut below = i16::MAX;
    loop {
        let level = statement
            .query_row(params![host, below, now], |row| {
                Ok(Head {
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
        .query_row(params![host, now], |row| Ok(Head { priority: row.get(0)?, due: row.get(1)? }))
        .optional()?;
    Ok(leased.map_or(best, |leased| best.better(leased, now)))
}

/// Puts a URL into its host's queue.
pub(super) fn enqueue(
    connection: &Connection,
    id: FrontierId,
    place: Head,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO queue (host_id, priority, due_at, url_id) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![id.host.0, place.priority, place.due, id.url.0])?;
    Ok(())
}

/// Takes a URL out of its host's queue.
pub(super) fn dequeue(
    connection: &Connection,
    id: FrontierId,
    place: Head,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM queue WHERE host_id = ?1 AND priority = ?2 AND due_at = ?3 AND url_id = ?4")?
        .execute(params![id.host.0, place.priority, place.due, id.url.0])?;
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

/// Writes down what a batch moved, once at its end.
pub(super) fn write_moves(connection: &Connection, moves: &Moves) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO counts (source_id, origin, status, n) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (source_id, origin, status) DO UPDATE SET n = n + excluded.n",
    )?;
    for (source, origin, status, n) in moves.changes() {
        statement.execute(params![source, origin, status, n])?;
    }
    Ok(())
}
