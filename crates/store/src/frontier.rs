//! The words of the frontier: what is submitted, claimed and completed. Values
//! only; [`crate::store`] has the verbs.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidings_url::{FetchUrl, HostKey, UrlKey};

use crate::documents::NewDocument;
use crate::ids::FrontierId;
use crate::moment::Moment;

/// Lowest and highest priority; higher is sooner.
pub(crate) const PRIORITIES: std::ops::RangeInclusive<u8> = 1..=10;

/// How a URL came to us.
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

/// What has become of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    Fetching,
    Fetched,
    /// Waiting for a retry.
    Failed,
    Dead,
}

/// Gives an enum its number in the schema and its word everywhere else.
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

/// A URL that someone found, with its identity already computed.
#[derive(Debug, Clone)]
pub struct Submission {
    pub target: Target,
    pub source_id: i64,
    pub origin: Origin,
    /// 1 to 10; others are brought into that range.
    pub priority: u8,
    pub depth: u16,
    pub parent_url: Option<String>,
    /// What the feed said of it, as JSON; travels with it to the document.
    pub item: Option<String>,
    /// When it may be fetched first; at once when nothing is said.
    pub not_before: Option<Moment>,
}

impl Submission {
    /// A submission with nothing but a URL and where it comes from.
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

/// What became of one submitted URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was unknown and is queued now.
    New,
    /// It was waiting and is now more urgent.
    Raised,
    /// It was known; nothing changed.
    Known,
}

/// How much work a worker wants.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// Who asks, for events and for people.
    pub owner: i64,
    pub max_hosts: u16,
    /// URLs of one host in one claim. The worker fetches them one after the
    /// other; more than one only makes sense for hosts without a delay.
    pub per_host: u16,
    pub lease: Duration,
    /// A URL whose lease ended this often without a word is quarantined.
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

/// The answer to a claim.
#[derive(Debug)]
pub struct Claimed {
    /// When the leases began, by the clock of the database.
    pub at: Moment,
    pub claims: Vec<Claim>,
    /// How long to wait when there was less than asked for; `None` when
    /// nothing at all is scheduled.
    pub next_ready: Option<Duration>,
    /// URLs that were found poisonous and put aside instead.
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
    pub ticket: LeaseToken,
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
    /// When it was last asked for and answered.
    pub last_fetched_at: Option<Moment>,
    pub host_delay: Duration,
}

/// What proves a claim: whoever holds an older attempt number can't write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseToken {
    pub id: FrontierId,
    pub attempt: i32,
}

/// The end of a claim.
#[derive(Debug, Clone)]
pub struct Completion {
    pub ticket: LeaseToken,
    pub outcome: Outcome,
    pub host: HostChange,
}

impl Completion {
    pub fn new(ticket: LeaseToken, outcome: Outcome) -> Self {
        Self {
            ticket,
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
        /// When to look again, if ever.
        again_in: Option<Duration>,
    },
    NotModified {
        again_in: Option<Duration>,
    },
    /// The page lives elsewhere: this URL is done, and the final one is fetched.
    Redirected {
        to: Box<Submission>,
        etag: Option<String>,
        last_modified: Option<String>,
        content_hash: Option<Vec<u8>>,
        document: Option<Box<NewDocument>>,
    },
    /// The web's fault: uses up a retry.
    Failed {
        error: String,
        retry_in: Duration,
    },
    /// Not the URL's fault (429, an outage of ours): uses up nothing.
    Deferred {
        reason: String,
        retry_in: Duration,
    },
    /// Never again, and why.
    Dead {
        reason: String,
        error: Option<String>,
    },
    /// Given back untouched.
    Released,
}

/// What a fetch taught about its host.
#[derive(Debug, Clone, Default)]
pub struct HostChange {
    /// The gap between starts from now on.
    pub delay: Option<Duration>,
    /// No request for so long (Retry-After).
    pub block_for: Option<Duration>,
    /// Rest after this request, beyond the delay (slow hosts).
    pub rest: Duration,
    pub is_error: bool,
}
