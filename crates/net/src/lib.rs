//! The HTTP client: every byte that leaves the process on behalf of a feed, page,
//! robots.txt, sitemap, probe, API or webhook passes a [`Client`].
//!
//! It dials only what the [`Egress`] guard permits, aborts on peers that are slow,
//! endless or dishonest, decodes bodies within a budget, and checks robots.txt
//! through the [`RobotsGate`]. It never decides what to fetch or when.
//!
//! ```no_run
//! # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
//! use tidings_net::{Client, NetOptions, Purpose, Redirects, Request, RobotsGate};
//!
//! let client = Client::new(NetOptions::default())?;
//! let robots = RobotsGate::new(client.clone(), None);
//! let url: tidings_url::FetchUrl = "https://example.com/story".parse()?;
//! robots.permit(&url).await?;
//! let page = client.fetch(Request::get(url, Purpose::Page), Redirects::Check(&robots)).await?;
//! println!("{} {:?}, {} bytes", page.status, page.media, page.body.len());
//! # Ok(()) }
//! ```

mod body_memory;
mod client;
mod credentials;
mod decode;
mod dial;
mod egress;
mod egress_routes;
mod exchange;
mod failure;
mod fetch_metrics;
mod html_head;
mod in_flight_groups;
mod inflate;
mod limits;
mod media;
mod pool;
mod proxy;
mod redirect;
mod request;
mod resolve;
mod retry_after;
mod robots;

pub use body_memory::{BodyMemory, MemoryUse, ReadingRoom};
pub use client::{Client, RedirectCheck, Redirects};
pub use credentials::Credentials;
pub use egress::{Denied, DenyReason, Egress};
pub use failure::{Class, Failure, Stage};
pub use fetch_metrics::FetchMetrics;
pub use limits::{Limits, NetOptions, read_authorities};
pub use media::Media;
pub use proxy::Proxy;
pub use request::{Hop, Protocol, Purpose, Request, Response, Timings};
pub use retry_after::retry_after;
pub use robots::{
    Permission, RobotsCache, RobotsCacheError, RobotsGate, RobotsRecord, RobotsRules, Verdict,
};

// What callers need to name certificates, charsets, headers and ranges.
pub use http;
pub use ipnet::IpNet;
pub use rustls::pki_types::CertificateDer;
pub use tidings_text::charset::{CharsetFrom, Decoded};
