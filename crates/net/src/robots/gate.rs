//! Nothing is fetched before robots.txt was asked. One request for each host,
//! however many ask at once; the answer is kept in memory and in the store for
//! a day, and a host that is in trouble is "not now", never "yes".

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidings_store::{HostId, Moment, Robots, Store};
use tidings_url::{FetchUrl, ProxyHosts};

use super::rules::{RobotsRules, Verdict};
use crate::client::{Client, Redirects};
use crate::failure::{Class, Failure};
use crate::request::{Purpose, Request, Response};
use crate::retry_after::retry_after;

/// How long an answer holds (RFC 9309 §2.4).
const FRESH: Duration = Duration::from_secs(24 * 3600);

/// While a host is in trouble its last good answer serves so much longer.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// When a host that gave no answer is asked again, unless it says itself when
/// (`Retry-After`): then as soon as that, within reason.
const AGAIN: Duration = Duration::from_secs(600);
const SOONEST: Duration = Duration::from_secs(60);

/// All rules in memory together; when there are more, all are forgotten.
const MOST_WEIGHT: usize = 64 * 1024 * 1024;

/// Hosts in memory, with rules or without; when there are more, all are forgotten.
const MOST_HOSTS: usize = 100_000;

/// The name by which files address us.
pub(crate) const PRODUCT: &str = "Tidings";

type Clock = Arc<dyn Fn() -> Moment + Send + Sync>;

/// A URL that may be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permission {
    /// What the site asks for between two requests.
    pub crawl_delay: Option<Duration>,
    pub is_delay_clamped: bool,
    /// robots.txt was requested just now, so the host has had a request.
    pub was_asked: bool,
}

/// Asks robots.txt before everything else.
pub struct RobotsGate {
    client: Client,
    store: Option<Store>,
    proxies: ProxyHosts,
    clock: Clock,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    hosts: HashMap<HostId, Arc<HostPermit>>,
    weight: usize,
}

/// Whoever holds the lock asks; the others wait for the answer.
type HostPermit = tokio::sync::Mutex<Option<Known>>;

#[derive(Clone)]
struct Known {
    answer: Answer,
    until: Moment,
}

#[derive(Clone)]
enum Answer {
    Rules(Arc<RobotsRules>),
    NotNow(String),
}

impl fmt::Debug for RobotsGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RobotsGate of {} hosts", self.memory().hosts.len())
    }
}

impl RobotsGate {
    /// Answers are kept in the store if there is one, and in memory.
    pub fn new(client: Client, store: Option<Store>, proxies: ProxyHosts) -> Self {
        let clock = Arc::new(|| Moment(jiff::Timestamp::now().as_millisecond()));
        Self {
            client,
            store,
            proxies,
            clock,
            memory: Mutex::default(),
        }
    }

    /// Time comes from here, for tests.
    #[must_use]
    pub fn with_clock(self, clock: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        let clock = Arc::new(clock);
        Self { clock, ..self }
    }

    /// Whether this URL may be fetched; the failure says why not.
    pub async fn permit(&self, url: &FetchUrl) -> Result<Permission, Failure> {
        let (rules, was_asked) = self.ask(url).await?;
        match rules.verdict(url) {
            Verdict::Allowed => Ok(Permission {
                crawl_delay: rules.crawl_delay(),
                is_delay_clamped: rules.is_delay_clamped,
                was_asked,
            }),
            Verdict::Disallowed(rule) => Err(Failure::RobotsDisallowed {
                host: url.host().to_owned(),
                rule,
            }),
        }
    }

    /// All that the robots.txt of this URL's host says to us.
    pub async fn rules(&self, url: &FetchUrl) -> Result<Arc<RobotsRules>, Failure> {
        self.ask(url).await.map(|(rules, _)| rules)
    }

    async fn ask(&self, url: &FetchUrl) -> Result<(Arc<RobotsRules>, bool), Failure> {
        let host = HostId::of(&url.host_key(&self.proxies));
        let slot = self.slot(host);
        let mut known = slot.lock().await;
        let now = (self.clock)();
        let mut was_asked = false;
        let Known { answer, until } = match &*known {
            Some(known) if known.until > now => known.clone(),
            _ => {
                let (fresh, asked) = self.look_up(host, url, now).await?;
                was_asked = asked;
                self.note_weight(&fresh.answer);
                known.insert(fresh).clone()
            }
        };
        match answer {
            Answer::Rules(rules) => Ok((rules, was_asked)),
            Answer::NotNow(why) => Err(Failure::RobotsUnavailable {
                host: url.host().to_owned(),
                why,
                again: until.since(now),
            }),
        }
    }

