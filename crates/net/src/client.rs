//! The HTTP client of the process: requests for feeds, pages, robots.txt,
//! sitemaps, probes, APIs and webhooks all go through a [`Client`]. It follows
//! redirects; each hop passes the egress guard again.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tidings_url::FetchUrl;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant as Deadline;

use crate::body_memory::BodyMemory;
use crate::dial::{DialTimes, Dialer};
use crate::exchange::{ExchangeError, RawResponse, exchange};
use crate::failure::Failure;
use crate::fetch_metrics::FetchMetrics;
use crate::html_head;
use crate::in_flight_groups::InFlightGroups;
use crate::limits::{Limits, NetOptions};
use crate::media::Media;
use crate::pool::{Connection, Pool};
use crate::redirect;
use crate::request::{Hop, Protocol, Purpose, Request, Response, Timings};

/// What to do with a redirect.
#[derive(Debug, Clone, Copy)]
pub enum Redirects<'a> {
    /// The redirect is the response.
    Report,
    Follow,
    /// Followed where the check permits it.
    Check(&'a dyn RedirectCheck),
}

/// Decides whether a redirect is followed.
#[async_trait]
pub trait RedirectCheck: fmt::Debug + Sync {
    /// Returns when the next URL may be fetched; the failure says why not.
    async fn check_redirect(&self, from: &FetchUrl, to: &FetchUrl) -> Result<(), Failure>;
}

/// Cheap to clone; all clones share connections and the DNS cache.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    dialer: Dialer,
    pool: Pool,
    groups: InFlightGroups,
    options: NetOptions,
    user_agent: String,
    metrics: FetchMetrics,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client as {}", self.0.user_agent)
    }
}

impl Client {
    pub fn new(options: NetOptions) -> Result<Self, Failure> {
        Ok(Self(Arc::new(Inner {
            dialer: Dialer::new(&options)?,
            pool: Pool::default(),
            groups: InFlightGroups::new(options.max_per_domain, options.max_per_address),
            user_agent: options.full_user_agent(),
            options,
            metrics: FetchMetrics::default(),
        })))
    }

    /// The name that it sends with every request whose source has no other.
    pub(crate) fn user_agent(&self) -> &str {
        &self.0.user_agent
    }

    pub fn limits(&self) -> &Limits {
        &self.0.options.limits
    }

    /// The budget of the bodies that it reads.
    pub fn memory(&self) -> &BodyMemory {
        &self.0.options.memory
    }

    /// What its requests took and brought.
    pub fn metrics(&self) -> &FetchMetrics {
        &self.0.metrics
    }

    /// Every address of a name, whether or not it may be dialled.
    pub async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Failure> {
        self.0.dialer.addresses(host).await
    }

    /// Idle connections in the pool.
    pub fn idle_connections(&self) -> usize {
        self.0.pool.len()
    }

    /// Sends a request and follows its redirects. A POST is never repeated
    /// elsewhere: its redirect is the response.
    pub async fn fetch(
        &self,
        request: Request,
        redirects: Redirects<'_>,
    ) -> Result<Response, Failure> {
        let start = Instant::now();
        let mut hops: Vec<Hop> = Vec::new();
        let mut request = request;
        loop {
            let mut response = self.fetch_once(&request).await?;
            let next = match redirects {
                Redirects::Report => None,
                _ if request.method != http::Method::GET => None,
                _ => self.next_address(&request, &response)?,
            };
            let Some(next) = next else {
                response.hops = hops;
                response.timings.total = start.elapsed();
                return Ok(response);
            };
            let limit = self.limits().redirects;
            if hops.len() == limit {
                return Err(Failure::TooManyRedirects { limit });
            }
            let is_known = next == request.url || hops.iter().any(|hop| hop.from == next);
            if is_known {
                return Err(Failure::RedirectLoop { url: next.into() });
            }
            let status = response.status;
            // Its room is free while the next host is waited for.
            drop(response);
            if let Redirects::Check(check) = redirects {
                check.check_redirect(&request.url, &next).await?;
            }
            hops.push(Hop {
                from: request.url.clone(),
                to: next.clone(),
                status,
            });
            request = request.moved_to(next);
        }
    }

