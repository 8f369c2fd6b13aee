//! Firestore: documents into a collection, by `batchWrite`, with a verdict for
//! each write. What is there is read first and written over only if it has not
//! changed since, so an older revision never replaces a newer one. An exporter:
//! only what the licence allows leaves the house.

mod status;
mod token;
mod values;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;
use std::path::PathBuf;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tidings_document::Document;
use tidings_net::Response;
use tidings_net::http::{HeaderValue, Method, header};
use tidings_url::legacy::flattened_url_id;

use crate::config::{BuildError, Context};
use crate::endpoint::{Body, Endpoint, no_reply};
use crate::secret::{self, Secret};
use crate::sink::{BatchLimits, Report, Sink, Verdict, runs};
use token::ServiceAccount;

pub use status::{CollectionMetrics, RunState, SourceError};

/// Both are the server's own limits, with room to spare for bytes.
const LIMITS: BatchLimits = BatchLimits {
    max_docs: 500,
    max_bytes: 8 * 1024 * 1024,
};

/// `kind = "firestore"`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FirestoreConfig {
    /// Else the one of the service account.
    pub project: Option<String>,
    pub database: Option<String>,
    pub collection: Option<String>,
    /// The JSON of a service account; `FIREBASE_SERVICE_ACCOUNT_JSON` if neither
    /// is set. Not needed with an emulator (`FIRESTORE_EMULATOR_HOST`).
    pub service_account_env: Option<String>,
    pub service_account_file: Option<PathBuf>,
    /// Instead of Google's.
    pub url: Option<String>,
}

/// The sink, and the writer of the collector's own documents.
pub struct Firestore {
    name: String,
    endpoint: Endpoint,
    /// `projects/P/databases/D/documents`
    root: String,
    collection: String,
    /// None with an emulator, where everybody is the owner.
    account: Option<ServiceAccount>,
}

impl fmt::Debug for Firestore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Firestore {} at {}", self.name, self.root)
    }
}

/// What is there under one name.
struct There {
    key: String,
    revision: i64,
    update_time: String,
}

/// How a request for writes ended.
enum Sent {
    Writes(Vec<Verdict>),
    /// Something in it is bad, or it is too much.
    Bad(String),
    Refused(Verdict),
}

