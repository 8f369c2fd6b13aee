//! What a database must implement to back a [`Store`](crate::Store): the hot path
//! of the frontier in its own SQL, and portable statements for everything else.

use std::fmt::Debug;

use async_trait::async_trait;
use tidings_document::Sketch;

use crate::complete::PreparedCompletion;
use crate::delivery::{Delivery, DeliveryVerdict, RetriedDeadLetters};
use crate::error::{Result, StoreError};
use crate::fairness::ClaimSequence;
use crate::frontier::{ClaimRequest, Claimed, LeaseToken, Verdict};
use crate::ids::FrontierId;
use crate::moment::Moment;
use crate::near_duplicates::NearDuplicate;
use crate::options::ConnectionCounts;
use crate::submission::Prepared;

/// The seam between the contract and the two databases. A call that failed with a
/// transient error may have been committed nevertheless, and is repeated.
#[async_trait]
pub(crate) trait Engine: Send + Sync + Debug {
    /// The current time by the clock that all users of this store share.
    async fn now(&self) -> Result<Moment>;

    /// Whether the stored data is intact, where the database has no checks of its own.
    async fn check_integrity(&self) -> Result<()> {
        Ok(())
    }

    /// Adds URLs to the frontier; one verdict each, in order, `None` where the title
    /// was seen before. The batch is sorted by id, without duplicates, and has at
    /// most a thousand rows.
    async fn submit(&self, batch: &[Prepared]) -> Result<Vec<Option<Verdict>>>;

    /// Leases URLs of hosts that may be fetched now.
    async fn claim(&self, request: &ClaimRequest, sequence: ClaimSequence) -> Result<Claimed>;

    /// Ends leases: one transaction for frontier, hosts, documents, deliveries
    /// and events. False where the lease was lost; true for a repetition of what
    /// was stored, of which the events are the proof.
    async fn complete(&self, batch: &[PreparedCompletion]) -> Result<Vec<bool>>;

    /// Extends leases; false where the lease was lost.
    async fn extend_leases(&self, lease_tokens: &[LeaseToken], lease_ms: i64) -> Result<Vec<bool>>;

    /// Deletes URLs from the frontier; the number deleted.
    async fn remove(&self, ids: &[FrontierId]) -> Result<u64>;

    /// Makes URLs due now, whatever their status, unless they are being fetched;
    /// the number requeued.
    async fn requeue(&self, ids: &[FrontierId]) -> Result<u64>;

    /// Leases due deliveries of one sink; those that another claim holds are skipped.
    async fn claim_deliveries(
        &self,
        sink: &str,
        limit: u32,
        max_bytes: u64,
        lease_ms: i64,
    ) -> Result<Vec<Delivery>>;

    /// Completes deliveries in one transaction; a lost lease changes nothing.
    async fn complete_deliveries(
        &self,
        sink: &str,
        verdicts: &[(Delivery, DeliveryVerdict)],
    ) -> Result<()>;

    /// Queues the dead letters of a sink again.
    async fn retry_dead_letters(&self, sink: &str) -> Result<RetriedDeadLetters>;

    /// The document most similar to a text, if one is a near-duplicate.
    async fn nearest(&self, sketch: &Sketch) -> Result<Option<NearDuplicate>>;

    /// Runs portable statements in one transaction.
    async fn run(&self, statements: Vec<Statement>) -> Result<Vec<QueryResult>>;

    /// SQL by which lists find leases and due times.
    fn lease_sql(&self) -> &'static LeaseSql;

    /// SQL that reads queue rows after an id and inserts them, for a copy.
    fn queue_statements(&self) -> &'static QueueSql;

    /// SQL for the id of the last event.
    fn last_event(&self) -> &'static str;

    /// SQL for the lowest change id that an open transaction may still add.
    fn change_horizon(&self) -> &'static str;

    /// The end of a `SELECT` of rows to change, by which rows that another
    /// transaction has locked are skipped.
    fn skip_locked(&self) -> &'static str;

    /// SQL for the lowest id of a transaction that is open, and for the lowest id
    /// that no transaction has yet.
    fn open_transactions(&self) -> &'static str;

    /// SQL that makes the next changes get ids above those of all documents, after a
    /// copy; none where they do by themselves.
    fn continue_changes(&self) -> Option<&'static str>;

    /// SQL that waits until the completions that have begun are committed, where
    /// several can run at a time.
    fn wait_for_completions(&self) -> Option<&'static str>;

    /// SQL that folds at most `$1` counter changes into the counters and returns their
    /// number; none where counters are changed in place.
    fn fold_counts(&self) -> Option<&'static str>;

    /// SQL for the size in bytes, open connections, and the connection limit.
    fn diagnostics(&self) -> &'static str;

    /// Where the data is, for messages. Never with a password.
    fn location(&self) -> &str;

    /// The connections of this process, where there is a server.
    fn connections(&self) -> Option<ConnectionCounts> {
        None
    }
}

/// Where an engine stores leases and due times.
#[derive(Debug)]
pub(crate) struct LeaseSql {
    /// The table with `owner` and `attempt` of leased URLs, joined as `q`.
    pub(crate) leases: &'static str,
    pub(crate) due: &'static str,
}

/// The engines store the queue differently: how one reads and writes it.
/// A row is host, URL, priority, due time, owner, attempt and crashes, in this
/// order; inserting an existing row changes nothing.
#[derive(Debug)]
pub(crate) struct QueueSql {
    pub(crate) select: &'static str,
    pub(crate) insert: &'static [&'static str],
}

/// SQL that both engines understand, with `$1`, `$2`, … for the values.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
    pub(crate) durability: Durability,
}

/// Which failure a statement must survive once it is acknowledged. All survive a
/// crash of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Durability {
    Process,
    /// A crash of a database server that many machines share.
    Server,
    PowerCut,
}

impl Statement {
    pub(crate) fn new(sql: impl Into<String>, values: impl Into<Vec<Value>>) -> Self {
        Self {
            sql: sql.into(),
            values: values.into(),
            durability: Durability::PowerCut,
        }
    }

    /// For values that can be recomputed and for released leases: losing one
    /// costs only time.
    pub(crate) fn volatile(sql: impl Into<String>, values: impl Into<Vec<Value>>) -> Self {
        Self {
            durability: Durability::Process,
            ..Self::new(sql, values)
        }
    }

    /// For host permits: if one were lost while its holder is alive, two requests
    /// would run concurrently. A power cut also stops the holder on that machine.
    pub(crate) fn server_durable(sql: impl Into<String>, values: impl Into<Vec<Value>>) -> Self {
        Self {
            durability: Durability::Server,
            ..Self::new(sql, values)
        }
    }
}

/// The result of one statement.
#[derive(Debug, Default)]
pub(crate) struct QueryResult {
    pub(crate) rows: Vec<Row>,
    /// Rows changed, for statements that return none.
    pub(crate) changed: u64,
}

/// A value that both engines can store.
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
