//! Lists of frontier rows: keyset pagination, so that page a million costs as much
//! as the first, with filters and a choice of order. Ids, discovery times and failed
//! URLs have indexes. Other filters scan a slice at a time within a timeout, so that
//! the hot path has no more indexes to maintain; without an index matches are sorted.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tidings_url::UrlKey;

use crate::engine::{LeaseSql, Row, Statement, Value};
use crate::error::{Result, StoreError};
use crate::frontier::{Origin, Status};
use crate::ids::{FrontierId, HostId, UrlId};
use crate::moment::Moment;
use crate::store::Store;

/// Which rows match; everything that is set must hold.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub status: Option<Status>,
    pub source_id: Option<i64>,
    pub host: Option<HostId>,
    pub origin: Option<Origin>,
    pub reason: Option<String>,
    /// Part of the URL, without regard to case.
    pub text: Option<String>,
}

/// The sort order of a list; ties are in the order of their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// By id: hosts together, cheap at any size.
    #[default]
    Id,
    /// Last discovered first.
    Newest,
    /// Last changed first.
    Recent,
    /// Next due first; what is not scheduled comes last.
    Due,
    /// Highest priority first.
    Priority,
}

impl Order {
    pub const ALL: [(&'static str, Self); 5] = [
        ("id", Self::Id),
        ("newest", Self::Newest),
        ("recent", Self::Recent),
        ("due", Self::Due),
        ("priority", Self::Priority),
    ];

    /// Whether an index has this order, so that nothing is sorted.
    fn has_index(self) -> bool {
        matches!(self, Self::Id | Self::Newest)
    }

    /// The ascending sort key in SQL, where no index has the order.
    fn ascending(self, due: &str) -> Option<String> {
        match self {
            Self::Id | Self::Newest => None,
            Self::Recent => Some("-u.updated_at".to_owned()),
            Self::Due => Some(format!("coalesce({due}, {})", i64::MAX)),
            Self::Priority => Some("-CAST(u.priority AS BIGINT)".to_owned()),
        }
    }

    /// The sort key of a row.
    fn position(self, row: &UrlRow) -> i64 {
        match self {
            Self::Id => 0,
            Self::Newest => -row.discovered_at.0,
            Self::Recent => -row.updated_at.0,
            Self::Due => row.next_fetch_at.map_or(i64::MAX, |moment| moment.0),
            Self::Priority => -row.priority,
        }
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, order)| *order).ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| name).join(", ");
            format!("{text:?} is not an order; use one of {names}")
        })
    }
}

/// The end of a page. Valid only with the order it was created in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor {
    pub(crate) position: i64,
    pub(crate) id: FrontierId,
}

impl Cursor {
    /// Before the first row.
    pub(crate) const START: Self = Self {
        position: i64::MIN,
        id: FrontierId {
            host: HostId(i64::MIN),
            url: UrlId([0; 16]),
        },
    };
}

/// A text that is not a cursor.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a cursor: pass the `next` of the previous page")]
pub struct ParseCursorError(String);

impl ParseCursorError {
    pub(crate) fn of(text: &str) -> Self {
        Self(text.chars().take(80).collect())
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.position, self.id)
    }
}

impl FromStr for Cursor {
    type Err = ParseCursorError;

    fn from_str(text: &str) -> Result<Self, ParseCursorError> {
        let parse = |text: &str| {
            let (position, id) = text.split_once('.')?;
            Some(Self {
                position: position.parse().ok()?,
                id: id.parse().ok()?,
            })
        };
        parse(text).ok_or_else(|| ParseCursorError::of(text))
    }
}

impl TryFrom<String> for Cursor {
    type Error = ParseCursorError;

    fn try_from(text: String) -> Result<Self, ParseCursorError> {
        text.parse()
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.to_string()
    }
}

/// A page of rows, and the cursor of the next one.
#[derive(Debug, Serialize)]
pub struct Page {
    pub rows: Vec<UrlRow>,
    /// Pass it as `after` for the next page; `None` on the last one.
    pub next: Option<Cursor>,
}

