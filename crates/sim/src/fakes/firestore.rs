//! A fake Firestore: `batchGet`, `batchWrite` with preconditions and a status
//! for each write, `runAggregationQuery`, and the token endpoint before it.
//! Values must be proper unions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::http::{Call, HttpServer, Reply};

const MAX_WRITES: usize = 500;
const MAX_BYTES: usize = 10 * 1024 * 1024;

/// How one `batchWrite` fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirestoreFault {
    /// 429, with this `Retry-After`.
    TooManyRequests(Option<u32>),
    /// 503.
    Unavailable,
    /// 401, as for a token that has ended.
    Unauthenticated,
    /// Every n-th write is aborted, with status 200 for the whole.
    SomeWritesAborted(usize),
    /// All is stored, and the connection ends before the reply.
    ReplyLost,
    /// Nothing is stored, and the connection ends before the reply.
    RequestLost,
    /// 200 and a body that is no reply.
    Garbage,
    /// Another writer has just written this revision of every document.
    Overtaken(i64),
}

#[derive(Debug, Default)]
struct State {
    /// Fields and the number of the write, by name.
    documents: BTreeMap<String, (Map<String, Value>, u64)>,
    writes: u64,
    faults: VecDeque<FirestoreFault>,
    poison: BTreeSet<String>,
    is_down: bool,
    /// Tokens are required; else every caller is `owner`.
    has_tokens: bool,
    tokens: Vec<String>,
    assertions: Vec<String>,
    batch_sizes: Vec<usize>,
}

/// A running fake; it ends when it is dropped.
#[derive(Debug)]
pub struct FakeFirestore {
    server: HttpServer,
    state: Arc<Mutex<State>>,
}

impl FakeFirestore {
    pub async fn start() -> io::Result<Self> {
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        let server = HttpServer::start(move |call| lock(&shared).respond(&call)).await?;
        Ok(Self { server, state })
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    /// As `FIRESTORE_EMULATOR_HOST` wants it.
    pub fn host(&self) -> String {
        self.url().replace("http://", "")
    }

    /// Where a service account gets its tokens; from now on it must.
    pub fn token_uri(&self) -> String {
        lock(&self.state).has_tokens = true;
        format!("{}/token", self.url())
    }

    /// The next `batchWrite` requests fail like this, one each.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = FirestoreFault>) {
        lock(&self.state).faults.extend(faults);
    }

    /// Every connection ends without a response.
    pub fn set_down(&self, is_down: bool) {
        lock(&self.state).is_down = is_down;
    }

    /// Writes whose title is this are invalid.
    pub fn poison(&self, title: &str) {
        lock(&self.state).poison.insert(title.to_owned());
    }

    /// The fields of all documents of a collection, by id.
    pub fn documents(&self, collection: &str) -> BTreeMap<String, Map<String, Value>> {
        let state = lock(&self.state);
        let of_it = state.documents.iter().filter_map(|(name, (fields, _))| {
            let (path, id) = name.rsplit_once('/')?;
            let is_there = path.ends_with(&format!("/documents/{collection}"));
            is_there.then(|| (id.to_owned(), fields.clone()))
        });
        of_it.collect()
    }

    /// The signed statements that tokens were given for.
    pub fn assertions(&self) -> Vec<String> {
        lock(&self.state).assertions.clone()
    }

