//! Firestore: documents into a collection, by `batchWrite`, with a verdict for
//! each write. The existing document is read first and replaced only if it has not
//! changed since, so an older revision never replaces a newer one. An exporter:
//! only what the licence allows is sent.

mod run_status;
mod token;
mod values;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::path::PathBuf;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tidings_document::Document;
use tidings_net::Response;
use tidings_net::http::{HeaderValue, Method, header};

use crate::context::{BuildError, Context};
use crate::document_ids::DocumentIds;
use crate::endpoint::{Body, Endpoint, transport_error};
use crate::run_report::RunReport;
use crate::secret::{self, Secret};
use crate::sink::{BatchLimits, Report, Sink, Verdict, runs};
use token::ServiceAccount;

/// The server's own limits, with a margin for bytes.
const LIMITS: BatchLimits = BatchLimits {
    max_docs: 500,
    max_bytes: 8 * 1024 * 1024,
};

/// `kind = "firestore"`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FirestoreConfig {
    /// Default: the project of the service account.
    pub project: Option<String>,
    pub database: Option<String>,
    pub collection: Option<String>,
    /// The JSON of a service account; `FIREBASE_SERVICE_ACCOUNT_JSON` if neither
    /// is set. Not needed with an emulator (`FIRESTORE_EMULATOR_HOST`).
    pub service_account_env: Option<String>,
    pub service_account_file: Option<PathBuf>,
    pub ids: DocumentIds,
    /// Default: Google's.
    pub url: Option<String>,
}

/// The sink, and the writer of the documents that show the last run.
pub(crate) struct Firestore {
    name: String,
    endpoint: Endpoint,
    /// `projects/P/databases/D/documents`
    root: String,
    collection: String,
    ids: DocumentIds,
    /// None with an emulator, which accepts the token `owner`.
    account: Option<ServiceAccount>,
}

impl fmt::Debug for Firestore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Firestore {} at {}", self.name, self.root)
    }
}

/// The stored document of one name.
struct Existing {
    key: String,
    revision: i64,
    update_time: String,
}

/// The result of a `batchWrite`.
enum SendOutcome {
    Writes(Vec<Verdict>),
    /// A write is invalid, or the request is too large.
    Invalid(String),
    Rejected(Verdict),
}