/// A frontier row as users see it.
#[derive(Debug, Clone, Serialize)]
pub struct UrlRow {
    pub id: FrontierId,
    pub url: String,
    pub url_key: UrlKey,
    pub host: String,
    pub source_id: i64,
    pub origin: Origin,
    pub parent_url: Option<String>,
    pub depth: i64,
    pub priority: i64,
    pub status: Status,
    pub reason: Option<String>,
    /// When it may be fetched next, or when its lease ends.
    pub next_fetch_at: Option<Moment>,
    pub last_fetched_at: Option<Moment>,
    pub fetch_count: i64,
    pub retry_count: i64,
    pub attempts: i64,
    pub last_error: Option<String>,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub discovered_at: Moment,
    pub updated_at: Moment,
}

/// Rows scanned between two checks of the timeout.
const SLICE_ROWS: u32 = 10_000;
/// A status with at most this many rows is read through its index, without slices.
const MAX_DIRECT_ROWS: i64 = 20_000;
/// More rows are not sorted for an interactive caller.
pub(crate) const MAX_SORTED_ROWS: u32 = 50_000;

impl LeaseSql {
    fn select(&self) -> String {
        format!(
            "SELECT u.host_id, u.url_id, u.key_tail, u.url, h.host_key, u.source_id, u.origin, u.parent_url, u.depth,
                u.priority, CASE WHEN q.owner IS NOT NULL THEN 1 ELSE u.status END, u.reason, {}, u.last_fetched_at, u.fetch_count,
                u.retry_count, coalesce(q.attempt, u.attempts), u.last_error, u.etag, u.last_modified, u.discovered_at, u.updated_at
             FROM urls u JOIN hosts h ON h.host_id = u.host_id {}",
            self.due,
            self.join()
        )
    }

    fn join(&self) -> String {
        format!(
            "LEFT JOIN {} q ON q.host_id = u.host_id AND q.url_id = u.url_id",
            self.leases
        )
    }
}

fn url_row(row: &Row) -> Result<UrlRow> {
    let id = FrontierId {
        host: HostId(row.int(0)?),
        url: UrlId(row.half_key(1)?),
    };
    Ok(UrlRow {
        id,
        url_key: id.url.with_tail(row.half_key(2)?),
        url: row.text(3)?,
        host: row.text(4)?,
        source_id: row.int(5)?,
        origin: Origin::from_code(row.int(6)?)?,
        parent_url: row.optional_text(7)?,
        depth: row.int(8)?,
        priority: row.int(9)?,
        status: Status::from_code(row.int(10)?)?,
        reason: row.optional_text(11)?,
        next_fetch_at: row.optional_moment(12)?,
        last_fetched_at: row.optional_moment(13)?,
        fetch_count: row.int(14)?,
        retry_count: row.int(15)?,
        attempts: row.int(16)?,
        last_error: row.optional_text(17)?,
        etag: row.optional_text(18)?,
        last_modified: row.optional_text(19)?,
        discovered_at: row.moment(20)?,
        updated_at: row.moment(21)?,
    })
}

/// A `WHERE` clause that grows; parameters are numbered as they appear.
struct Where {
    sql: String,
    values: Vec<Value>,
}

impl Where {
    fn and(&mut self, condition: &str, values: impl IntoIterator<Item = Value>) {
        let mut condition = condition.to_owned();
        for value in values {
            self.values.push(value);
            condition = condition.replacen('?', &format!("${}", self.values.len()), 1);
        }
        self.sql.push_str(if self.sql.is_empty() {
            " WHERE "
        } else {
            " AND "
        });
        self.sql.push_str(&condition);
    }
}

