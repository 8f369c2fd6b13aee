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

pub(crate) const COOKIE: &str = "tidings_session";
const SESSION_TTL: Duration = Duration::from_secs(12 * 3600);
const MAX_SESSIONS: usize = 1000;
/// How long a token lookup is cached: a revoked token stops working within it.
const TOKEN_CACHE_TTL: Duration = Duration::from_secs(1);
/// Token lookups and logins of one address per window.
const MAX_ATTEMPTS: u32 = 10;
const ATTEMPT_WINDOW: Duration = Duration::from_secs(60);
const MAX_ADDRESSES: usize = 10_000;

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
    attempts: Mutex<HashMap<IpAddr, (Instant, u32)>>,
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
            attempts: Mutex::default(),
        }
    }

    /// The sender of a request. An invalid token is an error; an expired session is
    /// `None`.
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> Result<Option<Principal>, Problem> {
        self.identify_at(headers, peer, Instant::now()).await
    }

    async fn identify_at(
        &self,
        headers: &HeaderMap,
        peer: IpAddr,
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
            return self.token(secret, peer).await.map(Some);
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

    /// Looks up a secret. Failed lookups count against the address.
    async fn token(&self, secret: &str, peer: IpAddr) -> Result<Principal, Problem> {
        let hash = hash(secret);
        let known = locked(&self.cached)
            .get(&hash)
            .filter(|(_, at)| at.elapsed() < TOKEN_CACHE_TTL)
            .map(|(token, _)| token.clone());
        let token = match known {
            Some(token) => Some(token),
            None => {
                self.check_attempts(peer)?;
                self.store.use_token(secret).await?
            }
        };
        let Some(token) = token else {
            self.count_attempt(peer);
            locked(&self.cached).remove(&hash);
            return Err(Problem::new(
                StatusCode::UNAUTHORIZED,
                "the token is unknown, revoked or expired",
            ));
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
    pub(crate) async fn log_in(&self, secret: &str, peer: IpAddr) -> Result<String, Problem> {
        self.check_attempts(peer)?;
        self.count_attempt(peer);
        let Some(token) = self.store.use_token(secret.trim()).await? else {
            return Err(Problem {
                field: Some("token".to_owned()),
                ..Problem::new(
                    StatusCode::UNAUTHORIZED,
                    "The token is unknown, revoked or expired.",
                )
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

    fn check_attempts(&self, peer: IpAddr) -> Result<(), Problem> {
        let attempts = locked(&self.attempts);
        match attempts.get(&peer) {
            Some((since, count)) if since.elapsed() < ATTEMPT_WINDOW && *count >= MAX_ATTEMPTS => {
                let left = ATTEMPT_WINDOW.saturating_sub(since.elapsed()).as_secs() + 1;
                Err(Problem::too_many(
                    left,
                    "too many failed attempts from this address; retry after 60 s",
                ))
            }
            _ => Ok(()),
        }
    }

    fn count_attempt(&self, peer: IpAddr) {
        let mut attempts = locked(&self.attempts);
        if attempts.len() >= MAX_ADDRESSES {
            attempts.retain(|_, (since, _)| since.elapsed() < ATTEMPT_WINDOW);
        }
        let (since, count) = attempts.entry(peer).or_insert((Instant::now(), 0));
        if since.elapsed() >= ATTEMPT_WINDOW {
            (*since, *count) = (Instant::now(), 0);
        }
        *count += 1;
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
        let (access, peer) = (Access::new(store), IpAddr::from([127, 0, 0, 1]));
        let before = Instant::now();
        let value = access.log_in(&secret, peer).await.unwrap();
        let after = Instant::now();
        let mut headers = HeaderMap::new();
        let cookie = format!("{COOKIE}={value}").parse().unwrap();
        headers.insert(header::COOKIE, cookie);
        let half_a_day = Duration::from_secs(12 * 3600);
        let is_known = async |at: Instant| {
            let found = access.identify_at(&headers, peer, at).await.unwrap();
            found.is_some()
        };
        assert!(is_known(after).await);
        assert!(is_known(before + half_a_day - Duration::from_secs(1)).await);
        assert!(!is_known(after + half_a_day).await, "it has ended");
        assert_eq!(access.sessions(), 0, "and is forgotten");
    }
}