impl Firestore {
    pub fn new(
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
                return Err(BuildError(format!("{what} {value:?} is not a name")));
            }
        }
        Ok(Self {
            name: name.to_owned(),
            endpoint: Endpoint::new(&context.client, &url)?,
            root: format!("projects/{project}/databases/{database}/documents"),
            collection: collection.to_owned(),
            account,
        })
    }

    fn name_of(&self, document: &Document) -> String {
        // The id that older collectors gave it, so that theirs are replaced.
        let id = flattened_url_id(document.address());
        format!("{}/{}/{id}", self.root, self.collection)
    }

    async fn call(&self, verb: &str, body: &Value, now: Timestamp) -> Result<Response, Verdict> {
        let token = match &self.account {
            Some(account) => account.token(now).await.map_err(Verdict::retry)?,
            None => Secret::from("owner".to_owned()),
        };
        let bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
        let mut bearer = bearer.map_err(|_| Verdict::retry("the token can't be sent"))?;
        bearer.set_sensitive(true);
        let path = format!("/v1/{}:{verb}", self.root);
        let headers = [(header::AUTHORIZATION, bearer)];
        let sent = self
            .endpoint
            .send(Method::POST, &path, Some(Body::json(body)), &headers)
            .await;
        let response = sent.map_err(|failure| no_reply(&failure))?;
        if response.status == 401
            && let Some(account) = &self.account
        {
            account.forget().await;
            // Without the server's words, which may repeat the token.
            return Err(Verdict::retry(
                "Firestore answered 401 to our token; the next attempt gets another one",
            ));
        }
        Ok(response)
    }

    /// What is there now under each of these names.
    async fn read(
        &self,
        names: &[String],
        now: Timestamp,
    ) -> Result<HashMap<String, There>, Verdict> {
        let body = json!({ "documents": names, "mask": { "fieldPaths": ["key", "revision"] } });
        let response = self.call("batchGet", &body, now).await?;
        if !response.is_success() {
            return Err(self.endpoint.refused(&response, now));
        }
        let reply: Option<Vec<Value>> = serde_json::from_slice(&response.body).ok();
        let answers = reply.unwrap_or_default();
        let mut answered = 0;
        let mut there = HashMap::new();
        for answer in &answers {
            let found = &answer["found"];
            if answer["missing"].is_string() {
                answered += 1;
            } else if let (Some(name), Some(time)) =
                (found["name"].as_str(), found["updateTime"].as_str())
            {
                answered += 1;
                let fields = &found["fields"];
                let revision = fields["revision"]["integerValue"].as_str();
                there.insert(
                    name.to_owned(),
                    There {
                        key: fields["key"]["stringValue"]
                            .as_str()
                            .unwrap_or_default()
                            .to_owned(),
                        // One of another collector's has none.
                        revision: revision
                            .and_then(|text| text.parse().ok())
                            .unwrap_or(i64::MIN),
                        update_time: time.to_owned(),
                    },
                );
            }
        }
        if answered == names.len() {
            Ok(there)
        } else {
            let excerpt = self.endpoint.excerpt(&response);
            Err(Verdict::retry(format!(
                "not a reply about {} documents: {excerpt}",
                names.len()
            )))
        }
    }

    /// The write of a document, unless what is there is as new.
    fn write(&self, document: &Document, name: &str, there: Option<&There>) -> Option<Value> {
        let fields = values::fields(document);
        let Some(there) = there else {
            return Some(json!({
                "update": { "name": name, "fields": fields },
                "currentDocument": { "exists": false },
            }));
        };
        // Two addresses can share a legacy id; then the later one has it.
        if there.key == document.id && there.revision >= document.revision {
            return None;
        }
        let mask: Vec<_> = fields.keys().filter(|name| *name != "createdAt").collect();
        Some(json!({
            "update": { "name": name, "fields": fields },
            "updateMask": { "fieldPaths": mask },
            "currentDocument": { "updateTime": there.update_time },
        }))
    }

    async fn send(&self, writes: &[Value], now: Timestamp) -> Sent {
        let response = match self
            .call("batchWrite", &json!({ "writes": writes }), now)
            .await
        {
            Ok(response) => response,
            Err(verdict) => return Sent::Refused(verdict),
        };
        match response.status {
            200 => {}
            400 | 413 => return Sent::Bad(self.endpoint.refusal(&response)),
            _ => return Sent::Refused(self.endpoint.refused(&response, now)),
        }
        let reply: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        match reply["status"].as_array() {
            Some(all) if all.len() == writes.len() => {
                Sent::Writes(all.iter().map(|one| self.judge(one)).collect())
            }
            _ => {
                let excerpt = self.endpoint.excerpt(&response);
                Sent::Refused(Verdict::retry(format!(
                    "not a reply to {} writes: {excerpt}",
                    writes.len()
                )))
            }
        }
    }

    /// A `google.rpc.Status`; without a code it is a success.
    fn judge(&self, status: &Value) -> Verdict {
        const INVALID_ARGUMENT: i64 = 3;
        let message = self
            .endpoint
            .readable(status["message"].as_str().unwrap_or_default());
        let code = match &status["code"] {
            Value::Null if status.is_object() => 0,
            code => code.as_i64().unwrap_or(-1),
        };
        match code {
            0 => Verdict::Accepted,
            INVALID_ARGUMENT => Verdict::dead(format!("Firestore refused it: {message}")),
            _ => Verdict::retry(format!("Firestore said {code}: {message}")),
        }
    }

    /// One round: each name at most once, as a request must have it.
    async fn round(
        &self,
        batch: &[Document],
        round: &[(usize, String)],
        verdicts: &mut [Verdict],
        now: Timestamp,
    ) -> Result<(), Verdict> {
        let names: Vec<_> = round.iter().map(|(_, name)| name.clone()).collect();
        let there = self.read(&names, now).await?;
        let mut writes = Vec::new();
        let mut places = Vec::new();
        for (at, name) in round {
            match self.write(&batch[*at], name, there.get(name)) {
                Some(write) => {
                    writes.push(write);
                    places.push(*at);
                }
                None => verdicts[*at] = Verdict::Accepted,
            }
        }
        let mut waiting: VecDeque<_> =
            runs(&writes, LIMITS, |write| write.to_string().len()).collect();
        while let Some(run) = waiting.pop_front() {
            match self.send(&writes[run.clone()], now).await {
                Sent::Writes(all) => {
                    for (at, verdict) in places[run].iter().zip(all) {
                        verdicts[*at] = verdict;
                    }
                }
                Sent::Bad(_) if run.len() > 1 => {
                    let middle = run.start + run.len() / 2;
                    waiting.push_front(middle..run.end);
                    waiting.push_front(run.start..middle);
                }
                Sent::Bad(reason) => verdicts[places[run.start]] = Verdict::dead(reason),
                Sent::Refused(verdict) => return Err(verdict),
            }
        }
        Ok(())
    }

    /// Replaces one document of the collector's own.
    async fn put(
        &self,
        path: &str,
        fields: serde_json::Map<String, Value>,
        now: Timestamp,
    ) -> Result<(), String> {
        let name = format!("{}/{path}", self.root);
        let write = json!({ "update": { "name": name, "fields": fields } });
        match self.send(&[write], now).await {
            Sent::Writes(all) => match all.into_iter().next() {
                Some(Verdict::Accepted) => Ok(()),
                Some(Verdict::Retry { error, .. }) => Err(error),
                Some(Verdict::Dead { reason }) => Err(reason),
                None => Err("no reply".to_owned()),
            },
            Sent::Bad(why) | Sent::Refused(Verdict::Retry { error: why, .. }) => Err(why),
            Sent::Refused(_) => Err("refused".to_owned()),
        }
    }

    /// How many documents the collection has.
    pub async fn count(&self, now: Timestamp) -> Result<u64, String> {
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
            return Err(self.endpoint.refusal(&response));
        }
        let reply: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let count = &reply[0]["result"]["aggregateFields"]["count"]["integerValue"];
        count
            .as_str()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| format!("not a count: {}", self.endpoint.excerpt(&response)))
    }
}

