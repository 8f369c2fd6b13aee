//! The ways out, when there are several: addresses of this machine, and proxies.
//! A host is always asked by the same one, as long as that can be used; one that
//! can't rests for a while, and its hosts are asked by another.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::{TcpSocket, TcpStream};
use tracing::warn;

use crate::limits::NetOptions;
use crate::proxy::{Blocked, Proxy};

/// How long a way that can't be used is left alone.
const REST: Duration = Duration::from_secs(300);

#[derive(Debug, Clone)]
enum WayOut {
    Address(IpAddr),
    Proxy(Proxy),
}

impl WayOut {
    /// What tells it from others; not to be shown.
    fn identity(&self) -> String {
        match self {
            Self::Address(address) => address.to_string(),
            Self::Proxy(proxy) => proxy.identity(),
        }
    }

    fn leads_to(&self, address: SocketAddr) -> bool {
        match self {
            Self::Address(from) => from.is_ipv4() == address.is_ipv4(),
            Self::Proxy(_) => true,
        }
    }
}

impl fmt::Display for WayOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Proxy(proxy) => proxy.fmt(f),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Sources {
    ways: Vec<WayOut>,
    /// Until when a way rests, by its place in the list.
    resting: Mutex<HashMap<usize, Instant>>,
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum Unconnected {
    /// None of our ways can be used now.
    NoWay(io::Error),
    /// The other side can't be reached.
    Server(io::Error),
}

impl Sources {
    /// None: the system chooses.
    pub(crate) fn new(options: &NetOptions) -> Self {
        let addresses = options.addresses.iter().copied().map(WayOut::Address);
        let proxies = options.proxies.iter().cloned().map(WayOut::Proxy);
        Self {
            ways: addresses.chain(proxies).collect(),
            resting: Mutex::default(),
        }
    }

    /// Connects to a host's address by the way that is the host's.
    pub(crate) async fn connect(
        &self,
        host: &str,
        to: SocketAddr,
        limit: Duration,
    ) -> Result<TcpStream, Unconnected> {
        if self.ways.is_empty() {
            let connected = TcpStream::connect(to).await;
            return connected.map_err(Unconnected::Server);
        }
        let usable = self.in_order(host, to);
        if usable.is_empty() {
            let why = "net.addresses has none of that family";
            return Err(Unconnected::Server(io::Error::other(why)));
        }
        let mut failure = io::Error::other("they rest, or did not answer in time");
        for at in usable {
            if self.rests(at, Instant::now()) {
                continue;
            }
            // From an open way on it is the other side's matter.
            let way = &self.ways[at];
            let error = match way {
                WayOut::Address(from) => match bound(*from) {
                    Ok(socket) => {
                        let connected = socket.connect(to).await;
                        return connected.map_err(Unconnected::Server);
                    }
                    Err(error) => error,
                },
                WayOut::Proxy(proxy) => match proxy.connect(to, limit).await {
                    Ok(stream) => return Ok(stream),
                    Err(Blocked::Server(error)) => return Err(Unconnected::Server(error)),
                    Err(Blocked::Hurried) => continue,
                    Err(Blocked::Proxy(error)) => error,
                },
            };
            warn!(%way, %error, "a way out can't be used; it rests");
            self.rest(at, Instant::now() + REST);
            failure = error;
        }
        Err(Unconnected::NoWay(failure))
    }

    /// The places of the ways to an address, the host's own first.
    fn in_order(&self, host: &str, to: SocketAddr) -> Vec<usize> {
        let ways = self.ways.iter().enumerate();
        let usable = ways.filter(|(_, way)| way.leads_to(to));
        let mut bids: Vec<_> = usable
            .map(|(at, way)| (bid(host, &way.identity()), at))
            .collect();
        bids.sort_unstable_by(|a, b| b.cmp(a));
        bids.into_iter().map(|(_, at)| at).collect()
    }

    fn rests(&self, way: usize, now: Instant) -> bool {
        let resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.get(&way).is_some_and(|until| *until > now)
    }

    fn rest(&self, way: usize, until: Instant) {
        let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.insert(way, until);
    }
}

fn bound(from: IpAddr) -> io::Result<TcpSocket> {
    let socket = match from {
        IpAddr::V4(_) => TcpSocket::new_v4()?,
        IpAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.bind(SocketAddr::new(from, 0))?;
    Ok(socket)
}

/// Each way bids for each host, and the highest bid wins: when one is added or
/// taken away, only its own hosts move. FNV-1a over both, stirred at the end: any
/// number that always comes out the same.
fn bid(host: &str, way: &str) -> u64 {
    let both = format!("{way} {host}");
    let hash = both.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four ways, the first two to the same place as different users.
    fn ways(number: usize) -> Sources {
        let proxies = ["me@p.example", "you@p.example", "q.example", "r.example"];
        let proxy = |name: &&str| Proxy::parse(&format!("socks5://{name}")).unwrap();
        Sources::new(&NetOptions {
            proxies: proxies[..number].iter().map(proxy).collect(),
            ..NetOptions::default()
        })
    }

    #[test]
    fn hosts_are_spread_and_stay() {
        let to = SocketAddr::from(([192, 0, 2, 1], 80));
        let (all, fewer) = (ways(4), ways(3));
        let mut hosts = [0; 4];
        for n in 0..1000 {
            let host = format!("h{n}.example");
            let first = all.in_order(&host, to)[0];
            assert_eq!(all.in_order(&host, to)[0], first);
            hosts[first] += 1;
            // Without the last one, only its hosts move.
            if first < 3 {
                assert_eq!(fewer.in_order(&host, to)[0], first);
            }
        }
        assert!(hosts.iter().all(|n| (150..350).contains(n)), "{hosts:?}");
    }
}
