//! What a database must be able to do to keep a [`Store`](crate::Store): the hot
//! path of the frontier in its own SQL, and plain statements for the rest.

use std::fmt::Debug;

use async_trait::async_trait;
use tidings_document::Sketch;

use crate::error::{Result, StoreError};
use crate::frontier::{ClaimRequest, Claimed, LeaseToken, Verdict};
use crate::ids::FrontierId;
use crate::listing::Waiting;
use crate::migrate_store::QueueSql;
use crate::moment::Moment;
use crate::near::NearDuplicate;
use crate::settle::Settlement;
use crate::submission::Prepared;
use crate::turn::Turn;

/// The seam between the contract and the two databases.
#[async_trait]
pub(crate) trait Engine: Send + Sync + Debug {
    /// The time that all users of this store share.
    async fn now(&self) -> Result<Moment>;

    /// Puts URLs into the frontier; one verdict each, in order. The batch is
    /// sorted by id, has no id twice and at most a thousand rows.
    async fn submit(&self, batch: &[Prepared]) -> Result<Vec<Verdict>>;

    /// Hands out URLs of hosts that may be fetched now.
    async fn claim(&self, request: &ClaimRequest, turn: Turn) -> Result<Claimed>;

    /// Ends leases: one transaction for frontier, hosts, documents, deliveries
    /// and events. False where the lease was lost.
    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<bool>>;

    /// Extends leases; false where the lease was lost.
    async fn renew(&self, tickets: &[LeaseToken], lease_ms: i64) -> Result<Vec<bool>>;

    /// Takes URLs out of the frontier; how many were there.
    async fn remove(&self, ids: &[FrontierId]) -> Result<u64>;

    /// Makes URLs due now, whatever became of them, unless they are being
    /// fetched; how many.
    async fn requeue(&self, ids: &[FrontierId]) -> Result<u64>;

    /// The document most like a text, if one is alike.
    async fn nearest(&self, sketch: &Sketch) -> Result<Option<NearDuplicate>>;

    /// Sums up what can be summed up and drops what is too old.
    async fn maintain(&self, keep_events_since: Moment) -> Result<()>;

    /// Runs statements that read the same on both engines, in one transaction.
    async fn run(&self, statements: Vec<Statement>) -> Result<Vec<Answer>>;

    /// How lists find what waits and what is being fetched.
    fn waiting(&self) -> &'static Waiting;

    /// Rows of the queue after an id, for a copy; and putting them there.
    fn queue_statements(&self) -> &'static QueueSql;

    /// SQL for the number of the last event.
    fn last_event(&self) -> &'static str;

    /// SQL for the change id from which on a transaction may still add some.
    fn change_horizon(&self) -> &'static str;

    /// SQL for size in bytes, connections that are open, and the most there may be.
    fn diagnostics(&self) -> &'static str;

    /// Where the data is, for messages. Never with a password.
    fn place(&self) -> &str;
}

/// SQL that both engines understand, with `$1`, `$2`, … for the values.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
    pub(crate) outlives: Outlives,
}

/// Whose end a statement must survive once it is acknowledged. All survive the
/// end of any process of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outlives {
    Process,
    /// That of a server that many machines share.
    Server,
    PowerCut,
}

impl Statement {
    pub(crate) fn new(sql: impl Into<String>, values: impl Into<Vec<Value>>) -> Self {
        Self {
            sql: sql.into(),
            values: values.into(),
            outlives: Outlives::PowerCut,
        }
    }

    /// What can be learned again, and the end of a lease: when it is forgotten,
    /// nothing but time is lost.
    pub(crate) fn passing(sql: impl Into<String>, values: impl Into<Vec<Value>>) -> Self {
        Self {
            outlives: Outlives::Process,
            ..Self::new(sql, values)
        }
    }

    /// A turn at a host: were it forgotten while its holder lives, two would ask
    /// at once. When the power goes, the holder on the same machine goes too.
    pub(crate) fn turn(sql: impl Into<String>, values: impl Into<Vec<Value>>) -> Self {
        Self {
            outlives: Outlives::Server,
            ..Self::new(sql, values)
        }
    }
}

/// What a statement gave back.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) rows: Vec<Row>,
    /// Rows changed, for statements that return none.
    pub(crate) changed: u64,
}

/// A value that both engines can hold.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<Moment> for Value {
    fn from(value: Moment) -> Self {
        Self::Int(value.0)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Self {
        Self::Bytes(value.to_owned())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// One row, read by position in the order of the `SELECT` list.
#[derive(Debug)]
pub(crate) struct Row(pub(crate) Vec<Value>);

impl Row {
    fn wrong(&self, column: usize, expected: &str) -> StoreError {
        StoreError::corrupt(
            "row",
            format!(
                "column {column} is {:?}, not {expected}",
                self.0.get(column)
            ),
        )
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64> {
        self.optional_int(column)?
            .ok_or_else(|| self.wrong(column, "a number"))
    }

    pub(crate) fn optional_int(&self, column: usize) -> Result<Option<i64>> {
        match self.0.get(column) {
            Some(Value::Int(value)) => Ok(Some(*value)),
            Some(Value::Null) => Ok(None),
            _ => Err(self.wrong(column, "a number")),
        }
    }

    pub(crate) fn moment(&self, column: usize) -> Result<Moment> {
        self.int(column).map(Moment)
    }

    pub(crate) fn optional_moment(&self, column: usize) -> Result<Option<Moment>> {
        Ok(self.optional_int(column)?.map(Moment))
    }

    pub(crate) fn text(&self, column: usize) -> Result<String> {
        self.optional_text(column)?
            .ok_or_else(|| self.wrong(column, "a text"))
    }

    pub(crate) fn optional_text(&self, column: usize) -> Result<Option<String>> {
        match self.0.get(column) {
            Some(Value::Text(value)) => Ok(Some(value.clone())),
            Some(Value::Null) => Ok(None),
            _ => Err(self.wrong(column, "a text")),
        }
    }

    pub(crate) fn optional_bytes(&self, column: usize) -> Result<Option<&[u8]>> {
        match self.0.get(column) {
            Some(Value::Bytes(value)) => Ok(Some(value)),
            Some(Value::Null) => Ok(None),
            _ => Err(self.wrong(column, "bytes")),
        }
    }

    pub(crate) fn half_key(&self, column: usize) -> Result<[u8; 16]> {
        let bytes = self
            .optional_bytes(column)?
            .and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or_else(|| self.wrong(column, "sixteen bytes"))
    }
}