fn service_account(
    config: &FirestoreConfig,
    context: &Context,
) -> Result<ServiceAccount, BuildError> {
    const USUAL: &str = "FIREBASE_SERVICE_ACCOUNT_JSON";
    let file = config.service_account_file.as_deref();
    let is_unnamed = config.service_account_env.is_none() && file.is_none();
    let env = if is_unnamed {
        Some(USUAL)
    } else {
        config.service_account_env.as_deref()
    };
    let json = secret::read(context, "service_account", env, file)?;
    let json = json.ok_or_else(|| BuildError("no service account is named".to_owned()))?;
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
        let mut verdicts = vec![Verdict::retry("it was not sent"); batch.len()];
        let mut waiting: Vec<(usize, String)> = batch
            .iter()
            .enumerate()
            .map(|(at, document)| (at, self.name_of(document)))
            .collect();
        while !waiting.is_empty() {
            let mut taken = HashSet::new();
            let (mut round, mut later) = (Vec::new(), Vec::new());
            for (at, name) in waiting {
                let is_first = round.len() < LIMITS.max_docs && taken.insert(name.clone());
                if is_first {
                    round.push((at, name));
                } else {
                    later.push((at, name));
                }
            }
            if let Err(verdict) = self.round(batch, &round, &mut verdicts, now).await {
                // What has its verdict keeps it.
                let unsaid = Verdict::retry("it was not sent");
                for one in verdicts.iter_mut().filter(|one| **one == unsaid) {
                    *one = verdict.clone();
                }
                return verdicts;
            }
            waiting = later;
        }
        verdicts
    }

    async fn check(&self, now: Timestamp) -> Report {
        let mut report = Report::default();
        let counted = self.count(now).await;
        let found = counted.map(|count| format!("{} has {count} documents", self.collection));
        report.note("connection and credentials", found);
        report
    }
}

/// Names and numbers, as a map of Firestore's.
fn number_map(numbers: &BTreeMap<String, u64>) -> Value {
    let fields = numbers
        .iter()
        .map(|(name, number)| (name.clone(), values::integer(signed(*number))));
    values::map(fields.collect())
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
