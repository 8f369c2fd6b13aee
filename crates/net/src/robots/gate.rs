//! Nothing is fetched before the robots.txt of its host. One request per host,
//! however many URLs wait for it; the rules are cached in memory and in the
//! [`RobotsCache`] for a day, and a host that fails is "not now", never "yes".

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tidings_url::{FetchUrl, HostKey, ProxyHosts};

use super::cache::{RobotsCache, RobotsCacheError, RobotsRecord};
use super::rules::{RobotsRules, Verdict, product_of};
use crate::client::{Client, RedirectCheck, Redirects};
use crate::failure::{Class, Failure};
use crate::request::{Purpose, Request, Response};
use crate::retry_after::retry_after;

/// How long a file is valid (RFC 9309 §2.4).
const FRESH_TTL: Duration = Duration::from_secs(24 * 3600);

/// While a host fails, its last good file is valid for this much longer.
const STALE_TTL: Duration = Duration::from_secs(24 * 3600);

/// When a failed request is retried, unless the host says when (`Retry-After`):
/// then as soon as that, but no sooner than the minimum.
const RETRY_INTERVAL: Duration = Duration::from_secs(600);
const MIN_RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// All rules in memory together; when there are more, all are evicted.
const MAX_MEMORY_BYTES: usize = 64 * 1024 * 1024;

/// Hosts in memory, with rules or without; when there are more, all are evicted.
const MAX_HOSTS: usize = 100_000;

type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A URL that may be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permission {
    /// The delay that the site wants between two requests.
    pub crawl_delay: Option<Duration>,
    pub is_delay_clamped: bool,
    /// robots.txt was requested just now, so the host has had a request.
    pub was_fetched: bool,
}

/// Checks robots.txt before everything else.
pub struct RobotsGate {
    client: Client,
    cache: Option<Arc<dyn RobotsCache>>,
    clock: Clock,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    hosts: HashMap<HostKey, Arc<HostEntry>>,
    bytes: usize,
}

/// Whoever holds the lock fetches; the others wait for the result.
type HostEntry = tokio::sync::Mutex<Option<CachedPolicy>>;

#[derive(Clone)]
struct CachedPolicy {
    policy: Policy,
    expires_at: Timestamp,
}

#[derive(Clone)]
enum Policy {
    Rules(Arc<RobotsRules>),
    Unavailable(String),
}

impl fmt::Debug for RobotsGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RobotsGate of {} hosts", self.memory().hosts.len())
    }
}

impl RobotsGate {
    /// Files are cached in memory, and in `cache` if there is one.
    pub fn new(client: Client, cache: Option<Arc<dyn RobotsCache>>) -> Self {
        Self {
            client,
            cache,
            clock: Arc::new(Timestamp::now),
            memory: Mutex::default(),
        }
    }

    /// Time comes from here, for tests.
    #[must_use]
    pub fn with_clock(self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let clock = Arc::new(clock);
        Self { clock, ..self }
    }

    /// Whether this URL may be fetched; the failure says why not.
    pub async fn permit(&self, url: &FetchUrl) -> Result<Permission, Failure> {
        self.permit_with(url, Redirects::Follow).await
    }

    /// The same; `redirects` decides about those of robots.txt itself.
    pub async fn permit_with(
        &self,
        url: &FetchUrl,
        redirects: Redirects<'_>,
    ) -> Result<Permission, Failure> {
        let (rules, was_fetched) = self.host_rules(url, redirects).await?;
        match rules.verdict(url) {
            Verdict::Allowed => Ok(Permission {
                crawl_delay: rules.crawl_delay(),
                is_delay_clamped: rules.is_delay_clamped,
                was_fetched,
            }),
            Verdict::Disallowed(rule) => Err(Failure::RobotsDisallowed {
                host: url.host().to_owned(),
                rule,
            }),
        }
    }

    /// All that the robots.txt of this URL's host says to us.
    pub async fn rules(&self, url: &FetchUrl) -> Result<Arc<RobotsRules>, Failure> {
        let found = self.host_rules(url, Redirects::Follow).await;
        found.map(|(rules, _)| rules)
    }

    /// The rules of a host, and whether they were requested just now.
    async fn host_rules(
        &self,
        url: &FetchUrl,
        redirects: Redirects<'_>,
    ) -> Result<(Arc<RobotsRules>, bool), Failure> {
        // A gateway has one file for all that it serves.
        let host = url.host_key(&ProxyHosts::default());
        let entry = self.entry(&host);
        let mut cached = entry.lock().await;
        let now = (self.clock)();
        let mut was_fetched = false;
        let CachedPolicy { policy, expires_at } = match &*cached {
            Some(cached) if cached.expires_at > now => cached.clone(),
            _ => {
                let (fresh, fetched) = self.look_up(&host, url, now, redirects).await?;
                was_fetched = fetched;
                self.count_bytes(&fresh.policy);
                cached.insert(fresh).clone()
            }
        };
        match policy {
            Policy::Rules(rules) => Ok((rules, was_fetched)),
            Policy::Unavailable(why) => Err(Failure::RobotsUnavailable {
                host: url.host().to_owned(),
                why,
                retry_in: Duration::try_from(expires_at.duration_since(now)).unwrap_or_default(),
            }),
        }
    }