    /// From the store if it is fresh there, else from the host.
    async fn look_up(
        &self,
        host: HostId,
        url: &FetchUrl,
        now: Moment,
    ) -> Result<(Known, bool), Failure> {
        let kept = match &self.store {
            Some(store) => store.robots(host).await.map_err(ours)?,
            None => None,
        };
        if let Some(kept) = &kept
            && kept.expires_at > now
        {
            return Ok((known(kept, kept.expires_at), false));
        }
        let answered = self.request(url).await?;
        let last_good = kept.filter(|kept| {
            let served_until = after(kept.fetched_at, FRESH + STALE);
            is_answer(kept.status) && served_until > now
        });
        let until = match (is_answer(answered.status), last_good) {
            (true, _) => after(now, FRESH),
            (false, Some(good)) => return Ok((known(&good, after(now, answered.again)), true)),
            (false, None) => after(now, answered.again),
        };
        let robots = Robots {
            status: answered.status,
            body: answered.body,
            fetched_at: now,
            expires_at: until,
        };
        if let Some(store) = &self.store {
            store.put_robots(host, &robots).await.map_err(ours)?;
        }
        Ok((known(&robots, until), true))
    }

    /// Asks the host. No usable answer is one too: status 0 and the reason.
    async fn request(&self, url: &FetchUrl) -> Result<Answered, Failure> {
        let address = url
            .join("/robots.txt")
            .map_err(|error| Failure::BadRedirect {
                why: error.to_string(),
            })?;
        let request = Request::get(address, Purpose::Robots);
        // Boxed: fetching with `Redirects::Ask` asks this gate in turn.
        let fetch = Box::pin(self.client.fetch(request, Redirects::Follow));
        Ok(match fetch.await {
            Ok(response) => Answered {
                status: response.status,
                again: asked_for(&response).unwrap_or(AGAIN),
                body: if response.is_success() {
                    String::from_utf8_lossy(&response.body).into_owned()
                } else {
                    format!("status {}", response.status)
                },
            },
            // The page would be refused for the same reason, and more clearly.
            Err(denied @ Failure::Egress(_)) => return Err(denied),
            // More than five redirects are as good as no file (RFC 9309 §2.3.1.2).
            Err(Failure::TooManyRedirects { .. } | Failure::RedirectLoop { .. }) => Answered {
                status: 310,
                body: String::new(),
                again: AGAIN,
            },
            Err(failure) => Answered {
                status: 0,
                body: failure.to_string(),
                again: AGAIN,
            },
        })
    }

    fn slot(&self, host: HostId) -> Arc<HostPermit> {
        let mut memory = self.memory();
        if memory.hosts.len() >= MOST_HOSTS {
            memory.hosts.clear();
            memory.weight = 0;
        }
        Arc::clone(memory.hosts.entry(host).or_default())
    }

    fn note_weight(&self, answer: &Answer) {
        let Answer::Rules(rules) = answer else {
            return;
        };
        let mut memory = self.memory();
        memory.weight += rules.weight();
        if memory.weight > MOST_WEIGHT {
            memory.hosts.clear();
            memory.weight = 0;
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // Slots are added and forgotten whole.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Answered {
    status: u16,
    /// The file, or why there is none.
    body: String,
    /// When to ask again if it is no answer.
    again: Duration,
}

fn asked_for(response: &Response) -> Option<Duration> {
    let header = response.header("retry-after")?;
    let wait = retry_after(header, jiff::Timestamp::now())?;
    Some(wait.clamp(SOONEST, AGAIN))
}

/// Whether a status says what the rules are: a file, or that there is none.
/// Everything else means that nobody knows.
fn is_answer(status: u16) -> bool {
    match Class::of_status(status) {
        None => status != 0,
        Some(Class::HttpPermanent | Class::Blocked) => true,
        Some(_) => false,
    }
}

fn known(robots: &Robots, until: Moment) -> Known {
    let answer = match robots.status {
        200..=299 => {
            let rules = RobotsRules::parse(robots.body.as_bytes(), PRODUCT);
            Answer::Rules(Arc::new(rules))
        }
        status if is_answer(status) => Answer::Rules(Arc::default()),
        _ => Answer::NotNow(robots.body.clone()),
    };
    Known { answer, until }
}

fn after(moment: Moment, wait: Duration) -> Moment {
    Moment(moment.0.saturating_add(wait.as_millis() as i64))
}

fn ours(error: tidings_store::StoreError) -> Failure {
    Failure::Store {
        why: error.to_string(),
    }
}
