//! The history of a URL: its discovery, attempts and status. Every change of state
//! is recorded as an event.

use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::engine::{Row, Statement, Value};
use crate::error::Result;
use crate::ids::{FrontierId, HostId, UrlId};
use crate::listing::UrlRow;
use crate::moment::Moment;
use crate::store::Store;

/// A change of state of a URL.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    pub event_id: i64,
    pub at: Moment,
    pub id: FrontierId,
    pub kind: String,
    pub detail: Json,
}

/// Everything that is known about one URL.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// The row as it is now; `None` when it was removed.
    pub row: Option<UrlRow>,
    /// The page that it redirects to or is an alias of.
    pub alias_of: Option<FrontierId>,
    /// Oldest first, starting with its discovery.
    pub events: Vec<Event>,
    /// Pending deliveries of its document.
    pub deliveries: Vec<Json>,
}

const COLUMNS: &str = "SELECT event_id, at, host_id, url_id, kind, detail FROM events";

fn event(row: &Row) -> Result<Event> {
    Ok(Event {
        event_id: row.int(0)?,
        at: row.moment(1)?,
        id: FrontierId {
            host: HostId(row.int(2)?),
            url: UrlId(row.half_key(3)?),
        },
        kind: row.text(4)?,
        detail: serde_json::from_str(&row.text(5)?).unwrap_or_default(),
    })
}

fn keys(id: FrontierId) -> [Value; 2] {
    [Value::from(id.host.0), Value::from(&id.url.0[..])]
}

impl Store {
    /// The whole history of one URL.
    pub async fn explain(&self, id: FrontierId) -> Result<Explanation> {
        let statements = vec![
            Statement::new(
                format!(
                    "{COLUMNS} WHERE host_id = $1 AND url_id = $2 ORDER BY event_id LIMIT 1000"
                ),
                keys(id),
            ),
            Statement::new(
                "SELECT target_host_id, target_url_id FROM aliases WHERE host_id = $1 AND url_id = $2",
                keys(id),
            ),
            Statement::new(
                "SELECT sink, revision, attempts, last_error FROM deliveries WHERE host_id = $1 AND url_id = $2 ORDER BY sink",
                keys(id),
            ),
        ];
        let results = self.run(statements).await?;
        let row = self.url(id).await?;
        let [events, aliases, deliveries] = &results[..] else {
            return Err(crate::StoreError::corrupt("query result", results.len()));
        };
        // The discovery is the row itself: no event is written for it.
        let discovery = row.as_ref().map(|row| Event {
            event_id: 0,
            at: row.discovered_at,
            id,
            kind: "discovered".to_owned(),
            detail: json!({ "origin": row.origin, "source_id": row.source_id, "parent_url": row.parent_url, "depth": row.depth }),
        });
        let recorded = events.rows.iter().map(event).collect::<Result<Vec<_>>>()?;
        let alias_of = aliases.rows.first().map(|row| -> Result<_> {
            Ok(FrontierId {
                host: HostId(row.int(0)?),
                url: UrlId(row.half_key(1)?),
            })
        });
        let delivery = |row: &Row| -> Result<Json> {
            Ok(
                json!({ "sink": row.text(0)?, "revision": row.int(1)?, "attempts": row.int(2)?, "last_error": row.optional_text(3)? }),
            )
        };
        Ok(Explanation {
            row,
            alias_of: alias_of.transpose()?,
            events: discovery.into_iter().chain(recorded).collect(),
            deliveries: deliveries
                .rows
                .iter()
                .map(delivery)
                .collect::<Result<_>>()?,
        })
    }

    /// Makes a URL an alias of a page: submitting it is `known` from now on.
    /// `kind` is the reason, for example `canonical`.
    pub async fn add_alias(&self, id: FrontierId, page: FrontierId, kind: &str) -> Result<()> {
        let now = self.now().await?;
        let sql =
            "INSERT INTO aliases (host_id, url_id, target_host_id, target_url_id, kind, created_at)
            VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
        let values = keys(id)
            .into_iter()
            .chain(keys(page))
            .chain([Value::from(kind), Value::from(now)]);
        self.execute(Statement::new(sql, values.collect::<Vec<_>>()))
            .await
            .map(drop)
    }

    /// The id of the last event, or of one that is not committed yet; 0 when there
    /// is none.
    pub async fn last_event_id(&self) -> Result<i64> {
        let last = Statement::new(self.last_event_sql(), []);
        let rows = self.rows(last).await?;
        rows.first().map_or(Ok(0), |row| row.int(0))
    }

    /// Events after one of them, to follow the log.
    pub async fn events_after(&self, event_id: i64, limit: u32) -> Result<Vec<Event>> {
        let sql = format!("{COLUMNS} WHERE event_id > $1 ORDER BY event_id LIMIT $2");
        let values = [Value::Int(event_id), Value::Int(i64::from(limit))];
        self.rows(Statement::new(sql, values))
            .await?
            .iter()
            .map(event)
            .collect()
    }
}
