//! Elasticsearch and OpenSearch: `_bulk` requests into the `raw_content` index,
//! one verdict for each item. Installs its index template before the first
//! delivery. Never refreshes: the server decides when documents become visible.

mod backpressure;
mod bulk;
mod fields;
mod install;
mod template;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidings_document::Document;
use tidings_net::Response;
use tidings_net::http::Method;
use tokio::sync::Mutex;

use crate::context::{BuildError, Context, yes};
use crate::endpoint::{Body, Endpoint, transport_error};
use crate::licensed_text;
use crate::page_source::PageSource;
use crate::secret;
use crate::sink::{BatchLimits, Report, Sink, Verdict};
use backpressure::Backpressure;
use bulk::Outcome;

/// `kind = "elasticsearch"` (or `"opensearch"`).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElasticsearchConfig {
    pub url: String,
    /// The write alias; its first index is `NAME-000001`.
    #[serde(default = "raw_content")]
    pub index: String,
    /// One index per source instead: `<source name>_raw_content`.
    #[serde(default)]
    pub per_source: bool,
    pub user: Option<String>,
    pub password_env: Option<String>,
    pub password_file: Option<PathBuf>,
    pub api_key_env: Option<String>,
    pub api_key_file: Option<PathBuf>,
    /// Fills `raw_html` where the page is archived.
    #[serde(default)]
    pub raw_html: bool,
    /// False: only what the licence allows to export.
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
    /// Source of raw HTML, if it is enabled.
    pages: Option<Arc<dyn PageSource>>,
    /// The fields of the mapping.
    mapping: Map<String, Value>,
    /// The fields of an index that lacks those which later versions added.
    first_mapping: Map<String, Value>,
    lacks_added_fields: AtomicBool,
    backpressure: Backpressure,
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

/// One document of a bulk request.
struct BulkItem {
    /// Its index in the batch.
    at: usize,
    lines: Vec<u8>,
    has_html: bool,
}

