//! Every setting, in one table: its key, its other names, its default, what it
//! may be. A setting that is not here does not exist.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use tidings_net::IpNet;

/// One thing that can be configured.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its name in the file, with dots: `log.level`.
    pub(crate) key: &'static str,
    /// Names in the environment that are accepted beside `TIDINGS_LOG_LEVEL`,
    /// because other tools of the trade use them.
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
        least: u64,
        most: u64,
    },
    /// An IP address and a port.
    Address,
    /// Any number of items behind commas, each of which must pass.
    List(fn(&str) -> Result<(), String>),
}

/// A setting that is not in this table does not exist.
pub(super) static SETTINGS: &[Setting] = &[
    Setting {
        key: "store",
        other_names: &["FRONTIER_DB_URL"],
        default: "",
        kind: Kind::Text,
        about: "where everything is kept; empty: tidings.db in the data folder",
    },
    Setting {
        key: "data_dir",
        other_names: &[],
        default: "tidings-data",
        kind: Kind::Text,
        about: "folder of the embedded store",
    },
    Setting {
        key: "log.level",
        other_names: &["LOG_LEVEL"],
        default: "info",
        kind: Kind::OneOf(&["error", "warn", "info", "debug", "trace"]),
        about: "which messages are logged",
    },
    Setting {
        key: "log.format",
        other_names: &["LOG_FORMAT"],
        default: "pretty",
        kind: Kind::OneOf(&["pretty", "json"]),
        about: "one line of text or of JSON an event",
    },
    Setting {
        key: "net.contact",
        other_names: &[],
        default: "",
        kind: Kind::Text,
        about: "a page or address that tells site owners who asks; part of the User-Agent",
    },
    Setting {
        key: "net.connect_seconds",
        other_names: &[],
        default: "10",
        kind: Kind::Number {
            least: 1,
            most: 600,
        },
        about: "time for DNS, TCP and TLS together",
    },
    Setting {
        key: "net.headers_seconds",
        other_names: &[],
        default: "10",
        kind: Kind::Number {
            least: 1,
            most: 600,
        },
        about: "time from the request to the headers",
    },
    Setting {
        key: "net.total_seconds",
        other_names: &["FETCH_TIMEOUT_MS"],
        default: "30",
        kind: Kind::Number {
            least: 1,
            most: 3600,
        },
        about: "time for one answer, redirects not included",
    },
    Setting {
        key: "net.bytes_per_second",
        other_names: &[],
        default: "1024",
        kind: Kind::Number {
            least: 0,
            most: 1_000_000_000,
        },
        about: "slower bodies are given up",
    },
    Setting {
        key: "net.page_mib",
        other_names: &[],
        default: "10",
        kind: Kind::Number {
            least: 1,
            most: 1024,
        },
        about: "largest page, decompressed",
    },
    Setting {
        key: "net.feed_mib",
        other_names: &[],
        default: "20",
        kind: Kind::Number {
            least: 1,
            most: 1024,
        },
        about: "largest feed, decompressed",
    },
    Setting {
        key: "net.sitemap_mib",
        other_names: &[],
        default: "50",
        kind: Kind::Number {
            least: 1,
            most: 1024,
        },
        about: "largest sitemap, decompressed",
    },
    Setting {
        key: "net.redirects",
        other_names: &[],
        default: "5",
        kind: Kind::Number { least: 0, most: 20 },
        about: "how many are followed",
    },
    Setting {
        key: "net.dns",
        other_names: &[],
        default: "",
        kind: Kind::List(dns_server),
        about: "DNS servers to ask instead of the system's (address:port, …)",
    },
    Setting {
        key: "net.addresses",
        other_names: &[],
        default: "",
        kind: Kind::List(own_address),
        about: "addresses of this machine to ask from, a host always from the same one; empty: the system chooses",
    },
    Setting {
        key: "net.proxy_file",
        other_names: &[],
        default: "",
        kind: Kind::Text,
        about: "file with a line for each proxy to ask through (socks5://user:password@host:port, or http://…); a host always by the same one",
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
        about: "file with a line `domain user:password` for each site that wants one",
    },
    Setting {
        key: "egress.allow",
        other_names: &[],
        default: "",
        kind: Kind::List(range),
        about: "closed address ranges to open (for example 10.1.2.0/24, …)",
    },
    Setting {
        key: "egress.ports",
        other_names: &[],
        default: "80, 443, 8000-8999",
        kind: Kind::List(ports),
        about: "ports that may be reached",
    },
    Setting {
        key: "fetch.at_once",
        other_names: &["FETCH_CONCURRENCY"],
        default: "256",
        kind: Kind::Number {
            least: 1,
            most: 10_000,
        },
        about: "pages under way at once in this process",
    },
    Setting {
        key: "fetch.cores",
        other_names: &[],
        default: "0",
        kind: Kind::Number {
            least: 0,
            most: 1024,
        },
        about: "threads that read pages; 0: one for each core",
    },
    Setting {
        key: "fetch.host_delay_ms",
        other_names: &[],
        default: "1000",
        kind: Kind::Number {
            least: 0,
            most: 3_600_000,
        },
        about: "between two requests to a host that says nothing else",
    },
    Setting {
        key: "fetch.max_per_host",
        other_names: &[],
        default: "1",
        kind: Kind::Number { least: 1, most: 64 },
        about: "requests under way to one host, over all machines",
    },
    Setting {
        key: "work.lease_seconds",
        other_names: &[],
        default: "60",
        kind: Kind::Number {
            least: 2,
            most: 3600,
        },
        about: "a URL is another's when its process gave no sign of life for so long; a delivery after twice, a poll after five times as long",
    },
    Setting {
        key: "fetch.keep_html",
        other_names: &[],
        default: "false",
        kind: Kind::OneOf(&["false", "true"]),
        about: "whether pages are kept as they came, in the data folder",
    },
    Setting {
        key: "poll.at_once",
        other_names: &[],
        default: "10",
        kind: Kind::Number {
            least: 1,
            most: 500,
        },
        about: "feeds polled at once by this process",
    },
    Setting {
        key: "collect.every_minutes",
        other_names: &["AUTO_COLLECT_INTERVAL_MINUTES"],
        default: "0",
        kind: Kind::Number {
            least: 0,
            most: 60 * 24 * 30,
        },
        about: "a run over all sources so often, over all machines; 0: never by itself",
    },
    Setting {
        key: "search.enabled",
        other_names: &[],
        default: "true",
        kind: Kind::OneOf(&["false", "true"]),
        about: "whether documents go into the embedded search",
    },
    Setting {
        key: "outbox.bound",
        other_names: &[],
        default: "1000000",
        kind: Kind::Number {
            least: 1,
            most: u64::MAX,
        },
        about: "nothing is fetched while a sink has more documents waiting",
    },
    Setting {
        key: "sink.allow",
        other_names: &[],
        default: "",
        kind: Kind::List(range),
        about: "closed address ranges that sinks, and nothing else, may reach",
    },
    Setting {
        key: "sink.ports",
        other_names: &[],
        default: "1-65535",
        kind: Kind::List(ports),
        about: "ports that sinks may reach",
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
        about: "where they are served; a token is always needed",
    },
    Setting {
        key: "server.public_hosts",
        other_names: &[],
        default: "",
        kind: Kind::List(host_name),
        about: "names under which they are reached, besides localhost",
    },
    Setting {
        key: "demo.sites",
        other_names: &[],
        default: "200",
        kind: Kind::Number {
            least: 1,
            most: 1_000_000,
        },
        about: "sites of the simulated web",
    },
    Setting {
        key: "demo.articles",
        other_names: &[],
        default: "100",
        kind: Kind::Number {
            least: 0,
            most: 1_000_000,
        },
        about: "articles that each of them starts with",
    },
    Setting {
        key: "demo.seed",
        other_names: &[],
        default: "7",
        kind: Kind::Number {
            least: 0,
            most: u64::MAX,
        },
        about: "the seed that everything simulated follows from",
    },
];

