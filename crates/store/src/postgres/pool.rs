//! The connections of one process to PostgreSQL, opened on demand and reused. One
//! that is returned inside a transaction, or broken, is closed instead, which rolls
//! back whatever was not committed.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, Connect, Hook, HookError, Manager, ManagerConfig, Metrics, Object, PoolError,
    QueueMode, RecyclingMethod, Runtime,
};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;
use tracing::debug;

use super::address::Address;
use crate::error::{Result, StoreError};
use crate::options::ConnectionCounts;

/// For connecting to one host and setting up the session.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A silent network is detected after this time on both sides: here, to reconnect;
/// on the server, to release the locks of the connection.
const TCP_TIMEOUT: Duration = Duration::from_secs(6);

/// A statement that takes longer means that the server is unavailable.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection that was idle for longer is checked before it is used again; a check
/// is a round trip, which would cost a busy process more than it brings.
const CHECK_AFTER_IDLE: Duration = Duration::from_secs(10);

/// A connection that is older is replaced: its server process has grown, and behind
/// a name there may be another server by now.
const MAX_LIFETIME: Duration = Duration::from_secs(30 * 60);

/// Prepared statements cached per connection. The hot path has a few dozen; only
/// lists and copies create many, each for one use.
const MAX_PREPARED_STATEMENTS: usize = 256;

/// Open transactions block vacuum, hence the idle timeout; generic plans are 2.6
/// times as fast for the small statements of the frontier.
const SESSION: &str = "SET plan_cache_mode = force_generic_plan;
    SET idle_in_transaction_session_timeout = '60s';
    SET lock_timeout = '20s';
    SET application_name = 'tidings';
    SET tcp_user_timeout = 6000;
    SET tcp_keepalives_idle = 3;
    SET tcp_keepalives_interval = 1;
    SET client_min_messages = warning";

/// Behind a pooler a session is another's in the next transaction: what matters is
/// set for each.
const TRANSACTION: &str = "SET LOCAL idle_in_transaction_session_timeout = '60s';
    SET LOCAL lock_timeout = '20s'";

/// Whether sessions are ours alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sessions {
    Own,
    /// A pooler in transaction mode gives each transaction any session: nothing may
    /// be left in one, so statements have no names.
    Pooled,
}

#[derive(Debug)]
pub(super) struct Pool {
    pool: deadpool_postgres::Pool,
    location: String,
    sessions: Sessions,
    /// With pooled sessions: what is known of statements, by their text.
    shapes: Mutex<HashMap<String, Arc<Shape>>>,
}

/// The types of a statement's parameters, and whether it returns rows.
#[derive(Debug)]
struct Shape {
    parameters: Vec<Type>,
    returns_rows: bool,
}

impl Pool {
    pub(super) fn new(address: Address, connections: usize, sessions: Sessions) -> Result<Self> {
        let location = address.location.clone();
        let time = CONNECT_TIMEOUT * u32::try_from(address.hosts.len()).unwrap_or(1);
        let manager = Manager::from_connect(
            Config::new(),
            Hosts::new(address, sessions),
            ManagerConfig {
                recycling_method: RecyclingMethod::Fast,
            },
        );
        let pool = deadpool_postgres::Pool::builder(manager)
            .max_size(connections.max(1))
            .create_timeout(Some(time))
            .queue_mode(QueueMode::Lifo)
            .pre_recycle(Hook::async_fn(|client, metrics| {
                Box::pin(check(client, metrics))
            }))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| StoreError::Failed {
                location: location.clone(),
                why: error.to_string(),
            })?;
        Ok(Self {
            pool,
            location,
            sessions,
            shapes: Mutex::default(),
        })
    }

    pub(super) fn location(&self) -> &str {
        &self.location
    }

    pub(super) fn counts(&self) -> ConnectionCounts {
        let status = self.pool.status();
        ConnectionCounts {
            open: status.size as u64,
            idle: status.available as u64,
            waiting: status.waiting as u64,
        }
    }

    pub(super) async fn get(&self) -> Result<Connection<'_>> {
        let object = self.pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) => self.unavailable(error),
            error => self.unavailable(error),
        })?;
        Ok(Connection {
            pool: self,
            object: Some(object),
            in_transaction: false,
            is_broken: false,
        })
    }

    fn unavailable(&self, error: impl std::error::Error) -> StoreError {
        let cause = error
            .source()
            .map(|cause| format!(": {cause}"))
            .unwrap_or_default();
        StoreError::Unavailable {
            location: self.location.clone(),
            why: format!("{error}{cause}"),
        }
    }

    /// Maps PostgreSQL's errors to those of the contract.
    fn translate(&self, error: &tokio_postgres::Error) -> StoreError {
        let Some(server) = error.as_db_error() else {
            return self.unavailable(error);
        };
        let code = server.code();
        let transient = [
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::READ_ONLY_SQL_TRANSACTION,
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::DISK_FULL,
            SqlState::OUT_OF_MEMORY,
        ];
        // 57: the server is shutting down or the statement was cancelled.
        let is_transient = transient.contains(code)
            || code.code().starts_with("57")
            || code.code().starts_with("08");
        let (location, why) = (
            self.location.clone(),
            format!("{} ({})", server.message(), code.code()),
        );
        let is_primary_key = |constraint: &str| constraint.ends_with("_pkey");
        if *code == SqlState::UNIQUE_VIOLATION && server.constraint().is_some_and(is_primary_key) {
            StoreError::IdTaken { location, why }
        } else if is_transient {
            StoreError::Unavailable { location, why }
        } else {
            StoreError::Failed { location, why }
        }
    }
}

