//! Feeds and sitemaps, and where to find them: bytes in, values out.
//!
//! The web's feeds are broken in every way there is, so nothing here fails
//! because of one bad byte: what can be read is read, what was repaired is
//! listed as a [`Defect`] with its place. Only bytes that are no feed at all
//! are an error, and the error says what they are. Pure: no I/O, no clock.
//!
//! ```
//! use tidings_feed::{Hints, parse};
//!
//! let bytes = b"<rss version=2.0><channel><title>News & more</title>
//!     <item><title>First</title><guid>https://example.com/1</guid></item>";
//! let feed = parse(bytes, &Hints::default())?;
//! assert_eq!(feed.title.as_deref(), Some("News & more"));
//! assert_eq!(feed.items[0].link.as_deref(), Some("https://example.com/1"));
//! assert!(!feed.defects.is_empty());
//! # Ok::<(), tidings_feed::NotRecognised>(())
//! ```

mod attributes;
mod capture;
mod channel;
pub mod date;
mod decode;
mod defect;
pub mod discovery;
mod draft;
mod element;
mod error;
mod feed;
mod field;
mod gzip;
mod hints;
mod html;
mod json;
mod link;
mod model;
mod namespace;
pub mod opml;
mod reader;
mod root;
mod scope;
pub mod sitemap;
mod tokens;

pub use defect::{Defect, DefectKind, Defects, MAX_DEFECTS};
pub use error::{Found, NotRecognised, Wanted};
pub use feed::{MAX_ITEMS, parse, parse_each};
pub use hints::Hints;
pub use model::{ContentQuality, Enclosure, Feed, Format, Item, Markup, UpdatePeriod};
