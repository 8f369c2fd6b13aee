//! Lists of frontier rows, page by page: keyset paging, so that page a million
//! costs as much as the first, filters that say what is wanted, and a choice of
//! order. Ids, times of discovery and troubled URLs have indexes. What else a
//! filter wants is looked for a slice at a time, so that nobody waits long and
//! the hot path has no more indexes to keep; the other orders sort what matches.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tidings_url::UrlKey;

use crate::engine::{Row, Statement, Value};
use crate::error::{Result, StoreError};
use crate::frontier::{Origin, Status};
use crate::ids::{FrontierId, HostId, UrlId};
use crate::moment::Moment;
use crate::store::Store;

/// Which rows are wanted; everything that is set must hold.
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

/// What comes first in a list; equals are in the order of their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// By id: hosts together, cheap at any size.
    #[default]
    Id,
    /// Found last first.
    Newest,
    /// Changed last first.
    Recent,
    /// What may be fetched next first; what waits for nothing comes last.
    Due,
    /// The most urgent first.
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

    /// Whether rows lie in this order, so that nothing is sorted.
    fn has_index(self) -> bool {
        matches!(self, Self::Id | Self::Newest)
    }

    /// What ascends from row to row, in SQL, where rows are sorted.
    fn ascending(self, due: &str) -> Option<String> {
        match self {
            Self::Id | Self::Newest => None,
            Self::Recent => Some("-u.updated_at".to_owned()),
            Self::Due => Some(format!("coalesce({due}, {})", i64::MAX)),
            Self::Priority => Some("-CAST(u.priority AS BIGINT)".to_owned()),
        }
    }

    /// The same of a row at hand.
    fn place(self, row: &UrlRow) -> i64 {
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
            format!("{text:?} is not an order; there are {names}")
        })
    }
}

/// Where a page ended. It goes with the order it was made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor {
    pub(crate) place: i64,
    pub(crate) id: FrontierId,
}

impl Cursor {
    /// Before everything.
    pub(crate) const START: Self = Self {
        place: i64::MIN,
        id: FrontierId {
            host: HostId(i64::MIN),
            url: UrlId([0; 16]),
        },
    };
}

/// A text that is not a cursor.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a cursor: pass what `next` of the page before said")]
pub struct ParseCursorError(String);

impl ParseCursorError {
    pub(crate) fn of(text: &str) -> Self {
        Self(text.chars().take(80).collect())
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.place, self.id)
    }
}

impl FromStr for Cursor {
    type Err = ParseCursorError;

