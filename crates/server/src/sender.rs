//! Where a request comes from: the address of the client, and whether it is encrypted.
//! What proxies say in `X-Forwarded-*` counts only from those that are trusted.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::HeaderMap;
use tidings_net::IpNet;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sender {
    pub(crate) address: IpAddr,
    pub(crate) is_https: bool,
}

impl Sender {
    /// The last address that no trusted proxy has, from the connection outwards.
    pub(crate) fn new(peer: IpAddr, is_tls: bool, headers: &HeaderMap, trusted: &[IpNet]) -> Self {
        let is_trusted = |address: IpAddr| trusted.iter().any(|range| range.contains(&address));
        let mut address = peer.to_canonical();
        if !is_trusted(address) {
            let is_https = is_tls;
            return Self { address, is_https };
        }
        for text in items(headers, "x-forwarded-for").rev() {
            // What is left of an invalid address can't be trusted either.
            let Some(forwarded) = parse(text) else { break };
            address = forwarded.to_canonical();
            if !is_trusted(address) {
                break;
            }
        }
        let scheme = items(headers, "x-forwarded-proto").next_back();
        Self {
            address,
            is_https: is_tls || scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")),
        }
    }

    /// What counts as one client: whoever has an IPv6 address has its /64.
    pub(crate) fn client(self) -> IpAddr {
        match self.address {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            address => address,
        }
    }
}

/// The items of a list header, in the order of its lines.
fn items<'a>(
    headers: &'a HeaderMap,
    name: &'static str,
) -> impl DoubleEndedIterator<Item = &'a str> {
    let lines = headers.get_all(name).into_iter();
    lines
        .map(|line| line.to_str().unwrap_or_default())
        .flat_map(|line| line.split(',').map(str::trim))
}

/// An address, which some proxies send with a port.
fn parse(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let with_port = || text.parse::<SocketAddr>().ok().map(|at| at.ip());
    bare.parse().ok().or_else(with_port)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_name_the_client() {
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
        let rows: [(&str, &[&str], &str); 11] = [
            ("203.0.113.5", &["198.51.100.7"], "203.0.113.5"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.7"], "198.51.100.7"),
            ("::ffff:10.0.0.1", &["198.51.100.7"], "198.51.100.7"),
            ("10.0.0.1", &["6.6.6.6, 198.51.100.7"], "198.51.100.7"),
            (
                "10.0.0.1",
                &["6.6.6.6", "198.51.100.7, 10.2.3.4"],
                "198.51.100.7",
            ),
            ("10.0.0.1", &["10.9.9.9, 10.2.3.4"], "10.9.9.9"),
            ("10.0.0.1", &["6.6.6.6, nonsense, 10.2.3.4"], "10.2.3.4"),
            ("10.0.0.1", &["198.51.100.7:4711"], "198.51.100.7"),
            ("::1", &["[2001:db8::7]:4711"], "2001:db8::7"),
            ("::1", &["2001:db8::7"], "2001:db8::7"),
        ];
        for (peer, lines, expected) in rows {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("x-forwarded-for", line.parse().unwrap());
            }
            let sender = Sender::new(peer.parse().unwrap(), false, &headers, &trusted);
            assert_eq!(sender.address.to_string(), expected, "{peer} {lines:?}");
        }
    }

    #[test]
    fn only_trusted_proxies_say_that_it_is_encrypted() {
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap()];
        for (peer, is_tls, scheme, is_https) in [
            ("10.0.0.1", false, "https", true),
            ("10.0.0.1", false, "http, HTTPS", true),
            ("10.0.0.1", false, "https, http", false),
            ("10.0.0.1", true, "http", true),
            ("203.0.113.5", false, "https", false),
            ("203.0.113.5", true, "http", true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-proto", scheme.parse().unwrap());
            let sender = Sender::new(peer.parse().unwrap(), is_tls, &headers, &trusted);
            assert_eq!(sender.is_https, is_https, "{peer} {is_tls} {scheme}");
        }
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        for (address, client) in [
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("203.0.113.5", "203.0.113.5"),
        ] {
            let address = address.parse().unwrap();
            let is_https = false;
            assert_eq!(Sender { address, is_https }.client().to_string(), client);
        }
    }
}
