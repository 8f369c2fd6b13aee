//! Who asks: tokens for programs, sessions for people, and how often one may
//! guess. Secrets are held only as hashes; sessions live in memory and end with
//! the process, with their token, or after half a day.

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
const SESSION: Duration = Duration::from_secs(12 * 3600);
const MOST_SESSIONS: usize = 1000;
/// How long an answer about a token may be believed: a revoked one ends within it.
const BELIEVED: Duration = Duration::from_secs(1);
/// Wrong tokens and logins from one address in a minute.
const GUESSES: u32 = 10;
const GUESS_WINDOW: Duration = Duration::from_secs(60);
const MOST_ADDRESSES: usize = 10_000;

/// Someone who may be here.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) token_id: i64,
    /// What a form must repeat; none for programs, whose token no site can send.
    pub(crate) csrf: Option<String>,
}

#[derive(Debug)]
struct Session {
    who: Who,
    ends: Instant,
}

type Hash = [u8; 32];

#[derive(Debug)]
pub(crate) struct Access {
    store: Store,
    sessions: Mutex<HashMap<Hash, Session>>,
    seen: Mutex<HashMap<Hash, (Token, Instant)>>,
    valid: tokio::sync::Mutex<Option<(Vec<i64>, Instant)>>,
    guesses: Mutex<HashMap<IpAddr, (Instant, u32)>>,
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
    // Nothing in here can be half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Access {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            sessions: Mutex::default(),
            seen: Mutex::default(),
            valid: tokio::sync::Mutex::default(),
            guesses: Mutex::default(),
        }
    }

    /// Who a request is from. A token that is sent and wrong is an error; a
    /// session that has ended is nobody.
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> Result<Option<Who>, Problem> {
        if let Some(value) = headers.get(header::AUTHORIZATION) {
            let text = value.to_str().unwrap_or_default();
            let secret = text
                .split_once(' ')
                .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
                .map(|(_, secret)| secret.trim());
            let Some(secret) = secret else {
                return Err(Problem::new(
                    StatusCode::UNAUTHORIZED,
                    "a bearer token is expected",
                ));
            };
            return self.token(secret, peer).await.map(Some);
        }
        let Some(hash) = cookie(headers).map(hash) else {
            return Ok(None);
        };
        let who = {
            let mut sessions = locked(&self.sessions);
            match sessions.get(&hash) {
                Some(session) if session.ends > Instant::now() => session.who.clone(),
                Some(_) => {
                    sessions.remove(&hash);
                    return Ok(None);
                }
                None => return Ok(None),
            }
        };
        match self.is_valid(who.token_id).await? {
            true => Ok(Some(who)),
            false => {
                locked(&self.sessions).remove(&hash);
                Ok(None)
            }
        }
    }

    /// The token of a secret. Guessing costs the guesser's address its tries.
    async fn token(&self, secret: &str, peer: IpAddr) -> Result<Who, Problem> {
        let hash = hash(secret);
        let known = locked(&self.seen)
            .get(&hash)
            .filter(|(_, at)| at.elapsed() < BELIEVED)
            .map(|(token, _)| token.clone());
        let token = match known {
            Some(token) => Some(token),
            None => {
                self.may_guess(peer)?;
                self.store.use_token(secret).await?
            }
        };
        let Some(token) = token else {
            self.guessed(peer);
            locked(&self.seen).remove(&hash);
            return Err(Problem::new(
                StatusCode::UNAUTHORIZED,
                "this token is unknown, was revoked or has expired",
            ));
        };
        let who = Who {
            name: token.name.clone(),
            role: token.role,
            token_id: token.token_id,
            csrf: None,
        };
        let mut seen = locked(&self.seen);
        if seen
            .get(&hash)
            .is_none_or(|(_, at)| at.elapsed() >= BELIEVED)
        {
            seen.retain(|_, (_, at)| at.elapsed() < BELIEVED);
            seen.insert(hash, (token, Instant::now()));
        }
        Ok(who)
    }

    /// Whether a token is still good, as of a second ago at most.
    pub(crate) async fn is_valid(&self, token_id: i64) -> Result<bool, Problem> {
        let mut valid = self.valid.lock().await;
        match valid.as_ref() {
            Some((ids, at)) if at.elapsed() < BELIEVED => Ok(ids.contains(&token_id)),
            _ => {
                let (tokens, now) = (self.store.tokens().await?, self.store.now().await?);
                let good = tokens.iter().filter(|token| token.is_valid(now));
                let ids: Vec<i64> = good.map(|token| token.token_id).collect();
                let is_valid = ids.contains(&token_id);
                *valid = Some((ids, Instant::now()));
                Ok(is_valid)
            }
        }
    }

    /// Forgets what was believed of tokens, after one was made or revoked here.
    pub(crate) async fn tokens_changed(&self) {
        *self.valid.lock().await = None;
        locked(&self.seen).clear();
    }

    /// Opens a session for the holder of a token; the value of its cookie.
    pub(crate) async fn log_in(&self, secret: &str, peer: IpAddr) -> Result<String, Problem> {
        self.may_guess(peer)?;
        self.guessed(peer);
        let Some(token) = self.store.use_token(secret.trim()).await? else {
            return Err(Problem {
                field: Some("token".to_owned()),
                ..Problem::new(
                    StatusCode::UNAUTHORIZED,
                    "This token is unknown, was revoked or has expired.",
                )
            });
        };
        let value = random().map_err(Problem::internal)?;
        let who = Who {
            name: token.name,
            role: token.role,
            token_id: token.token_id,
            csrf: Some(random().map_err(Problem::internal)?),
        };
        let now = Instant::now();
        let mut sessions = locked(&self.sessions);
        sessions.retain(|_, session| session.ends > now);
        if sessions.len() >= MOST_SESSIONS {
            let first = sessions
                .iter()
                .min_by_key(|(_, session)| session.ends)
                .map(|(hash, _)| *hash);
            first.map(|hash| sessions.remove(&hash));
        }
        let ends = now + SESSION;
        sessions.insert(hash(&value), Session { who, ends });
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

    fn may_guess(&self, peer: IpAddr) -> Result<(), Problem> {
        let guesses = locked(&self.guesses);
        match guesses.get(&peer) {
            Some((since, count)) if since.elapsed() < GUESS_WINDOW && *count >= GUESSES => {
                let left = GUESS_WINDOW.saturating_sub(since.elapsed()).as_secs() + 1;
                Err(Problem::too_many(
                    left,
                    "too many tries from this address; wait a minute",
                ))
            }
            _ => Ok(()),
        }
    }

    fn guessed(&self, peer: IpAddr) {
        let mut guesses = locked(&self.guesses);
        if guesses.len() >= MOST_ADDRESSES {
            guesses.retain(|_, (since, _)| since.elapsed() < GUESS_WINDOW);
        }
        let (since, count) = guesses.entry(peer).or_insert((Instant::now(), 0));
        if since.elapsed() >= GUESS_WINDOW {
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

/// Whether two secrets are the same, in a time that says nothing about either.
pub(crate) fn same(a: &str, b: &str) -> bool {
    let (a, b) = (hash(a), hash(b));
    a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}
