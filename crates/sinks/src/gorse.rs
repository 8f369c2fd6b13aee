//! Gorse, the recommender: documents as items, by `POST /api/items`. One invalid
//! item fails its whole request, so items are validated before, and a rejected
//! request is bisected until the invalid item is isolated. Gorse has no
//! revisions: the last write wins.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};
use tidings_document::Document;
use tidings_net::http::Method;

use crate::context::{BuildError, Context};
use crate::document_ids::DocumentIds;
use crate::endpoint::{Body, Endpoint, describe, transport_error};
use crate::secret;
use crate::sink::{BatchLimits, Report, Sink, Verdict};

/// `kind = "gorse"`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GorseConfig {
    /// Of the server node: `http://127.0.0.1:8087`.
    pub url: String,
    pub api_key_env: Option<String>,
    pub api_key_file: Option<PathBuf>,
    #[serde(default)]
    pub ids: DocumentIds,
    #[serde(default = "max_docs")]
    pub max_docs: usize,
}

fn max_docs() -> usize {
    500
}

pub(crate) struct Gorse {
    name: String,
    endpoint: Endpoint,
    ids: DocumentIds,
    max_docs: usize,
}

impl fmt::Debug for Gorse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gorse {} at {}", self.name, self.endpoint.server())
    }
}

impl Gorse {
    pub(crate) fn new(
        name: &str,
        config: &GorseConfig,
        context: &Context,
    ) -> Result<Self, BuildError> {
        let mut endpoint = Endpoint::new(&context.client, &config.url)?;
        let (env, file) = (
            config.api_key_env.as_deref(),
            config.api_key_file.as_deref(),
        );
        if let Some(key) = secret::read(context, "api_key", env, file)? {
            endpoint = endpoint.with_secret_header("x-api-key", "", key)?;
        }
        Ok(Self {
            name: name.to_owned(),
            endpoint,
            ids: config.ids,
            max_docs: config.max_docs.max(1),
        })
    }

    async fn send(&self, items: &[(usize, Value)], now: Timestamp) -> SendOutcome {
        let array = Value::Array(items.iter().map(|(_, item)| item.clone()).collect());
        let body = Some(Body::json(&array));
        let sent = self
            .endpoint
            .send(Method::POST, "/api/items", body, &[])
            .await;
        let response = match sent {
            Ok(response) => response,
            Err(failure) => return SendOutcome::Rejected(transport_error(&failure)),
        };
        match response.status {
            200 => {
                let reply: Value = serde_json::from_slice(&response.body).unwrap_or_default();
                if reply["RowAffected"].is_number() {
                    return SendOutcome::Stored;
                }
                let excerpt = self.endpoint.excerpt(&response);
                SendOutcome::Rejected(Verdict::retry(format!(
                    "not a response of Gorse: {excerpt}"
                )))
            }
            400 | 413 => SendOutcome::Invalid(self.endpoint.describe_error(&response)),
            _ => SendOutcome::Rejected(self.endpoint.retry_verdict(&response, now)),
        }
    }

    async fn get(&self, path: &str) -> Result<String, String> {
        let sent = self.endpoint.send(Method::GET, path, None, &[]).await;
        let response = sent.map_err(|failure| describe(&failure))?;
        if response.is_success() {
            Ok(format!("{path} returned {}", response.status))
        } else {
            Err(self.endpoint.describe_error(&response))
        }
    }
}

enum SendOutcome {
    Stored,
    /// An item is invalid, or the request is too large.
    Invalid(String),
    Rejected(Verdict),
}

/// A document as an item, or why it is invalid.
fn item(document: &Document, id: &str) -> Result<Value, String> {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
    if id.is_empty() || !id.chars().all(is_safe) {
        return Err(format!(
            "{id:?} is not a valid ItemId: it must be safe in a URL path"
        ));
    }
    let moment = document.published_at.unwrap_or(document.fetched_at);
    let labels: &[&str] = if document.important {
        &["important"]
    } else {
        &[]
    };
    Ok(json!({
        "ItemId": id,
        "IsHidden": false,
        "Categories": document.tags,
        "Timestamp": timestamp(moment),
        "Labels": labels,
        "Comment": document.title,
    }))
}

/// ISO 8601; empty, which Gorse allows, for years that it cannot parse.
fn timestamp(moment: Timestamp) -> String {
    let year = moment.to_zoned(TimeZone::UTC).year();
    if (1..=9999).contains(&year) {
        format!("{moment:.0}")
    } else {
        String::new()
    }
}

#[async_trait]
impl Sink for Gorse {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> BatchLimits {
        BatchLimits {
            max_docs: self.max_docs,
            max_bytes: 4 * 1024 * 1024,
        }
    }

    async fn deliver(&self, batch: &[Document], now: Timestamp) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::Accepted; batch.len()];
        // Of two items with one id in a request Gorse stores the first.
        let ids: Vec<String> = batch.iter().map(|one| self.ids.id_of(one)).collect();
        let mut newest: HashMap<&str, usize> = HashMap::new();
        for (at, id) in ids.iter().enumerate() {
            let known = newest.entry(id).or_insert(at);
            // Two URLs can share a legacy id; then the later one wins.
            let (before, document) = (&batch[*known], &batch[at]);
            if before.id != document.id || before.revision < document.revision {
                *known = at;
            }
        }
        let mut items = Vec::new();
        for (at, document) in batch.iter().enumerate() {
            if newest[ids[at].as_str()] != at {
                continue;
            }
            match item(document, &ids[at]) {
                Ok(item) => items.push((at, item)),
                Err(reason) => verdicts[at] = Verdict::dead(reason),
            }
        }
        let mut pending: VecDeque<Range<usize>> = (0..items.len())
            .step_by(self.max_docs)
            .map(|start| start..items.len().min(start + self.max_docs))
            .collect();
        while let Some(run) = pending.pop_front() {
            match self.send(&items[run.clone()], now).await {
                SendOutcome::Stored => {}
                SendOutcome::Invalid(_) if run.len() > 1 => {
                    let middle = run.start + run.len() / 2;
                    pending.push_front(middle..run.end);
                    pending.push_front(run.start..middle);
                }
                SendOutcome::Invalid(reason) => {
                    verdicts[items[run.start].0] = Verdict::dead(reason);
                }
                SendOutcome::Rejected(verdict) => {
                    for unsent in pending.drain(..).chain([run]).flatten() {
                        verdicts[items[unsent].0] = verdict.clone();
                    }
                }
            }
        }
        // An older revision gets the verdict of the newer one.
        for (at, id) in ids.iter().enumerate() {
            verdicts[at] = verdicts[newest[id.as_str()]].clone();
        }
        verdicts
    }

    async fn check(&self, _now: Timestamp) -> Report {
        let mut report = Report::default();
        if report.record("connection", self.get("/api/health/live").await)
            && report.record("ready", self.get("/api/health/ready").await)
        {
            report.record("key", self.get("/api/items?n=1").await);
        }
        report
    }
}
