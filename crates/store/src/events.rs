//! The history of a URL: its discovery, attempts and status. Every change of state
//! is recorded as an event.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::engine::{Row, Statement, Value};
use crate::error::Result;
use crate::event_horizon::OpenTransactions;
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

const COLUMNS: &str = "event_id, at, host_id, url_id, kind, detail";

/// How far back the end of the log is searched for events that are not committed.
const MAX_UNCOMMITTED: i64 = 10_000;

/// How often and at what interval transactions that are open are waited for.
const END_ATTEMPTS: u32 = 50;
const END_INTERVAL: Duration = Duration::from_millis(20);

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
                    "SELECT {COLUMNS} FROM events WHERE host_id = $1 AND url_id = $2 ORDER BY event_id LIMIT 1000"
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

    /// The id of an event after which nothing was committed when this was called: the
    /// end of the log. Events that a slow transaction may still add come after it.
    pub async fn last_event_id(&self) -> Result<i64> {
        let last = self.rows(Statement::new(self.engine().last_event(), []));
        let last = last.await?.first().map_or(Ok(0), |row| row.int(0))?;
        let floor = (last - MAX_UNCOMMITTED).max(0);
        let mut end = floor;
        for attempt in 0..END_ATTEMPTS {
            let after = self
                .event_horizon()
                .final_id()
                .clamp(floor, last.max(floor));
            let page = self.final_rows("event_id", after, MAX_UNCOMMITTED).await?;
            end = page.rows.last().map_or(Ok(after), |row| row.int(0))?;
            if page.is_whole || end >= last {
                break;
            }
            // A gap of a transaction that is open, or was rolled back.
            if attempt + 1 < END_ATTEMPTS {
                tokio::time::sleep(END_INTERVAL).await;
            }
        }
        Ok(end)
    }

    /// Events after one of them, to follow the log. None is ever skipped: those that
    /// a slow transaction may still add are waited for.
    pub async fn events_after(&self, event_id: i64, limit: u32) -> Result<Vec<Event>> {
        let page = self.final_rows(COLUMNS, event_id, i64::from(limit)).await?;
        page.rows.iter().map(event).collect()
    }

    /// Rows of events after one of them, up to the first before which a transaction
    /// may still add one. The first column is the id.
    async fn final_rows(&self, columns: &str, after: i64, limit: i64) -> Result<FinalRows> {
        // Before the query: what others learn meanwhile is not about its rows.
        let mut horizon = *self.event_horizon();
        let sql = format!(
            "SELECT {columns}, {} FROM events WHERE event_id > $1 ORDER BY event_id LIMIT $2",
            self.engine().open_transactions()
        );
        let values = [Value::Int(after), Value::Int(limit)];
        let mut rows = self.rows(Statement::new(sql, values)).await?;
        let Some(first) = rows.first() else {
            return Ok(FinalRows {
                rows,
                is_whole: true,
            });
        };
        let width = first.0.len();
        let open = OpenTransactions {
            oldest: first.int(width - 2)?,
            next: first.int(width - 1)?,
        };
        let ids = rows
            .iter()
            .map(|row| row.int(0))
            .collect::<Result<Vec<_>>>()?;
        let count = horizon.final_events(after, &ids, open);
        self.event_horizon().merge(horizon);
        rows.truncate(count);
        Ok(FinalRows {
            rows,
            is_whole: count == ids.len(),
        })
    }
}

/// A page of events, and whether nothing was left out.
struct FinalRows {
    rows: Vec<Row>,
    is_whole: bool,
}