fn conditions(filter: &Filter, lease_sql: &LeaseSql) -> Where {
    let mut clause = Where {
        sql: String::new(),
        values: Vec::new(),
    };
    if let Some(host) = filter.host {
        clause.and("u.host_id = ?", [Value::Int(host.0)]);
    }
    match filter.status {
        // There are few leases: they drive the query.
        Some(Status::Fetching) => clause.and(
            &format!(
                "(u.host_id, u.url_id) IN (SELECT host_id, url_id FROM {} WHERE owner IS NOT NULL)",
                lease_sql.leases
            ),
            [],
        ),
        // A literal, so that the partial index on some statuses applies.
        Some(status) => clause.and(
            &format!("u.status = {} AND q.owner IS NULL", status.code()),
            [],
        ),
        None => {}
    }
    if let Some(source) = filter.source_id {
        clause.and("u.source_id = ?", [Value::Int(source)]);
    }
    if let Some(origin) = filter.origin {
        clause.and("u.origin = ?", [Value::Int(i64::from(origin.code()))]);
    }
    if let Some(reason) = &filter.reason {
        clause.and("u.reason = ?", [Value::from(reason.as_str())]);
    }
    if let Some(text) = &filter.text {
        let escaped = text
            .to_lowercase()
            .replace('\\', "\\\\")
            .replace('%', "\\%")
            .replace('_', "\\_");
        clause.and(
            "lower(u.url) LIKE ? ESCAPE '\\'",
            [Value::from(format!("%{escaped}%"))],
        );
    }
    clause
}

/// Restricts to rows after one and up to another, in an order that has an index.
fn between(clause: &mut Where, order: Order, after: Option<Cursor>, end: Option<Cursor>) {
    let ends = [(after, ">", "<"), (end, "<=", ">")];
    for (cursor, by_id, by_time) in ends {
        let Some(Cursor { position, id }) = cursor else {
            continue;
        };
        let (host, url) = (Value::Int(id.host.0), Value::from(&id.url.0[..]));
        match order {
            Order::Newest => clause.and(
                &format!(
                    "u.discovered_at {by_time}= ? AND (u.discovered_at {by_time} ? OR (u.host_id, u.url_id) {by_id} (?, ?))"
                ),
                [Value::Int(-position), Value::Int(-position), host, url],
            ),
            _ => clause.and(&format!("(u.host_id, u.url_id) {by_id} (?, ?)"), [host, url]),
        }
    }
}

/// Whether an index leads to the matching rows, so that no scan is needed.
/// `counters` are the totals of all URLs.
fn is_direct(filter: &Filter, order: Order, counters: &[(Status, i64)]) -> bool {
    let is_few = |status: Status| {
        let found = counters.iter().find(|(of, _)| *of == status);
        found.is_none_or(|(_, n)| *n <= MAX_DIRECT_ROWS)
    };
    match filter.status {
        Some(Status::Fetching) => true,
        Some(Status::Fetched) => false,
        Some(status @ (Status::Pending | Status::Failed | Status::Dead)) => is_few(status),
        None => {
            let Filter {
                source_id,
                host,
                origin,
                reason,
                text,
                status: _,
            } = filter;
            let is_plain = source_id.is_none() && origin.is_none() && reason.is_none();
            is_plain && text.is_none() && (host.is_none() || order == Order::Id)
        }
    }
}

fn page(rows: Vec<UrlRow>, order: Order, more: bool) -> Page {
    let next = rows.last().filter(|_| more).map(|row| Cursor {
        position: order.position(row),
        id: row.id,
    });
    Page { rows, next }
}

impl Store {
    /// One frontier row.
    pub async fn url(&self, id: FrontierId) -> Result<Option<UrlRow>> {
        let sql = format!(
            "{} WHERE u.host_id = $1 AND u.url_id = $2",
            self.lease_sql().select()
        );
        let values = [Value::from(id.host.0), Value::from(&id.url.0[..])];
        let rows = self.rows(Statement::new(sql, values)).await?;
        rows.first().map(url_row).transpose()
    }

    /// Rows that match, in an order, after the end of an earlier page. Has no
    /// timeout.
    pub async fn list(
        &self,
        filter: &Filter,
        order: Order,
        after: Option<Cursor>,
        limit: u32,
    ) -> Result<Page> {
        if order.has_index() {
            let timeout = Duration::MAX;
            return self
                .scan(filter, order, after, limit, SLICE_ROWS, timeout)
                .await;
        }
        self.sorted(filter, order, after, limit).await
    }

