//! This machine and the configuration: room on the disk, open files, what may
//! be reached from here and by whom. Pure.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;

use tidings_net::IpNet;

use super::Finding;
use crate::words::{bytes, number};

#[derive(Debug, Clone)]
pub(super) struct MachineFacts {
    /// Where the data folder is, or will be.
    pub(super) folder: String,
    /// Bytes that are free on its disk, and all; unknown where nobody says.
    pub(super) disk: Option<(u64, u64)>,
    /// Files that a process may have open.
    pub(super) open_files: Option<u64>,
    pub(super) at_once: u64,
    pub(super) contact: String,
    pub(super) allowed: Vec<IpNet>,
    pub(super) ports: Vec<RangeInclusive<u16>>,
    /// Where the server listens, if it does.
    pub(super) bind: Option<SocketAddr>,
    pub(super) public_hosts: Vec<String>,
}

/// The store, the index and the log of both need room to work in.
const NEARLY_FULL: u64 = 1_000_000_000;
/// One in so many bytes that are free is little.
const LITTLE: u64 = 20;
/// A page under way has a connection, and may wait for another; robots.txt,
/// feeds, sinks, the store and the server need some too.
const FILES_OF_A_PAGE: u64 = 2;
const OTHER_FILES: u64 = 256;
/// A range of more addresses than a large network of one's own.
const WIDE_V4: u8 = 16;
const WIDE_V6: u8 = 48;
/// Where clouds give their keys away.
const METADATA: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));

pub(super) fn judge(facts: &MachineFacts) -> Vec<Finding> {
    let found = [
        disk(facts),
        files(facts),
        contact(facts),
        egress(facts),
        server(facts),
    ];
    found.into_iter().flatten().collect()
}

fn disk(facts: &MachineFacts) -> Option<Finding> {
    let (free, all) = facts.disk?;
    let what = format!(
        "{} of {} are free for {}",
        bytes(free),
        bytes(all),
        facts.folder
    );
    let next = format!("df -h {}", facts.folder);
    Some(if free < NEARLY_FULL {
        let why = "a store that can't write stands still, and so does everything else";
        Finding::trouble("disk", what, why, next)
    } else if free < all / LITTLE {
        let why = "a full disk stops the store; kept pages (fetch.keep_html) are what grows most";
        Finding::notable("disk", what, why, next)
    } else {
        Finding::fine("disk", what)
    })
}

fn files(facts: &MachineFacts) -> Option<Finding> {
    let limit = facts.open_files?;
    let needed = facts.at_once * FILES_OF_A_PAGE + OTHER_FILES;
    Some(match limit < needed {
        true => Finding::trouble(
            "open files",
            format!(
                "{} may be open at once, and fetch.at_once = {} needs up to {}",
                number(limit),
                facts.at_once,
                number(needed)
            ),
            "connections fail when there are no more, which looks like trouble of the web",
            format!("ulimit -n {needed} (LimitNOFILE={needed} in a systemd unit)"),
        ),
        false => Finding::fine(
            "open files",
            format!(
                "{} may be open, {} are needed",
                number(limit),
                number(needed)
            ),
        ),
    })
}

fn contact(facts: &MachineFacts) -> Option<Finding> {
    facts.contact.is_empty().then(|| {
        Finding::notable(
            "manners",
            "net.contact is not set",
            "owners of sites who wonder who asks can't tell you, and block you instead",
            "tidings run --set net.contact=https://you.example/bot (or in tidings.toml)",
        )
    })
}

fn egress(facts: &MachineFacts) -> Option<Finding> {
    let is_wide = |range: &&IpNet| match range {
        IpNet::V4(range) => range.prefix_len() < WIDE_V4,
        IpNet::V6(range) => range.prefix_len() < WIDE_V6,
    };
    let next = "tidings config";
    if let Some(range) = facts.allowed.iter().find(|range| range.contains(&METADATA)) {
        return Some(Finding::trouble(
            "egress",
            format!("egress.allow opens {range}, and with it {METADATA}"),
            "a page or a redirect can make us read the keys of this machine from its cloud",
            next,
        ));
    }
    if let Some(range) = facts.allowed.iter().find(is_wide) {
        return Some(Finding::notable(
            "egress",
            format!("egress.allow opens {range}"),
            "pages and redirects of strangers can reach everything in there; name what you need",
            next,
        ));
    }
    let ports: u64 = facts
        .ports
        .iter()
        .map(|ports| u64::from(*ports.end()).saturating_sub(u64::from(*ports.start())) + 1)
        .sum();
    (ports > 10_000).then(|| {
        Finding::notable(
            "egress",
            format!("egress.ports opens {} ports", number(ports)),
            "pages and redirects of strangers can make us speak to services that are none of the web",
            next,
        )
    })
}

