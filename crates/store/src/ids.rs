//! The keys of the frontier. All of them are derived from the URL, so any machine
//! can compute them without a query, and the host always comes first.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;
use tidings_url::{HostKey, UrlKey};

/// The first eight bytes of the hash of a host key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub i64);

impl HostId {
    pub fn of(host: &HostKey) -> Self {
        let hash: [u8; 32] = Sha256::digest(host.as_str()).into();
        let [a, b, c, d, e, f, g, h, ..] = hash;
        Self(i64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }
}

/// The first sixteen bytes of a url key; the rest is stored beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UrlId(pub [u8; 16]);

impl UrlId {
    pub fn of(key: &UrlKey) -> Self {
        Self(split(key).0)
    }

    /// The whole key, from the two halves that are stored.
    pub(crate) fn with_tail(self, tail: [u8; 16]) -> UrlKey {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.0);
        bytes[16..].copy_from_slice(&tail);
        UrlKey::from_bytes(bytes)
    }
}

/// The half that is the id, and the half that is stored beside it.
pub(crate) fn split(key: &UrlKey) -> ([u8; 16], [u8; 16]) {
    let (mut id, mut tail) = ([0; 16], [0; 16]);
    id.copy_from_slice(&key.as_bytes()[..16]);
    tail.copy_from_slice(&key.as_bytes()[16..]);
    (id, tail)
}

/// The key of a frontier row: host and URL, formatted as 48 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FrontierId {
    pub host: HostId,
    pub url: UrlId,
}

impl FrontierId {
    pub fn of(host: &HostKey, key: &UrlKey) -> Self {
        Self {
            host: HostId::of(host),
            url: UrlId::of(key),
        }
    }

    /// The encoding for columns that hold it as one value.
    pub(crate) fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.host.0.to_be_bytes());
        bytes[8..].copy_from_slice(&self.url.0);
        bytes
    }

    /// Decodes `to_bytes`; none if the length is wrong.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (host, url) = bytes.split_first_chunk()?;
        Some(Self {
            host: HostId(i64::from_be_bytes(*host)),
            url: UrlId(url.try_into().ok()?),
        })
    }
}

/// A text that is not a frontier id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a frontier id: 48 hex digits are expected")]
pub struct ParseFrontierIdError(String);

impl fmt::Display for FrontierId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:016x}{:032x}",
            self.host.0,
            u128::from_be_bytes(self.url.0)
        )
    }
}

impl FromStr for FrontierId {
    type Err = ParseFrontierIdError;

    fn from_str(text: &str) -> Result<Self, ParseFrontierIdError> {
        let wrong = || ParseFrontierIdError(text.chars().take(60).collect());
        if text.len() != 48 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let host = u64::from_str_radix(&text[..16], 16).map_err(|_| wrong())?;
        let url = u128::from_str_radix(&text[16..], 16).map_err(|_| wrong())?;
        Ok(Self {
            host: HostId(host.cast_signed()),
            url: UrlId(url.to_be_bytes()),
        })
    }
}

impl TryFrom<String> for FrontierId {
    type Error = ParseFrontierIdError;

    fn try_from(text: String) -> Result<Self, ParseFrontierIdError> {
        text.parse()
    }
}

impl From<FrontierId> for String {
    fn from(id: FrontierId) -> Self {
        id.to_string()
    }
}

/// The last id that this process has drawn.
static LAST: AtomicI64 = AtomicI64::new(0);

/// A new id for rows that the program creates: ordered by time and exact in JSON
/// (below 2^53). Unique within a process; two processes may draw the same, which the
/// primary key detects: `Store::run_with_new_ids` draws again.
pub(crate) fn new_id(now: crate::Moment) -> i64 {
    let first = first_id(now) | i64::from(process_offset() & 0xfff);
    // Ids that exceed a millisecond's range overflow into the next one.
    let next = |last: i64| first.max(last + 1);
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        Some(next(last))
    });
    next(last.unwrap_or_else(|last| last))
}

/// Skips a random number of ids, because another process draws the same ones.
pub(crate) fn skip_ids() {
    let mut random = [0; 2];
    // Without randomness more attempts are needed.
    let _ = getrandom::fill(&mut random);
    LAST.fetch_add(i64::from(u16::from_be_bytes(random)), Ordering::Relaxed);
}

/// The smallest id of a moment.
pub(crate) fn first_id(moment: crate::Moment) -> i64 {
    let since_2020 = moment.0.saturating_sub(1_577_836_800_000).max(0);
    (since_2020 << 12) & ((1 << 53) - 1)
}

/// The offset of this process's ids within a millisecond.
fn process_offset() -> u32 {
    static START: OnceLock<u32> = OnceLock::new();
    *START.get_or_init(|| {
        let mut random = [0; 4];
        // Without randomness collisions are only more frequent.
        let _ = getrandom::fill(&mut random);
        u32::from_be_bytes(random)
    })
}

#[cfg(test)]
mod tests {
    use tidings_url::{FetchUrl, ProxyHosts, Rules};

    use super::*;

    #[test]
    fn ids_of_one_millisecond_differ() {
        let now = crate::Moment(1_800_000_000_000);
        let ids: Vec<_> = (0..10_000).map(|_| new_id(now)).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert!(ids.iter().all(|id| *id > 0 && *id < 1 << 53));
        assert!(new_id(crate::Moment(now.0 + 1)) > ids[9_999]);
    }

    #[test]
    fn ids_travel_as_text_and_keys_come_back_whole() {
        for n in 0..100 {
            let url = FetchUrl::parse(&format!("https://host-{n}.example/{n}")).unwrap();
            let key = url.canonical(&Rules::default()).key();
            let id = FrontierId::of(&url.host_key(&ProxyHosts::default()), &key);
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(FrontierId::from_bytes(&id.to_bytes()), Some(id));
            assert_eq!(id.url.with_tail(split(&key).1), key);
        }
        for wrong in ["", "xyz", &"g".repeat(48), &"a".repeat(47)] {
            assert!(wrong.parse::<FrontierId>().is_err(), "{wrong}");
        }
    }
}
