//! Why a fetch has no response, and the one taxonomy that retries follow
//! everywhere. A status is a response, not a failure; [`Class::of_status`] sorts it.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::egress::Denied;

/// The class of an error, which decides how it is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// DNS, connect, TLS, reset, timeout.
    Network,
    /// 408, 425, 429 and 5xx.
    HttpTransient,
    /// 404, 410 and other 4xx.
    HttpPermanent,
    /// 401, 403, 451: a policy of its own, with long waits.
    Blocked,
    /// Robots, egress, quota.
    Policy,
    /// Type, size, truncated, undecodable.
    Content,
    /// Internal: store, sink, registry. Never counts against a URL.
    Internal,
}

impl Class {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::HttpTransient => "http_transient",
            Self::HttpPermanent => "http_permanent",
            Self::Blocked => "blocked",
            Self::Policy => "policy",
            Self::Content => "content",
            Self::Internal => "internal",
        }
    }

    /// The class of a status; `None` when it is no error.
    pub fn of_status(status: u16) -> Option<Self> {
        match status {
            0..=399 => None,
            401 | 403 | 451 => Some(Self::Blocked),
            408 | 425 | 429 | 500..=599 => Some(Self::HttpTransient),
            _ => Some(Self::HttpPermanent),
        }
    }

    /// Whether this error uses up one of the retries of a URL.
    pub fn consumes_a_retry(self) -> bool {
        matches!(self, Self::Network | Self::HttpTransient | Self::Blocked)
    }
}

/// Where a fetch was when its time ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Connect,
    Headers,
    Body,
}

impl Stage {
    fn description(self) -> &'static str {
        match self {
            Self::Connect => "no connection",
            Self::Headers => "no response headers",
            Self::Body => "incomplete body",
        }
    }
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Failure {
    #[error("the name {host} does not exist")]
    NoSuchName { host: String },
    #[error("the name {host} can't be resolved: {why}")]
    Dns { host: String, why: String },
    #[error("no connection to {address}: {why}")]
    Connect { address: String, why: String },
    #[error("no secure connection to {host}: {why}")]
    Tls { host: String, why: String },
    #[error("the connection closed before the response: {why}")]
    Disconnected { why: String },
    #[error("{} within {} s", stage.description(), limit.as_secs_f32())]
    Timeout { stage: Stage, limit: Duration },
    #[error("the body arrived slower than {bytes_per_second} bytes per second")]
    TooSlow { bytes_per_second: u64 },
    #[error("invalid HTTP: {why}")]
    Protocol { why: String },
    #[error("more than {limit} bytes of headers")]
    HeadersTooLarge { limit: usize },
    #[error("more than {limit} redirects")]
    TooManyRedirects { limit: usize },
    #[error("redirect loop at {url}")]
    RedirectLoop { url: String },
    #[error("invalid redirect: {why}")]
    BadRedirect { why: String },
    #[error("the body is larger than {limit} bytes")]
    BodyTooLarge { limit: u64 },
    #[error("the body ended early: {why}")]
    Truncated { why: String },
    #[error("the body is not what its Content-Encoding says: {why}")]
    BadEncoding { why: String },
    #[error("more than two layers of Content-Encoding: {header:?}")]
    TooManyEncodings { header: String },
    #[error("a compression bomb: more than {ratio} decoded bytes per byte received")]
    CompressionBomb { ratio: u64 },
    #[error("304 Not Modified to an unconditional request")]
    UnaskedNotModified,
    #[error(transparent)]
    Egress(#[from] Denied),
    #[error("robots.txt of {host} disallows it by the rule {rule:?}")]
    RobotsDisallowed { host: String, rule: String },
    #[error("robots.txt of {host} is unavailable: {why}")]
    RobotsUnavailable {
        host: String,
        why: String,
        /// When it will be fetched again.
        retry_in: Duration,
    },
    #[error("no host permit for {host}; retry in {} s", wait.as_secs())]
    HostBusy { host: String, wait: Duration },
    #[error("no usable egress address or proxy: {why}; see net.addresses and net.proxies")]
    NoEgressRoute { why: String },
    #[error("no memory for the body within {} s; see memory.bodies_mib", waited.as_secs())]
    NoMemory { waited: Duration },
    #[error(
        "this machine has no file descriptor left: {why}; raise its limit (ulimit -n) or lower fetch.concurrency"
    )]
    NoDescriptor { why: String },
    #[error("store unavailable: {why}")]
    Store { why: String },
}

impl Failure {
    pub fn class(&self) -> Class {
        match self {
            Self::NoSuchName { .. }
            | Self::Dns { .. }
            | Self::Connect { .. }
            | Self::Tls { .. }
            | Self::Disconnected { .. }
            | Self::Timeout { .. }
            | Self::TooSlow { .. }
            | Self::Protocol { .. }
            // A closed connection says nothing of the page: it may be complete next time.
            | Self::Truncated { .. } => Class::Network,
            Self::HeadersTooLarge { .. }
            | Self::TooManyRedirects { .. }
            | Self::RedirectLoop { .. }
            | Self::BadRedirect { .. }
            | Self::BodyTooLarge { .. }
            | Self::BadEncoding { .. }
            | Self::TooManyEncodings { .. }
            | Self::CompressionBomb { .. }
            | Self::UnaskedNotModified => Class::Content,
            Self::Egress(_)
            | Self::RobotsDisallowed { .. }
            | Self::RobotsUnavailable { .. }
            | Self::HostBusy { .. } => Class::Policy,
            Self::NoEgressRoute { .. }
            | Self::NoMemory { .. }
            | Self::NoDescriptor { .. }
            | Self::Store { .. } => Class::Internal,
        }
    }

    /// A short name for logs, reasons and filters.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSuchName { .. } => "no_such_name",
            Self::Dns { .. } => "dns",
            Self::Connect { .. } => "connect",
            Self::Tls { .. } => "tls",
            Self::Disconnected { .. } => "disconnected",
            Self::Timeout { .. } => "timeout",
            Self::TooSlow { .. } => "too_slow",
            Self::Protocol { .. } => "protocol",
            Self::HeadersTooLarge { .. } => "headers_too_large",
            Self::TooManyRedirects { .. } => "too_many_redirects",
            Self::RedirectLoop { .. } => "redirect_loop",
            Self::BadRedirect { .. } => "bad_redirect",
            Self::BodyTooLarge { .. } => "too_large",
            Self::Truncated { .. } => "truncated",
            Self::BadEncoding { .. } => "bad_encoding",
            Self::TooManyEncodings { .. } => "too_many_encodings",
            Self::CompressionBomb { .. } => "compression_bomb",
            Self::UnaskedNotModified => "unasked_not_modified",
            Self::Egress(_) => "egress",
            Self::RobotsDisallowed { .. } => "robots_blocked",
            Self::RobotsUnavailable { .. } => "robots_unavailable",
            Self::HostBusy { .. } => "host_busy",
            Self::NoEgressRoute { .. } => "no_way_out",
            Self::NoMemory { .. } => "no_memory",
            Self::NoDescriptor { .. } => "no_descriptor",
            Self::Store { .. } => "store",
        }
    }
}

/// Whether a socket could not be opened because this process (EMFILE) or this
/// machine (ENFILE) has no file descriptor left: no fault of the other side.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    // The same numbers on every Unix that we build for.
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}
