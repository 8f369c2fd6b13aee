//! One request and its answer over one connection: headers, deadlines, the
//! slowest that is endured, and a body that is never larger than allowed and
//! never called whole when it is not.

use std::time::Instant;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tokio::time::{Instant as Deadline, timeout_at};

use crate::decode::BodyDecoder;
use crate::failure::{Failure, Stage};
use crate::limits::{BINARY_BYTES, Limits};
use crate::media::{Media, SNIFFED};
use crate::pool::Connection;
use crate::request::Request;

/// An answer whose body is read.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) wire_bytes: u64,
    pub(crate) media: Media,
    pub(crate) is_cut: bool,
    pub(crate) first_byte: std::time::Duration,
}

/// Why there is none, and whether the server has seen the request at all.
pub(crate) struct HttpUnavailable {
    pub(crate) failure: Failure,
    /// The connection was dead before it carried anything: asking once more on
    /// a new one repeats nothing.
    pub(crate) was_stale: bool,
}

impl From<Failure> for HttpUnavailable {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            was_stale: false,
        }
    }
}

pub(crate) async fn exchange(
    connection: &mut Connection,
    request: &Request,
    authorization: Option<HeaderValue>,
    user_agent: &str,
    limits: &Limits,
    deadline: Deadline,
) -> Result<Answer, HttpUnavailable> {
    let message = message(request, authorization, user_agent, connection.is_h2())?;
    let start = Instant::now();
    let headers_limit = request.time_limit.unwrap_or(limits.headers);
    let headers_until = deadline.min(Deadline::now() + headers_limit);
    let response = match timeout_at(headers_until, connection.send(message)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => {
            return Err(HttpUnavailable {
                was_stale: connection.is_reused && went_away(&error),
                failure: no_headers(&error, limits),
            });
        }
        Err(_) => {
            return Err(HttpUnavailable::from(Failure::Timeout {
                stage: Stage::Headers,
                limit: headers_limit,
            }));
        }
    };
    let first_byte = start.elapsed();
    let (parts, body) = response.into_parts();
    // hyper stops somewhere beyond its limit; this is where we stop.
    let limit = limits.header_bytes;
    if header_bytes(&parts.headers) > limit {
        return Err(Failure::HeadersTooLarge { limit }.into());
    }
    let status = parts.status.as_u16();
    if status == 304 && !request.is_conditional() {
        return Err(Failure::UnaskedNotModified.into());
    }
    let body = Body::read(body, &parts.headers, request, limits, deadline).await?;
    Ok(Answer {
        status,
        headers: parts.headers,
        body: body.bytes,
        wire_bytes: body.wire_bytes,
        media: body.media,
        is_cut: body.is_cut,
        first_byte,
    })
}

fn message(
    request: &Request,
    authorization: Option<HeaderValue>,
    user_agent: &str,
    is_h2: bool,
) -> Result<http::Request<Full<Bytes>>, Failure> {
    let url = request.url.as_url();
    let uri = if is_h2 {
        url.as_str()
    } else {
        &url[url::Position::BeforePath..]
    };
    let mut message = http::Request::builder()
        .method(request.method.clone())
        .uri(uri)
        .body(Full::new(request.body.clone()))
        .map_err(|error| Failure::BadRedirect {
            why: error.to_string(),
        })?;
    let headers = message.headers_mut();
    if !is_h2 {
        let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
        insert(headers, header::HOST, host);
    }
    insert(headers, header::USER_AGENT, user_agent);
    headers.insert(header::ACCEPT, request.purpose.accept());
    headers.insert(
        header::ACCEPT_ENCODING,
        HeaderValue::from_static("gzip, deflate, br, zstd"),
    );
    if let Some(etag) = &request.etag {
        insert(headers, header::IF_NONE_MATCH, etag);
    }
    if let Some(date) = &request.last_modified {
        insert(headers, header::IF_MODIFIED_SINCE, date);
    }
    if let Some(value) = authorization {
        headers.insert(header::AUTHORIZATION, value);
    }
    for (name, value) in &request.headers {
        headers.insert(name.clone(), value.clone());
    }
    Ok(message)
}

/// A value that can't be sent is left out: an ETag with a line break in it is
/// worth a whole answer, not a failure.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// As on the wire: name, colon, space, value and line end.
fn header_bytes(headers: &HeaderMap) -> usize {
    let line = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 4;
    headers.iter().map(line).sum()
}

