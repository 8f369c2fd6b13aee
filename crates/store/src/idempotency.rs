//! Idempotent requests: the first response is stored under the key that the client
//! chose, and replayed.

use sha2::{Digest, Sha256};

use crate::engine::{Statement, Value};
use crate::error::{Result, StoreError};
use crate::store::Store;

/// Responses that are longer are not stored, in bytes.
pub const MAX_STORED_RESPONSE: usize = 64 * 1024;

/// What to do with a request that carries a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Replay {
    /// It is the first: execute it, then store the response. Also after a first one
    /// that never finished: submits are idempotent.
    First,
    /// It was executed; this was the response.
    Done(String),
}

impl Store {
    /// Checks whether a request was executed before. Rejects a key that was used
    /// for another body.
    pub async fn begin_idempotent(&self, key: &str, body: &[u8]) -> Result<Replay> {
        let now = self.now().await?;
        let hash = Sha256::digest(body).to_vec();
        let insert = "INSERT INTO idempotency (idempotency_key, body_hash, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
        let statements = vec![
            Statement::new(
                insert,
                [
                    Value::from(key),
                    Value::Bytes(hash.clone()),
                    Value::from(now),
                ],
            ),
            Statement::new(
                "SELECT body_hash, result FROM idempotency WHERE idempotency_key = $1",
                [Value::from(key)],
            ),
        ];
        let results = self.run(statements).await?;
        let row = results[1]
            .rows
            .first()
            .ok_or_else(|| StoreError::not_found("idempotency key"))?;
        if row.optional_bytes(0)? != Some(&hash[..]) {
            return Err(StoreError::Conflict(format!(
                "the idempotency key {key:?} was used for another request"
            )));
        }
        Ok(row.optional_text(1)?.map_or(Replay::First, Replay::Done))
    }

    /// Stores the response for replay, of at most [`MAX_STORED_RESPONSE`] bytes.
    pub async fn finish_idempotent(&self, key: &str, result: &str) -> Result<()> {
        if result.len() > MAX_STORED_RESPONSE {
            return Err(StoreError::Conflict(format!(
                "a response of {} bytes is too long to be stored for the idempotency key {key:?}",
                result.len()
            )));
        }
        let sql = "UPDATE idempotency SET result = $1 WHERE idempotency_key = $2";
        self.execute(Statement::new(sql, [Value::from(result), Value::from(key)]))
            .await
            .map(drop)
    }
}
