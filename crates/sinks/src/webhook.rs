//! Webhooks: each document is one signed POST. Delivered at least once; the
//! receiver recognises a redelivery by its id header. Five seconds timeout, no
//! redirects; only the status and the start of the response are used.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use ring::hmac;
use serde::Deserialize;
use tidings_document::Document;
use tidings_net::http::{HeaderName, HeaderValue, Method};
use tidings_net::{Failure, Response};
use tidings_text::hex;

use crate::context::{BuildError, Context, yes};
use crate::endpoint::{Body, Endpoint, describe, transport_error};
use crate::licensed_text;
use crate::secret::{self, Secret};
use crate::sink::{BatchLimits, Report, Sink, Verdict};

/// Bytes read of a response.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// `kind = "webhook"`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    pub url: String,
    /// The key of the signature.
    pub secret_env: Option<String>,
    pub secret_file: Option<PathBuf>,
    /// False: only what the licence allows to export.
    #[serde(default = "yes")]
    pub full_text: bool,
    #[serde(default = "timeout")]
    pub timeout_seconds: u64,
}

fn timeout() -> u64 {
    5
}

pub(crate) struct Webhook {
    name: String,
    endpoint: Endpoint,
    secret: Secret,
    full_text: bool,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook {} at {}", self.name, self.endpoint.server())
    }
}

impl Webhook {
    pub(crate) fn new(
        name: &str,
        config: &WebhookConfig,
        context: &Context,
    ) -> Result<Self, BuildError> {
        let mut endpoint = Endpoint::new(&context.client, &config.url)?;
        endpoint.time_limit = Duration::from_secs(config.timeout_seconds);
        endpoint.read_at_most = Some(MAX_RESPONSE_BYTES);
        let (env, file) = (config.secret_env.as_deref(), config.secret_file.as_deref());
        let secret = secret::read(context, "secret", env, file)?.ok_or_else(|| {
            BuildError("set secret_env or secret_file: requests are signed with it".to_owned())
        })?;
        Ok(Self {
            name: name.to_owned(),
            endpoint: endpoint.redacting(secret.clone()),
            secret,
            full_text: config.full_text,
        })
    }

    async fn post(
        &self,
        event: &'static str,
        id: &str,
        body: Vec<u8>,
        now: Timestamp,
    ) -> Result<Response, Failure> {
        let timestamp = now.as_second();
        let signature = signature(self.secret.expose(), timestamp, &body);
        let unsendable = |_| Failure::Protocol {
            why: "the document id is invalid in an HTTP header".to_owned(),
        };
        let headers = [
            ("tidings-event", event),
            ("tidings-id", id),
            ("tidings-timestamp", &timestamp.to_string()),
            ("tidings-signature", &signature),
        ];
        let mut extra = Vec::with_capacity(headers.len());
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).map_err(unsendable)?;
            extra.push((HeaderName::from_static(name), value));
        }
        let body = Body {
            content_type: "application/json",
            bytes: body,
            is_gzip: false,
        };
        self.endpoint
            .send(Method::POST, "", Some(body), &extra)
            .await
    }
}

/// `sha256=` and the HMAC-SHA256 of `TIMESTAMP.BODY` in hex: receivers compute
/// it to authenticate a request.
pub fn signature(secret: &str, timestamp: i64, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let mut signing = hmac::Context::with_key(&key);
    signing.update(timestamp.to_string().as_bytes());
    signing.update(b".");
    signing.update(body);
    format!("sha256={}", hex::encode(signing.sign()))
}

#[async_trait]
impl Sink for Webhook {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> BatchLimits {
        // They are sent one by one, and each may take five seconds.
        BatchLimits {
            max_docs: 20,
            max_bytes: 16 * 1024 * 1024,
        }
    }

    async fn deliver(&self, batch: &[Document], now: Timestamp) -> Vec<Verdict> {
        let mut verdicts = Vec::with_capacity(batch.len());
        for document in batch {
            let id = format!("{}.{}", document.id, document.revision);
            let body = match licensed_text::json(document, self.full_text) {
                Ok(body) => body,
                Err(error) => {
                    verdicts.push(Verdict::dead(error.to_string()));
                    continue;
                }
            };
            let (verdict, continues) = match self.post("document", &id, body, now).await {
                Ok(response) => match response.status {
                    200..=299 => (Verdict::Accepted, true),
                    // About this document; all other errors may be fixed by the receiver.
                    400 | 413 | 422 => {
                        (Verdict::dead(self.endpoint.describe_error(&response)), true)
                    }
                    status => {
                        let is_overloaded = matches!(status, 429 | 503);
                        (self.endpoint.retry_verdict(&response, now), !is_overloaded)
                    }
                },
                Err(failure) => (transport_error(&failure), false),
            };
            verdicts.push(verdict.clone());
            if !continues {
                // An unresponsive receiver does not get the rest of the batch.
                verdicts.resize(batch.len(), verdict);
                return verdicts;
            }
        }
        verdicts
    }

    async fn check(&self, now: Timestamp) -> Report {
        let mut report = Report::default();
        let body = br#"{"event":"ping"}"#.to_vec();
        let result = match self.post("ping", "ping", body, now).await {
            Ok(response) if response.is_success() => {
                Ok(format!("a signed ping returned {}", response.status))
            }
            Ok(response) => Err(self.endpoint.describe_error(&response)),
            Err(failure) => Err(describe(&failure)),
        };
        report.record("connection", result);
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret
    #[test]
    fn the_signature_is_what_openssl_computes() {
        assert_eq!(
            signature("secret", 1_700_000_000, br#"{"a":1}"#),
            "sha256=49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686"
        );
    }
}
