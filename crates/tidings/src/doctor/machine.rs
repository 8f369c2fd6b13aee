//! This machine and the configuration: disk space, open files, egress rules and
//! who can reach the server. Pure.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;

use tidings_net::IpNet;

use super::Finding;
use crate::format::{bytes, number};

#[derive(Debug, Clone)]
pub(super) struct MachineFacts {
    /// Where the data folder is, or will be.
    pub(super) folder: String,
    /// Free and total bytes of its disk, where the system says.
    pub(super) disk: Option<(u64, u64)>,
    /// The limit of open files of a process.
    pub(super) open_files: Option<u64>,
    pub(super) concurrency: u64,
    pub(super) contact: String,
    /// The gateways of this machine's configuration and those that all machines
    /// share, where they differ.
    pub(super) proxy_hosts: Option<(String, String)>,
    pub(super) allowed: Vec<IpNet>,
    pub(super) ports: Vec<RangeInclusive<u16>>,
    /// Where the server listens, if it does.
    pub(super) bind: Option<SocketAddr>,
    pub(super) public_hosts: Vec<String>,
}

/// The store, the index and their logs need this much to work.
const MIN_FREE_BYTES: u64 = 1_000_000_000;
/// Less than one in this many bytes free is a warning.
const LOW_SHARE: u64 = 20;
/// A page in flight has a connection, and may open another; robots.txt, feeds,
/// sinks, the store and the server need some too.
const FILES_PER_PAGE: u64 = 2;
const OTHER_FILES: u64 = 256;
/// A shorter prefix is wider than a large private network.
const WIDE_V4: u8 = 16;
const WIDE_V6: u8 = 48;
/// The metadata service of clouds, which hands out credentials.
const METADATA: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));

pub(super) fn diagnose(facts: &MachineFacts) -> Vec<Finding> {
    let found = [
        disk(facts),
        files(facts),
        contact(facts),
        proxy_hosts(facts),
        egress(facts),
        server(facts),
    ];
    found.into_iter().flatten().collect()
}

fn disk(facts: &MachineFacts) -> Option<Finding> {
    let (free, all) = facts.disk?;
    let what = format!(
        "{} of {} free for {}",
        bytes(free),
        bytes(all),
        facts.folder
    );
    let next = format!("df -h {}", facts.folder);
    Some(if free < MIN_FREE_BYTES {
        let why = "without disk space the store can't write, and everything stops";
        Finding::error("disk", what, why, next)
    } else if free < all / LOW_SHARE {
        let why = "a full disk stops the store; the page archive (fetch.archive_html) grows most";
        Finding::warning("disk", what, why, next)
    } else {
        Finding::ok("disk", what)
    })
}

fn files(facts: &MachineFacts) -> Option<Finding> {
    let limit = facts.open_files?;
    let needed = facts.concurrency * FILES_PER_PAGE + OTHER_FILES;
    Some(match limit < needed {
        true => Finding::error(
            "open files",
            format!(
                "the limit is {}, and fetch.concurrency = {} needs up to {}",
                number(limit),
                facts.concurrency,
                number(needed)
            ),
            "connections fail when the limit is reached, which looks like errors of the sites",
            format!("ulimit -n {needed} (LimitNOFILE={needed} in a systemd unit)"),
        ),
        false => Finding::ok(
            "open files",
            format!(
                "the limit is {}, {} are needed",
                number(limit),
                number(needed)
            ),
        ),
    })
}

fn contact(facts: &MachineFacts) -> Option<Finding> {
    facts.contact.is_empty().then(|| {
        Finding::warning(
            "politeness",
            "net.contact is not set",
            "site owners who see our requests have no way to contact you, and may block you instead",
            "tidings run --set net.contact=https://you.example/bot (or in tidings.toml)",
        )
    })
}

fn proxy_hosts(facts: &MachineFacts) -> Option<Finding> {
    let (configured, shared) = facts.proxy_hosts.as_ref()?;
    Some(Finding::warning(
        "politeness",
        format!("net.proxy_hosts is {configured:?} here, and {shared:?} in the store"),
        "all machines use the list in the store: with different ones a URL would have several ids, and a host several delays",
        "set it to the same on all machines, or on one alone; the next start of tidings run or tidings work stores its list",
    ))
}