fn server(facts: &MachineFacts) -> Option<Finding> {
    let bind = facts.bind?;
    let is_beyond = !bind.ip().is_loopback() && facts.public_hosts.is_empty();
    is_beyond.then(|| {
        Finding::notable(
            "server",
            format!("server.bind is {bind}, and server.public_hosts is empty"),
            "others reach this server, but whoever comes by a name instead of an address is refused",
            "tidings run --set server.public_hosts=NAME (or in tidings.toml)",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity::{self, AdapterErrorKind, WorthKnowing};

    #[test]
    fn every_trouble_of_a_machine_has_its_finding() {
        let well = MachineFacts {
            folder: "tidings-data".to_owned(),
            disk: Some((50_000_000_000, 100_000_000_000)),
            open_files: Some(1024),
            at_once: 256,
            contact: "https://us.example/".to_owned(),
            allowed: vec!["10.1.2.0/24".parse().unwrap()],
            ports: vec![80..=80, 8000..=8999],
            bind: Some("127.0.0.1:8500".parse().unwrap()),
            public_hosts: Vec::new(),
        };
        let grave = |facts: &MachineFacts| {
            let mut found = judge(facts);
            found.retain(|finding| finding.severity != Severity::Fine);
            found
        };
        assert_eq!(grave(&well), []);
        let unknown = MachineFacts {
            disk: None,
            open_files: None,
            bind: None,
            ..well.clone()
        };
        assert_eq!(judge(&unknown), []);
        let disk = |free| MachineFacts {
            disk: Some((free, 100_000_000_000)),
            ..well.clone()
        };
        let allowed = |range: &str| MachineFacts {
            allowed: vec![range.parse().unwrap()],
            ..well.clone()
        };
        let bound = |bind: &str, names: &[&str]| MachineFacts {
            bind: Some(bind.parse().unwrap()),
            public_hosts: names.iter().map(|name| (*name).to_owned()).collect(),
            ..well.clone()
        };
        type Row<'a> = (&'a str, MachineFacts, Severity, &'a str);
        let rows: [Row<'_>; 9] = [
            (
                "a full disk",
                disk(900_000_000),
                AdapterErrorKind,
                "900.0 MB of 100.0 GB are free for tidings-data",
            ),
            ("little room", disk(4_900_000_000), WorthKnowing, "4.9 GB"),
            (
                "too few files",
                MachineFacts {
                    at_once: 1000,
                    ..well.clone()
                },
                AdapterErrorKind,
                "1,024 may be open at once, and fetch.at_once = 1000 needs up to 2,256",
            ),
            (
                "nobody to ask",
                MachineFacts {
                    contact: String::new(),
                    ..well.clone()
                },
                WorthKnowing,
                "net.contact is not set",
            ),
            (
                "everything is open",
                allowed("0.0.0.0/0"),
                AdapterErrorKind,
                "egress.allow opens 0.0.0.0/0, and with it 169.254.169.254",
            ),
            (
                "a wide range",
                allowed("10.0.0.0/8"),
                WorthKnowing,
                "10.0.0.0/8",
            ),
            (
                "a wide range of IPv6",
                allowed("fd00::/8"),
                WorthKnowing,
                "fd00::/8",
            ),
            (
                "all ports",
                MachineFacts {
                    ports: vec![1..=65535],
                    ..well.clone()
                },
                WorthKnowing,
                "egress.ports opens 65,535 ports",
            ),
            (
                "a server without a name",
                bound("0.0.0.0:8500", &[]),
                WorthKnowing,
                "server.bind is 0.0.0.0:8500, and server.public_hosts is empty",
            ),
        ];
        for (name, facts, severity, what) in rows {
            let found = grave(&facts);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert_eq!(found[0].severity, severity, "{name}");
            assert!(found[0].what.contains(what), "{name}: {}", found[0].what);
        }
        assert_eq!(grave(&bound("0.0.0.0:8500", &["news.example"])), []);
    }
}