    /// The same for an interactive caller. After `timeout` the page is short, maybe
    /// empty, and `next` continues from there. More than 50,000 rows are not sorted.
    pub async fn list_within(
        &self,
        filter: &Filter,
        order: Order,
        after: Option<Cursor>,
        limit: u32,
        timeout: Duration,
    ) -> Result<Page> {
        self.list_in_slices(filter, order, after, limit, SLICE_ROWS, timeout)
            .await
    }

    /// The same with slices of another size, for tests of their boundaries.
    #[doc(hidden)]
    pub async fn list_in_slices(
        &self,
        filter: &Filter,
        order: Order,
        after: Option<Cursor>,
        limit: u32,
        slice: u32,
        timeout: Duration,
    ) -> Result<Page> {
        if order.has_index() && (order == Order::Id || filter.host.is_none()) {
            return self.scan(filter, order, after, limit, slice, timeout).await;
        }
        let counts = match filter.host {
            Some(host) => self.count_host(host, MAX_SORTED_ROWS + 1).await?,
            None => self.counters(filter).await?,
        };
        let is_wanted = |status| filter.status.is_none_or(|wanted| wanted == status);
        let wanted = counts.iter().filter(|(status, _)| is_wanted(*status));
        let total: i64 = wanted.map(|(_, n)| n).sum();
        if total > i64::from(MAX_SORTED_ROWS) {
            return Err(StoreError::TooManyToSort {
                max: MAX_SORTED_ROWS,
            });
        }
        self.sorted(filter, order, after, limit).await
    }

    /// Sorts the rows that match.
    async fn sorted(
        &self,
        filter: &Filter,
        order: Order,
        after: Option<Cursor>,
        limit: u32,
    ) -> Result<Page> {
        let mut clause = conditions(filter, self.lease_sql());
        let ascending = order.ascending(self.lease_sql().due);
        let ascending = ascending.unwrap_or_else(|| "-u.discovered_at".to_owned());
        if let Some(Cursor { position, id }) = after {
            let (host, url) = (Value::Int(id.host.0), Value::from(&id.url.0[..]));
            clause.and(
                &format!("({ascending}, u.host_id, u.url_id) > (?, ?, ?)"),
                [Value::Int(position), host, url],
            );
        }
        let mut rows = self
            .read(clause, &format!("{ascending}, "), limit + 1)
            .await?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        Ok(page(rows, order, more))
    }

    /// Reads in an order that has an index; filters without an index scan a slice at
    /// a time.
    async fn scan(
        &self,
        filter: &Filter,
        order: Order,
        after: Option<Cursor>,
        limit: u32,
        slice: u32,
        timeout: Duration,
    ) -> Result<Page> {
        let start = Instant::now();
        if filter.source_id.is_some() || filter.origin.is_some() {
            let of_source = self.counters(filter).await?;
            if of_source.iter().all(|(_, n)| *n == 0) {
                return Ok(page(Vec::new(), order, false));
            }
        }
        let counters = self.counters(&Filter::default()).await?;
        let is_direct = is_direct(filter, order, &counters);
        let (mut rows, mut after) = (Vec::new(), after);
        loop {
            let end = match is_direct {
                true => None,
                false => self.slice_end(filter.host, order, after, slice).await?,
            };
            let mut clause = conditions(filter, self.lease_sql());
            if is_direct && filter.status == Some(Status::Pending) {
                let queued = "(u.host_id, u.url_id) IN (SELECT host_id, url_id FROM queue)";
                clause.and(queued, []);
            }
            between(&mut clause, order, after, end);
            let by = match order {
                Order::Newest => "u.discovered_at DESC, ",
                _ => "",
            };
            let wanted = limit + 1 - rows.len() as u32;
            rows.extend(self.read(clause, by, wanted).await?);
            if rows.len() > limit as usize {
                rows.truncate(limit as usize);
                return Ok(page(rows, order, true));
            }
            match end {
                None => return Ok(page(rows, order, false)),
                Some(end) if start.elapsed() >= timeout => {
                    return Ok(Page {
                        rows,
                        next: Some(end),
                    });
                }
                end => after = end,
            }
        }
    }

