//! The NATS client protocol, as much of it as publishing needs: lines of text
//! with counted payloads. One connection, one inbox for replies. All reads are
//! bounded, and an unknown line closes the connection.

use std::io;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tidings_net::Client;
use tidings_text::hex;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::time::timeout;

use crate::endpoint::describe;

/// The longest line: an INFO that lists a large cluster.
const MAX_LINE_BYTES: u64 = 1024 * 1024;
/// For a server that does not announce its max_payload.
const DEFAULT_MAX_PAYLOAD: usize = 1024 * 1024;
/// API replies and acknowledgements are small.
const MAX_REPLY_BYTES: usize = 1024 * 1024;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Host, port and credentials.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_tls: bool,
    /// `user` and `pass`, or `auth_token`.
    pub(crate) login: Value,
}

/// The server's INFO.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Server {
    pub(crate) version: String,
    pub(crate) max_payload: usize,
    headers: bool,
    tls_required: bool,
}

/// A message to our inbox.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) subject: String,
    /// Status 503: no subscriber or stream is bound to the subject.
    pub(crate) has_no_responders: bool,
    pub(crate) payload: Vec<u8>,
}

pub(crate) struct Connection {
    stream: BufReader<Box<dyn Stream>>,
    pub(crate) server: Server,
    inbox: String,
    requests: u64,
}

fn protocol_error(why: impl Into<String>) -> io::Error {
    io::Error::other(why.into())
}

impl Connection {
    pub(crate) async fn open(
        client: &Client,
        address: &Address,
        limit: Duration,
    ) -> io::Result<Self> {
        timeout(limit, Self::handshake(client, address))
            .await
            .map_err(|_| protocol_error("timed out during the handshake"))?
    }

