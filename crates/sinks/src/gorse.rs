//! Gorse, the recommender: documents as items, by `POST /api/items`. One bad
//! item fails its whole request, so what could be bad is looked at before, and a
//! request that is refused is halved until the bad one stands alone. Gorse keeps
//! no revisions: what comes last counts.

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

use crate::config::{BuildError, Context};
use crate::endpoint::{Body, Endpoint, no_reply};
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
    #[serde(default = "max_docs")]
    pub max_docs: usize,
}

fn max_docs() -> usize {
    500
}

pub(crate) struct Gorse {
    name: String,
    endpoint: Endpoint,
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
            max_docs: config.max_docs.max(1),
        })
    }

    async fn send(&self, items: &[(usize, Value)], now: Timestamp) -> Sent {
        let array = Value::Array(items.iter().map(|(_, item)| item.clone()).collect());
        let body = Some(Body::json(&array));
        let sent = self
            .endpoint
            .send(Method::POST, "/api/items", body, &[])
            .await;
        let response = match sent {
            Ok(response) => response,
            Err(failure) => return Sent::Refused(no_reply(&failure)),
        };
        match response.status {
            200 => {
                let reply: Value = serde_json::from_slice(&response.body).unwrap_or_default();
                if reply["RowAffected"].is_number() {
                    return Sent::Stored;
                }
                let excerpt = self.endpoint.excerpt(&response);
                Sent::Refused(Verdict::retry(format!("not a reply of Gorse: {excerpt}")))
            }
            400 | 413 => Sent::Bad(self.endpoint.refusal(&response)),
            _ => Sent::Refused(self.endpoint.refused(&response, now)),
        }
    }

    async fn ask(&self, path: &str) -> Result<String, String> {
        let sent = self.endpoint.send(Method::GET, path, None, &[]).await;
        let response = sent.map_err(|failure| failure.to_string())?;
        if response.is_success() {
            Ok(format!("{path} answered {}", response.status))
        } else {
            Err(self.endpoint.refusal(&response))
        }
    }
}

enum Sent {
    Stored,
    /// Something in it is bad, or it is too much.
    Bad(String),
    Refused(Verdict),
}

/// A document as an item, or why it can't be one.
fn item(document: &Document) -> Result<Value, String> {
    let id = document.id.as_str();
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
    if id.is_empty() || !id.chars().all(is_safe) {
        return Err(format!(
            "{id:?} can't be an ItemId: it is used in addresses"
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

/// ISO 8601; empty, which Gorse allows, for years that it can't read.
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
        // Of two with one id in a request Gorse keeps the first.
        let mut newest: HashMap<&str, usize> = HashMap::new();
        for (at, document) in batch.iter().enumerate() {
            let known = newest.entry(&document.id).or_insert(at);
            if batch[*known].revision < document.revision {
                *known = at;
            }
        }
        let mut items = Vec::new();
        for (at, document) in batch.iter().enumerate() {
            if newest[document.id.as_str()] != at {
                continue;
            }
            match item(document) {
                Ok(item) => items.push((at, item)),
                Err(reason) => verdicts[at] = Verdict::dead(reason),
            }
        }
        let mut waiting: VecDeque<Range<usize>> = (0..items.len())
            .step_by(self.max_docs)
            .map(|start| start..items.len().min(start + self.max_docs))
            .collect();
        while let Some(run) = waiting.pop_front() {
            match self.send(&items[run.clone()], now).await {
                Sent::Stored => {}
                Sent::Bad(_) if run.len() > 1 => {
                    let middle = run.start + run.len() / 2;
                    waiting.push_front(middle..run.end);
                    waiting.push_front(run.start..middle);
                }
                Sent::Bad(reason) => verdicts[items[run.start].0] = Verdict::dead(reason),
                Sent::Refused(verdict) => {
                    for unsent in waiting.drain(..).chain([run]).flatten() {
                        verdicts[items[unsent].0] = verdict.clone();
                    }
                }
            }
        }
        // An older revision is where the newer one is.
        for (at, document) in batch.iter().enumerate() {
            verdicts[at] = verdicts[newest[document.id.as_str()]].clone();
        }
        verdicts
    }

    async fn check(&self, _now: Timestamp) -> Report {
        let mut report = Report::default();
        if report.note("connection", self.ask("/api/health/live").await)
            && report.note("ready", self.ask("/api/health/ready").await)
        {
            report.note("key", self.ask("/api/items?n=1").await);
        }
        report
    }
}
