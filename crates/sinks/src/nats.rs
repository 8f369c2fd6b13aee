//! NATS JetStream: each document is a message under its source's subject, with
//! id and revision as message id, by which the server drops duplicates. A document
//! is accepted when the stream has acknowledged it. A log: readers use the highest
//! revision.
//!
//! The client is our own: async-nats 0.51 dials by itself, without a connector
//! hook, so the address guard could not be kept together with TLS host names, and
//! its reads are unbounded.

mod protocol;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tidings_document::Document;
use tidings_net::Client;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::context::{BuildError, Context, yes};
use crate::licensed_text;
use crate::secret::{self, Secret};
use crate::sink::{BatchLimits, Report, Sink, Verdict};
use protocol::{Address, Connection};

/// `kind = "nats"`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NatsConfig {
    /// `nats://HOST:4222`, or `tls://HOST:4222`.
    pub url: String,
    /// Created if it does not exist.
    #[serde(default = "stream")]
    pub stream: String,
    /// Documents are published under `SUBJECT.<source>`.
    #[serde(default = "subject")]
    pub subject: String,
    pub user: Option<String>,
    pub password_env: Option<String>,
    pub password_file: Option<PathBuf>,
    pub token_env: Option<String>,
    pub token_file: Option<PathBuf>,
    /// The deduplication window of a new stream.
    #[serde(default = "duplicate_window")]
    pub duplicate_window_seconds: u64,
    /// False: only what the licence allows to export.
    #[serde(default = "yes")]
    pub full_text: bool,
    #[serde(default = "timeout")]
    pub timeout_seconds: u64,
}

fn stream() -> String {
    "TIDINGS".to_owned()
}

fn subject() -> String {
    "tidings.documents".to_owned()
}

/// The deliverer's maximum backoff.
fn duplicate_window() -> u64 {
    3600
}

fn timeout() -> u64 {
    10
}

pub(crate) struct Nats {
    name: String,
    client: Client,
    address: Address,
    secrets: Vec<Secret>,
    stream: String,
    subject: String,
    duplicate_window: Duration,
    full_text: bool,
    limit: Duration,
    /// Reused between batches; dropped after any error.
    connection: Mutex<Option<Connection>>,
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address { host, port, .. } = &self.address;
        write!(f, "Nats {} at {host}:{port}", self.name)
    }
}

impl Nats {
    pub(crate) fn new(
        name: &str,
        config: &NatsConfig,
        context: &Context,
    ) -> Result<Self, BuildError> {
        let (password, token) = (
            secret::read(
                context,
                "password",
                config.password_env.as_deref(),
                config.password_file.as_deref(),
            )?,
            secret::read(
                context,
                "token",
                config.token_env.as_deref(),
                config.token_file.as_deref(),
            )?,
        );
        let login = match (&config.user, &password, &token) {
            (Some(user), Some(password), None) => {
                json!({ "user": user, "pass": password.expose() })
            }
            (None, None, Some(token)) => json!({ "auth_token": token.expose() }),
            (None, None, None) => json!({}),
            _ => {
                return Err(BuildError(
                    "set either user and password_env (or password_file), or token_env (or token_file)"
                        .to_owned(),
                ));
            }
        };
        let is_token = |text: &str| {
            !text.is_empty()
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        };
        if !is_token(&config.stream) {
            return Err(BuildError(format!(
                "stream {:?} is not a valid name: use letters, digits, - and _",
                config.stream
            )));
        }
        if !config.subject.split('.').all(is_token) {
            return Err(BuildError(format!(
                "subject {:?} is not valid: use tokens of letters, digits, - and _, separated by dots",
                config.subject
            )));
        }
        Ok(Self {
            name: name.to_owned(),
            client: context.client.clone(),
            address: address(&config.url, login)?,
            secrets: password.into_iter().chain(token).collect(),
            stream: config.stream.clone(),
            subject: config.subject.clone(),
            duplicate_window: Duration::from_secs(config.duplicate_window_seconds),
            full_text: config.full_text,
            limit: Duration::from_secs(config.timeout_seconds),
            connection: Mutex::default(),
        })
    }

    /// An open connection to a server that has the stream.
    async fn connect(&self) -> io::Result<Connection> {
        let mut connection = Connection::open(&self.client, &self.address, self.limit).await?;
        if self.stream_state(&mut connection).await?.is_none() {
            self.create_stream(&mut connection).await?;
        }
        Ok(connection)
    }

