//! The adapter as the engine sees it: the trait and its types. Values only.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value as Json;
use thiserror::Error;
use tidings_document::License;
use tidings_net::{Failure, Request, Response};

use crate::quota::Quota;
use crate::schema::ConfigError;

/// A kind of source with an API of its own.
#[async_trait]
pub trait SourceAdapter: fmt::Debug + Send + Sync {
    /// The `kind` of its sources.
    fn kind(&self) -> &'static str;

    /// JSON Schema of its `config`, for users, forms and [`Self::validate`].
    fn schema(&self) -> Json;

    /// The environment variable of its key, if it has one key.
    fn key_variable(&self) -> Option<&'static str> {
        None
    }

    /// Whether a `config` is valid; the error names the field.
    fn validate(&self, config: &Json) -> Result<(), ConfigError> {
        crate::schema::check(&self.schema(), config)
    }

    /// The new items since `cursor`, which the last pull returned. To pull again
    /// from an older cursor is harmless; nothing is ever skipped.
    async fn pull(
        &self,
        config: &Json,
        cursor: Option<&str>,
        context: &PullContext<'_>,
    ) -> Result<Pull, AdapterError>;

    /// One cheap request: does the service respond, and does it accept the key?
    async fn health(
        &self,
        config: &Json,
        context: &PullContext<'_>,
    ) -> Result<String, AdapterError> {
        let context = PullContext {
            max_items: 1,
            wants_text: false,
            ..*context
        };
        let pull = self.pull(config, None, &context).await?;
        Ok(pull
            .note
            .unwrap_or_else(|| "the service responds".to_owned()))
    }
}

/// How an adapter reaches its service: with a host permit, through the HTTP client.
#[async_trait]
pub trait AdapterHttp: fmt::Debug + Send + Sync {
    /// Sends one request. Two requests to this service are at least `gap` apart,
    /// in whichever process they are sent.
    async fn fetch(&self, request: Request, gap: Duration) -> Result<Response, HttpUnavailable>;
}

/// Why there is no response.
#[derive(Debug)]
pub enum HttpUnavailable {
    Failed(Failure),
    /// No host permit for the service is free; retry after this.
    Busy(Duration),
}

/// What a pull may use, and its limits.
#[derive(Debug, Clone, Copy)]
pub struct PullContext<'a> {
    pub http: &'a dyn AdapterHttp,
    /// Keys by name, from the environment or a file.
    pub secrets: &'a (dyn Secrets + 'a),
    /// What the operator has configured for this service.
    pub service: &'a ServiceOptions,
    pub now: Timestamp,
    /// Items beyond this come with the next pull.
    pub max_items: usize,
    /// Texts are wanted, not only their URLs.
    pub wants_text: bool,
    /// Of one request.
    pub time_limit: Duration,
    /// How long to wait before the first, second, … retry of a request after 429
    /// or 5xx.
    pub retry_waits: &'a [Duration],
}

/// What is configured for one service, for all sources of its kind. It comes from
/// the configuration file, never from a source: it decides where keys are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceOptions {
    /// URL of the service instead of its own.
    pub base_url: Option<String>,
    /// Environment variable of the key instead of the usual one.
    pub key_env: Option<String>,
}

/// Looks up keys by name.
pub trait Secrets: Send + Sync {
    fn secret(&self, name: &str) -> Option<String>;
}

impl<F: Fn(&str) -> Option<String> + Send + Sync> Secrets for F {
    fn secret(&self, name: &str) -> Option<String> {
        self(name)
    }
}

impl fmt::Debug for dyn Secrets + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// The result of a pull.
#[derive(Debug, Clone, Default)]
pub struct Pull {
    /// Each once, also over pulls.
    pub items: Vec<AdapterItem>,
    /// For the next pull, once the items are stored.
    pub cursor: String,
    /// A cap was reached: there is more, and the cursor leads to it.
    pub has_more: bool,
    pub requests: u32,
    pub bytes: u64,
    pub quota: Option<Quota>,
    /// A remark for the operator.
    pub note: Option<String>,
}

/// One story, book, paper or post.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AdapterItem {
    pub url: String,
    /// The id that the service assigns.
    pub guid: String,
    pub title: String,
    pub authors: Vec<String>,
    pub published: Option<Timestamp>,
    pub updated: Option<Timestamp>,
    /// Plain text.
    pub summary: Option<String>,
    /// The whole text, where the service has it.
    pub text: Option<Text>,
    pub tags: Vec<String>,
    pub image: Option<String>,
    /// ISO 639-1.
    pub language: Option<String>,
    /// `article`, `poem`, `paper`, …
    pub content_type: Option<String>,
    pub license: Option<License>,
    /// The page with the discussion.
    pub comments: Option<String>,
}

/// A text and how it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Text {
    Plain(String),
    Html(String),
}

/// Why a pull failed. The message holds no key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct AdapterError {
    pub kind: AdapterErrorKind,
    pub message: String,
}

/// The kind of an adapter error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdapterErrorKind {
    /// The key is missing, wrong or used up.
    Auth,
    /// Too many requests; the service may have said for how long.
    RateLimited { after: Option<Duration> },
    /// No host permit was free; no request was sent.
    Busy { after: Duration },
    /// No response, or a 5xx.
    Network,
    /// A response that is not what the service documents.
    Malformed,
    /// The service rejects the request.
    Config,
}

impl AdapterErrorKind {
    /// The name in the fetch log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::RateLimited { .. } => "rate_limited",
            Self::Busy { .. } => "busy",
            Self::Network => "network",
            Self::Malformed => "malformed",
            Self::Config => "config",
        }
    }
}

impl AdapterError {
    pub(crate) fn new(kind: AdapterErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}
