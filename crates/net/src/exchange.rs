//! One request and its response over one connection: headers, deadlines, the
//! minimum transfer rate, and a body that is never larger than allowed and never
//! called complete when it is not.

use std::time::Instant;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use tokio::time::{Instant as Deadline, timeout_at};

use crate::body_memory::BodyRoom;
use crate::decode::BodyDecoder;
use crate::failure::{Failure, Stage};
use crate::limits::{BINARY_BYTES, Limits, NetOptions};
use crate::media::{Media, SNIFF_BYTES};
use crate::pool::Connection;
use crate::request::Request;

/// A response whose body is read.
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) wire_bytes: u64,
    pub(crate) media: Media,
    pub(crate) is_cut: bool,
    pub(crate) first_byte: std::time::Duration,
}

/// Why there is no response, and whether the server has seen the request at all.
pub(crate) struct ExchangeError {
    pub(crate) failure: Failure,
    /// The connection was dead before it carried anything: a retry on a new one
    /// repeats nothing.
    pub(crate) was_stale: bool,
}

impl From<Failure> for ExchangeError {
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
    options: &NetOptions,
    deadline: Deadline,
) -> Result<RawResponse, ExchangeError> {
    let message = message(request, authorization, user_agent, connection.is_h2())?;
    let limits = &options.limits;
    let start = Instant::now();
    let headers_limit = request.time_limit.unwrap_or(limits.headers);
    let headers_until = deadline.min(Deadline::now() + headers_limit);
    let response = match timeout_at(headers_until, connection.send(message)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => {
            return Err(ExchangeError {
                was_stale: connection.is_reused && is_disconnect(&error),
                failure: header_failure(&error, limits),
            });
        }
        Err(_) => {
            return Err(ExchangeError::from(Failure::Timeout {
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
    let body = Body::read(body, &parts.headers, request, options, deadline).await?;
    Ok(RawResponse {
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

/// A value that can't be sent is left out: an ETag with a line break in it costs a
/// full response, not a failure.
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

fn is_disconnect(error: &hyper::Error) -> bool {
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

fn header_failure(error: &hyper::Error, limits: &Limits) -> Failure {
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
    bytes: Bytes,
    wire_bytes: u64,
    media: Media,
    is_cut: bool,
}

impl Body {
    async fn read(
        mut body: Incoming,
        headers: &HeaderMap,
        request: &Request,
        options: &NetOptions,
        deadline: Deadline,
    ) -> Result<Self, Failure> {
        let limits = &options.limits;
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let limit = request.purpose.body_limit(limits);
        let content_type = text(header::CONTENT_TYPE);
        let max_read = request.max_read(limits);
        let decoder = BodyDecoder::new(text(header::CONTENT_ENCODING), limit, max_read, limits)?;
        // What has no encoding is as long as it says, or ends early.
        let length = body.size_hint().exact().filter(|_| decoder.is_plain());
        let mut reading = Reading {
            max_bytes: [length, max_read.map(|bytes| bytes as u64)]
                .into_iter()
                .flatten()
                .fold(limit, u64::min),
            room: options.memory.body(),
            decoder,
            rate: RateCheck::new(limits),
            deadline,
            total: request.time_limit.unwrap_or(limits.total),
            has_waited: false,
        };
        let mut media = None;
        while let Some(chunk) = reading.next_chunk(&mut body).await? {
            reading.push(&chunk).await?;
            let decoder = &reading.decoder;
            if media.is_none() && decoder.bytes().len() >= SNIFF_BYTES {
                media = Some(Media::of(content_type, decoder.bytes()));
            }
            let is_binary = media.is_some_and(Media::is_binary);
            if is_binary && decoder.bytes().len() as u64 >= BINARY_BYTES {
                return Ok(reading.cut(media, BINARY_BYTES as usize));
            }
            if let Some(max_read) = max_read
                && decoder.bytes().len() >= max_read
            {
                return Ok(reading.cut(media, max_read));
            }
            if decoder.wire_bytes() > limit {
                return Err(Failure::BodyTooLarge { limit });
            }
        }
        let wire_bytes = reading.decoder.wire_bytes();
        let bytes = reading.decoder.finish()?;
        Ok(Self {
            media: Media::of(content_type, &bytes),
            bytes: held(bytes, reading.room),
            wire_bytes,
            is_cut: false,
        })
    }
}

/// Compressed bytes that are decoded before there is a look at the room: they may
/// become a thousand times as many.
const COMPRESSED_PIECE: usize = 256;

/// A body that is being read, and the room that it has.
struct Reading {
    decoder: BodyDecoder,
    room: BodyRoom,
    max_bytes: u64,
    rate: RateCheck,
    deadline: Deadline,
    total: std::time::Duration,
    has_waited: bool,
}

impl Reading {
    /// The next bytes. A peer that gave up while we had no memory is not to blame.
    async fn next_chunk(&mut self, body: &mut Incoming) -> Result<Option<Bytes>, Failure> {
        let next = next_chunk(body, &mut self.rate, self.total, self.deadline).await;
        match next {
            Err(Failure::Truncated { .. }) if self.has_waited => Err(Failure::NoMemory {
                waited: std::time::Duration::ZERO,
            }),
            next => next,
        }
    }

    async fn push(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        let piece = match self.decoder.is_plain() {
            true => chunk.len().max(1),
            false => COMPRESSED_PIECE,
        };
        for piece in chunk.chunks(piece) {
            let needed = (self.decoder.bytes().len() + piece.len()) as u64;
            while self.room.bytes() < needed.min(self.max_bytes) {
                self.grow().await?;
            }
            self.decoder.push(piece)?;
        }
        Ok(())
    }

    /// Waits for room. The peer is not measured meanwhile.
    async fn grow(&mut self) -> Result<(), Failure> {
        let start = Deadline::now();
        self.room.grow(self.max_bytes).await?;
        let waited = start.elapsed();
        self.deadline += waited;
        self.rate.window_end += waited;
        self.has_waited |= waited >= std::time::Duration::from_secs(1);
        self.decoder.reserve(self.room.bytes() as usize);
        Ok(())
    }

    fn cut(self, media: Option<Media>, max_bytes: usize) -> Body {
        let wire_bytes = self.decoder.wire_bytes();
        let mut bytes = self.decoder.into_bytes();
        bytes.truncate(max_bytes);
        Body {
            bytes: held(bytes, self.room),
            wire_bytes,
            media: media.unwrap_or(Media::Binary),
            is_cut: true,
        }
    }
}

/// A body that is read. Its room is free when the last reader of its bytes is done.
fn held(mut bytes: Vec<u8>, mut room: BodyRoom) -> Bytes {
    bytes.shrink_to_fit();
    room.shrink(bytes.len() as u64);
    Bytes::from_owner(HeldBody { bytes, _room: room })
}

struct HeldBody {
    bytes: Vec<u8>,
    _room: BodyRoom,
}

impl AsRef<[u8]> for HeldBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The next bytes of a body, in time and fast enough.
async fn next_chunk(
    body: &mut Incoming,
    rate: &mut RateCheck,
    total: std::time::Duration,
    deadline: Deadline,
) -> Result<Option<Bytes>, Failure> {
    loop {
        match timeout_at(deadline.min(rate.window_end), body.frame()).await {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(frame))) => {
                // Trailers say nothing that we need.
                if let Ok(chunk) = frame.into_data() {
                    rate.add(chunk.len() as u64)?;
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
            Err(_) => rate.add(0)?,
        }
    }
}

/// Counts bytes in windows of some seconds; too few in one is a failure.
struct RateCheck {
    window_end: Deadline,
    bytes: u64,
    min_bytes: u64,
    window: std::time::Duration,
    min_bytes_per_second: u64,
}

impl RateCheck {
    fn new(limits: &Limits) -> Self {
        Self {
            window_end: Deadline::now() + limits.rate_window,
            bytes: 0,
            min_bytes: (limits.min_bytes_per_second as f64 * limits.rate_window.as_secs_f64())
                as u64,
            window: limits.rate_window,
            min_bytes_per_second: limits.min_bytes_per_second,
        }
    }

    fn add(&mut self, bytes: u64) -> Result<(), Failure> {
        self.bytes += bytes;
        let now = Deadline::now();
        if now < self.window_end {
            return Ok(());
        }
        if self.bytes < self.min_bytes {
            let bytes_per_second = self.min_bytes_per_second;
            return Err(Failure::TooSlow { bytes_per_second });
        }
        self.bytes = 0;
        self.window_end = now + self.window;
        Ok(())
    }
}
