//! URL identity: what is requested, what is compared, and which host it is rate limited with.
//!
//! Two things are never confused: the [`FetchUrl`] is what goes over the wire,
//! the [`CanonicalUrl`] is what is compared, and its SHA-256 is the [`UrlKey`]
//! that names the frontier row and the document. Pure: no I/O and no clock.
//!
//! ```
//! use tidings_url::{FetchUrl, ProxyHosts, Rules};
//!
//! let url = FetchUrl::parse("HTTP://Example.com:80/News/?utm_source=x&id=7#top")?;
//! assert_eq!(url.as_str(), "http://example.com/News/?utm_source=x&id=7");
//!
//! let canonical = url.canonical(&Rules::default());
//! assert_eq!(canonical.as_str(), "https://example.com/News?id=7");
//! assert_eq!(canonical.key().to_string().len(), 64);
//! assert_eq!(url.host_key(&ProxyHosts::default()).as_str(), "example.com");
//! # Ok::<(), tidings_url::UrlError>(())
//! ```

mod canonical;
mod error;
mod escape;
mod fetch;
mod host;
mod key;
pub mod legacy;
mod tracking;

pub use canonical::{CanonicalUrl, NORMALIZER_VERSION, Rules};
pub use error::{UrlError, UrlRule};
pub use fetch::{FetchUrl, MAX_URL_BYTES};
pub use host::{HostKey, ProxyHosts};
pub use key::{ParseUrlKeyError, UrlKey};