/// The result of a bulk request.
enum SendOutcome {
    Items(Vec<Outcome>),
    TooLarge,
    Rejected(Verdict),
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
                "index {:?} is not a valid name: use lower-case letters, digits, _ and -, beginning with a letter",
                config.index
            )));
        }
        if config.raw_html && context.pages.is_none() {
            return Err(BuildError(
                "raw_html = true needs a page archive, and there is none".to_owned(),
            ));
        }
        let mappings = template::mappings();
        let properties = mappings["properties"].as_object().cloned();
        let mut first_mapping = properties.clone().unwrap_or_default();
        first_mapping.retain(|name, _| !template::ADDED_FIELDS.contains(&name.as_str()));
        Ok(Self {
            name: name.to_owned(),
            endpoint,
            index: config.index.clone(),
            per_source: config.per_source,
            full_text: config.full_text,
            pages: context.pages.clone().filter(|_| config.raw_html),
            mapping: properties.unwrap_or_default(),
            first_mapping,
            lacks_added_fields: AtomicBool::new(false),
            backpressure: Backpressure::new(config.max_docs, config.max_bytes),
            is_installed: Mutex::new(false),
        })
    }

    /// The lines of one document, or the verdict if it is not sendable.
    async fn bulk_item(
        &self,
        at: usize,
        document: &Document,
        with_html: bool,
    ) -> Result<BulkItem, Verdict> {
        if let Some(reason) = bulk::unsendable(document) {
            return Err(Verdict::dead(reason));
        }
        let page = match &self.pages {
            Some(pages) if with_html => pages.page(document).await.map_err(|error| {
                Verdict::retry(format!(
                    "cannot read the archived page of {}: {error}",
                    document.id
                ))
            })?,
            _ => None,
        };
        let html = page.map(|page| String::from_utf8_lossy(&page.body).into_owned());
        let has_html = html.is_some();
        let text = licensed_text::of(document, self.full_text);
        let mapping = match self.lacks_added_fields.load(Ordering::Relaxed) {
            true => &self.first_mapping,
            false => &self.mapping,
        };
        let source = fields::source(document, mapping, text, html);
        let index = if self.per_source {
            fields::index_of_source(&document.source_name)
        } else {
            self.index.clone()
        };
        Ok(BulkItem {
            at,
            lines: bulk::lines(document, &index, !self.per_source, &source),
            has_html,
        })
    }

    /// Sends items, bisecting requests that are too large, and fills in their
    /// verdicts. An error is the verdict of all that were not sent.
    async fn flush(
        &self,
        batch: &[Document],
        mut items: Vec<BulkItem>,
        verdicts: &mut [Verdict],
        now: Timestamp,
    ) -> Result<(), Verdict> {
        let mut pending: VecDeque<Range<usize>> = VecDeque::new();
        pending.push_back(0..items.len());
        while let Some(run) = pending.pop_front() {
            if run.is_empty() {
                continue;
            }
            match self.send(&items[run.clone()], now).await {
                SendOutcome::Items(outcomes) => {
                    self.record(&items[run.clone()], outcomes.as_slice(), verdicts)
                        .await;
                    self.judge_conflicts(batch, &items[run], &outcomes, verdicts)
                        .await;
                }
                SendOutcome::TooLarge if run.len() > 1 => {
                    self.backpressure
                        .record_too_large(bytes(&items[run.clone()]));
                    let Range { start, end } = run;
                    let middle = start + (end - start) / 2;
                    pending.push_front(middle..end);
                    pending.push_front(start..middle);
                }
                SendOutcome::TooLarge if items[run.start].has_html => {
                    // Drop the raw HTML: the text matters more.
                    let at = items[run.start].at;
                    match self.bulk_item(at, &batch[at], false).await {
                        Ok(item) => {
                            items[run.start] = item;
                            pending.push_front(run);
                        }
                        Err(verdict) => verdicts[at] = verdict,
                    }
                }
                SendOutcome::TooLarge => {
                    let item = &items[run.start];
                    verdicts[item.at] = Verdict::dead(format!(
                        "413: document too large: {} bytes; raise the server's http.max_content_length",
                        item.lines.len()
                    ));
                }
                SendOutcome::Rejected(verdict) => {
                    let unsent = pending.into_iter().chain([run]).flatten();
                    for item in unsent {
                        verdicts[items[item].at] = verdict.clone();
                    }
                    return Err(verdict);
                }
            }
        }
        Ok(())
    }

    async fn record(&self, items: &[BulkItem], outcomes: &[Outcome], verdicts: &mut [Verdict]) {
        if outcomes.iter().any(|it| matches!(it, Outcome::NoIndex(_))) {
            *self.is_installed.lock().await = false;
        }
        if outcomes
            .iter()
            .any(|it| matches!(it, Outcome::Overloaded(_)))
        {
            self.backpressure.record_overload();
        } else {
            self.backpressure.record_success();
        }
        for (item, outcome) in items.iter().zip(outcomes) {
            verdicts[item.at] = outcome.verdict();
        }
    }

    /// A document that conflicts is delivered only if the index has its revision, or
    /// a newer one.
    async fn judge_conflicts(
        &self,
        batch: &[Document],
        items: &[BulkItem],
        outcomes: &[Outcome],
        verdicts: &mut [Verdict],
    ) {
        let conflict = |(item, outcome): (&BulkItem, &Outcome)| match outcome {
            Outcome::Conflict { index } => Some((item.at, index.clone())),
            _ => None,
        };
        let conflicts: Vec<_> = items.iter().zip(outcomes).filter_map(conflict).collect();
        if conflicts.is_empty() {
            return;
        }
        let wanted: Vec<_> = conflicts
            .iter()
            .map(|(at, index)| json!({ "_index": index, "_id": batch[*at].id }))
            .collect();
        let stored = match self.stored_versions(&wanted).await {
            Ok(stored) => stored,
            Err(verdict) => {
                for (at, _) in conflicts {
                    verdicts[at] = verdict.clone();
                }
                return;
            }
        };
        for ((at, index), version) in conflicts.into_iter().zip(stored) {
            let stored = version.map(bulk::revision_of);
            verdicts[at] = match stored {
                Some(stored) if stored >= batch[at].revision => Verdict::Accepted,
                Some(stored) => Verdict::retry(format!(
                    "version conflict: {index} has revision {stored}, not {}",
                    batch[at].revision
                )),
                None => Verdict::retry(format!(
                    "version conflict: the document was deleted from {index} by somebody else"
                )),
            };
        }
    }

    async fn stored_versions(&self, wanted: &[Value]) -> Result<Vec<Option<i64>>, Verdict> {
        let path = "/_mget?_source=false&filter_path=docs._version,docs.found";
        let body = Body::json(&json!({ "docs": wanted }));
        let response = self.request(Method::POST, path, Some(body)).await?;
        let stored = match response.is_success() {
            true => bulk::stored_versions(&response.body, wanted.len()),
            false => None,
        };
        stored.ok_or_else(|| {
            Verdict::retry(format!(
                "version conflict, and the stored versions cannot be read: {}",
                self.endpoint.describe_error(&response)
            ))
        })
    }

    async fn send(&self, items: &[BulkItem], now: Timestamp) -> SendOutcome {
        let lines: Vec<&[u8]> = items.iter().map(|item| item.lines.as_slice()).collect();
        let body = Body {
            content_type: "application/x-ndjson",
            bytes: bulk::gzip(&lines),
            is_gzip: true,
        };
        let path = format!("/_bulk?filter_path={}", bulk::FILTER_PATH);
        let response = match self
            .endpoint
            .send(Method::POST, &path, Some(body), &[])
            .await
        {
            Ok(response) => response,
            Err(failure) => {
                // Some servers close the connection instead of returning 413.
                self.backpressure.record_overload();
                return SendOutcome::Rejected(transport_error(&failure));
            }
        };
        match response.status {
            200 => match bulk::outcomes(&response.body, items.len()) {
                Some(outcomes) => SendOutcome::Items(outcomes),
                None => SendOutcome::Rejected(Verdict::retry(format!(
                    "unexpected response to a bulk request of {} items: {}",
                    items.len(),
                    self.endpoint.excerpt(&response)
                ))),
            },
            413 => SendOutcome::TooLarge,
            status => {
                if matches!(status, 429 | 503) {
                    self.backpressure.record_overload();
                }
                if status == 404 {
                    *self.is_installed.lock().await = false;
                }
                SendOutcome::Rejected(self.endpoint.retry_verdict(&response, now))
            }
        }
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<Body>,
    ) -> Result<Response, Verdict> {
        let sent = self.endpoint.send(method, path, body, &[]).await;
        sent.map_err(|failure| transport_error(&failure))
    }
}

