//! Egress routes: the local addresses and proxies through which hosts are reached.
//! A host always has the same route while that works; a route that fails has a
//! cooldown, during which its hosts use another.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::{TcpSocket, TcpStream};
use tracing::warn;

use crate::failure::is_out_of_descriptors;
use crate::limits::NetOptions;
use crate::proxy::{Proxy, ProxyError};

/// How long a route that failed is not used.
const COOLDOWN: Duration = Duration::from_secs(300);

#[derive(Debug, Clone)]
enum Route {
    Address(IpAddr),
    Proxy(Proxy),
}

impl Route {
    /// Distinguishes it from others; not to be shown.
    fn identity(&self) -> String {
        match self {
            Self::Address(address) => address.to_string(),
            Self::Proxy(proxy) => proxy.identity(),
        }
    }

    fn reaches(&self, address: SocketAddr) -> bool {
        match self {
            Self::Address(from) => from.is_ipv4() == address.is_ipv4(),
            Self::Proxy(_) => true,
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Proxy(proxy) => proxy.fmt(f),
        }
    }
}

#[derive(Debug)]
pub(crate) struct EgressRoutes {
    routes: Vec<Route>,
    /// Until when a route is in cooldown, by its index.
    cooldowns: Mutex<HashMap<usize, Instant>>,
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// No route is usable now.
    NoRoute(io::Error),
    /// The target can't be reached.
    Target(io::Error),
}

impl EgressRoutes {
    /// Without any, the system chooses.
    pub(crate) fn new(options: &NetOptions) -> Self {
        let addresses = options.addresses.iter().copied().map(Route::Address);
        let proxies = options.proxies.iter().cloned().map(Route::Proxy);
        Self {
            routes: addresses.chain(proxies).collect(),
            cooldowns: Mutex::default(),
        }
    }

    /// Connects to a host's address by the host's route.
    pub(crate) async fn connect(
        &self,
        host: &str,
        to: SocketAddr,
        limit: Duration,
    ) -> Result<TcpStream, ConnectError> {
        if self.routes.is_empty() {
            let connected = TcpStream::connect(to).await;
            return connected.map_err(ConnectError::Target);
        }
        let usable = self.in_order(host, to);
        if usable.is_empty() {
            let why = "net.addresses has none of that family";
            return Err(ConnectError::Target(io::Error::other(why)));
        }
        let mut failure = io::Error::other("all are in cooldown, or did not respond in time");
        for at in usable {
            if self.is_cooling_down(at, Instant::now()) {
                continue;
            }
            // Once the route is open, a failure is the target's.
            let route = &self.routes[at];
            let error = match route {
                Route::Address(from) => match bound(*from) {
                    Ok(socket) => {
                        let connected = socket.connect(to).await;
                        return connected.map_err(ConnectError::Target);
                    }
                    Err(error) => error,
                },
                Route::Proxy(proxy) => match proxy.connect(to, limit).await {
                    Ok(stream) => return Ok(stream),
                    Err(ProxyError::Target(error)) => return Err(ConnectError::Target(error)),
                    Err(ProxyError::OutOfTime) => continue,
                    Err(ProxyError::Proxy(error)) => error,
                },
            };
            // The route is fine; no socket could be opened to try it.
            if is_out_of_descriptors(&error) {
                return Err(ConnectError::NoRoute(error));
            }
            warn!(%route, %error, "egress route failed; cooling down");
            self.cool_down(at, Instant::now() + COOLDOWN);
            failure = error;
        }
        Err(ConnectError::NoRoute(failure))
    }

    /// The indices of the routes to an address, the host's own first.
    fn in_order(&self, host: &str, to: SocketAddr) -> Vec<usize> {
        let routes = self.routes.iter().enumerate();
        let usable = routes.filter(|(_, route)| route.reaches(to));
        let mut bids: Vec<_> = usable
            .map(|(at, route)| (bid(host, &route.identity()), at))
            .collect();
        bids.sort_unstable_by(|a, b| b.cmp(a));
        bids.into_iter().map(|(_, at)| at).collect()
    }

    fn is_cooling_down(&self, route: usize, now: Instant) -> bool {
        let cooldowns = self
            .cooldowns
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        cooldowns.get(&route).is_some_and(|until| *until > now)
    }

    fn cool_down(&self, route: usize, until: Instant) {
        let mut cooldowns = self
            .cooldowns
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        cooldowns.insert(route, until);
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

/// Rendezvous hashing: each route bids for each host, and the highest bid wins, so
/// that adding or removing one moves only its own hosts. FNV-1a over both with a
/// final mix; any stable hash would do.
fn bid(host: &str, route: &str) -> u64 {
    let both = format!("{route} {host}");
    let hash = both.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Up to four routes, the first two to one proxy as different users.
    fn routes(number: usize) -> EgressRoutes {
        let proxies = ["me@p.example", "you@p.example", "q.example", "r.example"];
        let proxy = |name: &&str| Proxy::parse(&format!("socks5://{name}")).unwrap();
        EgressRoutes::new(&NetOptions {
            proxies: proxies[..number].iter().map(proxy).collect(),
            ..NetOptions::default()
        })
    }

    #[test]
    fn hosts_are_spread_and_stay() {
        let to = SocketAddr::from(([192, 0, 2, 1], 80));
        let (all, fewer) = (routes(4), routes(3));
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
