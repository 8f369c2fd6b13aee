//! Every setting, in one table: its key, its other names, its default, its
//! allowed values. A setting that is not here does not exist.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use tidings_net::IpNet;
use tidings_url::ProxyHosts;

/// One setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its name in the file, with dots: `log.level`.
    pub(crate) key: &'static str,
    /// Names in the environment that are accepted beside `TIDINGS_LOG_LEVEL`,
    /// because the reference systems use them.
    pub(super) other_names: &'static [&'static str],
    pub(super) default: &'static str,
    pub(super) kind: Kind,
    pub(crate) about: &'static str,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// Any text; a password in an address is never shown.
    Text,
    OneOf(&'static [&'static str]),
    Number {
        min: u64,
        max: u64,
    },
    /// An IP address and a port.
    Address,
    /// Text that must be valid as a whole.
    Checked(fn(&str) -> Result<(), String>),
    /// Comma separated items, each of which must be valid.
    List(fn(&str) -> Result<(), String>),
}

/// A setting that is not in this table does not exist.
pub(super) static SETTINGS: &[Setting] = &[
    Setting {
        key: "store",
        other_names: &["FRONTIER_DB_URL"],
        default: "",
        kind: Kind::Text,
        about: "store address; empty: tidings.db in the data folder",
    },
    Setting {
        key: "store.connections",
        other_names: &[],
        default: "6",
        kind: Kind::Number { min: 1, max: 200 },
        about: "max connections of this process to PostgreSQL",
    },
    Setting {
        key: "store.pooler",
        other_names: &[],
        default: "false",
        kind: Kind::OneOf(&["false", "true"]),
        about: "PostgreSQL is behind a pooler in transaction mode (PgBouncer)",
    },
    Setting {
        key: "data_dir",
        other_names: &[],
        default: "tidings-data",
        kind: Kind::Text,
        about: "folder of the embedded store, the search index and the page archive",
    },
    Setting {
        key: "log.level",
        other_names: &["LOG_LEVEL"],
        default: "info",
        kind: Kind::OneOf(&["error", "warn", "info", "debug", "trace"]),
        about: "log level",
    },
    Setting {
        key: "log.format",
        other_names: &["LOG_FORMAT"],
        default: "pretty",
        kind: Kind::OneOf(&["pretty", "json"]),
        about: "log format: text or JSON, one line per event",
    },
    Setting {
        key: "net.user_agent",
        other_names: &["USER_AGENT", "FETCHER_USER_AGENT"],
        default: "",
        kind: Kind::Checked(user_agent),
        about: "name of the crawler in the User-Agent and for robots.txt, such as MyCrawler/1.0; empty: Tidings and its version",
    },
    Setting {
        key: "net.contact",
        other_names: &[],
        default: "",
        kind: Kind::Text,
        about: "URL or e-mail address for site owners; part of the User-Agent",
    },
    Setting {
        key: "net.connect_seconds",
        other_names: &[],
        default: "10",
        kind: Kind::Number { min: 1, max: 600 },
        about: "timeout for DNS, TCP and TLS together",
    },
    Setting {
        key: "net.headers_seconds",
        other_names: &[],
        default: "10",
        kind: Kind::Number { min: 1, max: 600 },
        about: "timeout from the request to the response headers",
    },
    Setting {
        key: "net.total_seconds",
        other_names: &[
            "FETCH_TIMEOUT_MS",
            "REQUEST_TIMEOUT",
            "FETCHER_REQUEST_TIMEOUT",
        ],
        default: "30",
        kind: Kind::Number { min: 1, max: 3600 },
        about: "timeout for one response, redirects not included",
    },
    Setting {
        key: "net.min_bytes_per_second",
        other_names: &[],
        default: "1024",
        kind: Kind::Number {
            min: 0,
            max: 1_000_000_000,
        },
        about: "a response body that arrives slower is aborted",
    },
    Setting {
        key: "net.page_mib",
        other_names: &[],
        default: "10",
        kind: Kind::Number { min: 1, max: 1024 },
        about: "max size of a page, decompressed",
    },
    Setting {
        key: "net.feed_mib",
        other_names: &[],
        default: "20",
        kind: Kind::Number { min: 1, max: 1024 },
        about: "max size of a feed, decompressed",
    },
    Setting {
        key: "net.sitemap_mib",
        other_names: &[],
        default: "50",
        kind: Kind::Number { min: 1, max: 1024 },
        about: "max size of a sitemap, decompressed",
    },
    Setting {
        key: "memory.bodies_mib",
        other_names: &[],
        default: "128",
        kind: Kind::Number {
            min: 1,
            max: 1_048_576,
        },
        about: "memory for the bodies of all responses together; who finds no room waits",
    },
    Setting {
        key: "net.redirects",
        other_names: &[],
        default: "5",
        kind: Kind::Number { min: 0, max: 20 },
        about: "max redirects followed per request",
    },
    Setting {
        key: "net.proxy_hosts",
        other_names: &[],
        default: "",
        kind: Kind::List(proxy_host),
        about: "gateways that serve many sites, such as RSSHub (host or host:port, …): each first path segment is a host of its own; all machines share the list of the last start that set it",
    },
    Setting {
        key: "net.dns",
        other_names: &[],
        default: "",
        kind: Kind::List(dns_server),
        about: "DNS servers to query instead of the system's (address:port, …)",
    },
    Setting {
        key: "net.addresses",
        other_names: &[],
        default: "",
        kind: Kind::List(own_address),
        about: "source addresses of this machine for requests, the same one for each host; empty: the system chooses",
    },
    Setting {
        key: "net.proxy_file",
        other_names: &[],
        default: "",
        kind: Kind::Text,
        about: "file of proxies, one per line (socks5://user:password@host:port, or http://…); the same one for each host",
    },
    Setting {
        key: "net.ca_file",
        other_names: &[],
        default: "",
        kind: Kind::Text,
        about: "PEM file of certificate authorities to trust besides the public ones",
    },
    Setting {
        key: "net.auth_file",
        other_names: &[],
        default: "",
        kind: Kind::Text,
        about: "file of site credentials, one `domain user:password` per line",
    },
    Setting {
        key: "egress.allow",
        other_names: &[],
        default: "",
        kind: Kind::List(range),
        about: "blocked address ranges to allow (for example 10.1.2.0/24, …)",
    },
    Setting {
        key: "egress.ports",
        other_names: &[],
        default: "80, 443, 8000-8999",
        kind: Kind::List(ports),
        about: "ports that may be connected to",
    },
    Setting {
        key: "fetch.concurrency",
        other_names: &["WORKER_COUNT", "FETCHER_WORKER_COUNT"],
        default: "256",
        kind: Kind::Number {
            min: 1,
            max: 10_000,
        },
        about: "max pages in flight in this process",
    },
    Setting {
        key: "fetch.claim_interval_ms",
        other_names: &["CLAIM_RETRY_DELAY", "FETCHER_CLAIM_RETRY_DELAY"],
        default: "1000",
        kind: Kind::Number {
            min: 10,
            max: 600_000,
        },
        about: "longest pause before URLs are claimed again when too few are due",
    },
    Setting {
        key: "retry.preset",
        other_names: &[],
        default: "standard",
        kind: Kind::OneOf(&["standard", "media-cloud", "north-cloud"]),
        about: "delays before retries where the settings below are empty; media-cloud: after 503 from one hour, doubling; north-cloud: three attempts",
    },
    Setting {
        key: "retry.network_minutes",
        other_names: &[],
        default: "",
        kind: Kind::List(retry_delay),
        about: "minutes before each retry after errors of DNS, connecting, TLS and timeouts; standard: 1, 5, 30, 120, 360; none: no retry",
    },
    Setting {
        key: "retry.http_minutes",
        other_names: &[],
        default: "",
        kind: Kind::List(retry_delay),
        about: "the same after 408, 425 and 5xx; standard: 1, 5, 30, 120, 360",
    },
    Setting {
        key: "retry.unavailable_minutes",
        other_names: &[],
        default: "",
        kind: Kind::List(retry_delay),
        about: "the same after 503; standard: as after other 5xx; media-cloud: 60, 120, 240, 480",
    },
    Setting {
        key: "retry.blocked_minutes",
        other_names: &[],
        default: "",
        kind: Kind::List(retry_delay),
        about: "the same after 401, 403, 451 and CAPTCHAs; standard: 360, 1440, 4320",
    },
    Setting {
        key: "retry.max_attempts",
        other_names: &["MAX_RETRIES", "FETCHER_MAX_RETRIES"],
        default: "0",
        kind: Kind::Number { min: 0, max: 1000 },
        about: "attempts of a URL before it fails permanently, whatever fails; the last delay is repeated; 0: one for each delay and the first",
    },
    Setting {
        key: "extract.threads",
        other_names: &[],
        default: "0",
        kind: Kind::Number { min: 0, max: 1024 },
        about: "threads that extract articles from pages; 0: one per core",
    },
    Setting {
        key: "fetch.host_delay_ms",
        other_names: &[],
        default: "1000",
        kind: Kind::Number {
            min: 0,
            max: 3_600_000,
        },
        about: "default delay between two requests to a host",
    },
    Setting {
        key: "fetch.max_per_host",
        other_names: &[],
        default: "1",
        kind: Kind::Number { min: 1, max: 64 },
        about: "max requests in flight to one host, over all machines",
    },
    Setting {
        key: "fetch.max_per_domain",
        other_names: &[],
        default: "4",
        kind: Kind::Number {
            min: 1,
            max: 10_000,
        },
        about: "max requests in flight of this process to one registrable domain",
    },
    Setting {
        key: "fetch.max_per_address",
        other_names: &[],
        default: "8",
        kind: Kind::Number {
            min: 1,
            max: 10_000,
        },
        about: "max requests in flight of this process to one IP address; loopback has no limit",
    },
    Setting {
        key: "work.lease_seconds",
        other_names: &[],
        default: "60",
        kind: Kind::Number { min: 2, max: 3600 },
        about: "lease of a URL; another process may claim it when the lease expires. Deliveries have twice, polls five times this lease",
    },
    Setting {
        key: "fetch.archive_html",
        other_names: &[],
        default: "false",
        kind: Kind::OneOf(&["false", "true"]),
        about: "whether fetched pages are stored unchanged in the page archive of the data folder",
    },
    Setting {
        key: "poll.concurrency",
        other_names: &[],
        default: "10",
        kind: Kind::Number { min: 1, max: 500 },
        about: "max feed polls in flight in this process",
    },
    Setting {
        key: "source.max_new_urls_per_day",
        other_names: &[],
        default: "100000",
        kind: Kind::Number {
            min: 1,
            max: 1_000_000_000,
        },
        about: "max new URLs of one source per day, over all machines; the rest waits for the next day",
    },
    Setting {
        key: "source.starter",
        other_names: &[],
        default: "false",
        kind: Kind::OneOf(&["false", "true"]),
        about: "whether `tidings run` adds the starter sources; each once, so that one that is removed stays removed",
    },
    Setting {
        key: "collect.interval_minutes",
        other_names: &["AUTO_COLLECT_INTERVAL_MINUTES"],
        default: "0",
        kind: Kind::Number {
            min: 0,
            max: 60 * 24 * 30,
        },
        about: "interval of scheduled runs over all sources, one per interval over all machines; 0: none",
    },
    Setting {
        key: "collect.concurrency",
        other_names: &["FETCH_CONCURRENCY"],
        default: "5",
        kind: Kind::Number { min: 1, max: 100 },
        about: "sources of a run that are polled at once",
    },
    Setting {
        key: "collect.max_new_items",
        other_names: &["MAX_NEW_ITEMS_PER_RUN"],
        default: "2000",
        kind: Kind::Number {
            min: 1,
            max: 1_000_000,
        },
        about: "max new items of a run, shared fairly among its sources; the rest waits for the next run",
    },
    Setting {
        key: "search.enabled",
        other_names: &[],
        default: "true",
        kind: Kind::OneOf(&["false", "true"]),
        about: "whether documents are indexed in the embedded search",
    },
    Setting {
        key: "outbox.max_pending",
        other_names: &[],
        default: "1000000",
        kind: Kind::Number {
            min: 1,
            max: u64::MAX,
        },
        about: "fetching stops while a sink has more documents pending",
    },
    Setting {
        key: "retention.events_days",
        other_names: &[],
        default: "90",
        kind: Kind::Number { min: 1, max: 3650 },
        about: "how long the history of URLs is kept, in days",
    },
    Setting {
        key: "retention.fetch_log_days",
        other_names: &[],
        default: "30",
        kind: Kind::Number { min: 1, max: 3650 },
        about: "how long the polls of each feed are kept, in days",
    },
    Setting {
        key: "retention.seen_titles_days",
        other_names: &[],
        default: "14",
        kind: Kind::Number { min: 8, max: 3650 },
        about: "how long the titles that items of aggregators are compared with are kept, in days",
    },
    Setting {
        key: "retention.seen_guids_days",
        other_names: &[],
        default: "30",
        kind: Kind::Number { min: 1, max: 3650 },
        about: "how long guids are kept after their feed has listed them last, in days",
    },
    Setting {
        key: "retention.tasks_hours",
        other_names: &[],
        default: "1",
        kind: Kind::Number { min: 1, max: 8760 },
        about: "how long tasks that a user started are kept, in hours",
    },
    Setting {
        key: "retention.idempotency_hours",
        other_names: &[],
        default: "24",
        kind: Kind::Number { min: 1, max: 8760 },
        about: "how long responses to requests with an Idempotency-Key are kept, in hours",
    },
    Setting {
        key: "retention.audit_days",
        other_names: &[],
        default: "365",
        kind: Kind::Number { min: 1, max: 36500 },
        about: "how long the audit log is kept, in days",
    },
    Setting {
        key: "retention.runs_days",
        other_names: &[],
        default: "90",
        kind: Kind::Number { min: 1, max: 3650 },
        about: "how long runs over all sources are kept, in days",
    },
    Setting {
        key: "retention.pages_days",
        other_names: &[],
        default: "0",
        kind: Kind::Number { min: 0, max: 3650 },
        about: "how long pages stay in the page archive, in days; 0: for ever",
    },
    Setting {
        key: "sink.allow",
        other_names: &[],
        default: "",
        kind: Kind::List(range),
        about: "blocked address ranges that sinks, and nothing else, may connect to",
    },
    Setting {
        key: "sink.ports",
        other_names: &[],
        default: "1-65535",
        kind: Kind::List(ports),
        about: "ports that sinks may connect to",
    },
    Setting {
        key: "server.enabled",
        other_names: &[],
        default: "true",
        kind: Kind::OneOf(&["false", "true"]),
        about: "whether `tidings run` serves the API and the dashboard",
    },
    Setting {
        key: "server.bind",
        other_names: &[],
        default: "127.0.0.1:8500",
        kind: Kind::Address,
        about: "address and port of the API and the dashboard; a token is always required",
    },
    Setting {
        key: "server.public_hosts",
        other_names: &[],
        default: "",
        kind: Kind::List(host_name),
        about: "host names under which they are reached, besides localhost",
    },
    Setting {
        key: "server.trusted_proxies",
        other_names: &[],
        default: "",
        kind: Kind::List(range),
        about: "address ranges of proxies whose X-Forwarded-For and X-Forwarded-Proto count",
    },
    Setting {
        key: "server.tls_cert",
        other_names: &[],
        default: "",
        kind: Kind::Text,
        about: "PEM file of the server's certificate and those that signed it; empty: plain HTTP",
    },
    Setting {
        key: "server.tls_key",
        other_names: &[],
        default: "",
        kind: Kind::Text,
        about: "PEM file of the certificate's private key",
    },
    Setting {
        key: "server.max_connections",
        other_names: &[],
        default: "512",
        kind: Kind::Number {
            min: 4,
            max: 100_000,
        },
        about: "max connections to the server; half of the file descriptors at most",
    },
    Setting {
        key: "demo.sites",
        other_names: &[],
        default: "200",
        kind: Kind::Number {
            min: 1,
            max: 1_000_000,
        },
        about: "sites of the simulated web",
    },
    Setting {
        key: "demo.articles",
        other_names: &[],
        default: "100",
        kind: Kind::Number {
            min: 0,
            max: 1_000_000,
        },
        about: "articles that each site starts with",
    },
    Setting {
        key: "demo.seed",
        other_names: &[],
        default: "7",
        kind: Kind::Number {
            min: 0,
            max: u64::MAX,
        },
        about: "seed of the simulated web",
    },
];