    async fn read(&self, mut clause: Where, by: &str, limit: u32) -> Result<Vec<UrlRow>> {
        clause.values.push(Value::Int(i64::from(limit)));
        let sql = format!(
            "{}{} ORDER BY {by}u.host_id, u.url_id LIMIT ${}",
            self.lease_sql().select(),
            clause.sql,
            clause.values.len()
        );
        let rows = self.rows(Statement::new(sql, clause.values)).await?;
        rows.iter().map(url_row).collect()
    }

    /// The last row of the next slice; none if fewer are left.
    async fn slice_end(
        &self,
        host: Option<HostId>,
        order: Order,
        after: Option<Cursor>,
        slice: u32,
    ) -> Result<Option<Cursor>> {
        let all = Filter {
            host,
            ..Filter::default()
        };
        let mut clause = conditions(&all, self.lease_sql());
        between(&mut clause, order, after, None);
        clause.values.push(Value::Int(i64::from(slice) - 1));
        let (position, by) = match order {
            Order::Newest => ("-u.discovered_at", "u.discovered_at DESC, "),
            _ => ("0", ""),
        };
        let sql = format!(
            "SELECT u.host_id, u.url_id, CAST({position} AS BIGINT) FROM urls u{} ORDER BY {by}u.host_id, u.url_id LIMIT 1 OFFSET ${}",
            clause.sql,
            clause.values.len()
        );
        let rows = self.rows(Statement::new(sql, clause.values)).await?;
        let cursor = |row: &Row| {
            let id = FrontierId {
                host: HostId(row.int(0)?),
                url: UrlId(row.half_key(1)?),
            };
            Ok(Cursor {
                position: row.int(2)?,
                id,
            })
        };
        rows.first().map(cursor).transpose()
    }

    /// URL totals by status for the source and the origin of a filter, from the
    /// counters.
    async fn counters(&self, filter: &Filter) -> Result<Vec<(Status, i64)>> {
        let mut clause = Where {
            sql: String::new(),
            values: Vec::new(),
        };
        if let Some(source) = filter.source_id {
            clause.and("source_id = ?", [Value::Int(source)]);
        }
        if let Some(origin) = filter.origin {
            clause.and("origin = ?", [Value::Int(i64::from(origin.code()))]);
        }
        let sql = format!(
            "SELECT status, CAST(sum(n) AS BIGINT) FROM all_counts{} GROUP BY status",
            clause.sql
        );
        let rows = self.rows(Statement::new(sql, clause.values)).await?;
        rows.iter()
            .map(|row| Ok((Status::from_code(row.int(0)?)?, row.int(1)?)))
            .collect()
    }

    /// The number of rows that match; for previews of bulk actions.
    pub async fn count(&self, filter: &Filter) -> Result<u64> {
        let clause = conditions(filter, self.lease_sql());
        let sql = format!(
            "SELECT count(*) FROM urls u {}{}",
            self.lease_sql().join(),
            clause.sql
        );
        let rows = self.rows(Statement::new(sql, clause.values)).await?;
        Ok(rows
            .first()
            .map(|row| row.int(0))
            .transpose()?
            .unwrap_or(0)
            .unsigned_abs())
    }

    /// URL counts of a host by status, over the first `limit` URLs by id.
    pub(crate) async fn count_host(&self, host: HostId, limit: u32) -> Result<Vec<(Status, i64)>> {
        let sql = format!(
            "SELECT status, count(*) FROM
                (SELECT CASE WHEN q.owner IS NOT NULL THEN 1 ELSE u.status END AS status FROM urls u {}
                 WHERE u.host_id = $1 LIMIT $2) AS some_urls
             GROUP BY status",
            self.lease_sql().join()
        );
        let values = [Value::Int(host.0), Value::Int(i64::from(limit))];
        let rows = self.rows(Statement::new(sql, values)).await?;
        rows.iter()
            .map(|row| Ok((Status::from_code(row.int(0)?)?, row.int(1)?)))
            .collect()
    }
}