fn bytes(items: &[BulkItem]) -> usize {
    items.iter().map(|item| item.lines.len()).sum()
}

fn json_of(response: &Response) -> Value {
    serde_json::from_slice(&response.body).unwrap_or_default()
}

fn error_text(verdict: Verdict) -> String {
    match verdict {
        Verdict::Accepted => String::new(),
        Verdict::Retry { error, .. } => error,
        Verdict::Dead { reason } => reason,
    }
}

fn is_index_name(name: &str) -> bool {
    let is_allowed = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-');
    name.len() <= 200
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(is_allowed)
}

#[async_trait]
impl Sink for Elasticsearch {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> BatchLimits {
        self.backpressure.limits()
    }

    async fn deliver(&self, batch: &[Document], now: Timestamp) -> Vec<Verdict> {
        if batch.is_empty() {
            return Vec::new();
        }
        if let Err(verdict) = self.ensure_installed(now).await {
            return vec![verdict; batch.len()];
        }
        let mut verdicts = vec![Verdict::retry("not sent"); batch.len()];
        let mut pending: Vec<BulkItem> = Vec::new();
        for (at, document) in batch.iter().enumerate() {
            let item = match self.bulk_item(at, document, true).await {
                Ok(item) => item,
                Err(verdict) => {
                    verdicts[at] = verdict;
                    continue;
                }
            };
            let limits = self.backpressure.limits();
            let is_full = pending.len() >= limits.max_docs
                || bytes(&pending) + item.lines.len() > limits.max_bytes;
            if is_full && !pending.is_empty() {
                let full = std::mem::take(&mut pending);
                if let Err(verdict) = self.flush(batch, full, &mut verdicts, now).await {
                    // No further requests to a server that rejected the last one.
                    verdicts[at..].fill(verdict);
                    return verdicts;
                }
            }
            pending.push(item);
        }
        // Its verdicts are filled in either way, and it is the last request.
        let _ = self.flush(batch, pending, &mut verdicts, now).await;
        verdicts
    }

    async fn check(&self, now: Timestamp) -> Report {
        let mut report = Report::default();
        if !report.record("connection and credentials", self.server_version().await) {
            return report;
        }
        if report.record("template", self.template_state(now).await) {
            report.record("index", self.compare_mapping().await);
        }
        report
    }

    async fn install(&self, now: Timestamp) -> Report {
        let mut report = Report::default();
        let installed = self.ensure_installed(now).await;
        let installed = installed.map(|()| format!("{} is installed", self.template_name()));
        if report.record("template", installed.map_err(error_text)) {
            report.record("index", self.compare_mapping().await);
        }
        report
    }
}
