//! Which addresses may be dialled: global unicast and web ports, and what the
//! operator opens by name. Pure; checked on the final address, at connect time,
//! for every hop. The predicates of the standard library miss several ranges.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use thiserror::Error;

/// What an operator has opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Egress {
    /// Ranges that are reachable although they are not global unicast.
    pub allow: Vec<IpNet>,
    pub ports: Vec<RangeInclusive<u16>>,
}

impl Default for Egress {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            ports: vec![80..=80, 443..=443, 8000..=8999],
        }
    }
}

/// An address that may not be dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{address} may not be reached: {reason}")]
pub struct Denied {
    pub address: SocketAddr,
    pub reason: DenyReason,
}

/// Why an address is denied, and so which setting would open it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DenyReason {
    Range(&'static str),
    Port,
}

impl fmt::Display for DenyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(name) => write!(f, "it is {name}; egress.allow opens a range by name"),
            Self::Port => write!(f, "its port is not a web port; egress.ports opens more"),
        }
    }
}

impl Egress {
    pub fn check(&self, address: SocketAddr) -> Result<(), Denied> {
        let deny = |reason| Err(Denied { address, reason });
        if !self.ports.iter().any(|open| open.contains(&address.port())) {
            return deny(DenyReason::Port);
        }
        match forbidden(address.ip()) {
            Some(_) if self.opens(address.ip()) => Ok(()),
            Some(range) => deny(DenyReason::Range(range)),
            None => Ok(()),
        }
    }

    fn opens(&self, ip: IpAddr) -> bool {
        let plain = match ip {
            IpAddr::V6(v6) => embedded_v4(v6).map_or(ip, IpAddr::V4),
            v4 => v4,
        };
        self.allow
            .iter()
            .any(|net| net.contains(&ip) || net.contains(&plain))
    }
}

const V4: &[(Ipv4Net, &str)] = &[
    (v4([0, 0, 0, 0], 8), "of this network (0.0.0.0/8)"),
    (v4([10, 0, 0, 0], 8), "private (10.0.0.0/8)"),
    (v4([100, 64, 0, 0], 10), "carrier-grade NAT (100.64.0.0/10)"),
    (v4([127, 0, 0, 0], 8), "loopback (127.0.0.0/8)"),
    (v4([169, 254, 0, 0], 16), "link-local (169.254.0.0/16)"),
    (v4([172, 16, 0, 0], 12), "private (172.16.0.0/12)"),
    (
        v4([192, 0, 0, 0], 24),
        "for protocol assignments (192.0.0.0/24)",
    ),
    (v4([192, 0, 2, 0], 24), "documentation (192.0.2.0/24)"),
    (v4([192, 88, 99, 0], 24), "a 6to4 relay (192.88.99.0/24)"),
    (v4([192, 168, 0, 0], 16), "private (192.168.0.0/16)"),
    (v4([198, 18, 0, 0], 15), "for benchmarks (198.18.0.0/15)"),
    (v4([198, 51, 100, 0], 24), "documentation (198.51.100.0/24)"),
    (v4([203, 0, 113, 0], 24), "documentation (203.0.113.0/24)"),
    (v4([224, 0, 0, 0], 4), "multicast (224.0.0.0/4)"),
    (v4([240, 0, 0, 0], 4), "reserved (240.0.0.0/4)"),
];

/// All that IANA has assigned for unicast; the rest is not the web.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// Inside [`GLOBAL_V6`] and still not the web, then names for what is outside.
const V6: &[(Ipv6Net, &str)] = &[
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), "Teredo (2001::/32)"),
    (
        v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
        "for protocol assignments (2001::/23)",
    ),
    (
        v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
        "documentation (2001:db8::/32)",
    ),
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), "6to4 (2002::/16)"),
    (
        v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
        "documentation (3fff::/20)",
    ),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "unspecified (::)"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "loopback (::1)"),
    (
        v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96),
        "NAT64 (64:ff9b::/96)",
    ),
    (
        v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48),
        "NAT64 (64:ff9b:1::/48)",
    ),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64), "discard (100::/64)"),
    (
        v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
        "unique local (fc00::/7)",
    ),
    (
        v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
        "link-local (fe80::/10)",
    ),
    (
        v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10),
        "site-local (fec0::/10)",
    ),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "multicast (ff00::/8)"),
];

const fn v4(octets: [u8; 4], prefix: u8) -> Ipv4Net {
    let [a, b, c, d] = octets;
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(parts: [u16; 8], prefix: u8) -> Ipv6Net {
    let [a, b, c, d, e, f, g, h] = parts;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix)
}

/// The name of the range that makes an address unreachable.
fn forbidden(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => V4.iter().find(|(net, _)| net.contains(&ip)).map(named),
        IpAddr::V6(ip) => match embedded_v4(ip) {
            Some(v4) => forbidden(IpAddr::V4(v4)),
            None => forbidden_v6(ip),
        },
    }
}

fn forbidden_v6(ip: Ipv6Addr) -> Option<&'static str> {
    let listed = V6.iter().find(|(net, _)| net.contains(&ip)).map(named);
    let outside = !GLOBAL_V6.contains(&ip);
    listed.or(outside.then_some("outside of global unicast (2000::/3)"))
}

fn named<N>((_, name): &(N, &'static str)) -> &'static str {
    name
}

/// IPv4 embedded in IPv6, mapped (`::ffff:a.b.c.d`) or compatible (`::a.b.c.d`):
/// the system dials the IPv4 address, so that is checked.
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let is_special = ip.is_unspecified() || ip.is_loopback();
    if is_special { None } else { ip.to_ipv4() }
}
