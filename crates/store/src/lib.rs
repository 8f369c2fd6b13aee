//! Persistent state: the frontier, hosts, sources, feeds, documents, the outbox,
//! tasks, runs and tokens, behind one contract, [`Store`].
//!
//! Two engines implement it: SQLite (embedded, the default) and PostgreSQL (shared
//! by many machines). Nothing above this crate knows which one it is, and one
//! conformance suite runs on both. Never fetches, parses or decides policy.

mod audit;
mod clock;
mod complete;
mod counters;
mod daily_quota;
mod deliveries;
mod delivery;
mod diagnostics;
mod documents;
mod engine;
mod error;
mod event_horizon;
mod events;
mod fairness;
mod feeds;
mod frontier;
mod host_permits;
mod hosts;
mod idempotency;
mod ids;
mod listing;
mod maintenance;
mod migrate_store;
mod moment;
mod near_duplicates;
mod new_document;
mod newness;
mod options;
mod postgres;
mod proxy_hosts;
mod queue_head;
mod runs;
mod schema;
mod shared_values;
mod sinks;
mod sources;
mod sqlite;
mod stats;
mod storable;
mod store;
mod submission;
mod tasks;
mod tokens;

pub use audit::{AuditEntry, NewAuditEntry};
pub use daily_quota::NewUrlsToday;
pub use deliveries::{DeadLetter, OutboxState};
pub use delivery::{Delivery, DeliveryVerdict, RetriedDeadLetters};
pub use diagnostics::{Diagnostics, Leases, Overdue, OverdueHosts, PermanentFailures};
pub use documents::{ChangeCursor, StoredDocument};
pub use error::{Result, StoreError};
pub use events::{Event, Explanation};
pub use feeds::{Feed, FeedClaim, FetchLogRow, PollResult};
pub use frontier::{
    Claim, ClaimRequest, Claimed, Completion, GuidHash, HostChange, LeaseToken, Newness, Origin,
    Outcome, Status, Submission, Target, TitleHash, Verdict,
};
pub use host_permits::{AcquiredHost, HostPermit};
pub use hosts::{Host, Robots};
pub use idempotency::{MAX_STORED_RESPONSE, Replay};
pub use ids::{FrontierId, HostId, ParseFrontierIdError, UrlId};
pub use listing::{Cursor, Filter, Order, Page, ParseCursorError, UrlRow};
pub use maintenance::{ExpiringTable, MaintenanceReport, Pruning};
pub use migrate_store::{CopyProgress, copy_store};
pub use moment::Moment;
pub use near_duplicates::NearDuplicate;
pub use new_document::NewDocument;
pub use options::{ConnectionCounts, StoreOptions};
pub use runs::Run;
pub use schema::SCHEMA_VERSION;
pub use shared_values::SharedValue;
pub use sinks::SinkService;
pub use sources::{NewSource, Source};
pub use stats::{CountRow, HostStats, Stats};
pub use store::Store;
pub use tasks::{StartedTask, Task, TaskCounts, TaskResult};
pub use tokens::{Role, Token};

/// The version of the embedded SQLite.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}
