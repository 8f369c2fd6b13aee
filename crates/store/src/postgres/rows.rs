//! Plain statements, and the pieces of SQL that the other files share.

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::pool::Connection;
use crate::counters::CounterDeltas;
use crate::engine::{QueryResult, Row, Statement, Value};
use crate::error::{Result, StoreError};

impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match (self, kind) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Int(value), &Type::INT2) => i16::try_from(*value)?.to_sql(kind, out),
            (Self::Int(value), &Type::INT4) => i32::try_from(*value)?.to_sql(kind, out),
            (Self::Int(value), _) => value.to_sql(kind, out),
            (Self::Text(value), _) => value.to_sql(kind, out),
            (Self::Bytes(value), _) => value.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(
            *kind,
            Type::INT2 | Type::INT4 | Type::INT8 | Type::TEXT | Type::BYTEA
        )
    }

    to_sql_checked!();
}

pub(super) async fn run(
    connection: &mut Connection<'_>,
    statements: &[Statement],
) -> Result<Vec<QueryResult>> {
    let mut results = Vec::with_capacity(statements.len());
    for statement in statements {
        results.push(run_one(connection, statement).await?);
    }
    Ok(results)
}

async fn run_one(connection: &mut Connection<'_>, statement: &Statement) -> Result<QueryResult> {
    let values: Vec<&(dyn ToSql + Sync)> =
        statement.values.iter().map(|value| value as _).collect();
    if !connection.returns_rows(&statement.sql).await? {
        let changed = connection.execute(&statement.sql, &values).await?;
        return Ok(QueryResult {
            rows: Vec::new(),
            changed,
        });
    }
    let rows = connection.query(&statement.sql, &values).await?;
    let rows = rows.iter().map(row).collect::<Result<Vec<_>>>()?;
    Ok(QueryResult {
        changed: rows.len() as u64,
        rows,
    })
}

fn row(row: &tokio_postgres::Row) -> Result<Row> {
    let mut values = Vec::with_capacity(row.len());
    for (at, column) in row.columns().iter().enumerate() {
        let value = match *column.type_() {
            Type::INT2 => row.get::<_, Option<i16>>(at).map(i64::from).into(),
            Type::INT4 => row.get::<_, Option<i32>>(at).map(i64::from).into(),
            Type::INT8 => row.get::<_, Option<i64>>(at).into(),
            Type::TEXT => row.get::<_, Option<String>>(at).into(),
            Type::BYTEA => row.get::<_, Option<&[u8]>>(at).into(),
            ref other => return Err(StoreError::corrupt("column type", other)),
        };
        values.push(value);
    }
    Ok(Row(values))
}

/// Locks hosts, always before other rows and always in order.
pub(super) const LOCK_HOSTS: &str =
    "SELECT host_id FROM hosts WHERE host_id = ANY($1) ORDER BY host_id FOR NO KEY UPDATE";

/// The queue heads of hosts, by one index probe for each priority: of what is due
/// the highest priority, else what is due first. A leased URL is due when its lease
/// ends; its priority is negated. `h` is the host.
pub(super) const HEADS: &str = "SELECT DISTINCT ON (h.host_id) h.host_id, head.priority, head.due_at
    FROM unnest($1::BIGINT[]) AS h(host_id)
    CROSS JOIN LATERAL (
        SELECT level.priority, best.due_at
        FROM (VALUES (10::SMALLINT),(9::SMALLINT),(8::SMALLINT),(7::SMALLINT),(6::SMALLINT),(5::SMALLINT),(4::SMALLINT),(3::SMALLINT),(2::SMALLINT),(1::SMALLINT)) AS level(priority)
        CROSS JOIN LATERAL (SELECT due_at FROM queue WHERE host_id = h.host_id AND priority = level.priority ORDER BY due_at LIMIT 1) AS best
        UNION ALL
        SELECT abs(priority), due_at FROM queue WHERE host_id = h.host_id AND priority < 0) AS head
    ORDER BY h.host_id, head.due_at > $2, CASE WHEN head.due_at <= $2 THEN -head.priority END, head.due_at";

/// Recomputes the heads of hosts from their queues. The hosts are locked.
pub(super) async fn refresh_heads(
    connection: &mut Connection<'_>,
    hosts: &[i64],
    now: i64,
) -> Result<()> {
    let sql = format!(
        "UPDATE hosts SET head_priority = coalesce(new.priority, 0), head_due = coalesce(new.due_at, {})
         FROM unnest($1::BIGINT[]) AS ids(host_id) LEFT JOIN ({HEADS}) AS new USING (host_id)
         WHERE hosts.host_id = ids.host_id",
        i64::MAX
    );
    connection.execute(&sql, &[&hosts, &now]).await.map(drop)
}

/// Appends the counter changes of a batch, once at its end.
pub(super) async fn write_counter_deltas(
    connection: &mut Connection<'_>,
    deltas: &CounterDeltas,
) -> Result<()> {
    let (mut sources, mut origins, mut statuses, mut ns) = (vec![], vec![], vec![], vec![]);
    for (source, origin, status, n) in deltas.changes() {
        sources.push(source);
        origins.push(origin);
        statuses.push(status);
        ns.push(n);
    }
    if ns.is_empty() {
        return Ok(());
    }
    connection
        .execute(
            "INSERT INTO count_changes (source_id, origin, status, n) SELECT * FROM unnest($1::BIGINT[], $2::SMALLINT[], $3::SMALLINT[], $4::BIGINT[])",
            &[&sources, &origins, &statuses, &ns],
        )
        .await
        .map(drop)
}

/// Events of a batch, written together.
#[derive(Debug, Default)]
pub(super) struct Events<'a> {
    hosts: Vec<i64>,
    urls: Vec<&'a [u8]>,
    kinds: Vec<&'a str>,
    details: Vec<&'a str>,
}

impl<'a> Events<'a> {
    pub(super) fn add(&mut self, host: i64, url: &'a [u8], kind: &'a str, detail: &'a str) {
        self.hosts.push(host);
        self.urls.push(url);
        self.kinds.push(kind);
        self.details.push(detail);
    }

    /// The transaction has an id by now, because it has locked rows: `EventHorizon`
    /// relies on that.
    pub(super) async fn write(&self, connection: &mut Connection<'_>, now: i64) -> Result<()> {
        if self.hosts.is_empty() {
            return Ok(());
        }
        connection
            .execute(
                "INSERT INTO events (host_id, at, url_id, kind, detail)
                 SELECT host_id, $5, url_id, kind, detail FROM unnest($1::BIGINT[], $2::BYTEA[], $3::TEXT[], $4::TEXT[]) AS e(host_id, url_id, kind, detail)",
                &[&self.hosts, &self.urls, &self.kinds, &self.details, &now],
            )
            .await
            .map(drop)
    }
}

/// The distinct hosts of some ids, in the order in which they are locked.
pub(super) fn hosts_of(ids: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut hosts: Vec<i64> = ids.collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}
