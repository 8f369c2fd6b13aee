//! The spider's judgement: a page that lists stories goes in, and out come the
//! articles, the further lists and the traps that it links to.
//!
//! Pure: no I/O, no clock. It visits nothing and remembers nothing; what is
//! known of a site comes in with [`Site`], and whoever polls listings does what
//! [`Found`] says.
//!
//! ```
//! use tidings_spider::{Listing, Site, gather};
//!
//! let home = "https://paper.example/".parse()?;
//! let html = b"<nav><a href=/world>World</a><a href=/login>Log in</a></nav>
//!     <h2><a href=/2026/11/15/council-votes-on-harbour>Council votes on harbour</a></h2>";
//! let site = Site::new(&home, "2026-11-15T12:00:00Z".parse()?);
//! let page = Listing { html, charset: None, url: &home, depth: 0, parent: None };
//! let found = gather(&page, &site);
//! assert_eq!(found.articles[0].url.as_str(), "https://paper.example/2026/11/15/council-votes-on-harbour");
//! assert_eq!(found.listings[0].url.as_str(), "https://paper.example/world");
//! assert_eq!((found.articles.len(), found.listings.len()), (1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod gather;
mod judge;
mod link;
mod path;
mod patterns;
mod trap;
mod words;

pub use gather::{Found, FoundArticle, FoundListing, TrapSighting, gather};
pub use judge::{Judge, Reason, Site, Verdict};
pub use link::{Link, Listing, links};
pub use patterns::{ArticlePatterns, PatternError};
pub use trap::Trap;
