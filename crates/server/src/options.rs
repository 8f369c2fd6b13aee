//! How the server is configured: where it listens, under which names, within which
//! limits, and what the settings page lists.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tidings_engine::PollOptions;
use tidings_net::IpNet;

use crate::tls::TlsFiles;

/// Where the server listens and what it may show.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    pub bind: SocketAddr,
    /// Host names that are accepted besides localhost and the bound address.
    pub public_hosts: Vec<String>,
    /// Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` count.
    pub trusted_proxies: Vec<IpNet>,
    /// The certificate and key, if the server has TLS of its own.
    pub tls: Option<TlsFiles>,
    /// A quarter of them is left for requests that are no streams.
    pub max_connections: usize,
    /// For the header of a request, for a TLS handshake, and for idle connections.
    pub header_timeout: Duration,
    /// The folder of the embedded search index, if there is one.
    pub search_folder: Option<PathBuf>,
    /// What the settings page lists; secrets are masked before.
    pub settings: Vec<Setting>,
    /// How often live streams query the store: the maximum delay of live data.
    pub stream_poll_interval: Duration,
    /// The options of polls that a user starts.
    pub poll: PollOptions,
}

/// A setting as it may be shown.
#[derive(Debug, Clone)]
pub struct Setting {
    pub key: String,
    pub value: String,
    pub origin: String,
}

impl ServerOptions {
    pub fn new(bind: SocketAddr) -> Self {
        Self {
            bind,
            public_hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            tls: None,
            max_connections: 512,
            header_timeout: Duration::from_secs(10),
            search_folder: None,
            settings: Vec::new(),
            stream_poll_interval: Duration::from_millis(500),
            poll: PollOptions::default(),
        }
    }
}
