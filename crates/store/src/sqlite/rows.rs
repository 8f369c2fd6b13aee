//! Plain statements and small row operations that the other files share.

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, params};

use crate::engine::{Answer, Row, Statement, Value};
use crate::frontier::Status;
use crate::head::Head;
use crate::ids::FrontierId;

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
    // `$1` is a named parameter for SQLite, numbered by first appearance: the
    // statements are written so that both numberings agree.
    let mut prepared = connection.prepare_cached(&statement.sql)?;
    let values = rusqlite::params_from_iter(&statement.values);
    if prepared.column_count() == 0 {
        let changed = prepared.execute(values)? as u64;
        return Ok(Answer {
            rows: Vec::new(),
            changed,
        });
    }
    let width = prepared.column_count();
    let mut rows = prepared.query(values)?;
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

/// The next level of a host's queue below `priority`: its earliest row.
pub(super) const NEXT_LEVEL: &str = "SELECT priority, due_at FROM queue
     WHERE host_id = ?1 AND priority < ?2 ORDER BY priority DESC, due_at LIMIT 1";

/// The head of a host's queue. One probe for each priority that it has, and
/// usually only one: the highest is due.
pub(super) fn head_of(connection: &Connection, host: i64, now: i64) -> rusqlite::Result<Head> {
    let mut statement = connection.prepare_cached(NEXT_LEVEL)?;
    let mut best = Head::EMPTY;
    let mut below = i16::MAX;
    loop {
        let mut rows = statement.query(params![host, below])?;
        let Some(row) = rows.next()? else {
            return Ok(best);
        };
        let level = Head {
            priority: row.get(0)?,
            due: row.get(1)?,
        };
        if level.due <= now && best.due > now {
            return Ok(level);
        }
        best = best.better(level, now);
        below = level.priority;
    }
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

/// What a batch moved between statuses, written once at its end.
#[derive(Debug, Default)]
pub(super) struct Moves(std::collections::BTreeMap<(i64, i16, i16), i64>);

impl Moves {
    pub(super) fn add(&mut self, source_id: i64, origin: i16, status: Status, n: i64) {
        *self
            .0
            .entry((source_id, origin, status.code()))
            .or_insert(0) += n;
    }

    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(
            "INSERT INTO counts (source_id, origin, status, n) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (source_id, origin, status) DO UPDATE SET n = n + excluded.n",
        )?;
        for ((source, origin, status), n) in self.0.iter().filter(|(_, n)| **n != 0) {
            statement.execute(params![source, origin, status, n])?;
        }
        Ok(())
    }
}

/// A status as it is kept in `urls`.
pub(super) fn stored_status(code: i16) -> Status {
    Status::from_code(i64::from(code)).unwrap_or(Status::Pending)
}
