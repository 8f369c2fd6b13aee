//! Names into addresses: cached, bounded in time and number, with typed
//! failures. `localhost` and all names under it are this machine (RFC 6761) and
//! are never queried. Says nothing about whether an address may be dialled.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::{Resolver, TokioResolver};

use crate::failure::{Failure, is_out_of_descriptors};

/// All attempts together.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// One attempt; two of them fit.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);

const MAX_CACHED_NAMES: u64 = 20_000;

/// A name that fails is queried again after this at the earliest.
const NEGATIVE_TTL: Duration = Duration::from_secs(60);

const MAX_TTL: Duration = Duration::from_secs(3600);

/// Queries the system's servers, or those that are configured.
pub(crate) struct DnsResolver(TokioResolver);

impl DnsResolver {
    pub(crate) fn new(servers: &[SocketAddr]) -> Result<Self, Failure> {
        let failed = |error: NetError| Failure::Dns {
            host: "(setup)".to_owned(),
            why: error.to_string(),
        };
        let mut builder = if servers.is_empty() {
            TokioResolver::builder_tokio().map_err(failed)?
        } else {
            let servers = servers.iter().map(name_server).collect();
            let config = ResolverConfig::from_parts(None, Vec::new(), servers);
            Resolver::builder_with_config(config, TokioRuntimeProvider::default())
        };
        tune(builder.options_mut());
        Ok(Self(builder.build().map_err(failed)?))
    }

    /// Every address of a name, IPv4 first.
    pub(crate) async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Failure> {
        let name = host.strip_suffix('.').unwrap_or(host);
        if name == "localhost" || name.ends_with(".localhost") {
            return Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]);
        }
        // With a dot at its end no search list of this machine is tried.
        let lookup = self.0.lookup_ip(format!("{name}."));
        let answer = match tokio::time::timeout(LOOKUP_TIMEOUT, lookup).await {
            Ok(answer) => answer.map_err(|error| failure(host, &error))?,
            Err(_) => {
                return Err(Failure::Dns {
                    host: host.to_owned(),
                    why: format!("no DNS answer within {} s", LOOKUP_TIMEOUT.as_secs()),
                });
            }
        };
        let mut addresses: Vec<IpAddr> = answer.iter().collect();
        addresses.sort_by_key(IpAddr::is_ipv6);
        Ok(addresses)
    }
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let mut config = NameServerConfig::udp_and_tcp(address.ip());
    let with_port = |mut connection: ConnectionConfig| {
        connection.port = address.port();
        connection
    };
    config.connections = config.connections.into_iter().map(with_port).collect();
    config
}

fn tune(options: &mut ResolverOpts) {
    options.timeout = ATTEMPT_TIMEOUT;
    options.attempts = 1;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.cache_size = MAX_CACHED_NAMES;
    options.positive_max_ttl = Some(MAX_TTL);
    options.negative_max_ttl = Some(NEGATIVE_TTL);
}

fn failure(host: &str, error: &NetError) -> Failure {
    let host = host.to_owned();
    if error.is_nx_domain() || error.is_no_records_found() {
        return Failure::NoSuchName { host };
    }
    // The resolver does not say why it has no connection, so another descriptor is tried.
    if let Err(error) = File::open("/dev/null")
        && is_out_of_descriptors(&error)
    {
        return Failure::NoDescriptor {
            why: error.to_string(),
        };
    }
    Failure::Dns {
        host,
        why: error.to_string(),
    }
}
