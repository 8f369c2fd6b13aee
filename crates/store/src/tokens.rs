//! API tokens: stored as hashes only, so that the store can't leak them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::engine::{Row, Statement, Value};
use crate::error::{Result, StoreError};
use crate::ids::new_id;
use crate::moment::Moment;
use crate::store::Store;

/// What the holder of a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Viewer,
    Operator,
    Admin,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        [Self::Viewer, Self::Operator, Self::Admin]
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| format!("{text:?} is not one of viewer, operator, admin"))
    }
}

/// A token without its secret.
#[derive(Debug, Clone, Serialize)]
pub struct Token {
    pub token_id: i64,
    pub name: String,
    pub role: Role,
    pub created_at: Moment,
    pub last_used_at: Option<Moment>,
    pub revoked_at: Option<Moment>,
    /// None: until it is revoked.
    pub expires_at: Option<Moment>,
}

impl Token {
    pub fn is_valid(&self, now: Moment) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| at > now)
    }
}

const SELECT: &str =
    "SELECT token_id, name, role, created_at, last_used_at, revoked_at, expires_at FROM tokens";

fn token(row: &Row) -> Result<Token> {
    Ok(Token {
        token_id: row.int(0)?,
        name: row.text(1)?,
        role: row
            .text(2)?
            .parse()
            .map_err(|error: String| StoreError::corrupt("token role", error))?,
        created_at: row.moment(3)?,
        last_used_at: row.optional_moment(4)?,
        revoked_at: row.optional_moment(5)?,
        expires_at: row.optional_moment(6)?,
    })
}

fn hash(secret: &str) -> Value {
    Value::Bytes(Sha256::digest(secret).to_vec())
}

impl Store {
    /// Adds a token by the hash of its secret, which must be random; it is valid for
    /// `ttl`, or until it is revoked.
    pub async fn add_token(
        &self,
        name: &str,
        role: Role,
        secret: &str,
        ttl: Option<Duration>,
    ) -> Result<i64> {
        let now = self.now().await?;
        let sql = "INSERT INTO tokens (token_id, name, role, token_hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)";
        let insert = || {
            let id = new_id(now);
            let values = [
                Value::Int(id),
                Value::from(name),
                Value::from(role.as_str()),
                hash(secret),
                Value::from(now),
                Value::from(ttl.map(|ttl| now.plus(ttl))),
            ];
            (id, vec![Statement::new(sql, values)])
        };
        Ok(self.run_with_new_ids(insert).await?.0)
    }

    /// The token of this secret, unless it was revoked or has expired. Records its
    /// use.
    pub async fn use_token(&self, secret: &str) -> Result<Option<Token>> {
        let now = self.now().await?;
        let statements = vec![
            Statement::new(
                "UPDATE tokens SET last_used_at = $1 WHERE token_hash = $2 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3)",
                [Value::from(now), hash(secret), Value::from(now)],
            ),
            Statement::new(
                format!("{SELECT} WHERE token_hash = $1 AND revoked_at IS NULL"),
                [hash(secret)],
            ),
        ];
        let found = self.run(statements).await?[1]
            .rows
            .first()
            .map(token)
            .transpose()?;
        Ok(found.filter(|token| token.is_valid(now)))
    }

    pub async fn revoke_token(&self, id: i64) -> Result<()> {
        let now = self.now().await?;
        let sql = "UPDATE tokens SET revoked_at = $1 WHERE token_id = $2 AND revoked_at IS NULL";
        match self
            .execute(Statement::new(sql, [Value::from(now), Value::Int(id)]))
            .await?
        {
            0 => Err(StoreError::not_found(format!("valid token {id}"))),
            _ => Ok(()),
        }
    }

    pub async fn tokens(&self) -> Result<Vec<Token>> {
        self.rows(Statement::new(format!("{SELECT} ORDER BY token_id"), []))
            .await?
            .iter()
            .map(token)
            .collect()
    }
}