fn egress(facts: &MachineFacts) -> Option<Finding> {
    let is_wide = |range: &&IpNet| match range {
        IpNet::V4(range) => range.prefix_len() < WIDE_V4,
        IpNet::V6(range) => range.prefix_len() < WIDE_V6,
    };
    let next = "tidings config";
    if let Some(range) = facts.allowed.iter().find(|range| range.contains(&METADATA)) {
        return Some(Finding::error(
            "egress",
            format!("egress.allow opens {range}, which includes {METADATA}"),
            "a page or a redirect can make us fetch the credentials of this machine from its cloud",
            next,
        ));
    }
    if let Some(range) = facts.allowed.iter().find(is_wide) {
        return Some(Finding::warning(
            "egress",
            format!("egress.allow opens {range}"),
            "external pages and redirects can lead to every address in it; allow only what you need",
            next,
        ));
    }
    let ports: u64 = facts
        .ports
        .iter()
        .map(|ports| u64::from(*ports.end()).saturating_sub(u64::from(*ports.start())) + 1)
        .sum();
    (ports > 10_000).then(|| {
        Finding::warning(
            "egress",
            format!("egress.ports opens {} ports", number(ports)),
            "external pages and redirects can make us connect to services that are not web servers",
            next,
        )
    })
}

fn server(facts: &MachineFacts) -> Option<Finding> {
    let bind = facts.bind?;
    let is_beyond = !bind.ip().is_loopback() && facts.public_hosts.is_empty();
    is_beyond.then(|| {
        Finding::warning(
            "server",
            format!("server.bind is {bind}, and server.public_hosts is empty"),
            "other machines can connect, but requests by host name instead of address are refused",
            "tidings run --set server.public_hosts=NAME (or in tidings.toml)",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn every_problem_of_a_machine_has_its_finding() {
        let healthy = MachineFacts {
            folder: "tidings-data".to_owned(),
            disk: Some((50_000_000_000, 100_000_000_000)),
            open_files: Some(1024),
            concurrency: 256,
            contact: "https://us.example/".to_owned(),
            proxy_hosts: None,
            allowed: vec!["10.1.2.0/24".parse().unwrap()],
            ports: vec![80..=80, 8000..=8999],
            bind: Some("127.0.0.1:8500".parse().unwrap()),
            public_hosts: Vec::new(),
        };
        let problems = |facts: &MachineFacts| {
            let mut found = diagnose(facts);
            found.retain(|finding| finding.severity != Severity::Ok);
            found
        };
        assert_eq!(problems(&healthy), []);
        let unknown = MachineFacts {
            disk: None,
            open_files: None,
            bind: None,
            ..healthy.clone()
        };
        assert_eq!(diagnose(&unknown), []);
        let disk = |free| MachineFacts {
            disk: Some((free, 100_000_000_000)),
            ..healthy.clone()
        };
        let allowed = |range: &str| MachineFacts {
            allowed: vec![range.parse().unwrap()],
            ..healthy.clone()
        };
        let bound = |bind: &str, names: &[&str]| MachineFacts {
            bind: Some(bind.parse().unwrap()),
            public_hosts: names.iter().map(|name| (*name).to_owned()).collect(),
            ..healthy.clone()
        };
        type Row<'a> = (&'a str, MachineFacts, Severity, &'a str);
        let rows: [Row<'_>; 10] = [
            (
                "a full disk",
                disk(900_000_000),
                Severity::Error,
                "900.0 MB of 100.0 GB free for tidings-data",
            ),
            (
                "low disk space",
                disk(4_900_000_000),
                Severity::Warning,
                "4.9 GB",
            ),
            (
                "too few files",
                MachineFacts {
                    concurrency: 1000,
                    ..healthy.clone()
                },
                Severity::Error,
                "the limit is 1,024, and fetch.concurrency = 1000 needs up to 2,256",
            ),
            (
                "no contact",
                MachineFacts {
                    contact: String::new(),
                    ..healthy.clone()
                },
                Severity::Warning,
                "net.contact is not set",
            ),
            (
                "two lists of gateways",
                MachineFacts {
                    proxy_hosts: Some(("rsshub.example".to_owned(), String::new())),
                    ..healthy.clone()
                },
                Severity::Warning,
                "net.proxy_hosts is \"rsshub.example\" here, and \"\" in the store",
            ),
            (
                "everything is open",
                allowed("0.0.0.0/0"),
                Severity::Error,
                "egress.allow opens 0.0.0.0/0, which includes 169.254.169.254",
            ),
            (
                "a wide range",
                allowed("10.0.0.0/8"),
                Severity::Warning,
                "10.0.0.0/8",
            ),
            (
                "a wide range of IPv6",
                allowed("fd00::/8"),
                Severity::Warning,
                "fd00::/8",
            ),
            (
                "all ports",
                MachineFacts {
                    ports: vec![1..=65535],
                    ..healthy.clone()
                },
                Severity::Warning,
                "egress.ports opens 65,535 ports",
            ),
            (
                "a server without a name",
                bound("0.0.0.0:8500", &[]),
                Severity::Warning,
                "server.bind is 0.0.0.0:8500, and server.public_hosts is empty",
            ),
        ];
        for (name, facts, severity, what) in rows {
            let found = problems(&facts);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert_eq!(found[0].severity, severity, "{name}");
            assert!(found[0].what.contains(what), "{name}: {}", found[0].what);
        }
        assert_eq!(problems(&bound("0.0.0.0:8500", &["news.example"])), []);
    }
}