impl Firestore {
    pub(crate) fn new(
        name: &str,
        config: &FirestoreConfig,
        context: &Context,
    ) -> Result<Self, BuildError> {
        let emulator = (context.environment)("FIRESTORE_EMULATOR_HOST");
        let emulator = emulator.filter(|host| !host.trim().is_empty());
        let url = match (&config.url, &emulator) {
            (Some(url), _) => url.clone(),
            (None, Some(host)) => format!("http://{}", host.trim()),
            (None, None) => "https://firestore.googleapis.com".to_owned(),
        };
        let account = match emulator {
            Some(_) => None,
            None => Some(service_account(config, context)?),
        };
        let project = config
            .project
            .clone()
            .or_else(|| account.as_ref().map(|account| account.project.clone()))
            .ok_or_else(|| BuildError("project is not set".to_owned()))?;
        let database = config.database.as_deref().unwrap_or("(default)");
        let collection = config.collection.as_deref().unwrap_or("content");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '(' | ')');
        for (what, value) in [
            ("project", project.as_str()),
            ("database", database),
            ("collection", collection),
        ] {
            if value.is_empty() || !value.chars().all(is_plain) {
                return Err(BuildError(format!(
                    "{what} {value:?} is not a valid name: use letters, digits, - and _"
                )));
            }
        }
        Ok(Self {
            name: name.to_owned(),
            endpoint: Endpoint::new(&context.client, &url)?,
            root: format!("projects/{project}/databases/{database}/documents"),
            collection: collection.to_owned(),
            ids: config.ids,
            account,
        })
    }

    fn name_of(&self, document: &Document) -> String {
        let id = self.ids.id_of(document);
        format!("{}/{}/{id}", self.root, self.collection)
    }

    async fn call(&self, verb: &str, body: &Value, now: Timestamp) -> Result<Response, Verdict> {
        let token = match &self.account {
            Some(account) => account.token(now).await.map_err(Verdict::retry)?,
            None => Secret::from("owner".to_owned()),
        };
        let bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
        let mut bearer =
            bearer.map_err(|_| Verdict::retry("the access token is invalid in an HTTP header"))?;
        bearer.set_sensitive(true);
        let path = format!("/v1/{}:{verb}", self.root);
        let headers = [(header::AUTHORIZATION, bearer)];
        let sent = self
            .endpoint
            .send(Method::POST, &path, Some(Body::json(body)), &headers)
            .await;
        let response = sent.map_err(|failure| transport_error(&failure))?;
        if response.status == 401
            && let Some(account) = &self.account
        {
            account.invalidate_token().await;
            // Without the response text, which may echo the token.
            return Err(Verdict::retry(
                "Firestore returned 401; the next attempt uses a new access token",
            ));
        }
        Ok(response)
    }

    /// Reads the stored documents of these names.
    async fn read(
        &self,
        names: &[String],
        now: Timestamp,
    ) -> Result<HashMap<String, Existing>, Verdict> {
        let body = json!({ "documents": names, "mask": { "fieldPaths": ["key", "revision"] } });
        let response = self.call("batchGet", &body, now).await?;
        if !response.is_success() {
            return Err(self.endpoint.retry_verdict(&response, now));
        }
        let reply: Option<Vec<Value>> = serde_json::from_slice(&response.body).ok();
        let results = reply.unwrap_or_default();
        let mut known = 0;
        let mut existing = HashMap::new();
        for result in &results {
            let found = &result["found"];
            if result["missing"].is_string() {
                known += 1;
            } else if let (Some(name), Some(time)) =
                (found["name"].as_str(), found["updateTime"].as_str())
            {
                known += 1;
                let fields = &found["fields"];
                let revision = fields["revision"]["integerValue"].as_str();
                existing.insert(
                    name.to_owned(),
                    Existing {
                        key: fields["key"]["stringValue"]
                            .as_str()
                            .unwrap_or_default()
                            .to_owned(),
                        // Documents of other collectors have none.
                        revision: revision
                            .and_then(|text| text.parse().ok())
                            .unwrap_or(i64::MIN),
                        update_time: time.to_owned(),
                    },
                );
            }
        }
        if known == names.len() {
            Ok(existing)
        } else {
            let excerpt = self.endpoint.excerpt(&response);
            Err(Verdict::retry(format!(
                "unexpected response to batchGet of {} documents: {excerpt}",
                names.len()
            )))
        }
    }

    /// The write of a document, unless the stored one is as new.
    fn write(&self, document: &Document, name: &str, existing: Option<&Existing>) -> Option<Value> {
        let fields = values::fields(document);
        let Some(existing) = existing else {
            return Some(json!({
                "update": { "name": name, "fields": fields },
                "currentDocument": { "exists": false },
            }));
        };
        // Two URLs can share a legacy id; then the later write wins.
        if existing.key == document.id && existing.revision >= document.revision {
            return None;
        }
        let mask: Vec<_> = fields.keys().filter(|name| *name != "createdAt").collect();
        Some(json!({
            "update": { "name": name, "fields": fields },
            "updateMask": { "fieldPaths": mask },
            "currentDocument": { "updateTime": existing.update_time },
        }))
    }

    async fn send(&self, writes: &[Value], now: Timestamp) -> SendOutcome {
        let response = match self
            .call("batchWrite", &json!({ "writes": writes }), now)
            .await
        {
            Ok(response) => response,
            Err(verdict) => return SendOutcome::Rejected(verdict),
        };
        match response.status {
            200 => {}
            400 | 413 => return SendOutcome::Invalid(self.endpoint.describe_error(&response)),
            _ => return SendOutcome::Rejected(self.endpoint.retry_verdict(&response, now)),
        }
        let reply: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        match reply["status"].as_array() {
            Some(all) if all.len() == writes.len() => {
                SendOutcome::Writes(all.iter().map(|one| self.write_verdict(one)).collect())
            }
            _ => {
                let excerpt = self.endpoint.excerpt(&response);
                SendOutcome::Rejected(Verdict::retry(format!(
                    "unexpected response to {} writes: {excerpt}",
                    writes.len()
                )))
            }
        }
    }

    /// A `google.rpc.Status`; without a code it is a success.
    fn write_verdict(&self, status: &Value) -> Verdict {
        const INVALID_ARGUMENT: i64 = 3;
        let message = self
            .endpoint
            .sanitize(status["message"].as_str().unwrap_or_default());
        let code = match &status["code"] {
            Value::Null if status.is_object() => 0,
            code => code.as_i64().unwrap_or(-1),
        };
        match code {
            0 => Verdict::Accepted,
            INVALID_ARGUMENT => {
                Verdict::dead(format!("Firestore rejected the document: {message}"))
            }
            _ => Verdict::retry(format!("Firestore returned code {code}: {message}")),
        }
    }

    /// Writes one round: each name at most once, as a request requires.
    async fn write_round(
        &self,
        batch: &[Document],
        round: &[(usize, String)],
        verdicts: &mut [Verdict],
        now: Timestamp,
    ) -> Result<(), Verdict> {
        let names: Vec<_> = round.iter().map(|(_, name)| name.clone()).collect();
        let existing = self.read(&names, now).await?;
        let mut writes = Vec::new();
        let mut places = Vec::new();
        for (at, name) in round {
            match self.write(&batch[*at], name, existing.get(name)) {
                Some(write) => {
                    writes.push(write);
                    places.push(*at);
                }
                None => verdicts[*at] = Verdict::Accepted,
            }
        }
        let mut pending: VecDeque<_> =
            runs(&writes, LIMITS, |write| write.to_string().len()).collect();
        while let Some(run) = pending.pop_front() {
            match self.send(&writes[run.clone()], now).await {
                SendOutcome::Writes(all) => {
                    for (at, verdict) in places[run].iter().zip(all) {
                        verdicts[*at] = verdict;
                    }
                }
                SendOutcome::Invalid(_) if run.len() > 1 => {
                    let middle = run.start + run.len() / 2;
                    pending.push_front(middle..run.end);
                    pending.push_front(run.start..middle);
                }
                SendOutcome::Invalid(reason) => verdicts[places[run.start]] = Verdict::dead(reason),
                SendOutcome::Rejected(verdict) => return Err(verdict),
            }
        }
        Ok(())
    }

    /// Replaces one of the run status documents.
    async fn replace(
        &self,
        path: &str,
        fields: serde_json::Map<String, Value>,
        now: Timestamp,
    ) -> Result<(), String> {
        let name = format!("{}/{path}", self.root);
        let write = json!({ "update": { "name": name, "fields": fields } });
        match self.send(&[write], now).await {
            SendOutcome::Writes(all) => match all.into_iter().next() {
                Some(Verdict::Accepted) => Ok(()),
                Some(Verdict::Retry { error, .. }) => Err(error),
                Some(Verdict::Dead { reason }) => Err(reason),
                None => Err("the response has no status".to_owned()),
            },
            SendOutcome::Invalid(why)
            | SendOutcome::Rejected(Verdict::Retry { error: why, .. }) => Err(why),
            SendOutcome::Rejected(_) => Err("rejected".to_owned()),
        }
    }

    /// Number of documents in the collection.
    async fn count(&self, now: Timestamp) -> Result<u64, String> {
        let query = json!({ "structuredAggregationQuery": {
            "structuredQuery": { "from": [{ "collectionId": self.collection }] },
            "aggregations": [{ "alias": "count", "count": {} }],
        }});
        let called = self.call("runAggregationQuery", &query, now).await;
        let response = called.map_err(|verdict| match verdict {
            Verdict::Retry { error, .. } => error,
            _ => String::new(),
        })?;
        if !response.is_success() {
            return Err(self.endpoint.describe_error(&response));
        }
        let reply: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let count = &reply[0]["result"]["aggregateFields"]["count"]["integerValue"];
        count
            .as_str()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| {
                format!(
                    "unexpected response to a count: {}",
                    self.endpoint.excerpt(&response)
                )
            })
    }
}

