//! A small HTTP/1.1 server for the fakes: whole requests in, whole responses out,
//! or none at all. Bodies are unpacked; nothing else is understood.

use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use flate2::read::GzDecoder;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

const MAX_BODY: usize = 64 * 1024 * 1024;

/// What a client sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// Unpacked.
    pub(crate) body: Vec<u8>,
    /// Bytes of the body on the wire.
    pub(crate) wire_bytes: usize,
}

impl Call {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// What it gets for it.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Response {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    },
    /// The same after a while.
    Later(Duration, Box<Reply>),
    /// The connection is closed without a response.
    Lost,
    /// The connection stays open without a response.
    Silence,
    /// 200, and a body that only ends when the client closes.
    Endless,
}

impl Reply {
    pub(crate) fn json(status: u16, value: &Value) -> Self {
        Self::Response {
            status,
            headers: vec![("Content-Type", "application/json".to_owned())],
            body: value.to_string().into_bytes(),
        }
    }

    pub(crate) fn text(status: u16, text: &str) -> Self {
        Self::Response {
            status,
            headers: vec![("Content-Type", "text/plain".to_owned())],
            body: text.as_bytes().to_vec(),
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if let Self::Response { headers, .. } = &mut self {
            headers.push((name, value.into()));
        }
        self
    }
}

type Handler = dyn Fn(Call) -> Reply + Send + Sync;

/// Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct HttpServer {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl HttpServer {
    pub(crate) async fn start(
        handler: impl Fn(Call) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let handler: Arc<Handler> = Arc::new(handler);
        let accepting = tokio::spawn(async move {
            let mut running = JoinSet::new();
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    running.spawn(serve(stream, Arc::clone(&handler)));
                }
                while running.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, accepting })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut stream: TcpStream, handler: Arc<Handler>) {
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::new();
    // A client that goes away in the middle is no error here.
    while let Ok(Some(call)) = read_call(&mut stream, &mut buffer).await {
        let mut reply = handler(call);
        while let Reply::Later(latency, later) = reply {
            tokio::time::sleep(latency).await;
            reply = *later;
        }
        match reply {
            Reply::Later(..) => {}
            Reply::Response {
                status,
                headers,
                body,
            } => {
                let mut response = format!("HTTP/1.1 {status} Status\r\n");
                for (name, value) in headers {
                    response.push_str(&format!("{name}: {value}\r\n"));
                }
                response.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
                let bytes = [response.as_bytes(), &body].concat();
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Reply::Lost => return,
            Reply::Endless => {
                let head = "HTTP/1.1 200 Status\r\nContent-Type: text/plain\r\nContent-Length: 10000000000\r\n\r\n";
                let mut sent = stream.write_all(head.as_bytes()).await;
                while sent.is_ok() {
                    sent = stream.write_all(&[b'x'; 8192]).await;
                }
                return;
            }
            Reply::Silence => {
                let mut rest = [0; 64];
                while matches!(stream.read(&mut rest).await, Ok(1..)) {}
                return;
            }
        }
    }
}

async fn read_call(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Call>> {
    let (mut call, head_bytes) = loop {
        if let Some(found) = parse_head(buffer)? {
            break found;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let body_bytes = call.header("content-length").map_or(Ok(0), str::parse);
    let body_bytes: usize = body_bytes.map_err(|_| invalid("bad Content-Length"))?;
    if body_bytes > MAX_BODY || call.header("transfer-encoding").is_some() {
        return Err(invalid("a body that this server does not read"));
    }
    while buffer.len() < head_bytes + body_bytes {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let rest = buffer.split_off(head_bytes + body_bytes);
    let body = buffer.split_off(head_bytes);
    *buffer = rest;
    call.wire_bytes = body.len();
    call.body = if call.header("content-encoding") == Some("gzip") {
        let mut unpacked = Vec::new();
        GzDecoder::new(body.as_slice()).read_to_end(&mut unpacked)?;
        unpacked
    } else {
        body
    };
    Ok(Some(call))
}

fn parse_head(bytes: &[u8]) -> io::Result<Option<(Call, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 100];
    let mut parsed = httparse::Request::new(&mut headers);
    let status = parsed
        .parse(bytes)
        .map_err(|error| invalid(&error.to_string()))?;
    let httparse::Status::Complete(head_bytes) = status else {
        return Ok(None);
    };
    let address = parsed.path.unwrap_or_default();
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let headers = parsed.headers.iter().map(|header| {
        let value = String::from_utf8_lossy(header.value).trim().to_owned();
        (header.name.to_ascii_lowercase(), value)
    });
    let call = Call {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: headers.collect(),
        ..Call::default()
    };
    Ok(Some((call, head_bytes)))
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
