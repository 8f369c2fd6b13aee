//! The addresses that this machine asks from, when it has several. A host is
//! always asked from the same one, as long as that can be used; one that can't
//! rests for a while, and its hosts are asked from another.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::{TcpSocket, TcpStream};
use tracing::warn;

/// How long an address that can't be used is left alone.
const REST: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(crate) struct Sources {
    addresses: Vec<IpAddr>,
    /// Until when an address rests.
    resting: Mutex<HashMap<IpAddr, Instant>>,
}

impl Sources {
    /// None: the system chooses, as it does when the list is empty.
    pub(crate) fn new(addresses: &[IpAddr]) -> Self {
        Self {
            addresses: addresses.to_vec(),
            resting: Mutex::default(),
        }
    }

    /// Connects to a host's address from the address that is the host's.
    pub(crate) async fn connect(&self, host: &str, to: SocketAddr) -> io::Result<TcpStream> {
        let usable: Vec<IpAddr> = self
            .addresses
            .iter()
            .copied()
            .filter(|from| from.is_ipv4() == to.is_ipv4())
            .collect();
        if self.addresses.is_empty() {
            return TcpStream::connect(to).await;
        }
        let mut failure = io::Error::other("net.addresses has none of that family");
        for from in in_order(host, usable) {
            if self.rests(from, Instant::now()) {
                continue;
            }
            match bound(from) {
                // From here on it is the other side's matter.
                Ok(socket) => return socket.connect(to).await,
                Err(error) => {
                    warn!(address = %from, %error, "an address of net.addresses can't be used; it rests");
                    self.rest(from, Instant::now() + REST);
                    failure = error;
                }
            }
        }
        Err(failure)
    }

    fn rests(&self, address: IpAddr, now: Instant) -> bool {
        let resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.get(&address).is_some_and(|until| *until > now)
    }

    fn rest(&self, address: IpAddr, until: Instant) {
        let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.insert(address, until);
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

/// The host's own address first. When one is added or taken away, only its own
/// hosts move: each address bids for each host, and the highest bid wins.
fn in_order(host: &str, mut addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    addresses.sort_by_key(|address| std::cmp::Reverse(bid(host, *address)));
    addresses
}

/// FNV-1a over both, stirred at the end: any number that always comes out the same.
fn bid(host: &str, address: IpAddr) -> u64 {
    let both = format!("{address} {host}");
    let hash = both.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Vec<IpAddr> {
        (1..=4).map(|n| IpAddr::from([192, 0, 2, n])).collect()
    }

    #[test]
    fn hosts_are_spread_and_stay() {
        let mut hosts_of: HashMap<IpAddr, Vec<String>> = HashMap::new();
        for n in 0..1000 {
            let host = format!("h{n}.example");
            let first = in_order(&host, addresses())[0];
            assert_eq!(in_order(&host, addresses())[0], first);
            hosts_of.entry(first).or_default().push(host);
        }
        for (address, hosts) in &hosts_of {
            assert!(
                (150..350).contains(&hosts.len()),
                "{address}: {}",
                hosts.len()
            );
        }
        // Without the last one, only its hosts move.
        let fewer = addresses()[..3].to_vec();
        for (address, hosts) in hosts_of
            .iter()
            .filter(|(address, _)| fewer.contains(*address))
        {
            for host in hosts {
                assert_eq!(in_order(host, fewer.clone())[0], *address);
            }
        }
    }
}
