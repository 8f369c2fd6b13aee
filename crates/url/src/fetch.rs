//! The URL that is requested: the submitted one after a WHATWG parse, with
//! fragment and userinfo removed and nothing else rewritten. `http` stays
//! `http`, because some sites have no TLS.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{UrlError, UrlRule};

/// Longest URL that is accepted, before and after parsing.
pub const MAX_URL_BYTES: usize = 4096;

/// Longest host name that DNS can carry (RFC 1035 §2.3.4, in text form).
const MAX_HOST_BYTES: usize = 253;

/// An absolute `http` or `https` URL that may be requested.
///
/// ```
/// # use tidings_url::FetchUrl;
/// let page = FetchUrl::parse("http://me:pw@example.com/a/b?x=1#top")?;
/// assert_eq!(page.as_str(), "http://example.com/a/b?x=1");
/// assert_eq!(page.join("../c")?.as_str(), "http://example.com/c");
/// # Ok::<(), tidings_url::UrlError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FetchUrl(Url);

impl FetchUrl {
    /// Parses an absolute URL. Whitespace around it is ignored.
    pub fn parse(input: &str) -> Result<Self, UrlError> {
        Self::accept(input, None)
    }

    /// Resolves a link found on this page.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        Self::accept(reference, Some(&self.0))
    }

    fn accept(input: &str, base: Option<&Url>) -> Result<Self, UrlError> {
        let text = input.trim_matches(|c: char| c.is_ascii_whitespace());
        check_text(text, base.is_some()).map_err(|rule| rule.refuse(text))?;
        let parsed = match base {
            Some(base) => base.join(text),
            None => Url::parse(text),
        };
        parsed
            .map_err(UrlRule::from)
            .and_then(check_url)
            .map(Self)
            .map_err(|rule| rule.refuse(text))
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The parsed form, for callers that need its components.
    pub fn as_url(&self) -> &Url {
        &self.0
    }

    /// The host name or address, without port and without a trailing dot.
    pub fn host(&self) -> &str {
        let host = self.0.host_str().unwrap_or_default();
        host.strip_suffix('.').unwrap_or(host)
    }

    /// The port, unless it is one that every web client assumes (80 or 443).
    pub fn unusual_port(&self) -> Option<u16> {
        self.0.port().filter(|port| !matches!(port, 80 | 443))
    }
}

fn check_text(text: &str, has_base: bool) -> Result<(), UrlRule> {
    if text.is_empty() && !has_base {
        return Err(UrlRule::Empty);
    }
    if text.len() > MAX_URL_BYTES {
        return Err(too_long(text.len()));
    }
    match text.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, _)) => Err(UrlRule::ControlCharacter { at }),
        None => Ok(()),
    }
}

fn check_url(mut url: Url) -> Result<Url, UrlRule> {
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = url.scheme().to_owned();
        return Err(UrlRule::Scheme { scheme });
    }
    check_host(url.host_str().unwrap_or_default())?;
    url.set_fragment(None);
    if url.as_str().contains('@') {
        // These setters fail only for URLs without a host, which were refused.
        let _ = url.set_username("");
        let _ = url.set_password(None);
    }
    if url.as_str().len() > MAX_URL_BYTES {
        return Err(too_long(url.as_str().len()));
    }
    Ok(url)
}

fn check_host(host: &str) -> Result<(), UrlRule> {
    let name = host.strip_suffix('.').unwrap_or(host);
    if name.is_empty() {
        return Err(UrlRule::NoHost);
    }
    let empty_label = name.starts_with('.') || name.ends_with('.') || name.contains("..");
    if empty_label || name.len() > MAX_HOST_BYTES {
        let host = host.to_owned();
        return Err(UrlRule::BadHost { host });
    }
    Ok(())
}

fn too_long(bytes: usize) -> UrlRule {
    UrlRule::TooLong {
        bytes,
        limit: MAX_URL_BYTES,
    }
}

impl fmt::Display for FetchUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for FetchUrl {
    type Err = UrlError;

    fn from_str(input: &str) -> Result<Self, UrlError> {
        Self::parse(input)
    }
}

impl TryFrom<String> for FetchUrl {
    type Error = UrlError;

    fn try_from(input: String) -> Result<Self, UrlError> {
        Self::parse(&input)
    }
}

impl From<FetchUrl> for String {
    fn from(url: FetchUrl) -> Self {
        url.0.into()
    }
}