/// Decides whether an idle connection may be used again.
async fn check(
    client: &mut ClientWrapper,
    metrics: &Metrics,
) -> std::result::Result<(), HookError> {
    if client.is_closed() {
        return Err(HookError::message("closed"));
    }
    if metrics.age() > MAX_LIFETIME {
        return Err(HookError::message("too old"));
    }
    if metrics.last_used() > CHECK_AFTER_IDLE {
        timeout(CONNECT_TIMEOUT, client.check_connection())
            .await
            .map_err(|_| HookError::message("silent"))?
            .map_err(HookError::Backend)?;
    }
    Ok(())
}

/// The hosts of an address: the first that can be used is connected to.
struct Hosts {
    configs: Vec<Config>,
    tls: MakeRustlsConnect,
    sessions: Sessions,
}

type Opened = std::result::Result<(Client, JoinHandle<()>), tokio_postgres::Error>;

impl Hosts {
    fn new(address: Address, sessions: Sessions) -> Self {
        let mut configs = address.hosts;
        for config in &mut configs {
            config
                .connect_timeout(CONNECT_TIMEOUT)
                .tcp_user_timeout(TCP_TIMEOUT)
                .keepalives_idle(TCP_TIMEOUT / 2)
                .keepalives_interval(Duration::from_secs(1));
        }
        Self {
            configs,
            tls: address.tls,
            sessions,
        }
    }

    async fn open(&self, config: &Config) -> Opened {
        let first = match self.open_once(config).await {
            Err(error) if config.get_ssl_mode() == SslMode::Prefer => error,
            result => return result,
        };
        // As libpq does: TLS was tried first, and is not required.
        let code = first.as_db_error().map(|error| error.code());
        if code.is_some_and(|code| *code != SqlState::INVALID_AUTHORIZATION_SPECIFICATION) {
            return Err(first);
        }
        let mut plain = config.clone();
        plain.ssl_mode(SslMode::Disable);
        self.open_once(&plain).await.map_err(|_| first)
    }

    async fn open_once(&self, config: &Config) -> Opened {
        let (client, connection) = config.connect(self.tls.clone()).await?;
        let task = tokio::spawn(async move {
            if let Err(error) = connection.await {
                debug!(%error, "database connection closed");
            }
        });
        if self.sessions == Sessions::Own {
            client.batch_execute(SESSION).await?;
        }
        Ok((client, task))
    }
}

impl Connect for Hosts {
    fn connect(&self, _: &Config) -> Pin<Box<dyn Future<Output = Opened> + Send + '_>> {
        Box::pin(async move {
            let Some((last, others)) = self.configs.split_last() else {
                // An address has at least one host; connecting says what is missing.
                return self.open(&Config::new()).await;
            };
            for config in others {
                match timeout(CONNECT_TIMEOUT, self.open(config)).await {
                    Ok(Ok(opened)) => return Ok(opened),
                    Ok(Err(error)) => debug!(%error, "database host skipped"),
                    Err(error) => debug!(%error, "database host skipped"),
                }
            }
            // The pool's own limit is the sum over all hosts.
            self.open(last).await
        })
    }
}

/// A connection in use. Goes back to the pool when dropped outside of a
/// transaction.
pub(super) struct Connection<'a> {
    pool: &'a Pool,
    object: Option<Object>,
    in_transaction: bool,
    is_broken: bool,
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        let is_clean = !self.in_transaction && !self.is_broken;
        if let Some(object) = self.object.take().filter(|_| !is_clean) {
            drop(Object::take(object));
        }
    }
}

