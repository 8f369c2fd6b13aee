//! The url key: SHA-256 of the canonical URL. Documents, frontier rows and
//! deliveries are known by it; outside it is 64 lower-case hex characters.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;
use tidings_text::hex;

/// The identity of a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UrlKey([u8; 32]);

impl UrlKey {
    pub(crate) fn of(canonical: &str) -> Self {
        Self(Sha256::digest(canonical).into())
    }

    /// A key read back from where [`UrlKey::as_bytes`] was stored.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A text that is not a url key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a url key: 64 lower-case hex characters are expected")]
pub struct ParseUrlKeyError(String);

impl fmt::Display for UrlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for UrlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UrlKey({self})")
    }
}

impl FromStr for UrlKey {
    type Err = ParseUrlKeyError;

    fn from_str(text: &str) -> Result<Self, ParseUrlKeyError> {
        decode(text).ok_or_else(|| ParseUrlKeyError(text.chars().take(80).collect()))
    }
}

fn decode(text: &str) -> Option<UrlKey> {
    if text.len() != 64 || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let bytes = hex::decode(text)?.try_into().ok()?;
    Some(UrlKey(bytes))
}

impl TryFrom<String> for UrlKey {
    type Error = ParseUrlKeyError;

    fn try_from(text: String) -> Result<Self, ParseUrlKeyError> {
        text.parse()
    }
}

impl From<UrlKey> for String {
    fn from(key: UrlKey) -> Self {
        key.to_string()
    }
}
