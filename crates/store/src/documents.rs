//! Documents: what extraction made of a page, one for each url key, with a
//! revision that grows when the text changes.

use serde::Serialize;
use tidings_url::UrlKey;

use crate::engine::{Row, Statement, Value};
use crate::error::Result;
use crate::ids::{FrontierId, HostId, UrlId, split};
use crate::moment::Moment;
use crate::store::Store;
use crate::submission::storable;

/// A document as it comes from extraction.
#[derive(Debug, Clone)]
pub struct NewDocument {
    /// The url key of the final URL: the id of the document everywhere.
    pub key: UrlKey,
    pub source_id: i64,
    pub title: String,
    /// Hash of the normalised text; `None` for empty ones, so they never collide.
    pub content_hash: Option<Vec<u8>>,
    /// Everything, as JSON.
    pub body: String,
}

/// A document as it is kept.
#[derive(Debug, Clone, Serialize)]
pub struct StoredDocument {
    pub id: UrlKey,
    #[serde(skip)]
    pub frontier_id: FrontierId,
    pub revision: i32,
    pub source_id: i64,
    pub title: String,
    pub duplicate_of: Option<UrlKey>,
    pub fetched_at: Moment,
    pub body: String,
}

/// [`NewDocument`] in the shape of its row.
#[derive(Debug, Clone)]
pub(crate) struct PreparedDocument {
    pub(crate) key_tail: [u8; 16],
    pub(crate) source_id: i64,
    pub(crate) title: String,
    pub(crate) content_hash: Option<Vec<u8>>,
    pub(crate) body: String,
}

pub(crate) fn prepare(document: &NewDocument) -> PreparedDocument {
    PreparedDocument {
        key_tail: split(&document.key).1,
        source_id: document.source_id,
        title: storable(&document.title),
        content_hash: document.content_hash.clone(),
        body: storable(&document.body),
    }
}

const COLUMNS: &str =
    "host_id, url_id, key_tail, revision, source_id, title, duplicate_of, fetched_at, body";

fn document(row: &Row) -> Result<StoredDocument> {
    let id = FrontierId {
        host: HostId(row.int(0)?),
        url: UrlId(row.half_key(1)?),
    };
    let duplicate_of = row
        .optional_bytes(6)?
        .and_then(|bytes| bytes.try_into().ok());
    Ok(StoredDocument {
        id: id.url.with_tail(row.half_key(2)?),
        frontier_id: id,
        revision: row.int(3)? as i32,
        source_id: row.int(4)?,
        title: row.text(5)?,
        duplicate_of: duplicate_of.map(UrlKey::from_bytes),
        fetched_at: row.moment(7)?,
        body: row.text(8)?,
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
}
