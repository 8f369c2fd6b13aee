//! Authentication: tokens for programs, sessions for browsers, and a limit on failed
//! attempts. Secrets are held only as hashes; sessions live in memory and end with the
//! process, with their token, or after half a day.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, StatusCode, header};
use sha2::{Digest as _, Sha256};
use tidings_store::{Role, Store, Token};

use crate::problem::Problem;
use crate::rate_limit::RateLimit;
use crate::sender::Sender;

pub(crate) const COOKIE: &str = "tidings_session";
const SESSION_TTL: Duration = Duration::from_secs(12 * 3600);
const MAX_SESSIONS: usize = 1000;
/// How long a token lookup is cached: a revoked token stops working within it.
const TOKEN_CACHE_TTL: Duration = Duration::from_secs(1);
/// Failed lookups and logins per minute, of one client or with one prefix.
const MAX_FAILURES: u32 = 10;
/// The part of a wrong token that counts as one: `tdg_` and some of its secret.
const PREFIX_CHARS: usize = 12;

/// An authenticated user or program.
#[derive(Debug, Clone)]
pub(crate) struct Principal {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) token_id: i64,
    /// What forms must repeat; `None` for bearer tokens, which no other site can send.
    pub(crate) csrf: Option<String>,
}

#[derive(Debug)]
struct Session {
    principal: Principal,
    ends: Instant,
}

type Hash = [u8; 32];

#[derive(Debug)]
pub(crate) struct Access {
    store: Store,
    sessions: Mutex<HashMap<Hash, Session>>,
    cached: Mutex<HashMap<Hash, (Token, Instant)>>,
    valid: tokio::sync::Mutex<Option<(Vec<i64>, Instant)>>,
    failures: Mutex<Failures>,
}

/// Failed attempts. They never count against a token that is valid.
#[derive(Debug, Default)]
struct Failures {
    clients: RateLimit<IpAddr>,
    prefixes: RateLimit<String>,
}

/// A secret of 256 random bits, easy to copy.
pub fn new_secret() -> Result<String, String> {
    Ok(format!("tdg_{}", random()?))
}

