//! A connection pool; connections are opened on demand and reused. One that is
//! returned inside a transaction, or broken, is closed instead, which rolls back
//! whatever was not committed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Row, Statement};
use tracing::debug;

use crate::error::{Result, StoreError};

/// For connecting and setting up the session.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A silent network is detected after this time on both sides: here, to reconnect;
/// on the server, to release the locks of the connection.
const TCP_TIMEOUT: Duration = Duration::from_secs(6);

/// A statement that takes longer means that the server is unavailable.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

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

#[derive(Debug)]
pub(super) struct Pool {
    config: Config,
    location: String,
    idle: Mutex<Vec<Opened>>,
    free: Semaphore,
}

struct Opened {
    client: Client,
    prepared: HashMap<String, Statement>,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened")
            .field("prepared", &self.prepared.len())
            .finish()
    }
}

impl Pool {
    pub(super) fn new(mut config: Config, location: String, connections: usize) -> Self {
        config
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_user_timeout(TCP_TIMEOUT)
            .keepalives_idle(TCP_TIMEOUT / 2)
            .keepalives_interval(Duration::from_secs(1));
        Self {
            config,
            location,
            idle: Mutex::default(),
            free: Semaphore::new(connections),
        }
    }

    pub(super) async fn get(&self) -> Result<Connection<'_>> {
        // The semaphore is never closed.
        let permit = self
            .free
            .acquire()
            .await
            .map_err(|error| self.unavailable(error))?;
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let opened = match idle.filter(|opened| !opened.client.is_closed()) {
            Some(opened) => opened,
            None => self.connect().await?,
        };
        Ok(Connection {
            pool: self,
            opened: Some(opened),
            in_transaction: false,
            is_broken: false,
            _permit: permit,
        })
    }

    async fn connect(&self) -> Result<Opened> {
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, self.open()).await;
        opened.map_err(|elapsed| self.unavailable(elapsed))?
    }

    async fn open(&self) -> Result<Opened> {
        let (client, connection) = self
            .config
            .connect(NoTls)
            .await
            .map_err(|error| self.unavailable(error))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                debug!(%error, "database connection closed");
            }
        });
        client
            .batch_execute(SESSION)
            .await
            .map_err(|error| self.translate(&error))?;
        Ok(Opened {
            client,
            prepared: HashMap::new(),
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

/// A connection in use. Goes back to the pool when dropped outside of a
/// transaction.
pub(super) struct Connection<'a> {
    pool: &'a Pool,
    opened: Option<Opened>,
    in_transaction: bool,
    is_broken: bool,
    _permit: SemaphorePermit<'a>,
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        let clean = !self.in_transaction && !self.is_broken;
        if let Some(opened) = self.opened.take().filter(|_| clean) {
            self.pool
                .idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(opened);
        }
    }
}

impl Connection<'_> {
    fn opened(&mut self) -> &mut Opened {
        self.opened
            .as_mut()
            .expect("the connection is present until it is dropped")
    }

    pub(super) async fn begin(&mut self, how: &str) -> Result<()> {
        self.in_transaction = true;
        self.batch(how).await
    }

    pub(super) async fn commit(&mut self) -> Result<()> {
        self.batch("COMMIT").await?;
        self.in_transaction = false;
        Ok(())
    }

    /// Several statements without parameters.
    pub(super) async fn batch(&mut self, sql: &str) -> Result<()> {
        let pool = self.pool;
        let result =
            tokio::time::timeout(STATEMENT_TIMEOUT, self.opened().client.batch_execute(sql)).await;
        self.checked(result, pool)
    }

    pub(super) async fn query(
        &mut self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        let statement = self.prepared(sql).await?;
        let pool = self.pool;
        let result = tokio::time::timeout(
            STATEMENT_TIMEOUT,
            self.opened().client.query(&statement, values),
        )
        .await;
        self.checked(result, pool)
    }

    pub(super) async fn execute(
        &mut self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<u64> {
        let statement = self.prepared(sql).await?;
        let pool = self.pool;
        let result = tokio::time::timeout(
            STATEMENT_TIMEOUT,
            self.opened().client.execute(&statement, values),
        )
        .await;
        self.checked(result, pool)
    }

    pub(super) async fn prepared(&mut self, sql: &str) -> Result<Statement> {
        if let Some(statement) = self.opened().prepared.get(sql) {
            return Ok(statement.clone());
        }
        let pool = self.pool;
        let result =
            tokio::time::timeout(STATEMENT_TIMEOUT, self.opened().client.prepare(sql)).await;
        let statement = self.checked(result, pool)?;
        let prepared = &mut self.opened().prepared;
        if prepared.len() == MAX_PREPARED_STATEMENTS {
            prepared.clear();
        }
        prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn checked<T>(
        &mut self,
        result: std::result::Result<
            std::result::Result<T, tokio_postgres::Error>,
            tokio::time::error::Elapsed,
        >,
        pool: &Pool,
    ) -> Result<T> {
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                self.is_broken = self.is_broken || error.is_closed();
                Err(pool.translate(&error))
            }
            Err(elapsed) => {
                // A late response must not reach the next user of the connection.
                self.is_broken = true;
                Err(pool.unavailable(elapsed))
            }
        }
    }
}
