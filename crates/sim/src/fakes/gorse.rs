//! A fake Gorse: upserts by `ItemId`, one bad item fails its whole request, and
//! a wrong key is repeated to whoever sent it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::http::{Call, HttpServer, Reply};

/// How one request for items fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GorseFault {
    /// 429, with this `Retry-After`.
    TooManyRequests(Option<u32>),
    /// 500.
    Failed,
    /// All is stored, and the connection ends before the reply.
    ReplyLost,
    /// Nothing is stored, and the connection ends before the reply.
    RequestLost,
    /// 200 and a body that is no reply.
    Garbage,
}

#[derive(Debug, Default)]
struct State {
    items: BTreeMap<String, Value>,
    faults: VecDeque<GorseFault>,
    poison: BTreeSet<String>,
    key: Option<String>,
    is_down: bool,
    requests: usize,
}

/// A running fake; it ends when it is dropped.
#[derive(Debug)]
pub struct FakeGorse {
    server: HttpServer,
    state: Arc<Mutex<State>>,
}

impl FakeGorse {
    pub async fn start() -> io::Result<Self> {
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        let server = HttpServer::start(move |call| lock(&shared).respond(&call)).await?;
        Ok(Self { server, state })
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The next requests for items fail like this, one each.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = GorseFault>) {
        lock(&self.state).faults.extend(faults);
    }

    /// Every connection ends without a response.
    pub fn set_down(&self, is_down: bool) {
        lock(&self.state).is_down = is_down;
    }

    /// Requests with this item are rejected with 400.
    pub fn poison(&self, id: &str) {
        lock(&self.state).poison.insert(id.to_owned());
    }

    pub fn require_key(&self, key: &str) {
        lock(&self.state).key = Some(key.to_owned());
    }

    /// What is stored, by id.
    pub fn items(&self) -> BTreeMap<String, Value> {
        lock(&self.state).items.clone()
    }

    /// How many requests for items there were.
    pub fn requests(&self) -> usize {
        lock(&self.state).requests
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn respond(&mut self, call: &Call) -> Reply {
        if self.is_down {
            return Reply::Lost;
        }
        if call.path.starts_with("/api/health/") {
            return Reply::json(200, &json!({ "Ready": true }));
        }
        let given = call.header("x-api-key").unwrap_or_default();
        if self.key.as_deref().is_some_and(|key| key != given) {
            return Reply::text(401, &format!("unauthorized key {given}"));
        }
        match (call.method.as_str(), call.path.as_str()) {
            ("POST", "/api/items") => self.insert(call),
            ("GET", "/api/items") => Reply::json(200, &json!({ "Cursor": "", "Items": [] })),
            (method, path) => match path.strip_prefix("/api/item/") {
                Some(id) => self.item(method, id, call),
                None => Reply::text(404, "404: Page Not Found"),
            },
        }
    }

    /// Reads, changes or deletes one item.
    fn item(&mut self, method: &str, id: &str, call: &Call) -> Reply {
        let affected = Reply::json(200, &json!({ "RowAffected": 1 }));
        match (method, self.items.get_mut(id)) {
            ("DELETE", _) => {
                self.items.remove(id);
                affected
            }
            ("GET", Some(item)) => {
                let mut item = item.clone();
                if item["Timestamp"] == "" {
                    item["Timestamp"] = json!("0001-01-01T00:00:00Z");
                }
                Reply::json(200, &item)
            }
            ("PATCH", Some(item)) => {
                let change = call.json().unwrap_or_default();
                for (field, value) in change.as_object().into_iter().flatten() {
                    item[field] = value.clone();
                }
                affected
            }
            _ => Reply::text(404, "item not found"),
        }
    }

    fn insert(&mut self, call: &Call) -> Reply {
        self.requests += 1;
        let fault = self.faults.pop_front();
        match fault {
            Some(GorseFault::TooManyRequests(seconds)) => {
                let reply = Reply::text(429, "too many requests");
                return match seconds {
                    Some(seconds) => reply.with("Retry-After", seconds.to_string()),
                    None => reply,
                };
            }
            Some(GorseFault::Failed) => return Reply::text(500, "database is locked"),
            Some(GorseFault::RequestLost) => return Reply::Lost,
            Some(GorseFault::Garbage) => return Reply::text(200, "<html>hello</html>"),
            _ => {}
        }
        let items = call.json();
        let Some(items) = items.as_ref().and_then(Value::as_array) else {
            return Reply::text(400, "not an array");
        };
        if let Some(bad) = items.iter().find_map(|item| self.misfit(item)) {
            return Reply::text(400, &bad);
        }
        let mut seen = BTreeSet::new();
        for item in items {
            let id = item["ItemId"].as_str().unwrap_or_default().to_owned();
            if seen.insert(id.clone()) {
                self.items.insert(id, item.clone());
            }
        }
        if fault == Some(GorseFault::ReplyLost) {
            return Reply::Lost;
        }
        Reply::json(200, &json!({ "RowAffected": items.len() }))
    }

    fn misfit(&self, item: &Value) -> Option<String> {
        let Some(id) = item["ItemId"].as_str().filter(|id| !id.is_empty()) else {
            return Some("no ItemId".to_owned());
        };
        if self.poison.contains(id) {
            return Some(format!("unsupported labels of {id}"));
        }
        let timestamp = item["Timestamp"].as_str()?;
        if !timestamp.is_empty() && timestamp.parse::<Timestamp>().is_err() {
            return Some(format!("failed to parse datetime `{timestamp}`"));
        }
        let texts = |value: &Value| {
            value
                .as_array()
                .is_some_and(|all| all.iter().all(Value::is_string))
        };
        if !texts(&item["Categories"]) || !texts(&item["Labels"]) {
            return Some(format!("unsupported labels of {id}"));
        }
        None
    }
}
