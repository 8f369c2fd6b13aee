//! How a store is opened, and where its time comes from.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tidings_url::ProxyHosts;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The delay between two requests to a host that specifies none.
    pub host_delay: Duration,
    /// Requests in flight to one host, over all machines.
    pub max_per_host: u16,
    /// Connections of this process to PostgreSQL.
    pub connections: usize,
    /// A pooler in transaction mode, such as PgBouncer, is in front of PostgreSQL:
    /// nothing is kept in a session.
    pub pooler: bool,
    /// The gateways, while the store has no list of them that all machines share.
    pub proxy_hosts: ProxyHosts,
    pub(crate) clock: Clock,
    pub(crate) migrate_to: Option<i64>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            host_delay: Duration::from_secs(1),
            max_per_host: 1,
            connections: 6,
            pooler: false,
            proxy_hosts: ProxyHosts::default(),
            clock: Clock::Database,
            migrate_to: None,
        }
    }
}

impl StoreOptions {
    /// Time stands still at `milliseconds` (since 1970) until a test advances it.
    pub fn with_manual_clock(self, milliseconds: Arc<AtomicI64>) -> Self {
        Self {
            clock: Clock::Manual(milliseconds),
            ..self
        }
    }

    /// Opens at another version of the schema: 0 drops everything.
    pub fn at_schema_version(self, version: i64) -> Self {
        Self {
            migrate_to: Some(version),
            ..self
        }
    }
}

/// The connections of this process to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionCounts {
    pub open: u64,
    /// Of the open ones.
    pub idle: u64,
    /// Operations that wait for a connection.
    pub waiting: u64,
}

/// Where the time comes from.
#[derive(Debug, Clone)]
pub(crate) enum Clock {
    Database,
    Manual(Arc<AtomicI64>),
}

impl Clock {
    pub(crate) fn manual(&self) -> Option<i64> {
        match self {
            Self::Database => None,
            Self::Manual(time) => Some(time.load(Ordering::SeqCst)),
        }
    }
}
