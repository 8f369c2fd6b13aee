//! The values of the frontier: submissions, claims and completions. The operations
//! are methods of [`Store`](crate::Store).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidings_url::{FetchUrl, HostKey, UrlKey};

use crate::ids::FrontierId;
use crate::moment::Moment;
use crate::new_document::NewDocument;

/// Lowest and highest priority; higher is sooner.
pub(crate) const PRIORITIES: std::ops::RangeInclusive<u8> = 1..=10;

/// How a URL was discovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    Feed,
    Sitemap,
    Spider,
    Manual,
    Api,
    Agent,
}

/// The status of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    Fetching,
    Fetched,
    /// LeaseSql for a retry.
    Failed,
    Dead,
}

/// Maps an enum to its code in the schema and its name everywhere else.
macro_rules! coded {
    ($name:ident, $what:literal, $($variant:ident = $code:literal $word:literal),+) => {
        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub(crate) fn code(self) -> i16 {
                match self { $(Self::$variant => $code),+ }
            }

            pub(crate) fn from_code(code: i64) -> crate::error::Result<Self> {
                match code {
                    $($code => Ok(Self::$variant),)+
                    _ => Err(crate::StoreError::corrupt($what, code)),
                }
            }

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let known = || [$($word),+].join(", ");
                Self::ALL.iter().copied().find(|value| value.as_str() == text)
                    .ok_or_else(|| format!("{text:?} is not one of {}", known()))
            }
        }
    };
}

coded!(Origin, "origin", Feed = 0 "feed", Sitemap = 1 "sitemap", Spider = 2 "spider", Manual = 3 "manual", Api = 4 "api", Agent = 5 "agent");
coded!(Status, "status", Pending = 0 "pending", Fetching = 1 "fetching", Fetched = 2 "fetched", Failed = 3 "failed", Dead = 4 "dead");

/// A discovered URL, with its identity already computed.
#[derive(Debug, Clone)]
pub struct Submission {
    pub target: Target,
    pub source_id: i64,
    pub origin: Origin,
    /// 1 to 10; others are clamped to that range.
    pub priority: u8,
    pub depth: u16,
    pub parent_url: Option<String>,
    /// The feed item, as JSON; stored with the URL and passed on to the document.
    pub item: Option<String>,
    /// The earliest time of the first fetch; immediately when none is set.
    pub not_before: Option<Moment>,
    /// Submitted only if the source has not listed this title before.
    pub title: Option<TitleHash>,
    /// Under another URL this is the same item: the URL becomes an alias.
    pub guid: Option<GuidHash>,
}

impl Submission {
    /// A submission with only a URL and its origin.
    pub fn new(target: Target, origin: Origin) -> Self {
        Self {
            target,
            source_id: 0,
            origin,
            priority: 5,
            depth: 0,
            parent_url: None,
            item: None,
            not_before: None,
            title: None,
            guid: None,
        }
    }
}

/// A URL with its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub url: FetchUrl,
    pub key: UrlKey,
    pub host: HostKey,
}

impl Target {
    pub fn id(&self) -> FrontierId {
        FrontierId::of(&self.host, &self.key)
    }
}

/// The hash of a title within a week.
pub type TitleHash = [u8; 16];

/// The hash of an item's guid.
pub type GuidHash = [u8; 16];

/// The result for one submitted URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was unknown and is queued now.
    New,
    /// It was pending and now has a higher priority or an earlier due time.
    Raised,
    /// It was known; nothing changed.
    Known,
}

/// Whether a URL would be new, and if not, by what it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Newness {
    New,
    /// Its URL is in the frontier, or an alias of one that is.
    Url,
    /// The source has listed its guid with another URL.
    Guid,
    /// The source has listed its title this week.
    Title,
}

/// A request of a worker for leases.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The worker, for events and operators.
    pub owner: i64,
    pub max_hosts: u16,
    /// URLs of one host in one claim. The worker fetches them one after the
    /// other; more than one only makes sense for hosts without a delay.
    pub per_host: u16,
    pub lease: Duration,
    /// A URL whose lease expired this often without completion is quarantined.
    pub quarantine_after: u16,
}

impl ClaimRequest {
    /// One URL of each of `max_hosts` hosts, leased for a minute.
    pub fn new(owner: i64, max_hosts: u16) -> Self {
        Self {
            owner,
            max_hosts,
            per_host: 1,
            lease: Duration::from_secs(60),
            quarantine_after: 3,
        }
    }
}

/// The result of a claim.
#[derive(Debug)]
pub struct Claimed {
    /// When the leases began, by the clock of the database.
    pub at: Moment,
    pub claims: Vec<Claim>,
    /// How long to wait when fewer URLs than requested were ready; `None` when
    /// nothing is scheduled.
    pub next_ready: Option<Duration>,
    /// URLs that were quarantined instead, as poison pills.
    pub quarantined: u32,
}

impl Claimed {
    pub(crate) fn none(now: i64) -> Self {
        Self {
            at: Moment(now),
            claims: Vec::new(),
            next_ready: None,
            quarantined: 0,
        }
    }
}

/// The right to fetch one URL, until the lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub lease_token: LeaseToken,
    pub url: FetchUrl,
    pub key: UrlKey,
    pub source_id: i64,
    pub origin: Origin,
    pub priority: u8,
    pub depth: u16,
    pub retry_count: u16,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub content_hash: Option<Vec<u8>>,
    pub item: Option<String>,
    /// When it was last fetched.
    pub last_fetched_at: Option<Moment>,
    pub host_delay: Duration,
}

/// Proof of a claim: a holder of an older attempt number can't write, nor one of a
/// URL that was removed and added again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseToken {
    pub id: FrontierId,
    pub attempt: i32,
    /// When the URL was added.
    pub discovered_at: Moment,
}

/// The end of a claim.
#[derive(Debug, Clone)]
pub struct Completion {
    pub lease_token: LeaseToken,
    pub outcome: Outcome,
    pub host: HostChange,
}

impl Completion {
    pub fn new(lease_token: LeaseToken, outcome: Outcome) -> Self {
        Self {
            lease_token,
            outcome,
            host: HostChange::default(),
        }
    }
}

/// How a fetch ended. Times are relative: the clock is the database's.
#[derive(Debug, Clone)]
pub enum Outcome {
    Fetched {
        etag: Option<String>,
        last_modified: Option<String>,
        content_hash: Option<Vec<u8>>,
        document: Option<Box<NewDocument>>,
        /// When to fetch again, if ever.
        again_in: Option<Duration>,
    },
    NotModified {
        again_in: Option<Duration>,
    },
    /// The URL redirects: this one is done, and the final one is fetched.
    Redirected {
        to: Box<Submission>,
        etag: Option<String>,
        last_modified: Option<String>,
        content_hash: Option<Vec<u8>>,
        document: Option<Box<NewDocument>>,
    },
    /// An error of the remote site: uses up a retry.
    Failed {
        error: String,
        retry_in: Duration,
    },
    /// Not an error of the URL (429, a local outage): uses up no retry.
    Deferred {
        reason: String,
        retry_in: Duration,
    },
    /// Failed permanently, and why.
    Dead {
        reason: String,
        error: Option<String>,
    },
    /// Returned to the queue without a fetch.
    Released,
}

/// Changes to a host after a fetch.
#[derive(Debug, Clone, Default)]
pub struct HostChange {
    /// The delay between requests from now on.
    pub delay: Option<Duration>,
    /// No request for this long (Retry-After).
    pub block_for: Option<Duration>,
    /// Cooldown after this request, beyond the delay (slow hosts).
    pub cooldown: Duration,
    pub is_error: bool,
}