    fn next_address(
        &self,
        request: &Request,
        response: &Response,
    ) -> Result<Option<FetchUrl>, Failure> {
        let target = redirect::target(
            &request.url,
            response.status,
            &response.headers,
            self.limits(),
        )?;
        let is_page = request.purpose == Purpose::Page && response.status == 200;
        if target.is_some() || !is_page || response.media != Media::Html {
            return Ok(target);
        }
        let refresh = html_head::refresh_target(&response.body, &request.url);
        // A page that reloads itself is a page.
        Ok(refresh.filter(|next| *next != request.url))
    }

    async fn fetch_once(&self, request: &Request) -> Result<Response, Failure> {
        let mut elapsed = Duration::ZERO;
        let result = self.send(request, &mut elapsed).await;
        self.0.metrics.record(&result, elapsed);
        result
    }

    /// Sends one request. `elapsed` becomes the time that it took, without the time that
    /// it waited for others.
    async fn send(&self, request: &Request, elapsed: &mut Duration) -> Result<Response, Failure> {
        let start = Instant::now();
        let groups = &self.0.groups;
        let _domain = groups.enter_domain(&request.url).await?;
        let dialing = Instant::now();
        let (mut connection, mut times) = match self.0.pool.acquire(&request.url) {
            Some(connection) => (connection, DialTimes::default()),
            None => self.dial(request).await?,
        };
        let dialed = dialing.elapsed();
        let _address = groups.enter_address(connection.peer.ip()).await?;
        // Time spent on waiting counts as connecting: nothing was sent.
        times.connect = start.elapsed().saturating_sub(times.dns + times.tls);
        let deadline = Deadline::now() + request.time_limit.unwrap_or(self.limits().total);
        let start = Instant::now();
        let mut response = self.exchange(&mut connection, request, deadline).await;
        if let Err(ExchangeError {
            was_stale: true, ..
        }) = &response
            && Deadline::now() + request.gap < deadline
        {
            // The host may have received it: this counts as another request.
            tokio::time::sleep(request.gap).await;
            let lost = start.elapsed();
            (connection, times) = self.dial(request).await?;
            // Time lost on the dead connection counts as connecting.
            times.connect += lost;
            response = self.exchange(&mut connection, request, deadline).await;
        }
        let response = response.map_err(|error| error.failure)?;
        *elapsed = dialed + start.elapsed();
        Ok(self.response(request, connection, response, times).await)
    }

    async fn dial(&self, request: &Request) -> Result<(Connection, DialTimes), Failure> {
        let limit = self.limits().connect;
        let limit = request.time_limit.map_or(limit, |own| own.min(limit));
        self.0.dialer.dial(&request.url, limit).await
    }

    /// A bare TCP connection for a protocol that is not HTTP, past the same guard.
    pub async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, Failure> {
        self.0
            .dialer
            .connect_to(host, port, self.limits().connect)
            .await
    }

    /// Upgrades a connection to TLS, once both sides have agreed to.
    pub async fn encrypt(
        &self,
        stream: TcpStream,
        host: &str,
    ) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static + use<>, Failure> {
        self.0
            .dialer
            .encrypt(stream, host, self.limits().connect)
            .await
    }

    async fn exchange(
        &self,
        connection: &mut Connection,
        request: &Request,
        deadline: Deadline,
    ) -> Result<RawResponse, ExchangeError> {
        let options = &self.0.options;
        let credentials = options.credentials.iter();
        let authorization = credentials
            .filter_map(|known| known.header_for(&request.url))
            .next();
        let user_agent = request.user_agent.as_deref().unwrap_or(&self.0.user_agent);
        exchange(
            connection,
            request,
            authorization,
            user_agent,
            options,
            deadline,
        )
        .await
    }

    async fn response(
        &self,
        request: &Request,
        connection: Connection,
        raw: RawResponse,
        times: DialTimes,
    ) -> Response {
        let (peer, is_h2) = (connection.peer, connection.is_h2());
        // A body that was not read to its end leaves its connection unusable.
        if !raw.is_cut {
            self.0.pool.release(&request.url, connection).await;
        }
        Response {
            url: request.url.clone(),
            hops: Vec::new(),
            status: raw.status,
            headers: raw.headers,
            body: raw.body,
            wire_bytes: raw.wire_bytes,
            media: raw.media,
            is_cut: raw.is_cut,
            protocol: if is_h2 {
                Protocol::Http2
            } else {
                Protocol::Http1
            },
            peer,
            timings: Timings {
                dns: times.dns,
                connect: times.connect,
                tls: times.tls,
                first_byte: raw.first_byte,
                total: Duration::ZERO,
            },
        }
    }
}