impl Connection<'_> {
    fn client(&self) -> &Object {
        self.object
            .as_ref()
            .expect("the connection is present until it is dropped")
    }

    pub(super) async fn begin(&mut self, how: &str) -> Result<()> {
        self.in_transaction = true;
        match self.pool.sessions {
            Sessions::Own => self.batch(how).await,
            Sessions::Pooled => self.batch(&format!("{how}; {TRANSACTION}")).await,
        }
    }

    pub(super) async fn commit(&mut self) -> Result<()> {
        self.batch("COMMIT").await?;
        self.in_transaction = false;
        Ok(())
    }

    /// Several statements without parameters.
    /// Runs a step of a migration, however long it takes: tables can be large.
    pub(super) async fn migrate(&mut self, sql: &str) -> Result<()> {
        let result = self.client().batch_execute(sql).await;
        self.checked(Ok(result))
    }

    pub(super) async fn batch(&mut self, sql: &str) -> Result<()> {
        let result = timeout(STATEMENT_TIMEOUT, self.client().batch_execute(sql)).await;
        self.checked(result)
    }

    pub(super) async fn query(
        &mut self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        let result = match self.pool.sessions {
            Sessions::Own => {
                let statement = self.prepared(sql).await?;
                let rows = self.client().query(&statement, values);
                timeout(STATEMENT_TIMEOUT, rows).await
            }
            Sessions::Pooled => {
                let shape = self.shape(sql).await?;
                let values = shape.typed(values);
                let rows = self.client().query_typed(sql, &values);
                timeout(STATEMENT_TIMEOUT, rows).await
            }
        };
        self.checked(result)
    }

    pub(super) async fn execute(
        &mut self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<u64> {
        let result = match self.pool.sessions {
            Sessions::Own => {
                let statement = self.prepared(sql).await?;
                let changed = self.client().execute(&statement, values);
                timeout(STATEMENT_TIMEOUT, changed).await
            }
            Sessions::Pooled => {
                let shape = self.shape(sql).await?;
                let values = shape.typed(values);
                let changed = self.client().execute_typed(sql, &values);
                timeout(STATEMENT_TIMEOUT, changed).await
            }
        };
        self.checked(result)
    }

    /// Whether a statement returns rows.
    pub(super) async fn returns_rows(&mut self, sql: &str) -> Result<bool> {
        Ok(match self.pool.sessions {
            Sessions::Own => !self.prepared(sql).await?.columns().is_empty(),
            Sessions::Pooled => self.shape(sql).await?.returns_rows,
        })
    }

    async fn prepared(&mut self, sql: &str) -> Result<tokio_postgres::Statement> {
        let client = self.client();
        if client.statement_cache.size() > MAX_PREPARED_STATEMENTS {
            client.statement_cache.clear();
        }
        let result = timeout(STATEMENT_TIMEOUT, client.prepare_cached(sql)).await;
        self.checked(result)
    }

    /// Prepares a statement once in this process to learn its types. Its name is gone
    /// before the transaction ends, and the session with it.
    async fn shape(&mut self, sql: &str) -> Result<Arc<Shape>> {
        if let Some(shape) = self.pool.known_shapes().get(sql) {
            return Ok(Arc::clone(shape));
        }
        let is_alone = !self.in_transaction;
        if is_alone {
            self.begin("BEGIN").await?;
        }
        let result = timeout(STATEMENT_TIMEOUT, self.client().prepare(sql)).await;
        let statement = self.checked(result)?;
        let shape = Arc::new(Shape {
            parameters: statement.params().to_vec(),
            returns_rows: !statement.columns().is_empty(),
        });
        drop(statement);
        if is_alone {
            self.commit().await?;
        }
        let mut shapes = self.pool.known_shapes();
        if shapes.len() >= MAX_PREPARED_STATEMENTS {
            shapes.clear();
        }
        shapes.insert(sql.to_owned(), Arc::clone(&shape));
        Ok(shape)
    }

    fn checked<T>(
        &mut self,
        result: std::result::Result<
            std::result::Result<T, tokio_postgres::Error>,
            tokio::time::error::Elapsed,
        >,
    ) -> Result<T> {
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                // A server that has become read-only is no longer the primary.
                let is_read_only = error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION);
                self.is_broken = self.is_broken || error.is_closed() || is_read_only;
                Err(self.pool.translate(&error))
            }
            Err(elapsed) => {
                // A late response must not reach the next user of the connection.
                self.is_broken = true;
                Err(self.pool.unavailable(elapsed))
            }
        }
    }
}

impl Pool {
    fn known_shapes(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Shape>>> {
        self.shapes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shape {
    fn typed<'v>(&self, values: &[&'v (dyn ToSql + Sync)]) -> Vec<(&'v (dyn ToSql + Sync), Type)> {
        let types = self.parameters.iter().cloned();
        values.iter().copied().zip(types).collect()
    }
}