/// Variables of the reference systems that are no settings here, and what to do
/// instead.
pub(super) const REFUSED_VARIABLES: &[(&str, &str)] = &[
    (
        "SOURCE_MANAGER_URL",
        "sources are in the store, set by TIDINGS_STORE; import a list with: tidings source import FILE",
    ),
    (
        "FETCHER_STALE_TIMEOUT",
        "set TIDINGS_WORK_LEASE_SECONDS, after which another process may claim a URL",
    ),
    (
        "FETCHER_STALE_CHECK_INTERVAL",
        "leases expire by themselves; unset it",
    ),
    ("FETCHER_MAX_REDIRECTS", "set TIDINGS_NET_REDIRECTS"),
    (
        "FETCHER_FOLLOW_REDIRECTS",
        "set TIDINGS_NET_REDIRECTS; 0 follows none",
    ),
    (
        "FETCHER_ENABLED",
        "choose the roles of a process with: tidings work --roles",
    ),
];

/// Variables that start with `TIDINGS_` without being settings.
pub(super) const OTHER_VARIABLES: &[&str] = &["TIDINGS_BENCH_CORPUS", "TIDINGS_CONFIG"];

impl Setting {
    pub(super) fn variables(&self) -> impl Iterator<Item = String> + '_ {
        // Our own name wins over those of the reference systems.
        let own = format!("TIDINGS_{}", self.key.replace('.', "_").to_uppercase());
        std::iter::once(own).chain(self.other_names.iter().map(|name| (*name).to_owned()))
    }

    /// A value in the unit of the setting. The reference systems count in
    /// milliseconds where we count in seconds, or write durations such as `1m30s`.
    pub(super) fn in_our_unit(&self, variable: &str, value: &str) -> String {
        if !self.other_names.contains(&variable) {
            return value.to_owned();
        }
        let text = value.trim();
        let millis = match text.parse::<u64>() {
            Ok(number) if variable.ends_with("_MS") => Some(number),
            // A bare number has seconds.
            Ok(number) if self.key.ends_with("_ms") => number.checked_mul(1000),
            Ok(_) => None,
            Err(_) => duration_millis(text),
        };
        match millis {
            Some(millis) if self.key.ends_with("_seconds") => millis.div_ceil(1000).to_string(),
            Some(millis) if self.key.ends_with("_ms") => millis.to_string(),
            _ => value.to_owned(),
        }
    }

    pub(super) fn check(&self, value: &str) -> Result<(), String> {
        match self.kind {
            Kind::Text => Ok(()),
            Kind::OneOf(choices) if choices.contains(&value) => Ok(()),
            Kind::OneOf(choices) => Err(format!("{value:?} is not one of {}", choices.join(", "))),
            Kind::Number { min, max } => match value.parse::<u64>() {
                Ok(number) if (min..=max).contains(&number) => Ok(()),
                _ => Err(format!(
                    "{value:?} is not a whole number from {min} to {max}"
                )),
            },
            Kind::Address => match value.parse::<SocketAddr>() {
                Ok(_) => Ok(()),
                Err(_) => Err(format!(
                    "{value:?} is not an address and port such as 127.0.0.1:8500"
                )),
            },
            Kind::Checked(check) => check(value),
            Kind::List(check) => items(value).try_for_each(check),
        }
    }
}

