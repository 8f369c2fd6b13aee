//! What a caller knows about a document beyond its bytes.

use jiff::Timestamp;
use url::Url;

/// What is known about a document beyond its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Hints<'h> {
    /// The `Content-Type` header. Only its charset is used: the bytes say what
    /// they are.
    pub content_type: Option<&'h str>,
    /// Where the document came from, to resolve relative links. Without it they
    /// are kept as they were published.
    pub url: Option<&'h Url>,
    /// The time of day, to drop dates that can't be. Without it every date that
    /// exists on the calendar is kept.
    pub now: Option<Timestamp>,
    /// How large a compressed document may become.
    pub max_bytes: usize,
}

impl Default for Hints<'_> {
    fn default() -> Self {
        Self {
            content_type: None,
            url: None,
            now: None,
            max_bytes: 50 * 1024 * 1024,
        }
    }
}
