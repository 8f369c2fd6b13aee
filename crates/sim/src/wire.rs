//! HTTP/1.1 by hand: reads requests, writes responses, and misbehaves on the wire
//! exactly as a fault demands. A real server library would refuse to lie.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::fault::Fault;
use crate::render::Document;

const MAX_HEAD: usize = 64 * 1024;
const MAX_BODY: u64 = 16 * 1024 * 1024;

/// The longest that a fault holds a connection open.
const FAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// What a client requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) host: String,
    pub(crate) if_none_match: Option<String>,
    pub(crate) if_modified_since: Option<String>,
    pub(crate) accepts_gzip: bool,
    pub(crate) keep_alive: bool,
}

/// What to send back, when, and how badly.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) delay: Duration,
    pub(crate) fault: Option<Fault>,
}

impl Response {
    pub(crate) fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            delay: Duration::ZERO,
            fault: None,
        }
    }

    pub(crate) fn of(status: u16, document: Document) -> Self {
        let response = Self::empty(status).with("Content-Type", document.content_type);
        Self {
            body: document.body,
            ..response
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// One client connection.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self(BufReader::new(stream))
    }

    /// The next request, or nothing when the client has closed.
    pub(crate) async fn read_request(&mut self) -> io::Result<Option<Request>> {
        let head = self.read_head().await?;
        if head.is_empty() {
            return Ok(None);
        }
        let (request, body_bytes) = parse_head(&head)?;
        let mut body = (&mut self.0).take(body_bytes);
        tokio::io::copy(&mut body, &mut tokio::io::sink()).await?;
        Ok(Some(request))
    }

    async fn read_head(&mut self) -> io::Result<Vec<u8>> {
        use tokio::io::AsyncBufReadExt as _;
        let mut head = Vec::new();
        loop {
            let before = head.len();
            let room = (MAX_HEAD - before) as u64;
            let read = (&mut self.0)
                .take(room)
                .read_until(b'\n', &mut head)
                .await?;
            if read == 0 && before == 0 {
                return Ok(head);
            }
            if read == 0 {
                return Err(invalid(
                    "the request head is cut short or longer than 64 KiB",
                ));
            }
            if matches!(&head[before..], b"\r\n" | b"\n") && before > 0 {
                return Ok(head);
            }
        }
    }

    /// Sends the response; false when the connection must be closed.
    pub(crate) async fn send(
        &mut self,
        request: &Request,
        response: &Response,
    ) -> io::Result<bool> {
        let body: &[u8] = if request.method == "HEAD" {
            &[]
        } else {
            &response.body
        };
        let head = head(response, request.keep_alive, response.body.len());
        match &response.fault {
            None
            | Some(
                Fault::Status { .. }
                | Fault::SoftNotFound
                | Fault::RedirectLoop
                | Fault::HugeLocation,
            ) => {
                let mut bytes = head.into_bytes();
                bytes.extend_from_slice(body);
                self.0.write_all(&bytes).await?;
                return Ok(request.keep_alive);
            }
            Some(Fault::Hang) => self.wait_for_close().await,
            Some(Fault::Closed) => {}
            Some(Fault::SlowHead) => self.drip(head.as_bytes()).await?,
            Some(Fault::SlowBody) => {
                self.0.write_all(head.as_bytes()).await?;
                self.drip(body).await?;
            }
            Some(Fault::Endless) => self.send_for_ever(response).await?,
            Some(Fault::Truncated) => {
                self.0.write_all(head.as_bytes()).await?;
                self.0.write_all(&body[..body.len() / 2]).await?;
            }
            Some(Fault::LyingLength) => {
                let lie = self::head(response, false, response.body.len() + 1000);
                self.0.write_all(lie.as_bytes()).await?;
                self.0.write_all(body).await?;
            }
            Some(Fault::Reset) => {
                self.0.write_all(head.as_bytes()).await?;
                self.0.write_all(&body[..body.len() / 2]).await?;
                // Gives the client time to read the half: a reset discards it.
                sleep(Duration::from_millis(20)).await;
                self.0.get_ref().set_zero_linger()?;
            }
            Some(Fault::HugeHead) => {
                let filler = format!("X-Filler: {}\r\n", "x".repeat(1000)).repeat(128);
                let (first, rest) = head.split_at(head.find("\r\n").map_or(0, |end| end + 2));
                self.0
                    .write_all(format!("{first}{filler}{rest}").as_bytes())
                    .await?;
                self.0.write_all(body).await?;
            }
        }
        Ok(false)
    }

    /// One byte per second, until the client closes.
    async fn drip(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes.iter().take(FAULT_TIMEOUT.as_secs() as usize) {
            self.0.write_all(&[*byte]).await?;
            sleep(Duration::from_secs(1)).await;
        }
        Ok(())
    }

    async fn send_for_ever(&mut self, response: &Response) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 {} OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n",
            response.status
        );
        self.0.write_all(head.as_bytes()).await?;
        let chunk = format!(
            "1000\r\n{}\r\n",
            "<p>more</p> ".repeat(342).split_at(4096).0
        );
        let until = tokio::time::Instant::now() + FAULT_TIMEOUT;
        while tokio::time::Instant::now() < until {
            self.0.write_all(chunk.as_bytes()).await?;
        }
        Ok(())
    }

    async fn wait_for_close(&mut self) {
        let mut rest = [0; 64];
        let closed = async { while matches!(self.0.read(&mut rest).await, Ok(1..)) {} };
        // Whether the client closed or the timeout passed makes no difference.
        let _ = tokio::time::timeout(FAULT_TIMEOUT, closed).await;
    }
}

fn parse_head(head: &[u8]) -> io::Result<(Request, u64)> {
    let mut headers = [httparse::EMPTY_HEADER; 100];
    let mut parsed = httparse::Request::new(&mut headers);
    parsed
        .parse(head)
        .map_err(|error| invalid(&error.to_string()))?;
    let mut request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: parsed.path.unwrap_or_default().to_owned(),
        keep_alive: parsed.version == Some(1),
        ..Request::default()
    };
    let mut body_bytes = 0;
    for header in parsed.headers {
        let value = String::from_utf8_lossy(header.value).trim().to_owned();
        match header.name.to_ascii_lowercase().as_str() {
            "host" => request.host = value,
            "if-none-match" => request.if_none_match = Some(value),
            "if-modified-since" => request.if_modified_since = Some(value),
            "accept-encoding" => request.accepts_gzip = value.contains("gzip"),
            "connection" => request.keep_alive &= !value.eq_ignore_ascii_case("close"),
            "content-length" => {
                body_bytes = value.parse().map_err(|_| invalid("bad Content-Length"))?;
            }
            "transfer-encoding" => return Err(invalid("chunked requests are not accepted")),
            _ => {}
        }
    }
    if body_bytes > MAX_BODY {
        return Err(invalid("the request body is longer than 16 MiB"));
    }
    Ok((request, body_bytes))
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn head(response: &Response, keep_alive: bool, length: usize) -> String {
    let mut head = format!(
        "HTTP/1.1 {} {}\r\n",
        response.status,
        reason(response.status)
    );
    for (name, value) in &response.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if response.status != 304 {
        head.push_str(&format!("Content-Length: {length}\r\n"));
    }
    let connection = if keep_alive { "keep-alive" } else { "close" };
    head.push_str(&format!("Connection: {connection}\r\n\r\n"));
    head
}

fn reason(status: u16) -> &'static str {
    match status {
        200..=299 => "OK",
        300..=399 => "Elsewhere",
        404 => "Not Found",
        400..=499 => "Refused",
        _ => "Error",
    }
}
