//! HTML to article: main text, metadata with provenance, fingerprints.
//!
//! Pure: bytes in, values out. No I/O, no clock, no async; bounded in time and
//! memory whatever the page contains, and deterministic.
//!
//! ```
//! use tidings_extract::{Options, Page, extract};
//!
//! let html = b"<html lang=en><title>Bread | The Daily</title><h1>Bread</h1>
//!     <p>Bread has been baked for some fourteen thousand years, and every year in new ways.</p>";
//! let now = "2026-01-01T00:00:00Z".parse().unwrap();
//! let page = Page { html, url: "https://daily.example/bread", charset: None, selectors: None, feed: None, now };
//! let article = extract(&page, &Options::default());
//! assert_eq!(article.title.unwrap().value, "Bread");
//! assert!(article.text.starts_with("Bread has been baked"));
//! ```

mod anchors;
mod article;
mod blocks;
mod content;
mod dates;
mod extract;
mod fields;
mod fingerprint;
mod html;
mod language;
mod near_duplicate;
mod page;
mod page_type;
mod provenance;
mod raw_content;
mod render;
mod roles;
mod selectors;
mod site_memory;
mod structured;
mod text;
mod walls;

pub use anchors::{Anchor, anchors};
pub use article::{Article, BlockNote, Flags, Image, Link, Method, PageType, Quality, Robots};
pub use dates::When;
pub use extract::{extract, select};
pub use fingerprint::content_hash;
pub use near_duplicate::sketch;
pub use page::{FeedEntry, Limits, Options, Page, QualityBounds};
pub use provenance::{Origin, Sourced};
pub use raw_content::{JsonLdData, MetaData, RawContent};
pub use selectors::{Selector, SelectorError, Selectors};
pub use site_memory::SiteMemory;
