//! Whom a URL belongs to: the host key is the unit of politeness, the
//! registrable domain the unit of "the same site".

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use url::Host;

use crate::FetchUrl;
use crate::escape::PATH;

/// The unit of politeness: a hostname, with the port when it is unusual, and
/// with the first path segment behind a gateway listed in [`ProxyHosts`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostKey(String);

impl HostKey {
    /// A key read back from where [`HostKey::as_str`] was stored.
    pub fn from_stored(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Gateways that serve many upstreams (RSSHub and the like), written as
/// `host` or `host:port`. Without this, all upstreams would share one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProxyHosts(BTreeSet<String>);

impl ProxyHosts {
    /// The host key of a gateway; none if the text is not `host` or `host:port`.
    pub fn gateway(text: &str) -> Option<HostKey> {
        let text = text.trim();
        if text.contains(['/', '\\', '?', '#', '@']) {
            return None;
        }
        let url = FetchUrl::parse(&format!("http://{text}/")).ok()?;
        Some(url.host_key(&Self::default()))
    }
}

/// What is not a gateway is left out.
impl<S: AsRef<str>> FromIterator<S> for ProxyHosts {
    fn from_iter<I: IntoIterator<Item = S>>(hosts: I) -> Self {
        let keys = hosts
            .into_iter()
            .filter_map(|host| Self::gateway(host.as_ref()));
        Self(keys.map(|key| key.0).collect())
    }
}

impl fmt::Display for ProxyHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<&str> = self.0.iter().map(String::as_str).collect();
        f.write_str(&hosts.join(", "))
    }
}

impl FetchUrl {
    /// The key under which requests for this URL are rate limited.
    pub fn host_key(&self, proxies: &ProxyHosts) -> HostKey {
        let mut key = self.host().to_owned();
        if let Some(port) = self.unusual_port() {
            key.push(':');
            key.push_str(&port.to_string());
        }
        if proxies.0.contains(&key) {
            let segment = self.as_url().path().split('/').nth(1).unwrap_or_default();
            if !segment.is_empty() {
                key.push('/');
                PATH.normalize_into(segment, &mut key);
            }
        }
        HostKey(key)
    }

    /// The domain that one owner registered, by the public suffix list; the
    /// host itself where there is none (an address, or a public suffix).
    pub fn registrable_domain(&self) -> &str {
        match self.as_url().host() {
            Some(Host::Domain(_)) => psl::domain_str(self.host()).unwrap_or(self.host()),
            _ => self.host(),
        }
    }

    /// Whether both URLs belong to one owner. A `rel=canonical` link is obeyed
    /// only then; across sites it is recorded and nothing more.
    pub fn is_same_site(&self, other: &Self) -> bool {
        self.registrable_domain() == other.registrable_domain()
    }
}
