//! Limits of time and memory for one peer, and the options of the HTTP client.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::body_memory::BodyMemory;
use crate::credentials::Credentials;
use crate::egress::Egress;
use crate::proxy::Proxy;

/// As much of a robots.txt as RFC 9309 §2.5 obliges every crawler to read.
pub(crate) const MAX_ROBOTS_BYTES: usize = 500 * 1024;

/// Bounds of one fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// DNS, TCP and TLS together.
    pub connect: Duration,
    /// From the request to the end of the headers.
    pub headers: Duration,
    /// From the start to the last byte, redirects not included.
    pub total: Duration,
    /// A transfer slower than this over [`Limits::rate_window`] is aborted.
    pub min_bytes_per_second: u64,
    pub rate_window: Duration,
    pub header_bytes: usize,
    /// Decoded bytes of a body.
    pub page_bytes: u64,
    pub feed_bytes: u64,
    pub sitemap_bytes: u64,
    pub redirects: usize,
    pub location_bytes: usize,
    /// Decoded bytes per byte received, once [`Limits::ratio_from`] are decoded.
    pub ratio: u64,
    pub ratio_from: u64,
}

impl Limits {
    /// The size of the largest body that is read.
    pub fn largest_body(&self) -> u64 {
        self.page_bytes.max(self.feed_bytes).max(self.sitemap_bytes)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            headers: Duration::from_secs(10),
            total: Duration::from_secs(30),
            min_bytes_per_second: 1024,
            rate_window: Duration::from_secs(15),
            header_bytes: 64 * 1024,
            page_bytes: 10 * MIB,
            feed_bytes: 20 * MIB,
            sitemap_bytes: 50 * MIB,
            redirects: 5,
            location_bytes: 8 * 1024,
            ratio: 200,
            ratio_from: MIB,
        }
    }
}

pub(crate) const MIB: u64 = 1024 * 1024;

/// Binary bodies are not used: enough to detect their type is read, and no more.
pub(crate) const BINARY_BYTES: u64 = 64 * 1024;

/// Options of the HTTP client.
#[derive(Debug, Clone, Default)]
pub struct NetOptions {
    /// The name of the crawler, such as `Tidings/1.0`; empty: that of this program.
    pub user_agent: String,
    /// A page or address where site owners find the operator.
    pub contact: String,
    pub limits: Limits,
    /// The budget of bodies, which other clients may share.
    pub memory: BodyMemory,
    pub egress: Egress,
    pub credentials: Vec<Credentials>,
    /// DNS servers to query instead of the system's.
    pub dns: Vec<SocketAddr>,
    /// Local addresses to connect from; each host has one of them. Empty: the
    /// system chooses.
    pub addresses: Vec<IpAddr>,
    /// Proxies to connect through, each the egress route of some hosts.
    pub proxies: Vec<Proxy>,
    /// Certificate authorities to trust besides the public ones.
    pub authorities: Vec<CertificateDer<'static>>,
    /// Requests in flight to one registrable domain, and to one address; without a
    /// limit if unset.
    pub max_per_domain: Option<usize>,
    pub max_per_address: Option<usize>,
}

impl NetOptions {
    /// The User-Agent of requests: the name, and the contact unless the name has it.
    pub(crate) fn full_user_agent(&self) -> String {
        let name = match self.user_agent.trim() {
            "" => concat!("Tidings/", env!("CARGO_PKG_VERSION")),
            name => name,
        };
        match self.contact.trim() {
            contact if contact.is_empty() || name.contains(contact) => name.to_owned(),
            contact => format!("{name} (+{contact})"),
        }
    }
}

/// The certificates of a PEM file; one that has none is refused.
pub fn read_authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let certificates: Vec<_> = read.map_err(|error| error.to_string())?;
    if certificates.is_empty() {
        return Err("it holds no certificate".to_owned());
    }
    Ok(certificates)
}