fn service_account(
    config: &FirestoreConfig,
    context: &Context,
) -> Result<ServiceAccount, BuildError> {
    const DEFAULT_ENV: &str = "FIREBASE_SERVICE_ACCOUNT_JSON";
    let file = config.service_account_file.as_deref();
    let is_unnamed = config.service_account_env.is_none() && file.is_none();
    let env = if is_unnamed {
        Some(DEFAULT_ENV)
    } else {
        config.service_account_env.as_deref()
    };
    let json = secret::read(context, "service_account", env, file)?;
    let json = json.ok_or_else(|| {
        BuildError("no service account; set service_account_env or service_account_file".to_owned())
    })?;
    ServiceAccount::new(&json, &context.client)
}

#[async_trait]
impl Sink for Firestore {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> BatchLimits {
        LIMITS
    }

    async fn deliver(&self, batch: &[Document], now: Timestamp) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::retry("not sent"); batch.len()];
        let mut pending: Vec<(usize, String)> = batch
            .iter()
            .enumerate()
            .map(|(at, document)| (at, self.name_of(document)))
            .collect();
        while !pending.is_empty() {
            let mut names = HashSet::new();
            let (mut round, mut later) = (Vec::new(), Vec::new());
            for (at, name) in pending {
                let is_first = round.len() < LIMITS.max_docs && names.insert(name.clone());
                if is_first {
                    round.push((at, name));
                } else {
                    later.push((at, name));
                }
            }
            if let Err(verdict) = self.write_round(batch, &round, &mut verdicts, now).await {
                // Documents that have a verdict keep it.
                let unsent = Verdict::retry("not sent");
                for one in verdicts.iter_mut().filter(|one| **one == unsent) {
                    *one = verdict.clone();
                }
                return verdicts;
            }
            pending = later;
        }
        verdicts
    }

    async fn check(&self, now: Timestamp) -> Report {
        let mut report = Report::default();
        let counted = self.count(now).await;
        let found = counted.map(|count| format!("{} has {count} documents", self.collection));
        report.record("connection and credentials", found);
        report
    }

    async fn record_run(&self, run: &RunReport, now: Timestamp) -> Result<(), String> {
        self.write_run(run, now).await
    }
}
