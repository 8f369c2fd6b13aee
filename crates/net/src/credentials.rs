//! Passwords for sites, by registrable domain. They go with a request to that
//! site and with no other, whatever a redirect says.

use std::fmt;

use base64::Engine as _;
use http::HeaderValue;
use tidings_url::FetchUrl;

/// A user and a password for one site.
#[derive(Clone)]
pub struct Credentials {
    domain: String,
    header: HeaderValue,
}

impl Credentials {
    /// `None` when user and password can't be sent.
    pub fn new(domain: &str, user: &str, password: &str) -> Option<Self> {
        if user.contains(':') {
            return None;
        }
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        let mut header = HeaderValue::from_str(&format!("Basic {pair}")).ok()?;
        header.set_sensitive(true);
        Some(Self {
            domain: domain.trim().to_ascii_lowercase(),
            header,
        })
    }

    pub(crate) fn header_for(&self, url: &FetchUrl) -> Option<HeaderValue> {
        (url.registrable_domain() == self.domain).then(|| self.header.clone())
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials for {}", self.domain)
    }
}