    async fn stream_request(
        &self,
        connection: &mut Connection,
        verb: &str,
        body: &Value,
    ) -> io::Result<Value> {
        let subject = format!("$JS.API.STREAM.{verb}.{}", self.stream);
        connection.request(&subject, body, self.limit).await
    }

    /// The stream's info; none if it does not exist.
    async fn stream_state(&self, connection: &mut Connection) -> io::Result<Option<Value>> {
        let reply = self.stream_request(connection, "INFO", &json!({})).await?;
        match reply["error"]["code"].as_i64() {
            None if reply["config"].is_object() => Ok(Some(reply)),
            Some(404) => Ok(None),
            _ => Err(api_error(&reply)),
        }
    }

    async fn create_stream(&self, connection: &mut Connection) -> io::Result<()> {
        let nanos = u64::try_from(self.duplicate_window.as_nanos()).unwrap_or(u64::MAX / 2);
        let config = json!({
            "name": self.stream,
            "subjects": [format!("{}.>", self.subject)],
            "retention": "limits", "storage": "file", "discard": "old", "num_replicas": 1,
            "max_consumers": -1, "max_msgs": -1, "max_bytes": -1, "max_age": 0, "max_msg_size": -1,
            "duplicate_window": nanos,
        });
        let reply = self.stream_request(connection, "CREATE", &config).await?;
        if reply["config"].is_object() {
            Ok(())
        } else {
            Err(api_error(&reply))
        }
    }

    /// Publishes, then reads the acknowledgements into `verdicts`; an error is the
    /// verdict of all that were not acknowledged.
    async fn publish(
        &self,
        connection: &mut Connection,
        batch: &[Document],
        verdicts: &mut [Option<Verdict>],
    ) -> io::Result<()> {
        let deadline = Instant::now() + self.limit;
        let mut unacknowledged: HashMap<String, usize> = HashMap::new();
        let publishing = async {
            for (at, document) in batch.iter().enumerate() {
                let payload =
                    licensed_text::json(document, self.full_text).map_err(io::Error::other)?;
                let id = message_id(document);
                // max_payload includes headers, but not the protocol line.
                let max_payload = connection.server.max_payload;
                if payload.len() + id.len() + 64 > max_payload {
                    verdicts[at] = Some(Verdict::dead(format!(
                        "message too large: {} bytes; the server's max_payload is {max_payload}",
                        payload.len()
                    )));
                    continue;
                }
                let subject = format!("{}.{}", self.subject, token_of(&document.source_name));
                let reply = connection.publish(&subject, Some(&id), &payload).await?;
                unacknowledged.insert(reply, at);
            }
            connection.flush().await
        };
        let timed_out = |_| io::Error::other("timed out waiting for an acknowledgement");
        timeout_at(deadline, publishing)
            .await
            .map_err(timed_out)??;
        while !unacknowledged.is_empty() {
            let message = timeout_at(deadline, connection.next_message())
                .await
                .map_err(timed_out)??;
            let Some(at) = unacknowledged.remove(&message.subject) else {
                continue;
            };
            if message.has_no_responders {
                // The next connection creates it again.
                return Err(io::Error::other(format!(
                    "no stream is bound to {}; it was deleted, or has other subjects",
                    self.subject
                )));
            }
            verdicts[at] = Some(self.verdict(&message.payload));
        }
        Ok(())
    }

    fn verdict(&self, payload: &[u8]) -> Verdict {
        const TOO_LARGE: i64 = 10_054;
        let ack: Value = serde_json::from_slice(payload).unwrap_or_default();
        let error = &ack["error"];
        if error.is_null() && ack["seq"].is_u64() {
            return Verdict::Accepted;
        }
        let error_text = self.redacted(&format!("the stream returned {ack}"));
        if error["err_code"].as_i64() == Some(TOO_LARGE) {
            Verdict::dead(error_text)
        } else {
            Verdict::retry(error_text)
        }
    }

    fn redacted(&self, text: &str) -> String {
        let redact = |text: String, secret: &Secret| secret.redact(&text);
        self.secrets.iter().fold(text.to_owned(), redact)
    }

    fn describe(&self, error: &io::Error) -> String {
        let Address { host, port, .. } = &self.address;
        format!("{host}:{port}: {}", self.redacted(&error.to_string()))
    }
}

