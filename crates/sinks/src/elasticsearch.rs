//! Elasticsearch and OpenSearch: `_bulk` requests into the `raw_content` index,
//! one verdict for each item. Installs its index template before the first
//! delivery. Never refreshes: when documents become visible is the server's.

mod bulk;
mod fields;
mod install;
mod pace;
mod template;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use tidings_document::Document;
use tidings_net::Response;
use tidings_net::http::Method;
use tokio::sync::Mutex;

use crate::config::{BuildError, Context, yes};
use crate::endpoint::{Body, Endpoint, no_reply};
use crate::pages::Pages;
use crate::secret;
use crate::sink::{BatchLimits, Report, Sink, Verdict};
use crate::text;
use bulk::Outcome;
use pace::Pace;

/// `kind = "elasticsearch"` (or `"opensearch"`).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElasticsearchConfig {
    pub url: String,
    /// The alias that is written to; `NAME-000001` is made behind it.
    #[serde(default = "raw_content")]
    pub index: String,
    /// An index for each source instead: `<source name>_raw_content`.
    #[serde(default)]
    pub per_source: bool,
    pub user: Option<String>,
    pub password_env: Option<String>,
    pub password_file: Option<PathBuf>,
    pub api_key_env: Option<String>,
    pub api_key_file: Option<PathBuf>,
    /// Fills `raw_html` where the page was kept.
    #[serde(default)]
    pub raw_html: bool,
    /// False: only what the licence lets us pass on.
    #[serde(default = "yes")]
    pub full_text: bool,
    #[serde(default = "max_docs")]
    pub max_docs: usize,
    #[serde(default = "max_bytes")]
    pub max_bytes: usize,
    #[serde(default = "timeout")]
    pub timeout_seconds: u64,
}

fn raw_content() -> String {
    "raw_content".to_owned()
}

fn max_docs() -> usize {
    500
}

fn max_bytes() -> usize {
    5 * 1024 * 1024
}

fn timeout() -> u64 {
    60
}

pub(crate) struct Elasticsearch {
    name: String,
    endpoint: Endpoint,
    index: String,
    per_source: bool,
    full_text: bool,
    /// Where raw HTML comes from, if it is wanted.
    pages: Option<Arc<dyn Pages>>,
    /// The fields of the mapping.
    known: Map<String, Value>,
    pace: Pace,
    is_installed: Mutex<bool>,
}

impl fmt::Debug for Elasticsearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Elasticsearch {} at {}",
            self.name,
            self.endpoint.server()
        )
    }
}

/// One document of a request.
struct Part {
    /// Its place in the batch.
    at: usize,
    lines: Vec<u8>,
    has_html: bool,
}

/// How a request ended.
enum Sent {
    Items(Vec<Outcome>),
    TooLarge,
    Refused(Verdict),
}

impl Elasticsearch {
    pub(crate) fn new(
        name: &str,
        config: &ElasticsearchConfig,
        context: &Context,
    ) -> Result<Self, BuildError> {
        let mut endpoint = Endpoint::new(&context.client, &config.url)?;
        endpoint.time_limit = Duration::from_secs(config.timeout_seconds);
        let password = secret::read(
            context,
            "password",
            config.password_env.as_deref(),
            config.password_file.as_deref(),
        )?;
        let api_key = secret::read(
            context,
            "api_key",
            config.api_key_env.as_deref(),
            config.api_key_file.as_deref(),
        )?;
        endpoint = match (&config.user, password, api_key) {
            (Some(user), Some(password), None) => endpoint.with_password(user, &password)?,
            (None, None, Some(key)) => {
                endpoint.with_secret_header("authorization", "ApiKey ", key)?
            }
            (None, None, None) => endpoint,
            _ => {
                return Err(BuildError(
                    "set either user and password_env (or password_file), or api_key_env (or api_key_file)"
                        .to_owned(),
                ));
            }
        };
        if !is_index_name(&config.index) {
            return Err(BuildError(format!(
                "index {:?} is not a name: lower-case letters, digits, _ and -, beginning with a letter",
                config.index
            )));
        }
        if config.raw_html && context.pages.is_none() {
            return Err(BuildError(
                "raw_html = true needs pages, and none are kept".to_owned(),
            ));
        }
        let mappings = template::mappings();
        let known = mappings["properties"].as_object().cloned();
        Ok(Self {
            name: name.to_owned(),
            endpoint,
            index: config.index.clone(),
            per_source: config.per_source,
            full_text: config.full_text,
            pages: context.pages.clone().filter(|_| config.raw_html),
            known: known.unwrap_or_default(),
            pace: Pace::new(config.max_docs, config.max_bytes),
            is_installed: Mutex::new(false),
        })
    }

