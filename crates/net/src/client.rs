//! The one way out: every byte that leaves the process on behalf of a feed, a
//! page, robots.txt, a sitemap, a probe, an API or a webhook leaves through a
//! [`Client`]. It follows redirects; each hop passes the guard again.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use tidings_url::FetchUrl;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant as Deadline;

use crate::dial::{DialTimes, Dialer};
use crate::exchange::{Answer, HttpUnavailable, exchange};
use crate::failure::Failure;
use crate::head;
use crate::limits::{Limits, NetOptions};
use crate::media::Media;
use crate::pool::{Connection, Pool};
use crate::redirect;
use crate::request::{Hop, Protocol, Purpose, Request, Response, Timings};
use crate::robots::RobotsGate;

/// What to do with a redirect.
#[derive(Debug, Clone, Copy)]
pub enum Redirects<'a> {
    /// The redirect is the answer.
    Report,
    Follow,
    /// Followed where the one who is asked says so.
    Ask(&'a dyn RedirectCheck),
}

/// Who is asked before a redirect is followed.
#[async_trait]
pub trait RedirectCheck: fmt::Debug + Sync {
    /// Returns when the next address may be asked; the failure says why not.
    async fn check_redirect(&self, from: &FetchUrl, to: &FetchUrl) -> Result<(), Failure>;
}

/// Followed where the robots.txt of the target allows it.
#[async_trait]
impl RedirectCheck for RobotsGate {
    async fn check_redirect(&self, _from: &FetchUrl, to: &FetchUrl) -> Result<(), Failure> {
        self.permit(to).await.map(drop)
    }
}

/// Cheap to clone; all clones share connections and the DNS cache.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    dialer: Dialer,
    pool: Pool,
    options: NetOptions,
    user_agent: String,
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
            user_agent: options.user_agent(),
            options,
        })))
    }

    pub fn limits(&self) -> &Limits {
        &self.0.options.limits
    }

    /// Every address of a name, whether or not it may be dialled.
    pub async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Failure> {
        self.0.dialer.addresses(host).await
    }

    /// Connections that are kept open for the next request.
    pub fn idle_connections(&self) -> usize {
        self.0.pool.len()
    }

    /// Asks, and follows where the answer leads. A POST is never repeated
    /// elsewhere: its redirect is the answer.
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
            if let Redirects::Ask(gate) = redirects {
                gate.check_redirect(&request.url, &next).await?;
            }
            hops.push(Hop {
                from: request.url.clone(),
                to: next.clone(),
                status: response.status,
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
        let refresh = head::refresh_target(&response.body, &request.url);
        // A page that reloads itself is a page.
        Ok(refresh.filter(|next| *next != request.url))
    }

    async fn fetch_once(&self, request: &Request) -> Result<Response, Failure> {
        let deadline = Deadline::now() + request.time_limit.unwrap_or(self.limits().total);
        let (mut connection, mut times) = match self.0.pool.take(&request.url) {
            Some(connection) => (connection, DialTimes::default()),
            None => self.dial(request).await?,
        };
        let start = Instant::now();
        let mut answer = self.exchange(&mut connection, request, deadline).await;
        if let Err(HttpUnavailable {
            was_stale: true, ..
        }) = &answer
            && Deadline::now() + request.gap < deadline
        {
            // The host may have heard it: this is another question.
            tokio::time::sleep(request.gap).await;
            let lost = start.elapsed();
            (connection, times) = self.dial(request).await?;
            // What a dead connection took is part of the way to one that lives.
            times.connect += lost;
            answer = self.exchange(&mut connection, request, deadline).await;
        }
        let answer = answer.map_err(|none| none.failure)?;
        Ok(self.response(request, connection, answer, times).await)
    }

    async fn dial(&self, request: &Request) -> Result<(Connection, DialTimes), Failure> {
        let limit = self.limits().connect;
        let limit = request.time_limit.map_or(limit, |own| own.min(limit));
        self.0.dialer.dial(&request.url, limit).await
    }

    /// A bare connection for a protocol that is not HTTP, past the same guard.
    pub async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, Failure> {
        self.0
            .dialer
            .connect_to(host, port, self.limits().connect)
            .await
    }

    /// Goes on in TLS, when both sides have agreed to.
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
    ) -> Result<Answer, HttpUnavailable> {
        let options = &self.0.options;
        let credentials = options.credentials.iter();
        let authorization = credentials
            .filter_map(|known| known.header_for(&request.url))
            .next();
        let user_agent = request.user_agent.as_deref().unwrap_or(&self.0.user_agent);
        let limits = &options.limits;
        exchange(
            connection,
            request,
            authorization,
            user_agent,
            limits,
            deadline,
        )
        .await
    }

    async fn response(
        &self,
        request: &Request,
        connection: Connection,
        answer: Answer,
        times: DialTimes,
    ) -> Response {
        let (peer, is_h2) = (connection.peer, connection.is_h2());
        // A body that was left in the middle leaves its connection unusable.
        if !answer.is_cut {
            self.0.pool.put(&request.url, connection).await;
        }
        Response {
            url: request.url.clone(),
            hops: Vec::new(),
            status: answer.status,
            headers: answer.headers,
            body: Bytes::from(answer.body),
            wire_bytes: answer.wire_bytes,
            media: answer.media,
            is_cut: answer.is_cut,
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
                first_byte: answer.first_byte,
                total: Duration::ZERO,
            },
        }
    }
}