fn address(url: &str, login: Value) -> Result<Address, BuildError> {
    let invalid = || {
        BuildError(format!(
            "url {url:?} is not nats://HOST:PORT or tls://HOST:PORT"
        ))
    };
    let parsed = url::Url::parse(url).map_err(|_| invalid())?;
    if !matches!(parsed.scheme(), "nats" | "tls") {
        return Err(invalid());
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(BuildError(
            "url contains a user name or password; set them with the *_env or *_file settings"
                .to_owned(),
        ));
    }
    let host = parsed.host_str().filter(|host| !host.is_empty());
    Ok(Address {
        host: host.ok_or_else(invalid)?.to_owned(),
        port: parsed.port().unwrap_or(4222),
        is_tls: parsed.scheme() == "tls",
        login,
    })
}

/// The server drops a second message of the same id.
fn message_id(document: &Document) -> String {
    let id: String = document
        .id
        .chars()
        .filter(|c| !c.is_control() && !c.is_whitespace())
        .collect();
    format!("{id}.{}", document.revision)
}

/// A source's name as one token of a subject.
fn token_of(source_name: &str) -> String {
    let mut token = String::new();
    for c in source_name.chars() {
        if c.is_alphanumeric() {
            token.extend(c.to_lowercase());
        } else if !token.ends_with('_') {
            token.push('_');
        }
    }
    match token.trim_matches('_') {
        "" => "unknown".to_owned(),
        token => token.chars().take(100).collect(),
    }
}

fn api_error(reply: &Value) -> io::Error {
    io::Error::other(format!("JetStream returned {reply}"))
}

#[async_trait]
impl Sink for Nats {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> BatchLimits {
        BatchLimits {
            max_docs: 200,
            max_bytes: 8 * 1024 * 1024,
        }
    }

    async fn deliver(&self, batch: &[Document], _now: Timestamp) -> Vec<Verdict> {
        if batch.is_empty() {
            return Vec::new();
        }
        let mut verdicts: Vec<Option<Verdict>> = vec![None; batch.len()];
        let mut slot = self.connection.lock().await;
        let mut result = Ok(());
        // A reused connection may be stale: then retry once on a new one.
        for was_reused in [slot.is_some(), false] {
            let mut connection = match slot.take() {
                Some(connection) => connection,
                None => match self.connect().await {
                    Ok(connection) => connection,
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                },
            };
            result = self.publish(&mut connection, batch, &mut verdicts).await;
            if result.is_ok() {
                *slot = Some(connection);
                break;
            }
            if !was_reused || verdicts.iter().any(Option::is_some) {
                break;
            }
        }
        let fallback = match result {
            Ok(()) => Verdict::retry("no acknowledgement"),
            Err(error) => Verdict::retry(self.describe(&error)),
        };
        verdicts
            .into_iter()
            .map(|verdict| verdict.unwrap_or_else(|| fallback.clone()))
            .collect()
    }

    async fn check(&self, _now: Timestamp) -> Report {
        let mut report = Report::default();
        let opened = Connection::open(&self.client, &self.address, self.limit).await;
        let mut connection = match opened {
            Ok(connection) => connection,
            Err(error) => {
                report.record("connection and credentials", Err(self.describe(&error)));
                return report;
            }
        };
        let version = format!("nats-server {}", connection.server.version);
        report.record("connection and credentials", Ok(version));
        let found = match self.stream_state(&mut connection).await {
            Ok(Some(state)) => Ok(format!(
                "{} holds {} messages",
                self.stream, state["state"]["messages"]
            )),
            Ok(None) => Ok(format!("{} will be created", self.stream)),
            Err(error) => Err(self.describe(&error)),
        };
        report.record("stream", found);
        report
    }

    async fn install(&self, _now: Timestamp) -> Report {
        let mut report = Report::default();
        let connected = self.connect().await.map_err(|error| self.describe(&error));
        report.record(
            "stream",
            connected.map(|_| format!("{} exists", self.stream)),
        );
        report
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sources_become_tokens() {
        let rows = [
            ("News Example", "news_example"),
            ("a.b *>c", "a_b_c"),
            ("新聞", "新聞"),
            ("", "unknown"),
            ("...", "unknown"),
        ];
        for (name, token) in rows {
            assert_eq!(token_of(name), token);
        }
    }

    #[test]
    fn addresses_are_servers_without_secrets() {
        let found = address("nats://127.0.0.1", Value::Null).unwrap();
        assert_eq!(
            (found.host.as_str(), found.port, found.is_tls),
            ("127.0.0.1", 4222, false)
        );
        assert!(
            address("tls://nats.example:4443", Value::Null)
                .unwrap()
                .is_tls
        );
        for url in ["http://x", "nats://u:p@x", "nats:", "x"] {
            assert!(address(url, Value::Null).is_err(), "{url}");
        }
    }
}