fn went_away(error: &hyper::Error) -> bool {
    let is_reset = || {
        let mut cause = std::error::Error::source(error);
        while let Some(inner) = cause {
            if let Some(io) = inner.downcast_ref::<std::io::Error>() {
                use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
                return matches!(io.kind(), BrokenPipe | ConnectionAborted | ConnectionReset);
            }
            cause = inner.source();
        }
        false
    };
    error.is_canceled() || error.is_closed() || error.is_incomplete_message() || is_reset()
}

fn no_headers(error: &hyper::Error, limits: &Limits) -> Failure {
    let why = describe(error);
    if error.is_parse() && why.contains("too large") {
        return Failure::HeadersTooLarge {
            limit: limits.header_bytes,
        };
    }
    if error.is_parse() {
        return Failure::Protocol { why };
    }
    Failure::Disconnected { why }
}

/// The error and its causes in one line.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

struct Body {
    bytes: Vec<u8>,
    wire_bytes: u64,
    media: Media,
    is_cut: bool,
}

impl Body {
    async fn read(
        mut body: Incoming,
        headers: &HeaderMap,
        request: &Request,
        limits: &Limits,
        deadline: Deadline,
    ) -> Result<Self, Failure> {
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let limit = request.purpose.body_limit(limits);
        let content_type = text(header::CONTENT_TYPE);
        let mut decoder = BodyDecoder::new(text(header::CONTENT_ENCODING), limit, limits)?;
        let mut rate = Rate::new(limits);
        let total = request.time_limit.unwrap_or(limits.total);
        let mut media = None;
        while let Some(chunk) = next_chunk(&mut body, &mut rate, total, deadline).await? {
            decoder.push(&chunk)?;
            if media.is_none() && decoder.bytes().len() >= SNIFFED {
                media = Some(Media::of(content_type, decoder.bytes()));
            }
            let is_useless = media.is_some_and(Media::is_binary);
            if is_useless && decoder.bytes().len() as u64 >= BINARY_BYTES {
                return Ok(Self::cut(decoder, media, BINARY_BYTES as usize));
            }
            if let Some(enough) = request.enough()
                && decoder.bytes().len() >= enough
            {
                return Ok(Self::cut(decoder, media, enough));
            }
            if decoder.wire_bytes() > limit {
                return Err(Failure::BodyTooLarge { limit });
            }
        }
        let wire_bytes = decoder.wire_bytes();
        let bytes = decoder.finish()?;
        Ok(Self {
            media: Media::of(content_type, &bytes),
            bytes,
            wire_bytes,
            is_cut: false,
        })
    }

    fn cut(decoder: BodyDecoder, media: Option<Media>, bytes_kept: usize) -> Self {
        let wire_bytes = decoder.wire_bytes();
        let mut bytes = decoder.take();
        bytes.truncate(bytes_kept);
        Self {
            bytes,
            wire_bytes,
            media: media.unwrap_or(Media::Binary),
            is_cut: true,
        }
    }
}

/// The next bytes of a body, in time and fast enough.
async fn next_chunk(
    body: &mut Incoming,
    rate: &mut Rate,
    total: std::time::Duration,
    deadline: Deadline,
) -> Result<Option<Bytes>, Failure> {
    loop {
        match timeout_at(deadline.min(rate.window_end), body.frame()).await {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(frame))) => {
                // Trailers say nothing that we need.
                if let Ok(chunk) = frame.into_data() {
                    rate.note(chunk.len() as u64)?;
                    return Ok(Some(chunk));
                }
            }
            Ok(Some(Err(error))) => {
                return Err(Failure::Truncated {
                    why: describe(&error),
                });
            }
            Err(_) if Deadline::now() >= deadline => {
                return Err(Failure::Timeout {
                    stage: Stage::Body,
                    limit: total,
                });
            }
            Err(_) => rate.note(0)?,
        }
    }
}

/// Counts bytes in windows of some seconds; too few in one is the end.
struct Rate {
    window_end: Deadline,
    bytes: u64,
    least: u64,
    window: std::time::Duration,
    bytes_per_second: u64,
}

impl Rate {
    fn new(limits: &Limits) -> Self {
        Self {
            window_end: Deadline::now() + limits.rate_window,
            bytes: 0,
            least: (limits.bytes_per_second as f64 * limits.rate_window.as_secs_f64()) as u64,
            window: limits.rate_window,
            bytes_per_second: limits.bytes_per_second,
        }
    }

    fn note(&mut self, bytes: u64) -> Result<(), Failure> {
        self.bytes += bytes;
        let now = Deadline::now();
        if now < self.window_end {
            return Ok(());
        }
        if self.bytes < self.least {
            let bytes_per_second = self.bytes_per_second;
            return Err(Failure::TooSlow { bytes_per_second });
        }
        self.bytes = 0;
        self.window_end = now + self.window;
        Ok(())
    }
}