    /// The lines of one document, or why it can't be sent.
    async fn part(&self, at: usize, document: &Document, with_html: bool) -> Result<Part, Verdict> {
        if let Some(reason) = bulk::unsendable(document) {
            return Err(Verdict::dead(reason));
        }
        let page = match &self.pages {
            Some(pages) if with_html => pages.page(document).await.map_err(|error| {
                Verdict::retry(format!(
                    "the page of {} can't be read: {error}",
                    document.id
                ))
            })?,
            _ => None,
        };
        let html = page.map(|page| String::from_utf8_lossy(&page.body).into_owned());
        let has_html = html.is_some();
        let text = text::of(document, self.full_text);
        let source = fields::source(document, &self.known, text, html);
        let index = if self.per_source {
            fields::index_of_source(&document.source_name)
        } else {
            self.index.clone()
        };
        Ok(Part {
            at,
            lines: bulk::lines(document, &index, !self.per_source, &source),
            has_html,
        })
    }

    /// Sends parts, in halves where the server finds them too large, and fills
    /// in their verdicts. An error is for all that was not sent yet.
    async fn flush(
        &self,
        batch: &[Document],
        mut parts: Vec<Part>,
        verdicts: &mut [Verdict],
        now: Timestamp,
    ) -> Result<(), Verdict> {
        let mut waiting: VecDeque<Range<usize>> = VecDeque::new();
        waiting.push_back(0..parts.len());
        while let Some(run) = waiting.pop_front() {
            if run.is_empty() {
                continue;
            }
            match self.send(&parts[run.clone()], now).await {
                Sent::Items(outcomes) => self.note(&parts[run], outcomes, verdicts).await,
                Sent::TooLarge if run.len() > 1 => {
                    self.pace.too_large(bytes(&parts[run.clone()]));
                    let Range { start, end } = run;
                    let middle = start + (end - start) / 2;
                    waiting.push_front(middle..end);
                    waiting.push_front(start..middle);
                }
                Sent::TooLarge if parts[run.start].has_html => {
                    // The text matters more than the page around it.
                    let at = parts[run.start].at;
                    match self.part(at, &batch[at], false).await {
                        Ok(part) => {
                            parts[run.start] = part;
                            waiting.push_front(run);
                        }
                        Err(verdict) => verdicts[at] = verdict,
                    }
                }
                Sent::TooLarge => {
                    let part = &parts[run.start];
                    verdicts[part.at] = Verdict::dead(format!(
                        "413: {} bytes are more than the server takes; http.max_content_length is its limit",
                        part.lines.len()
                    ));
                }
                Sent::Refused(verdict) => {
                    let unsent = waiting.into_iter().chain([run]).flatten();
                    for part in unsent {
                        verdicts[parts[part].at] = verdict.clone();
                    }
                    return Err(verdict);
                }
            }
        }
        Ok(())
    }

    async fn note(&self, parts: &[Part], outcomes: Vec<Outcome>, verdicts: &mut [Verdict]) {
        if outcomes.iter().any(|it| matches!(it, Outcome::NoIndex(_))) {
            *self.is_installed.lock().await = false;
        }
        if outcomes.iter().any(|it| matches!(it, Outcome::Overrun(_))) {
            self.pace.overrun();
        } else {
            self.pace.well();
        }
        for (part, outcome) in parts.iter().zip(outcomes) {
            verdicts[part.at] = outcome.verdict();
        }
    }

