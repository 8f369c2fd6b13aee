//! Documents: the extracted content of pages, one for each url key, with a revision
//! that grows when the text changes, and clusters of near-duplicates.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use tidings_url::UrlKey;

use crate::engine::{Row, Statement, Value};
use crate::error::Result;
use crate::ids::{FrontierId, HostId, UrlId};
use crate::listing::ParseCursorError;
use crate::moment::Moment;
use crate::shared_values::CHANGE_OFFSET;
use crate::store::Store;

/// A stored document.
#[derive(Debug, Clone, Serialize)]
pub struct StoredDocument {
    pub id: UrlKey,
    #[serde(skip)]
    pub frontier_id: FrontierId,
    pub revision: i32,
    pub source_id: i64,
    pub title: String,
    pub duplicate_of: Option<UrlKey>,
    /// The first of its near-duplicates; itself if there is no other.
    pub cluster: FrontierId,
    pub fetched_at: Moment,
    pub body: String,
}

/// The position of a reader of changes; it never expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangeCursor {
    change: i64,
    id: FrontierId,
}

impl fmt::Display for ChangeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.change, self.id)
    }
}

impl FromStr for ChangeCursor {
    type Err = ParseCursorError;

    fn from_str(text: &str) -> std::result::Result<Self, ParseCursorError> {
        let wrong = || ParseCursorError::of(text);
        let (change, id) = text.rsplit_once('-').ok_or_else(wrong)?;
        Ok(Self {
            change: change.parse().map_err(|_| wrong())?,
            id: id.parse().map_err(|_| wrong())?,
        })
    }
}

/// Documents read in one statement.
const DOCUMENTS_PER_QUERY: usize = 100;

const COLUMNS: &str = "host_id, url_id, key_tail, revision, source_id, title, duplicate_of, cluster, fetched_at, body";

fn document(row: &Row) -> Result<StoredDocument> {
    let id = FrontierId {
        host: HostId(row.int(0)?),
        url: UrlId(row.half_key(1)?),
    };
    let duplicate_of = row
        .optional_bytes(6)?
        .and_then(|bytes| bytes.try_into().ok());
    let cluster = row.optional_bytes(7)?.map(FrontierId::from_bytes);
    Ok(StoredDocument {
        id: id.url.with_tail(row.half_key(2)?),
        frontier_id: id,
        revision: row.int(3)? as i32,
        source_id: row.int(4)?,
        title: row.text(5)?,
        duplicate_of: duplicate_of.map(UrlKey::from_bytes),
        cluster: cluster.flatten().unwrap_or(id),
        fetched_at: row.moment(8)?,
        body: row.text(9)?,
    })
}

impl Store {
    /// The document of a URL, if it has one.
    pub async fn document(&self, id: FrontierId) -> Result<Option<StoredDocument>> {
        let sql = format!("SELECT {COLUMNS} FROM documents WHERE host_id = $1 AND url_id = $2");
        let values = [Value::from(id.host.0), Value::from(&id.url.0[..])];
        let rows = self.rows(Statement::new(sql, values)).await?;
        rows.first().map(document).transpose()
    }

    /// Several documents, in any order; missing ones are left out.
    pub async fn documents(&self, ids: &[FrontierId]) -> Result<Vec<StoredDocument>> {
        let mut documents = Vec::with_capacity(ids.len());
        for batch in ids.chunks(DOCUMENTS_PER_QUERY) {
            let each = (0..batch.len())
                .map(|n| format!("(host_id = ${} AND url_id = ${})", 2 * n + 1, 2 * n + 2));
            let sql = format!(
                "SELECT {COLUMNS} FROM documents WHERE {}",
                each.collect::<Vec<_>>().join(" OR ")
            );
            let values: Vec<Value> = batch
                .iter()
                .flat_map(|id| [Value::from(id.host.0), Value::from(&id.url.0[..])])
                .collect();
            for row in &self.rows(Statement::new(sql, values)).await? {
                documents.push(document(row)?);
            }
        }
        Ok(documents)
    }

    /// Documents that are new or changed after a cursor, in the order in which
    /// that became visible. None is ever skipped: what a slow transaction may
    /// still add is waited for.
    pub async fn document_changes(
        &self,
        after: Option<ChangeCursor>,
        limit: u32,
    ) -> Result<Vec<(ChangeCursor, StoredDocument)>> {
        let after = after.unwrap_or(ChangeCursor {
            change: i64::MIN,
            id: FrontierId {
                host: HostId(i64::MIN),
                url: UrlId([0; 16]),
            },
        });
        let sql = format!(
            "SELECT {COLUMNS}, change_id FROM documents
             WHERE (change_id, host_id, url_id) > ($1, $2, $3) AND change_id - coalesce((SELECT n FROM marks WHERE name = '{CHANGE_OFFSET}'), 0) < {}
             ORDER BY change_id, host_id, url_id LIMIT $4",
            self.change_horizon()
        );
        let values = [
            Value::Int(after.change),
            Value::from(after.id.host.0),
            Value::from(&after.id.url.0[..]),
            Value::Int(i64::from(limit)),
        ];
        let change = |row: &Row| -> Result<_> {
            let document = document(row)?;
            let cursor = ChangeCursor {
                change: row.int(10)?,
                id: document.frontier_id,
            };
            Ok((cursor, document))
        };
        let rows = self.rows(Statement::new(sql, values)).await?;
        rows.iter().map(change).collect()
    }

    /// Documents in the order of their ids, after one of them; for exports and
    /// rebuilding a sink.
    pub async fn documents_after(
        &self,
        after: Option<FrontierId>,
        limit: u32,
    ) -> Result<Vec<StoredDocument>> {
        let after = after.unwrap_or(FrontierId {
            host: HostId(i64::MIN),
            url: UrlId([0; 16]),
        });
        let sql = format!(
            "SELECT {COLUMNS} FROM documents WHERE (host_id, url_id) > ($1, $2) ORDER BY host_id, url_id LIMIT $3"
        );
        let values = [
            Value::from(after.host.0),
            Value::from(&after.url.0[..]),
            Value::Int(i64::from(limit)),
        ];
        self.rows(Statement::new(sql, values))
            .await?
            .iter()
            .map(document)
            .collect()
    }

    /// The documents of a cluster in the order of their ids, after one of them.
    pub async fn cluster(
        &self,
        cluster: FrontierId,
        after: Option<FrontierId>,
        limit: u32,
    ) -> Result<Vec<StoredDocument>> {
        let after = after.unwrap_or(FrontierId {
            host: HostId(i64::MIN),
            url: UrlId([0; 16]),
        });
        let sql = format!(
            "SELECT {COLUMNS} FROM
                (SELECT {COLUMNS} FROM documents WHERE cluster = $1
                 UNION ALL
                 SELECT {COLUMNS} FROM documents WHERE host_id = $2 AND url_id = $3 AND cluster IS NULL) AS members
             WHERE (host_id, url_id) > ($4, $5) ORDER BY host_id, url_id LIMIT $6"
        );
        let values = [
            Value::from(&cluster.to_bytes()[..]),
            Value::from(cluster.host.0),
            Value::from(&cluster.url.0[..]),
            Value::from(after.host.0),
            Value::from(&after.url.0[..]),
            Value::Int(i64::from(limit)),
        ];
        let rows = self.rows(Statement::new(sql, values)).await?;
        rows.iter().map(document).collect()
    }
}