pub(super) fn setting(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// The items of a list.
pub(super) fn items(value: &str) -> impl Iterator<Item = &str> {
    value
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
}

/// A duration as Go writes it (`1m30s`, `500ms`), in milliseconds.
fn duration_millis(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(digits);
        let end = behind
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(behind.len());
        let (unit, next) = behind.split_at(end);
        let millis = match unit {
            "h" => 3_600_000.0,
            "m" => 60_000.0,
            "s" => 1000.0,
            "ms" => 1.0,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * millis;
        rest = next;
    }
    (!text.is_empty() && total.is_finite()).then_some(total.ceil() as u64)
}

/// Sites address the crawler by its name, so it has one.
fn user_agent(text: &str) -> Result<(), String> {
    let is_printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let has_name = text.is_empty() || text.starts_with(|c: char| c.is_ascii_alphabetic());
    match is_printable && has_name {
        true => Ok(()),
        false => Err(format!(
            "{text:?} is not a name in printable ASCII such as MyCrawler/1.0"
        )),
    }
}

fn proxy_host(item: &str) -> Result<(), String> {
    match ProxyHosts::gateway(item) {
        Some(_) => Ok(()),
        None => Err(format!(
            "{item:?} is not a host or host:port such as rsshub.example:1200"
        )),
    }
}

/// Minutes, or `none` instead of a list.
fn retry_delay(item: &str) -> Result<(), String> {
    let is_valid = item == NO_RETRY
        || item
            .parse::<u64>()
            .is_ok_and(|minutes| (1..=MAX_RETRY_MINUTES).contains(&minutes));
    match is_valid {
        true => Ok(()),
        false => Err(format!(
            "{item:?} is neither a number of minutes from 1 to {MAX_RETRY_MINUTES} nor {NO_RETRY}"
        )),
    }
}

/// The item of a list of retry delays that has none.
const NO_RETRY: &str = "none";
/// A month.
const MAX_RETRY_MINUTES: u64 = 60 * 24 * 30;

fn own_address(item: &str) -> Result<(), String> {
    item.parse::<std::net::IpAddr>()
        .map(drop)
        .map_err(|_| "an IP address is expected, for example 203.0.113.5".to_owned())
}

fn dns_server(item: &str) -> Result<(), String> {
    match item.parse::<SocketAddr>() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!(
            "{item:?} is not an address and port such as 9.9.9.9:53"
        )),
    }
}

fn host_name(item: &str) -> Result<(), String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    match item.chars().all(is_part) {
        true => Ok(()),
        false => Err(format!(
            "{item:?} is not a host name such as tidings.example"
        )),
    }
}

fn range(item: &str) -> Result<(), String> {
    match item.parse::<IpNet>() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!(
            "{item:?} is not a range such as 10.1.2.0/24 or ::1/128"
        )),
    }
}

fn ports(item: &str) -> Result<(), String> {
    match port_range(item) {
        Some(_) => Ok(()),
        None => Err(format!(
            "{item:?} is not a port or a range such as 8000-8999"
        )),
    }
}

/// One port, or two with a dash between them.
pub(super) fn port_range(item: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = item.split_once('-').unwrap_or((item, item));
    let range = first.trim().parse().ok()?..=last.trim().parse().ok()?;
    (!range.is_empty()).then_some(range)
}