    async fn send(&self, parts: &[Part], now: Timestamp) -> Sent {
        let lines: Vec<&[u8]> = parts.iter().map(|part| part.lines.as_slice()).collect();
        let body = Body {
            content_type: "application/x-ndjson",
            bytes: bulk::gzip(&lines),
            is_gzip: true,
        };
        let path = format!("/_bulk?filter_path={}", bulk::REPLY);
        let response = match self
            .endpoint
            .send(Method::POST, &path, Some(body), &[])
            .await
        {
            Ok(response) => response,
            Err(failure) => {
                // Some servers hang up instead of saying 413.
                self.pace.overrun();
                return Sent::Refused(no_reply(&failure));
            }
        };
        match response.status {
            200 => match bulk::outcomes(&response.body, parts.len()) {
                Some(outcomes) => Sent::Items(outcomes),
                None => Sent::Refused(Verdict::retry(format!(
                    "not a reply to a bulk request of {}: {}",
                    parts.len(),
                    self.endpoint.excerpt(&response)
                ))),
            },
            413 => Sent::TooLarge,
            status => {
                if matches!(status, 429 | 503) {
                    self.pace.overrun();
                }
                if status == 404 {
                    *self.is_installed.lock().await = false;
                }
                Sent::Refused(self.endpoint.refused(&response, now))
            }
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Body>,
    ) -> Result<Response, Verdict> {
        let sent = self.endpoint.send(method, path, body, &[]).await;
        sent.map_err(|failure| no_reply(&failure))
    }
}

fn bytes(parts: &[Part]) -> usize {
    parts.iter().map(|part| part.lines.len()).sum()
}

fn json_of(response: &Response) -> Value {
    serde_json::from_slice(&response.body).unwrap_or_default()
}

fn words(verdict: Verdict) -> String {
    match verdict {
        Verdict::Accepted => String::new(),
        Verdict::Retry { error, .. } => error,
        Verdict::Dead { reason } => reason,
    }
}

fn is_index_name(name: &str) -> bool {
    let is_fine = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-');
    name.len() <= 200
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(is_fine)
}

#[async_trait]
impl Sink for Elasticsearch {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> BatchLimits {
        self.pace.limits()
    }

    async fn deliver(&self, batch: &[Document], now: Timestamp) -> Vec<Verdict> {
        if batch.is_empty() {
            return Vec::new();
        }
        if let Err(verdict) = self.install(now).await {
            return vec![verdict; batch.len()];
        }
        let mut verdicts = vec![Verdict::retry("it was not sent"); batch.len()];
        let mut waiting: Vec<Part> = Vec::new();
        for (at, document) in batch.iter().enumerate() {
            let part = match self.part(at, document, true).await {
                Ok(part) => part,
                Err(verdict) => {
                    verdicts[at] = verdict;
                    continue;
                }
            };
            let limits = self.pace.limits();
            let is_full = waiting.len() >= limits.max_docs
                || bytes(&waiting) + part.lines.len() > limits.max_bytes;
            if is_full && !waiting.is_empty() {
                let full = std::mem::take(&mut waiting);
                if let Err(verdict) = self.flush(batch, full, &mut verdicts, now).await {
                    // A server that refused the last request is left in peace.
                    verdicts[at..].fill(verdict);
                    return verdicts;
                }
            }
            waiting.push(part);
        }
        // Its verdicts are filled in either way, and there is nothing after it.
        let _ = self.flush(batch, waiting, &mut verdicts, now).await;
        verdicts
    }

    async fn check(&self, now: Timestamp) -> Report {
        let mut report = Report::default();
        if !report.note("connection and credentials", self.greet().await) {
            return report;
        }
        let installed = self.install(now).await;
        let installed = installed
            .map(|()| "the index template is installed".to_owned())
            .map_err(words);
        if report.note("template", installed) {
            report.note("index", self.compare_mapping().await);
        }
        report
    }
}