    fn from_str(text: &str) -> Result<Self, ParseCursorError> {
        let parse = |text: &str| {
            let (place, id) = text.split_once('.')?;
            Some(Self {
                place: place.parse().ok()?,
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

/// Some rows, and where to go on.
#[derive(Debug, Serialize)]
pub struct Page {
    pub rows: Vec<UrlRow>,
    /// Pass it as `after` for the next page; `None` on the last one.
    pub next: Option<Cursor>,
}

/// A frontier row as people see it.
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

/// Rows that are looked at between two looks at the clock.
const SLICE: u32 = 10_000;
/// A list whose filter has an index of at most so many rows is read as it is.
const FEW: i64 = 20_000;
/// More are not sorted for somebody who waits.
pub(crate) const MOST_SORTED: u32 = 50_000;

/// Where an engine keeps what is being fetched, and when a row is due.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// A table with `owner` and `attempt` for what is being fetched, as `q`.
    pub(crate) leases: &'static str,
    pub(crate) due: &'static str,
}

impl Waiting {
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

fn conditions(filter: &Filter, waiting: &Waiting) -> Where {
    let mut clause = Where {
        sql: String::new(),
        values: Vec::new(),
    };
    if let Some(host) = filter.host {
        clause.and("u.host_id = ?", [Value::Int(host.0)]);
    }
    match filter.status {
        // Few are fetched at a time: they say where to look.
        Some(Status::Fetching) => clause.and(
            &format!(
                "(u.host_id, u.url_id) IN (SELECT host_id, url_id FROM {} WHERE owner IS NOT NULL)",
                waiting.leases
            ),
            [],
        ),
        // Written out, for an index that has only some statuses.
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

/// After one row, and up to another one, in an order that has an index.
fn between(clause: &mut Where, order: Order, after: Option<Cursor>, end: Option<Cursor>) {
    let ends = [(after, ">", "<"), (end, "<=", ">")];
    for (cursor, by_id, by_time) in ends {
        let Some(Cursor { place, id }) = cursor else {
            continue;
        };
        let (host, url) = (Value::Int(id.host.0), Value::from(&id.url.0[..]));
        match order {
            Order::Newest => clause.and(
                &format!(
                    "u.discovered_at {by_time}= ? AND (u.discovered_at {by_time} ? OR (u.host_id, u.url_id) {by_id} (?, ?))"
                ),
                [Value::Int(-place), Value::Int(-place), host, url],
            ),
            _ => clause.and(&format!("(u.host_id, u.url_id) {by_id} (?, ?)"), [host, url]),
        }
    }
}

/// Whether an index leads to what matches, so that it need not be looked for.
/// `counted` are the books of all URLs.
fn is_direct(filter: &Filter, order: Order, counted: &[(Status, i64)]) -> bool {
    let is_few = |status: Status| {
        let found = counted.iter().find(|(of, _)| *of == status);
        found.is_none_or(|(_, n)| *n <= FEW)
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
        place: order.place(row),
        id: row.id,
    });
    Page { rows, next }
}

impl Store {
    /// One frontier row.
    pub async fn url(&self, id: FrontierId) -> Result<Option<UrlRow>> {
        let sql = format!(
            "{} WHERE u.host_id = $1 AND u.url_id = $2",
            self.waiting().select()
        );
        let values = [Value::from(id.host.0), Value::from(&id.url.0[..])];
        let rows = self.rows(Statement::new(sql, values)).await?;
        rows.first().map(url_row).transpose()
    }

    /// Rows that match, in an order, after the end of an earlier page. Looks for
    /// as long as it takes.
    pub async fn list(
        &self,
        filter: &Filter,
        order: Order,
        after: Option<Cursor>,
        limit: u32,
    ) -> Result<Page> {
        if order.has_index() {
            let patience = Duration::MAX;
            return self
                .look(filter, order, after, limit, SLICE, patience)
                .await;
        }
        self.sorted(filter, order, after, limit).await
    }

    /// The same for somebody who waits. When nothing more was found for so long,
    /// the page is short, maybe empty, and `next` goes on from there. More than
    /// 50,000 rows are not sorted.
    pub async fn list_within(
        &self,
        filter: &Filter,
        order: Order,
        after: Option<Cursor>,
        limit: u32,
        patience: Duration,
    ) -> Result<Page> {
        self.list_in_slices(filter, order, after, limit, SLICE, patience)
            .await
    }

    /// The same with slices of another size, for tests of their seams.
    #[doc(hidden)]
    pub async fn list_in_slices(
        &self,
        filter: &Filter,
        order: Order,
        after: Option<Cursor>,
        limit: u32,
        slice: u32,
        patience: Duration,
    ) -> Result<Page> {
        if order.has_index() && (order == Order::Id || filter.host.is_none()) {
            return self
                .look(filter, order, after, limit, slice, patience)
                .await;
        }
        let most = match filter.host {
            Some(host) => self.count_host(host, MOST_SORTED + 1).await?,
            None => self.counted(filter).await?,
        };
        let is_wanted = |status| filter.status.is_none_or(|wanted| wanted == status);
        let wanted = most.iter().filter(|(status, _)| is_wanted(*status));
        let most: i64 = wanted.map(|(_, n)| n).sum();
        if most > i64::from(MOST_SORTED) {
            return Err(StoreError::TooManyToSort { most: MOST_SORTED });
        }
        self.sorted(filter, order, after, limit).await
    }

    /// Sorts what matches.
    async fn sorted(
        &self,
        filter: &Filter,
        order: Order,
        after: Option<Cursor>,
        limit: u32,
    ) -> Result<Page> {
        let mut clause = conditions(filter, self.waiting());
        let ascending = order.ascending(self.waiting().due);
        let ascending = ascending.unwrap_or_else(|| "-u.discovered_at".to_owned());
        if let Some(Cursor { place, id }) = after {
            let (host, url) = (Value::Int(id.host.0), Value::from(&id.url.0[..]));
            clause.and(
                &format!("({ascending}, u.host_id, u.url_id) > (?, ?, ?)"),
                [Value::Int(place), host, url],
            );
        }
        let mut rows = self
            .read(clause, &format!("{ascending}, "), limit + 1)
            .await?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        Ok(page(rows, order, more))
    }

    /// Reads in an order that has an index; what has no index of its own is
    /// looked for a slice at a time.
    async fn look(
        &self,
        filter: &Filter,
        order: Order,
        after: Option<Cursor>,
        limit: u32,
        slice: u32,
        patience: Duration,
    ) -> Result<Page> {
        let start = Instant::now();
        if filter.source_id.is_some() || filter.origin.is_some() {
            let of_source = self.counted(filter).await?;
            if of_source.iter().all(|(_, n)| *n == 0) {
                return Ok(page(Vec::new(), order, false));
            }
        }
        let counted = self.counted(&Filter::default()).await?;
        let is_direct = is_direct(filter, order, &counted);
        let (mut rows, mut after) = (Vec::new(), after);
        loop {
            let end = match is_direct {
                true => None,
                false => self.slice_end(filter.host, order, after, slice).await?,
            };
            let mut clause = conditions(filter, self.waiting());
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
                Some(end) if start.elapsed() >= patience => {
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
            self.waiting().select(),
            clause.sql,
            clause.values.len()
        );
        let rows = self.rows(Statement::new(sql, clause.values)).await?;
        rows.iter().map(url_row).collect()
    }

    /// The row that is a slice further; none if fewer are left.
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
        let mut clause = conditions(&all, self.waiting());
        between(&mut clause, order, after, None);
        clause.values.push(Value::Int(i64::from(slice) - 1));
        let (place, by) = match order {
            Order::Newest => ("-u.discovered_at", "u.discovered_at DESC, "),
            _ => ("0", ""),
        };
        let sql = format!(
            "SELECT u.host_id, u.url_id, CAST({place} AS BIGINT) FROM urls u{} ORDER BY {by}u.host_id, u.url_id LIMIT 1 OFFSET ${}",
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
                place: row.int(2)?,
                id,
            })
        };
        rows.first().map(cursor).transpose()
    }

    /// How many URLs of the source and the origin of a filter are where, by the books.
    async fn counted(&self, filter: &Filter) -> Result<Vec<(Status, i64)>> {
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

    /// How many rows match; for previews of what a bulk action would do.
    pub async fn count(&self, filter: &Filter) -> Result<u64> {
        let clause = conditions(filter, self.waiting());
        let sql = format!(
            "SELECT count(*) FROM urls u {}{}",
            self.waiting().join(),
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

    /// How many of the URLs of a host are where, of the first `limit` in the
    /// order of their ids.
    pub(crate) async fn count_host(&self, host: HostId, limit: u32) -> Result<Vec<(Status, i64)>> {
        let sql = format!(
            "SELECT status, count(*) FROM
                (SELECT CASE WHEN q.owner IS NOT NULL THEN 1 ELSE u.status END AS status FROM urls u {}
                 WHERE u.host_id = $1 LIMIT $2) AS some_urls
             GROUP BY status",
            self.waiting().join()
        );
        let values = [Value::Int(host.0), Value::Int(i64::from(limit))];
        let rows = self.rows(Statement::new(sql, values)).await?;
        rows.iter()
            .map(|row| Ok((Status::from_code(row.int(0)?)?, row.int(1)?)))
            .collect()
    }
}