    /// From the cache if it is fresh there, else from the host.
    async fn look_up(
        &self,
        host: &HostKey,
        url: &FetchUrl,
        now: Timestamp,
        redirects: Redirects<'_>,
    ) -> Result<(CachedPolicy, bool), Failure> {
        let stored = match &self.cache {
            Some(cache) => cache.get(host).await.map_err(cache_failure)?,
            None => None,
        };
        if let Some(stored) = &stored
            && stored.expires_at > now
        {
            return Ok((self.policy(stored, stored.expires_at), false));
        }
        let fetched = self.request(url, redirects).await?;
        let last_good = stored.filter(|stored| {
            let served_until = after(stored.fetched_at, FRESH_TTL + STALE_TTL);
            is_conclusive(stored.status) && served_until > now
        });
        let expires_at = match (is_conclusive(fetched.status), last_good) {
            (true, _) => after(now, FRESH_TTL),
            (false, Some(good)) => {
                return Ok((self.policy(&good, after(now, fetched.retry_in)), true));
            }
            (false, None) => after(now, fetched.retry_in),
        };
        let record = RobotsRecord {
            status: fetched.status,
            body: fetched.body,
            fetched_at: now,
            expires_at,
        };
        if let Some(cache) = &self.cache {
            cache.put(host, &record).await.map_err(cache_failure)?;
        }
        Ok((self.policy(&record, expires_at), true))
    }

    fn policy(&self, record: &RobotsRecord, expires_at: Timestamp) -> CachedPolicy {
        let policy = match record.status {
            200..=299 => {
                let product = product_of(self.client.user_agent());
                let rules = RobotsRules::parse(record.body.as_bytes(), product);
                Policy::Rules(Arc::new(rules))
            }
            status if is_conclusive(status) => Policy::Rules(Arc::default()),
            _ => Policy::Unavailable(record.body.clone()),
        };
        CachedPolicy { policy, expires_at }
    }

    /// Requests the file. No usable response is a result too: status 0 and the reason.
    async fn request(
        &self,
        url: &FetchUrl,
        redirects: Redirects<'_>,
    ) -> Result<FetchedFile, Failure> {
        let address = url
            .join("/robots.txt")
            .map_err(|error| Failure::BadRedirect {
                why: error.to_string(),
            })?;
        let request = Request::get(address, Purpose::Robots);
        // Boxed: fetching with `Redirects::Check` calls this gate recursively.
        let fetch = Box::pin(self.client.fetch(request, redirects));
        Ok(match fetch.await {
            Ok(response) => FetchedFile {
                status: response.status,
                retry_in: requested_delay(&response).unwrap_or(RETRY_INTERVAL),
                body: if response.is_success() {
                    String::from_utf8_lossy(&response.body).into_owned()
                } else {
                    format!("status {}", response.status)
                },
            },
            // The page would be refused for the same reason, and more clearly.
            Err(denied @ Failure::Egress(_)) => return Err(denied),
            // Nothing was learned about this host.
            Err(ours @ Failure::HostBusy { .. }) => return Err(ours),
            Err(ours) if ours.class() == Class::Internal => return Err(ours),
            // More than five redirects are as good as no file (RFC 9309 §2.3.1.2).
            Err(Failure::TooManyRedirects { .. } | Failure::RedirectLoop { .. }) => FetchedFile {
                status: 310,
                body: String::new(),
                retry_in: RETRY_INTERVAL,
            },
            Err(failure) => FetchedFile {
                status: 0,
                body: failure.to_string(),
                retry_in: RETRY_INTERVAL,
            },
        })
    }

    fn entry(&self, host: &HostKey) -> Arc<HostEntry> {
        let mut memory = self.memory();
        if memory.hosts.len() >= MAX_HOSTS {
            memory.evict_all();
        }
        Arc::clone(memory.hosts.entry(host.clone()).or_default())
    }

    fn count_bytes(&self, policy: &Policy) {
        let Policy::Rules(rules) = policy else {
            return;
        };
        let mut memory = self.memory();
        memory.bytes += rules.memory_bytes();
        if memory.bytes > MAX_MEMORY_BYTES {
            memory.evict_all();
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // Entries are added and evicted whole.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn evict_all(&mut self) {
        self.hosts.clear();
        self.bytes = 0;
    }
}

struct FetchedFile {
    status: u16,
    /// The file, or why there is none.
    body: String,
    /// When to retry if the status is not conclusive.
    retry_in: Duration,
}

fn requested_delay(response: &Response) -> Option<Duration> {
    let header = response.header("retry-after")?;
    let wait = retry_after(header, Timestamp::now())?;
    Some(wait.clamp(MIN_RETRY_INTERVAL, RETRY_INTERVAL))
}

/// Whether a status decides what the rules are: a file, or that there is none.
/// Everything else leaves them unknown.
fn is_conclusive(status: u16) -> bool {
    match Class::of_status(status) {
        None => status != 0,
        Some(Class::HttpPermanent | Class::Blocked) => true,
        Some(_) => false,
    }
}

fn after(start: Timestamp, wait: Duration) -> Timestamp {
    start.checked_add(wait).unwrap_or(Timestamp::MAX)
}

fn cache_failure(error: RobotsCacheError) -> Failure {
    Failure::Store {
        why: error.to_string(),
    }
}

/// Followed where the robots.txt of the target allows it.
#[async_trait]
impl RedirectCheck for RobotsGate {
    async fn check_redirect(&self, _from: &FetchUrl, to: &FetchUrl) -> Result<(), Failure> {
        self.permit(to).await.map(drop)
    }
}
