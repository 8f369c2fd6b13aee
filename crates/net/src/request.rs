//! Requests and responses. Values only.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Serialize;
use tidings_text::charset::{self, Decoded};
use tidings_url::FetchUrl;

use crate::limits::{Limits, MAX_ROBOTS_BYTES};
use crate::media::Media;

/// What the response is for; it decides how large it may be and the `Accept` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Page,
    Feed,
    Sitemap,
    Robots,
    Api,
    /// A file of a service, such as a catalogue.
    File,
}

impl Purpose {
    pub(crate) fn body_limit(self, limits: &Limits) -> u64 {
        match self {
            Self::Page => limits.page_bytes,
            // It is cut at the bytes that are read; this bounds what is still decoded.
            Self::Robots => 4 * MAX_ROBOTS_BYTES as u64,
            Self::Feed | Self::Api => limits.feed_bytes,
            Self::Sitemap | Self::File => limits.sitemap_bytes,
        }
    }

    /// Of a robots.txt, feed or sitemap that is too large the start is of use.
    fn max_read(self, limits: &Limits) -> Option<usize> {
        match self {
            Self::Robots => Some(MAX_ROBOTS_BYTES),
            Self::Feed | Self::Sitemap => usize::try_from(self.body_limit(limits)).ok(),
            Self::Page | Self::Api | Self::File => None,
        }
    }

    pub(crate) fn accept(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Page => "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5",
            Self::Feed => {
                "application/rss+xml,application/atom+xml,application/feed+json,application/xml;q=0.9,text/xml;q=0.9,*/*;q=0.5"
            }
            Self::Sitemap => "application/xml,text/xml,text/plain;q=0.9,*/*;q=0.5",
            Self::Robots => "text/plain,*/*;q=0.5",
            Self::File => "*/*",
            Self::Api => "application/json,application/xml;q=0.9,*/*;q=0.5",
        })
    }
}

/// One request.
#[derive(Debug, Clone)]
pub struct Request {
    pub url: FetchUrl,
    pub purpose: Purpose,
    pub method: Method,
    pub body: Bytes,
    /// Validators of the stored copy: the server may respond 304.
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    /// Headers for this origin only: gone after a redirect to another.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Instead of the program's own.
    pub user_agent: Option<String>,
    /// Instead of the limits for connecting, headers and the whole: all of it
    /// takes no longer than this.
    pub time_limit: Option<Duration>,
    /// Of a longer response only this many bytes are read.
    pub read_at_most: Option<usize>,
    /// Delay before the request is repeated on a new connection, when the pooled
    /// one turns out to be dead.
    pub gap: Duration,
}

impl Request {
    pub fn get(url: FetchUrl, purpose: Purpose) -> Self {
        Self {
            url,
            purpose,
            method: Method::GET,
            body: Bytes::new(),
            etag: None,
            last_modified: None,
            headers: Vec::new(),
            user_agent: None,
            time_limit: None,
            read_at_most: None,
            gap: Duration::ZERO,
        }
    }

    pub fn post(url: FetchUrl, purpose: Purpose, body: impl Into<Bytes>) -> Self {
        Self {
            method: Method::POST,
            body: body.into(),
            ..Self::get(url, purpose)
        }
    }

    /// Bytes of the body after which reading stops.
    pub(crate) fn max_read(&self, limits: &Limits) -> Option<usize> {
        self.read_at_most.or_else(|| self.purpose.max_read(limits))
    }

    pub(crate) fn is_conditional(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }

    /// The same for another address. Validators belong to the address that gave
    /// them, and what is for one origin is not for another.
    pub(crate) fn moved_to(&self, url: FetchUrl) -> Self {
        let same_origin = url.as_url().origin() == self.url.as_url().origin();
        let mut next = Self::get(url, self.purpose);
        next.user_agent.clone_from(&self.user_agent);
        next.time_limit = self.time_limit;
        next.read_at_most = self.read_at_most;
        next.gap = self.gap;
        if same_origin {
            next.headers.clone_from(&self.headers);
        }
        next
    }
}

/// One redirect that was followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hop {
    pub from: FetchUrl,
    pub to: FetchUrl,
    /// 200 for a page that refreshes itself.
    pub status: u16,
}

impl Hop {
    /// The address has moved for good.
    pub fn is_permanent(&self) -> bool {
        matches!(self.status, 301 | 308)
    }
}

/// How long the parts of the last request took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timings {
    pub dns: Duration,
    pub connect: Duration,
    pub tls: Duration,
    /// From the request to the headers.
    pub first_byte: Duration,
    /// All of it, redirects included.
    pub total: Duration,
}

/// The protocol that carried a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Protocol {
    #[serde(rename = "HTTP/1.1")]
    Http1,
    #[serde(rename = "HTTP/2")]
    Http2,
}

/// A response, whatever its status.
#[derive(Debug, Clone)]
pub struct Response {
    /// Where it came from, after all redirects.
    pub url: FetchUrl,
    pub hops: Vec<Hop>,
    pub status: u16,
    pub headers: HeaderMap,
    /// Decoded; only the start of it when `is_cut`.
    pub body: Bytes,
    /// Bytes of the body on the wire.
    pub wire_bytes: u64,
    pub media: Media,
    /// The body was not read to its end: it is binary, or longer than was wanted.
    pub is_cut: bool,
    pub protocol: Protocol,
    pub peer: SocketAddr,
    pub timings: Timings,
}

impl Response {
    /// A header as text; bytes that are not text are left out.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as text.
    pub fn text(&self) -> Decoded<'_> {
        let content_type = self.header("content-type");
        let hints = charset::Hints {
            label: content_type.and_then(charset::from_content_type),
            top_level_domain: self.url.host().rsplit('.').next(),
            ..charset::Hints::default()
        };
        charset::decode(&self.body, &hints)
    }
}
