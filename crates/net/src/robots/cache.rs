//! Where robots.txt files are cached between processes: a trait, so that the HTTP
//! client needs no database. The engine implements it over the store.

use std::error::Error;

use async_trait::async_trait;
use jiff::Timestamp;
use tidings_url::HostKey;

/// One fetch of a host's robots.txt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsRecord {
    /// HTTP status; 0 when there was no usable response.
    pub status: u16,
    /// The file, or why there is none.
    pub body: String,
    pub fetched_at: Timestamp,
    pub expires_at: Timestamp,
}

/// The error of a cache; callers get it as [`crate::Failure::Store`].
pub type RobotsCacheError = Box<dyn Error + Send + Sync>;

/// robots.txt files by host, shared by all processes of an installation.
#[async_trait]
pub trait RobotsCache: Send + Sync {
    /// The last record of a host, expired or not.
    async fn get(&self, host: &HostKey) -> Result<Option<RobotsRecord>, RobotsCacheError>;

    /// Replaces the record of a host.
    async fn put(&self, host: &HostKey, record: &RobotsRecord) -> Result<(), RobotsCacheError>;
}