    /// How many writes each request had.
    pub fn batch_sizes(&self) -> Vec<usize> {
        lock(&self.state).batch_sizes.clone()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(status: u16, code: &str, message: &str) -> Reply {
    let error = json!({ "code": status, "message": message, "status": code });
    Reply::json(status, &json!({ "error": error }))
}

impl State {
    fn respond(&mut self, call: &Call) -> Reply {
        if self.is_down {
            return Reply::Lost;
        }
        if call.path == "/token" {
            return self.give_token(call);
        }
        let bearer = call.header("authorization").unwrap_or_default();
        let token = bearer.strip_prefix("Bearer ").unwrap_or_default();
        let is_known = if self.has_tokens {
            self.tokens.iter().any(|known| known == token)
        } else {
            token == "owner"
        };
        if !is_known {
            return refused(401, "UNAUTHENTICATED", &format!("bad token {token}"));
        }
        let verb = call.path.rsplit(':').next().unwrap_or_default();
        let Some(body) = call.json() else {
            return refused(400, "INVALID_ARGUMENT", "not JSON");
        };
        match verb {
            "batchGet" => self.batch_get(&body),
            "batchWrite" => self.batch_write(&body, call.body.len()),
            "runAggregationQuery" => {
                let from = &body["structuredAggregationQuery"]["structuredQuery"]["from"][0];
                let collection = from["collectionId"].as_str().unwrap_or_default();
                let part = format!("/documents/{collection}/");
                let count = self
                    .documents
                    .keys()
                    .filter(|name| name.contains(&part))
                    .count();
                let fields = json!({ "count": { "integerValue": count.to_string() } });
                Reply::json(200, &json!([{ "result": { "aggregateFields": fields } }]))
            }
            _ => refused(404, "NOT_FOUND", "no such method"),
        }
    }

    fn give_token(&mut self, call: &Call) -> Reply {
        let form = String::from_utf8_lossy(&call.body).into_owned();
        let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
        let Some(assertion) = form.strip_prefix(grant) else {
            return Reply::json(400, &json!({ "error": "invalid_grant" }));
        };
        self.assertions.push(assertion.to_owned());
        let token = format!("token-number-{}", self.assertions.len());
        self.tokens.push(token.clone());
        Reply::json(
            200,
            &json!({ "access_token": token, "expires_in": 3600, "token_type": "Bearer" }),
        )
    }

    fn batch_get(&self, body: &Value) -> Reply {
        let names = body["documents"].as_array().cloned().unwrap_or_default();
        let one = |name: &Value| match self.documents.get(name.as_str().unwrap_or_default()) {
            Some((fields, write)) => {
                let wanted = body["mask"]["fieldPaths"].as_array();
                let is_wanted = |field: &str| {
                    wanted.is_none_or(|wanted| wanted.iter().any(|path| path == field))
                };
                let mut fields = fields.clone();
                fields.retain(|field, _| is_wanted(field));
                json!({ "found": { "name": name, "fields": fields, "updateTime": time_of(*write) } })
            }
            None => json!({ "missing": name }),
        };
        // In a sequence of the server's own.
        let all: Vec<_> = names.iter().rev().map(one).collect();
        Reply::json(200, &Value::Array(all))
    }

    fn batch_write(&mut self, body: &Value, bytes: usize) -> Reply {
        let writes = body["writes"].as_array().cloned().unwrap_or_default();
        self.batch_sizes.push(writes.len());
        let fault = self.faults.pop_front();
        match fault {
            Some(FirestoreFault::TooManyRequests(seconds)) => {
                let reply = refused(429, "RESOURCE_EXHAUSTED", "quota exceeded");
                return match seconds {
                    Some(seconds) => reply.with("Retry-After", seconds.to_string()),
                    None => reply,
                };
            }
            Some(FirestoreFault::Unavailable) => return refused(503, "UNAVAILABLE", "try again"),
            Some(FirestoreFault::Unauthenticated) => {
                self.tokens.clear();
                return refused(401, "UNAUTHENTICATED", "the token has ended");
            }
            Some(FirestoreFault::RequestLost) => return Reply::Lost,
            Some(FirestoreFault::Garbage) => return Reply::text(200, "<html>hello</html>"),
            _ => {}
        }
        if writes.len() > MAX_WRITES || bytes > MAX_BYTES {
            return refused(
                400,
                "INVALID_ARGUMENT",
                "maximum 500 writes and 10 MiB allowed",
            );
        }
        let names: BTreeSet<_> = writes
            .iter()
            .map(|write| write["update"]["name"].as_str())
            .collect();
        if names.len() != writes.len() {
            return refused(400, "INVALID_ARGUMENT", "a document is written twice");
        }
        if let Some(FirestoreFault::Overtaken(revision)) = &fault {
            self.overtake(&writes, *revision);
        }
        let mut status = Vec::new();
        for (at, write) in writes.iter().enumerate() {
            status.push(match &fault {
                Some(FirestoreFault::SomeWritesAborted(every)) if at % (*every).max(1) == 0 => {
                    json!({ "code": 10, "message": "too much contention" })
                }
                _ => self.write(write),
            });
        }
        if fault == Some(FirestoreFault::ReplyLost) {
            return Reply::Lost;
        }
        let results = vec![json!({}); status.len()];
        Reply::json(200, &json!({ "writeResults": results, "status": status }))
    }

    fn overtake(&mut self, writes: &[Value], revision: i64) {
        for write in writes {
            let mut theirs = write.clone();
            theirs["update"]["fields"]["revision"] =
                json!({ "integerValue": revision.to_string() });
            theirs["update"]["fields"]["title"] = json!({ "stringValue": "theirs" });
            theirs["currentDocument"] = Value::Null;
            self.write(&theirs);
        }
    }

    fn write(&mut self, write: &Value) -> Value {
        let said = |code: i64, message: &str| json!({ "code": code, "message": message });
        let (Some(name), Some(fields)) = (
            write["update"]["name"].as_str(),
            write["update"]["fields"].as_object(),
        ) else {
            return said(3, "neither name nor fields");
        };
        if let Some((bad, _)) = fields.iter().find(|(_, value)| !is_value(value)) {
            return said(3, &format!("{bad} is not a value"));
        }
        let title = fields
            .get("title")
            .and_then(|title| title["stringValue"].as_str());
        if title.is_some_and(|title| self.poison.contains(title)) {
            return said(3, "invalid title");
        }
        let current = self.documents.get(name);
        match &write["currentDocument"] {
            Value::Null => {}
            wanted if wanted["exists"] == false && current.is_some() => {
                return said(6, "document already exists");
            }
            wanted if wanted["exists"] == false => {}
            wanted => {
                let time = current.map(|(_, write)| time_of(*write));
                if time.is_none() || wanted["updateTime"].as_str() != time.as_deref() {
                    return said(9, "the stored version does not match");
                }
            }
        }
        let mut next = match write["updateMask"]["fieldPaths"].as_array() {
            Some(mask) => {
                let mut kept = current
                    .map(|(fields, _)| fields.clone())
                    .unwrap_or_default();
                kept.retain(|field, _| !mask.iter().any(|path| path == field));
                kept
            }
            None => Map::new(),
        };
        let masked = |field: &str| {
            let mask = write["updateMask"]["fieldPaths"].as_array();
            mask.is_none_or(|mask| mask.iter().any(|path| path == field))
        };
        for (field, value) in fields.iter().filter(|(field, _)| masked(field)) {
            next.insert(field.clone(), value.clone());
        }
        self.writes += 1;
        self.documents.insert(name.to_owned(), (next, self.writes));
        // Success has no code in JSON.
        json!({})
    }
}

/// Later writes have later times.
fn time_of(write: u64) -> String {
    let moment = Timestamp::from_microsecond(1_700_000_000_000_000 + write as i64);
    moment.unwrap_or_default().to_string()
}

fn is_value(value: &Value) -> bool {
    let Some(union) = value.as_object().filter(|union| union.len() == 1) else {
        return false;
    };
    union.iter().all(|(kind, value)| match kind.as_str() {
        "stringValue" => value.is_string(),
        "booleanValue" => value.is_boolean(),
        "nullValue" => value.is_null(),
        "doubleValue" => value.is_number(),
        "integerValue" => value
            .as_str()
            .is_some_and(|text| text.parse::<i64>().is_ok()),
        "timestampValue" => value
            .as_str()
            .is_some_and(|text| text.parse::<Timestamp>().is_ok()),
        "arrayValue" => {
            let values = value["values"].as_array();
            values.is_some_and(|values| values.iter().all(is_value))
        }
        "mapValue" => {
            let fields = value["fields"].as_object();
            fields.is_some_and(|fields| fields.values().all(is_value))
        }
        _ => false,
    })
}