/// Variables that start with `TIDINGS_` without being settings.
pub(super) const OTHER_VARIABLES: &[&str] = &["TIDINGS_BENCH_CORPUS", "TIDINGS_CONFIG"];

impl Setting {
    pub(super) fn variables(&self) -> impl Iterator<Item = String> + '_ {
        // The program's own name wins over the borrowed ones.
        let own = format!("TIDINGS_{}", self.key.replace('.', "_").to_uppercase());
        std::iter::once(own).chain(self.other_names.iter().map(|name| (*name).to_owned()))
    }

    /// A value as the variable of this name spells it. Other tools count in
    /// milliseconds where we count in seconds.
    pub(super) fn spelled(&self, variable: &str, value: &str) -> String {
        let is_other = self.other_names.contains(&variable);
        let is_finer = variable.ends_with("_MS") && self.key.ends_with("_seconds");
        match value.trim().parse::<u64>() {
            Ok(number) if is_other && is_finer => number.div_ceil(1000).to_string(),
            _ => value.to_owned(),
        }
    }

    pub(super) fn check(&self, value: &str) -> Result<(), String> {
        match self.kind {
            Kind::Text => Ok(()),
            Kind::OneOf(choices) if choices.contains(&value) => Ok(()),
            Kind::OneOf(choices) => Err(format!("{value:?} is not one of {}", choices.join(", "))),
            Kind::Number { least, most } => match value.parse::<u64>() {
                Ok(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(format!(
                    "{value:?} is not a whole number from {least} to {most}"
                )),
            },
            Kind::Address => match value.parse::<SocketAddr>() {
                Ok(_) => Ok(()),
                Err(_) => Err(format!(
                    "{value:?} is not an address and port such as 127.0.0.1:8500"
                )),
            },
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
