//! A connection to the server of a URL: resolve once, check every address, dial
//! one of those that were checked. There is no moment at which a name could
//! point elsewhere than where it was checked to point.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tidings_url::FetchUrl;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant as Deadline, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tracing::debug;

use crate::egress::Egress;
use crate::egress_routes::{ConnectError, EgressRoutes};
use crate::failure::{Failure, Stage, is_out_of_descriptors};
use crate::limits::NetOptions;
use crate::pool::{Connection, Sender};
use crate::resolve::DnsResolver;

/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 8;

/// Concurrent streams, frames and the like are bounded by h2 itself; this bounds
/// what it buffers.
const H2_WINDOW: u32 = 256 * 1024;

/// How long each part of a connection took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DialTimes {
    pub(crate) dns: Duration,
    pub(crate) connect: Duration,
    pub(crate) tls: Duration,
}

pub(crate) struct Dialer {
    resolver: DnsResolver,
    egress: Egress,
    routes: EgressRoutes,
    tls: TlsConnector,
    header_bytes: usize,
}

impl Dialer {
    pub(crate) fn new(options: &NetOptions) -> Result<Self, Failure> {
        Ok(Self {
            resolver: DnsResolver::new(&options.dns)?,
            egress: options.egress.clone(),
            routes: EgressRoutes::new(options),
            tls: TlsConnector::from(Arc::new(tls_config(options)?)),
            header_bytes: options.limits.header_bytes,
        })
    }

    /// Every address of a name, permitted or not.
    pub(crate) async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Failure> {
        self.resolver.addresses(host).await
    }

    pub(crate) async fn dial(
        &self,
        url: &FetchUrl,
        limit: Duration,
    ) -> Result<(Connection, DialTimes), Failure> {
        let deadline = Deadline::now() + limit;
        let mut times = DialTimes::default();
        let start = Instant::now();
        let port = url
            .as_url()
            .port_or_known_default()
            .expect("http and https have a default port");
        let addresses = self.permitted(url.host(), port).await?;
        times.dns = start.elapsed();

        let start = Instant::now();
        let (stream, peer) = self
            .connect(url.host(), &addresses, deadline, limit)
            .await?;
        times.connect = start.elapsed();

        if url.as_url().scheme() == "http" {
            let sender = self.handshake(stream, false).await?;
            return Ok((Connection::new(sender, peer), times));
        }
        let start = Instant::now();
        let stream = timeout_at(deadline, tls_handshake(&self.tls, stream, url.host()))
            .await
            .map_err(|_| connect_timeout(limit))??;
        times.tls = start.elapsed();
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let sender = self.handshake(stream, is_h2).await?;
        Ok((Connection::new(sender, peer), times))
    }

    pub(crate) async fn connect_to(
        &self,
        host: &str,
        port: u16,
        limit: Duration,
    ) -> Result<TcpStream, Failure> {
        let deadline = Deadline::now() + limit;
        let addresses = self.permitted(host, port).await?;
        let (stream, _) = self.connect(host, &addresses, deadline, limit).await?;
        Ok(stream)
    }

    pub(crate) async fn encrypt(
        &self,
        stream: TcpStream,
        host: &str,
        limit: Duration,
    ) -> Result<TlsStream<TcpStream>, Failure> {
        let mut config = ClientConfig::clone(self.tls.config());
        // What follows is not HTTP.
        config.alpn_protocols.clear();
        let tls = TlsConnector::from(Arc::new(config));
        tokio::time::timeout(limit, tls_handshake(&tls, stream, host))
            .await
            .map_err(|_| connect_timeout(limit))?
    }

    /// The addresses of a host, if every one of them may be dialled. One that
    /// may not makes the name suspicious, so none is.
    async fn permitted(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        let ips = match literal.parse() {
            Ok(ip) => vec![ip],
            Err(_) => self.resolver.addresses(host).await?,
        };
        let mut addresses = Vec::new();
        for ip in ips {
            let address = SocketAddr::new(ip, port);
            self.egress.check(address)?;
            addresses.push(address);
        }
        addresses.truncate(MAX_ADDRESSES);
        Ok(addresses)
    }

    /// Tries one address after the other, each with its share of the timeout.
    async fn connect(
        &self,
        host: &str,
        addresses: &[SocketAddr],
        deadline: Deadline,
        limit: Duration,
    ) -> Result<(TcpStream, SocketAddr), Failure> {
        let mut failure = Failure::Connect {
            address: "no address".to_owned(),
            why: "the name has none".to_owned(),
        };
        for (at, address) in addresses.iter().enumerate() {
            let left = deadline.saturating_duration_since(Deadline::now());
            let share = left / (addresses.len() - at) as u32;
            let connecting = self.routes.connect(host, *address, share);
            failure = match tokio::time::timeout(share, connecting).await {
                Ok(Ok(stream)) => {
                    // Requests are one write: Nagle's algorithm only adds latency.
                    let _ = stream.set_nodelay(true);
                    return Ok((stream, *address));
                }
                Ok(Err(ConnectError::Target(error) | ConnectError::NoRoute(error)))
                    if is_out_of_descriptors(&error) =>
                {
                    return Err(Failure::NoDescriptor {
                        why: error.to_string(),
                    });
                }
                Ok(Err(ConnectError::Target(error))) => Failure::Connect {
                    address: address.to_string(),
                    why: error.to_string(),
                },
                Ok(Err(ConnectError::NoRoute(error))) => Failure::NoEgressRoute {
                    why: error.to_string(),
                },
                Err(_) => connect_timeout(limit),
            };
        }
        Err(failure)
    }

    async fn handshake(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        is_h2: bool,
    ) -> Result<Sender, Failure> {
        let io = TokioIo::new(stream);
        let failed = |error: hyper::Error| Failure::Disconnected {
            why: error.to_string(),
        };
        if is_h2 {
            let (sender, connection) =
                hyper::client::conn::http2::Builder::new(TokioExecutor::new())
                    .max_header_list_size(self.header_bytes as u32)
                    .initial_stream_window_size(H2_WINDOW)
                    .initial_connection_window_size(H2_WINDOW)
                    .handshake(io)
                    .await
                    .map_err(failed)?;
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    debug!(%error, "connection closed");
                }
            });
            return Ok(Sender::H2(sender));
        }
        let (sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(self.header_bytes)
            .max_headers(1000)
            .handshake(io)
            .await
            .map_err(failed)?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                debug!(%error, "connection closed");
            }
        });
        Ok(Sender::H1(sender))
    }
}

async fn tls_handshake(
    tls: &TlsConnector,
    stream: TcpStream,
    host: &str,
) -> Result<TlsStream<TcpStream>, Failure> {
    let failed = |why: String| Failure::Tls {
        host: host.to_owned(),
        why,
    };
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(name.to_owned()).map_err(|error| failed(error.to_string()))?;
    let connected = tls.connect(name, stream).await;
    connected.map_err(|error| failed(error.to_string()))
}

fn connect_timeout(limit: Duration) -> Failure {
    Failure::Timeout {
        stage: Stage::Connect,
        limit,
    }
}

fn tls_config(options: &NetOptions) -> Result<ClientConfig, Failure> {
    let failed = |why: String| Failure::Tls {
        host: "(setup)".to_owned(),
        why,
    };
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    for authority in &options.authorities {
        roots
            .add(authority.clone())
            .map_err(|error| failed(error.to_string()))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