    async fn handshake(client: &Client, address: &Address) -> io::Result<Self> {
        let failed = |failure: tidings_net::Failure| protocol_error(describe(&failure));
        let mut plain = client
            .connect(&address.host, address.port)
            .await
            .map_err(failed)?;
        // Byte for byte: what follows may be TLS already.
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            if line.len() as u64 > MAX_LINE_BYTES {
                return Err(protocol_error("not a NATS server"));
            }
            line.push(plain.read_u8().await?);
        }
        let info = line
            .strip_prefix(b"INFO ")
            .ok_or_else(|| protocol_error("not a NATS server"))?;
        let server: Server = serde_json::from_slice(info).map_err(io::Error::other)?;
        let server = Server {
            max_payload: match server.max_payload {
                0 => DEFAULT_MAX_PAYLOAD,
                max_payload => max_payload,
            },
            ..server
        };
        if !server.headers {
            return Err(protocol_error(
                "the server has no header support; use nats-server 2.2 or later",
            ));
        }
        let is_tls = address.is_tls || server.tls_required;
        let stream: Box<dyn Stream> = if is_tls {
            Box::new(client.encrypt(plain, &address.host).await.map_err(failed)?)
        } else {
            Box::new(plain)
        };
        let mut random = [0; 12];
        getrandom::fill(&mut random).map_err(|error| protocol_error(error.to_string()))?;
        let mut connection = Self {
            stream: BufReader::new(stream),
            server,
            inbox: format!("_INBOX.{}", hex::encode(random)),
            requests: 0,
        };
        let mut connect_options = json!({
            "verbose": false, "pedantic": false, "tls_required": is_tls, "lang": "rust",
            "version": env!("CARGO_PKG_VERSION"), "name": "tidings", "protocol": 1,
            "headers": true, "no_responders": true,
        });
        if let (Value::Object(connect_options), Value::Object(login)) =
            (&mut connect_options, &address.login)
        {
            connect_options.extend(login.clone());
        }
        let subscribe = format!("SUB {}.* 1\r\n", connection.inbox);
        let lines = format!("CONNECT {connect_options}\r\n{subscribe}PING\r\n");
        connection.write(lines.as_bytes()).await?;
        connection.flush().await?;
        while connection.next_line().await? != "PONG" {}
        Ok(connection)
    }

    /// Sends a message; the reply to it will come under the subject returned.
    pub(crate) async fn publish(
        &mut self,
        subject: &str,
        id: Option<&str>,
        payload: &[u8],
    ) -> io::Result<String> {
        self.requests += 1;
        let reply = format!("{}.{}", self.inbox, self.requests);
        let headers = id.map_or_else(String::new, |id| {
            format!("NATS/1.0\r\nNats-Msg-Id: {id}\r\n\r\n")
        });
        let head = if headers.is_empty() {
            format!("PUB {subject} {reply} {}\r\n", payload.len())
        } else {
            let total = headers.len() + payload.len();
            format!("HPUB {subject} {reply} {} {total}\r\n", headers.len())
        };
        for part in [head.as_bytes(), headers.as_bytes(), payload, b"\r\n"] {
            self.write(part).await?;
        }
        Ok(reply)
    }

    /// Sends a request to the JetStream API.
    pub(crate) async fn request(
        &mut self,
        subject: &str,
        body: &Value,
        limit: Duration,
    ) -> io::Result<Value> {
        let exchange = async {
            let reply = self
                .publish(subject, None, body.to_string().as_bytes())
                .await?;
            self.flush().await?;
            loop {
                let message = self.next_message().await?;
                if message.subject != reply {
                    continue;
                }
                if message.has_no_responders {
                    return Err(protocol_error("JetStream is not enabled on this server"));
                }
                return serde_json::from_slice(&message.payload).map_err(io::Error::other);
            }
        };
        timeout(limit, exchange)
            .await
            .map_err(|_| protocol_error(format!("timed out waiting for a reply to {subject}")))?
    }

    /// The next message to our inbox. Replies to the server's pings meanwhile.
    pub(crate) async fn next_message(&mut self) -> io::Result<Message> {
        loop {
            let line = self.next_line().await?;
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let size = |word: &str| {
                let size: Option<usize> = word.parse().ok();
                size.filter(|size| *size <= MAX_REPLY_BYTES)
                    .ok_or_else(|| protocol_error(format!("invalid payload size {word}")))
            };
            match words.as_slice() {
                ["MSG", subject, _, .., bytes] => {
                    let payload = self.payload(size(bytes)?).await?;
                    return Ok(Message {
                        subject: (*subject).to_owned(),
                        has_no_responders: false,
                        payload,
                    });
                }
                ["HMSG", subject, _, .., head, bytes] => {
                    let mut all = self.payload(size(bytes)?).await?;
                    let head = size(head)?.min(all.len());
                    let payload = all.split_off(head);
                    return Ok(Message {
                        subject: (*subject).to_owned(),
                        has_no_responders: all.starts_with(b"NATS/1.0 503"),
                        payload,
                    });
                }
                _ => {}
            }
        }
    }

    async fn payload(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        let mut payload = vec![0; bytes + 2];
        self.stream.read_exact(&mut payload).await?;
        payload.truncate(bytes);
        Ok(payload)
    }

    /// The next line, without keep-alives and acknowledgements.
    async fn next_line(&mut self) -> io::Result<String> {
        loop {
            let mut line = Vec::new();
            let mut bounded = (&mut self.stream).take(MAX_LINE_BYTES);
            bounded.read_until(b'\n', &mut line).await?;
            if !line.ends_with(b"\r\n") {
                return Err(protocol_error("connection closed by the server"));
            }
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            let verb = line.split_ascii_whitespace().next().unwrap_or_default();
            match verb {
                "PING" => {
                    self.write(b"PONG\r\n").await?;
                    self.flush().await?;
                }
                "INFO" | "+OK" => {}
                "-ERR" => return Err(protocol_error(format!("the server returned {line}"))),
                "MSG" | "HMSG" | "PONG" => return Ok(line),
                _ => return Err(protocol_error("not a NATS server")),
            }
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes).await
    }

    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        self.stream.get_mut().flush().await
    }
}