pub(crate) fn random() -> Result<String, String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn hash(secret: &str) -> Hash {
    Sha256::digest(secret).into()
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // No value in here is ever half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Access {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            sessions: Mutex::default(),
            cached: Mutex::default(),
            valid: tokio::sync::Mutex::default(),
            failures: Mutex::default(),
        }
    }

    /// The sender of a request. An invalid token is an error; an expired session is
    /// `None`.
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        sender: Sender,
    ) -> Result<Option<Principal>, Problem> {
        self.identify_at(headers, sender, Instant::now()).await
    }

    async fn identify_at(
        &self,
        headers: &HeaderMap,
        sender: Sender,
        now: Instant,
    ) -> Result<Option<Principal>, Problem> {
        if let Some(value) = headers.get(header::AUTHORIZATION) {
            let text = value.to_str().unwrap_or_default();
            let secret = text
                .split_once(' ')
                .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
                .map(|(_, secret)| secret.trim());
            let Some(secret) = secret else {
                return Err(Problem::new(
                    StatusCode::UNAUTHORIZED,
                    "the Authorization header has no bearer token",
                ));
            };
            return self.token(secret, sender).await.map(Some);
        }
        let Some(hash) = cookie(headers).map(hash) else {
            return Ok(None);
        };
        let principal = {
            let mut sessions = locked(&self.sessions);
            match sessions.get(&hash) {
                Some(session) if session.ends > now => session.principal.clone(),
                Some(_) => {
                    sessions.remove(&hash);
                    return Ok(None);
                }
                None => return Ok(None),
            }
        };
        match self.is_valid(principal.token_id).await? {
            true => Ok(Some(principal)),
            false => {
                locked(&self.sessions).remove(&hash);
                Ok(None)
            }
        }
    }

    /// Looks up a secret.
    async fn token(&self, secret: &str, sender: Sender) -> Result<Principal, Problem> {
        let hash = hash(secret);
        let known = locked(&self.cached)
            .get(&hash)
            .filter(|(_, at)| at.elapsed() < TOKEN_CACHE_TTL)
            .map(|(token, _)| token.clone());
        let token = match known {
            Some(token) => Some(token),
            None => self.store.use_token(secret).await?,
        };
        let Some(token) = token else {
            locked(&self.cached).remove(&hash);
            return Err(self.failed(secret, sender));
        };
        let principal = Principal {
            name: token.name.clone(),
            role: token.role,
            token_id: token.token_id,
            csrf: None,
        };
        let mut cached = locked(&self.cached);
        if cached
            .get(&hash)
            .is_none_or(|(_, at)| at.elapsed() >= TOKEN_CACHE_TTL)
        {
            cached.retain(|_, (_, at)| at.elapsed() < TOKEN_CACHE_TTL);
            cached.insert(hash, (token, Instant::now()));
        }
        Ok(principal)
    }

    /// Whether a token is valid, as of at most a second ago.
    pub(crate) async fn is_valid(&self, token_id: i64) -> Result<bool, Problem> {
        let mut valid = self.valid.lock().await;
        match valid.as_ref() {
            Some((ids, at)) if at.elapsed() < TOKEN_CACHE_TTL => Ok(ids.contains(&token_id)),
            _ => {
                let (tokens, now) = (self.store.tokens().await?, self.store.now().await?);
                let valid_tokens = tokens.iter().filter(|token| token.is_valid(now));
                let ids: Vec<i64> = valid_tokens.map(|token| token.token_id).collect();
                let is_valid = ids.contains(&token_id);
                *valid = Some((ids, Instant::now()));
                Ok(is_valid)
            }
        }
    }

    /// Clears the cached lookups, after a token was created or revoked here.
    pub(crate) async fn tokens_changed(&self) {
        *self.valid.lock().await = None;
        locked(&self.cached).clear();
    }

    /// Opens a session for the holder of a token; the value of its cookie.
    pub(crate) async fn log_in(&self, secret: &str, sender: Sender) -> Result<String, Problem> {
        let secret = secret.trim();
        let Some(token) = self.store.use_token(secret).await? else {
            return Err(Problem {
                field: Some("token".to_owned()),
                ..self.failed(secret, sender)
            });
        };
        let value = random().map_err(Problem::internal)?;
        let principal = Principal {
            name: token.name,
            role: token.role,
            token_id: token.token_id,
            csrf: Some(random().map_err(Problem::internal)?),
        };
        let now = Instant::now();
        let mut sessions = locked(&self.sessions);
        sessions.retain(|_, session| session.ends > now);
        if sessions.len() >= MAX_SESSIONS {
            let first = sessions
                .iter()
                .min_by_key(|(_, session)| session.ends)
                .map(|(hash, _)| *hash);
            first.map(|hash| sessions.remove(&hash));
        }
        let ends = now + SESSION_TTL;
        sessions.insert(hash(&value), Session { principal, ends });
        Ok(value)
    }

    pub(crate) fn log_out(&self, headers: &HeaderMap) {
        if let Some(value) = cookie(headers) {
            locked(&self.sessions).remove(&hash(value));
        }
    }

    pub(crate) fn sessions(&self) -> usize {
        locked(&self.sessions).len()
    }

    /// Counts a failed attempt, unless there were too many: then the problem is that.
    fn failed(&self, secret: &str, sender: Sender) -> Problem {
        let (client, now) = (sender.client(), Instant::now());
        let prefix: String = secret.chars().take(PREFIX_CHARS).collect();
        let mut failures = locked(&self.failures);
        let by_client = failures.clients.retry_after(&client, MAX_FAILURES, now);
        let by_prefix = failures.prefixes.retry_after(&prefix, MAX_FAILURES, now);
        if let Some(seconds) = by_client.max(by_prefix) {
            let why = "the token is unknown, revoked or expired, and this was tried too often";
            return Problem::too_many(seconds, why);
        }
        failures.clients.count(client, now);
        failures.prefixes.count(prefix, now);
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "the token is unknown, revoked or expired",
        )
    }
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter();
    let pairs = all
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'));
    pairs
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, _)| *name == COOKIE)
        .map(|(_, value)| value)
}

/// Compares two secrets in constant time.
pub(crate) fn constant_time_eq(a: &str, b: &str) -> bool {
    let (a, b) = (hash(a), hash(b));
    a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use tidings_store::StoreOptions;

    #[tokio::test]
    async fn a_session_ends_after_half_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
        let options = StoreOptions::default();
        let store = Store::open(&address, &options).await.unwrap();
        let secret = new_secret().unwrap();
        store
            .add_token("me", Role::Viewer, &secret, None)
            .await
            .unwrap();
        let access = Access::new(store);
        let sender = Sender {
            address: IpAddr::from([127, 0, 0, 1]),
            is_https: false,
        };
        let before = Instant::now();
        let value = access.log_in(&secret, sender).await.unwrap();
        let after = Instant::now();
        let mut headers = HeaderMap::new();
        let cookie = format!("{COOKIE}={value}").parse().unwrap();
        headers.insert(header::COOKIE, cookie);
        let half_a_day = Duration::from_secs(12 * 3600);
        let is_known = async |at: Instant| {
            let found = access.identify_at(&headers, sender, at).await.unwrap();
            found.is_some()
        };
        assert!(is_known(after).await);
        assert!(is_known(before + half_a_day - Duration::from_secs(1)).await);
        assert!(!is_known(after + half_a_day).await, "it has ended");
        assert_eq!(access.sessions(), 0, "and is forgotten");
    }
}
