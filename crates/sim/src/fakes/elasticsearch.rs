//! A fake Elasticsearch: templates, aliases, strict mappings, external versions
//! and `_bulk`, enough that the same tests run against a real one. It fails on
//! command, one bulk request after the other, or until set otherwise.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{Call, HttpServer, Reply};
use super::mapping::misfit;

/// How one bulk request fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElasticsearchFault {
    /// 429 for the whole, with this `Retry-After`.
    TooManyRequests(Option<u32>),
    /// 503 for the whole.
    Unavailable,
    /// Every n-th item is rejected with 429.
    SomeItemsOverrun(usize),
    /// Every n-th item fails with 503.
    SomeItemsUnavailable(usize),
    /// All is stored, and the connection ends before the reply.
    ReplyLost,
    /// Nothing is stored, and the connection ends before the reply.
    RequestLost,
    /// 200 and a body that is no reply.
    Garbage,
    /// 200 and a reply about one item less.
    OneItemShort,
}

#[derive(Debug, Default)]
struct Index {
    mappings: Value,
    documents: BTreeMap<String, (i64, Value)>,
    /// The versions of deleted documents, which a server remembers for a minute.
    deleted: BTreeMap<String, i64>,
}

impl Index {
    /// The version that a write is compared with: also that of a deletion.
    fn version(&self, id: &str) -> Option<i64> {
        let stored = self.documents.get(id).map(|(version, _)| *version);
        stored.or_else(|| self.deleted.get(id).copied())
    }

    /// As a reader's `_update`: merges the fields and increments the version.
    fn update(&mut self, id: &str, fields: &Value) -> Option<i64> {
        let (version, source) = self.documents.get_mut(id)?;
        for (name, value) in fields.as_object().into_iter().flatten() {
            source[name] = value.clone();
        }
        *version += 1;
        Some(*version)
    }

    fn delete(&mut self, id: &str) -> Option<i64> {
        let (version, _) = self.documents.remove(id)?;
        self.deleted.insert(id.to_owned(), version + 1);
        Some(version + 1)
    }
}

#[derive(Debug, Default)]
struct State {
    indices: BTreeMap<String, Index>,
    aliases: BTreeMap<String, String>,
    templates: BTreeMap<String, Value>,
    faults: VecDeque<ElasticsearchFault>,
    /// As older servers say it: 403.
    is_read_only: bool,
    /// As newer servers say it: 429.
    is_flooded: bool,
    is_down: bool,
    is_mute: bool,
    latency: Duration,
    forgets_sources: bool,
    max_bytes: Option<usize>,
    authorization: Option<String>,
    bulk_sizes: Vec<usize>,
    paths: BTreeSet<String>,
    changes: Vec<String>,
}

/// A running fake; it ends when it is dropped.
#[derive(Debug)]
pub struct FakeElasticsearch {
    server: HttpServer,
    state: Arc<Mutex<State>>,
}

impl FakeElasticsearch {
    pub async fn start() -> io::Result<Self> {
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        let server = HttpServer::start(move |call| lock(&shared).respond(&call)).await?;
        Ok(Self { server, state })
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The next bulk requests fail like this, one each.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = ElasticsearchFault>) {
        lock(&self.state).faults.extend(faults);
    }

    /// As after the flood stage of a disk: every write is blocked.
    pub fn set_read_only(&self, is_read_only: bool) {
        lock(&self.state).is_read_only = is_read_only;
    }

    /// Every connection ends without a response.
    pub fn set_down(&self, is_down: bool) {
        lock(&self.state).is_down = is_down;
    }

    /// Everything is stored and no response sent: each bulk request waits for ever.
    pub fn set_mute(&self, is_mute: bool) {
        lock(&self.state).is_mute = is_mute;
    }

    /// Each bulk request takes this long.
    pub fn set_latency(&self, latency: Duration) {
        lock(&self.state).latency = latency;
    }

    /// Only ids and versions are stored, for more documents than fit into memory.
    pub fn forget_sources(&self) {
        lock(&self.state).forgets_sources = true;
    }

    /// Larger requests (unpacked) are rejected with 413.
    pub fn set_max_bytes(&self, max_bytes: usize) {
        lock(&self.state).max_bytes = Some(max_bytes);
    }

    /// Requests need this `Authorization`.
    pub fn require(&self, authorization: &str) {
        lock(&self.state).authorization = Some(authorization.to_owned());
    }

    /// What an index (or alias) holds: version and source by id.
    pub fn documents(&self, index: &str) -> BTreeMap<String, (i64, Value)> {
        let state = lock(&self.state);
        let name = state.aliases.get(index).map_or(index, String::as_str);
        let index = state.indices.get(name);
        index
            .map(|index| index.documents.clone())
            .unwrap_or_default()
    }

    /// As a classifier does: updates these fields of every document of an index.
    pub fn update_all(&self, index: &str, fields: &Value) {
        let mut state = lock(&self.state);
        let name = state.aliases.get(index).map_or(index, String::as_str);
        let name = name.to_owned();
        if let Some(index) = state.indices.get_mut(&name) {
            let ids: Vec<String> = index.documents.keys().cloned().collect();
            for id in ids {
                index.update(&id, fields);
            }
        }
    }

    /// The minute is over for which deleted documents are remembered.
    pub fn forget_deleted(&self) {
        for index in lock(&self.state).indices.values_mut() {
            index.deleted.clear();
        }
    }

    pub fn indices(&self) -> Vec<String> {
        lock(&self.state).indices.keys().cloned().collect()
    }

    /// How many documents each bulk request had.
    pub fn bulk_sizes(&self) -> Vec<usize> {
        lock(&self.state).bulk_sizes.clone()
    }

    /// The requests that could change something, in order.
    pub fn changes(&self) -> Vec<String> {
        lock(&self.state).changes.clone()
    }

    /// Every path with its query that was requested.
    pub fn paths(&self) -> BTreeSet<String> {
        lock(&self.state).paths.clone()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(status: u16, kind: &str, reason: &str) -> Reply {
    let error = json!({ "type": kind, "reason": reason });
    Reply::json(status, &json!({ "error": error, "status": status }))
}

fn acknowledged() -> Reply {
    Reply::json(200, &json!({ "acknowledged": true }))
}

impl State {
    fn respond(&mut self, call: &Call) -> Reply {
        if self.is_down {
            return Reply::Lost;
        }
        self.paths.insert(format!("{}?{}", call.path, call.query));
        if call.method != "GET" && call.path != "/_mget" {
            self.changes.push(format!("{} {}", call.method, call.path));
        }
        let wanted = self.authorization.as_deref();
        if wanted.is_some() && call.header("authorization") != wanted {
            let given = call.header("authorization").unwrap_or("nothing");
            let reason = format!("unable to authenticate with {given}");
            return refused(401, "security_exception", &reason);
        }
        let parts: Vec<&str> = call.path.split('/').skip(1).collect();
        match (call.method.as_str(), parts.as_slice()) {
            ("GET", [""]) => Reply::json(
                200,
                &json!({ "cluster_name": "fake", "version": { "number": "8.15.0" } }),
            ),
            ("POST", ["_bulk"]) => self.bulk(call),
            ("POST", ["_mget"]) => self.multi_get(&call.json().unwrap_or_default()),
            ("GET", ["_index_template", name]) => match self.templates.get(*name) {
                Some(template) => {
                    let found = json!({ "name": name, "index_template": template });
                    Reply::json(200, &json!({ "index_templates": [found] }))
                }
                None => refused(404, "resource_not_found_exception", "no such template"),
            },
            ("PUT", ["_index_template", name]) => match call.json() {
                Some(template) => {
                    self.templates.insert((*name).to_owned(), template);
                    acknowledged()
                }
                None => refused(400, "parse_exception", "not JSON"),
            },
            ("DELETE", ["_index_template", name]) => match self.templates.remove(*name) {
                Some(_) => acknowledged(),
                None => refused(404, "index_template_missing_exception", "no such template"),
            },
            ("GET", ["_alias", name]) => match self.aliases.get(*name) {
                Some(index) => Reply::json(200, &json!({ index: { "aliases": { *name: {} } } })),
                None => refused(404, "aliases_not_found_exception", "alias missing"),
            },
            (method, [index, rest @ ..]) => self.index_api(method, index, rest, call),
            _ => refused(405, "method_not_allowed", "no such thing"),
        }
    }

    fn index_api(&mut self, method: &str, name: &str, rest: &[&str], call: &Call) -> Reply {
        if (method, rest) == ("PUT", &[]) {
            return self.create(name, &call.json().unwrap_or_default());
        }
        let concrete = self
            .aliases
            .get(name)
            .map_or(name, String::as_str)
            .to_owned();
        let Some(index) = self.indices.get_mut(&concrete) else {
            return refused(404, "index_not_found_exception", "no such index");
        };
        match (method, rest) {
            ("PUT", ["_settings"]) => {
                let settings = call.json().unwrap_or_default();
                self.is_flooded = settings["index.blocks.read_only_allow_delete"] == true;
                acknowledged()
            }
            ("GET", ["_mapping"]) => {
                Reply::json(200, &json!({ concrete: { "mappings": index.mappings } }))
            }
            ("PUT", ["_mapping"]) => {
                let added = call.json().unwrap_or_default();
                let added = added["properties"].as_object().cloned().unwrap_or_default();
                for (field, mapping) in added {
                    index.mappings["properties"][field] = mapping;
                }
                acknowledged()
            }
            ("POST", ["_refresh"]) => Reply::json(200, &json!({ "_shards": {} })),
            ("GET", ["_count"]) => Reply::json(200, &json!({ "count": index.documents.len() })),
            ("GET", ["_doc", id]) => match index.documents.get(*id) {
                Some((version, source)) => Reply::json(
                    200,
                    &json!({ "_id": id, "_version": version, "found": true, "_source": source }),
                ),
                None => Reply::json(404, &json!({ "_id": id, "found": false })),
            },
            ("PUT", ["_doc", id]) => {
                let version = call
                    .query
                    .split('&')
                    .find_map(|part| part.strip_prefix("version=")?.parse().ok());
                let source = call.json().unwrap_or_default();
                let version: i64 = version.unwrap_or(1);
                index.documents.insert((*id).to_owned(), (version, source));
                Reply::json(201, &json!({ "_id": id, "_version": version }))
            }
            ("POST", ["_update", id]) => {
                let fields = call.json().unwrap_or_default();
                match index.update(id, &fields["doc"]) {
                    Some(version) => Reply::json(200, &json!({ "_id": id, "_version": version })),
                    None => refused(404, "document_missing_exception", "document missing"),
                }
            }
            ("DELETE", ["_doc", id]) => match index.delete(id) {
                Some(version) => Reply::json(200, &json!({ "_id": id, "_version": version })),
                None => Reply::json(404, &json!({ "_id": id, "result": "not_found" })),
            },
            ("DELETE", []) => {
                self.indices.remove(&concrete);
                self.aliases.retain(|_, index| *index != concrete);
                acknowledged()
            }
            _ => refused(405, "method_not_allowed", "no such thing"),
        }
    }

    fn create(&mut self, name: &str, body: &Value) -> Reply {
        if self.indices.contains_key(name) {
            return refused(400, "resource_already_exists_exception", "it exists");
        }
        let aliases = body["aliases"].as_object().cloned().unwrap_or_default();
        if let Some(taken) = aliases
            .keys()
            .find(|alias| self.indices.contains_key(*alias))
        {
            let reason = format!("an index exists with the same name as the alias [{taken}]");
            return refused(400, "invalid_alias_name_exception", &reason);
        }
        self.make(name);
        for alias in aliases.keys() {
            self.aliases.insert(alias.clone(), name.to_owned());
        }
        acknowledged()
    }

    /// Versions of documents of concrete indices.
    fn multi_get(&self, body: &Value) -> Reply {
        let found = |wanted: &Value| {
            let (name, id) = (&wanted["_index"], &wanted["_id"]);
            let index = self.indices.get(name.as_str().unwrap_or_default());
            let document = index.and_then(|index| index.documents.get(id.as_str()?));
            match document {
                Some((version, _)) => {
                    json!({ "_index": name, "_id": id, "_version": version, "found": true })
                }
                None => json!({ "_index": name, "_id": id, "found": false }),
            }
        };
        let wanted = body["docs"].as_array();
        let docs: Vec<Value> = wanted.into_iter().flatten().map(found).collect();
        Reply::json(200, &json!({ "docs": docs }))
    }

    /// An index with the mapping of the template that matches.
    fn make(&mut self, name: &str) {
        let matching = self.templates.values().filter(|template| {
            let patterns = template["index_patterns"].as_array();
            patterns.into_iter().flatten().any(|pattern| {
                let pattern = pattern.as_str().unwrap_or_default();
                match pattern.split_once('*') {
                    Some((start, end)) => name.starts_with(start) && name.ends_with(end),
                    None => pattern == name,
                }
            })
        });
        let best = matching.max_by_key(|template| template["priority"].as_i64());
        let mappings = best.map(|template| template["template"]["mappings"].clone());
        let index = Index {
            mappings: mappings.unwrap_or_default(),
            ..Index::default()
        };
        self.indices.insert(name.to_owned(), index);
    }

    fn bulk(&mut self, call: &Call) -> Reply {
        if call.header("content-type") != Some("application/x-ndjson") {
            return refused(406, "media_type_header_exception", "not NDJSON");
        }
        if self.max_bytes.is_some_and(|most| call.body.len() > most) {
            return Reply::text(413, "Request Entity Too Large");
        }
        let text = String::from_utf8_lossy(&call.body).into_owned();
        if !text.ends_with('\n') {
            let reason = "The bulk request must be terminated by a newline [\\n]";
            return refused(400, "illegal_argument_exception", reason);
        }
        let lines: Vec<&str> = text.lines().collect();
        self.bulk_sizes.push(lines.len() / 2);
        let fault = self.faults.pop_front();
        match fault {
            Some(ElasticsearchFault::TooManyRequests(seconds)) => {
                let reply = refused(429, "es_rejected_execution_exception", "queue is full");
                return match seconds {
                    Some(seconds) => reply.with("Retry-After", seconds.to_string()),
                    None => reply,
                };
            }
            Some(ElasticsearchFault::Unavailable) => {
                return refused(503, "cluster_block_exception", "no master");
            }
            Some(ElasticsearchFault::RequestLost) => return Reply::Lost,
            Some(ElasticsearchFault::Garbage) => return Reply::text(200, "<html>busy</html>"),
            _ => {}
        }
        let mut items = Vec::new();
        for (at, pair) in lines.chunks(2).enumerate() {
            let hit = |every: usize| at % every.max(1) == 0;
            let item = match &fault {
                Some(ElasticsearchFault::SomeItemsOverrun(every)) if hit(*every) => {
                    item_error(429, "es_rejected_execution_exception", "queue is full")
                }
                Some(ElasticsearchFault::SomeItemsUnavailable(every)) if hit(*every) => {
                    item_error(503, "unavailable_shards_exception", "primary is not active")
                }
                _ => match pair {
                    [action, source] => self.item(action, source),
                    _ => return refused(400, "illegal_argument_exception", "odd lines"),
                },
            };
            items.push(json!({ "index": item }));
        }
        if self.is_mute {
            return Reply::Silence;
        }
        match fault {
            Some(ElasticsearchFault::ReplyLost) => return Reply::Lost,
            Some(ElasticsearchFault::OneItemShort) => {
                items.pop();
            }
            _ => {}
        }
        let errors = items.iter().any(|item| !item["index"]["error"].is_null());
        let reply = Reply::json(200, &json!({ "took": 1, "errors": errors, "items": items }));
        match self.latency {
            Duration::ZERO => reply,
            latency => Reply::Later(latency, Box::new(reply)),
        }
    }

    fn item(&mut self, action: &str, source: &str) -> Value {
        let action: Value = serde_json::from_str(action).unwrap_or_default();
        let action = &action["index"];
        let (Some(name), Some(id), Some(version)) = (
            action["_index"].as_str(),
            action["_id"].as_str(),
            action["version"].as_i64(),
        ) else {
            return item_error(400, "illegal_argument_exception", "no index, id or version");
        };
        if self.is_flooded {
            let reason = "index [x] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark, index has read-only-allow-delete block];";
            return item_error(429, "cluster_block_exception", reason);
        }
        if self.is_read_only {
            let reason =
                "index [x] blocked by: [FORBIDDEN/12/index read-only / allow delete (api)];";
            return item_error(403, "cluster_block_exception", reason);
        }
        let concrete = match self.aliases.get(name) {
            Some(concrete) => concrete.clone(),
            None if action["require_alias"] == true => {
                let reason =
                    format!("[require_alias] request flag is [true] and [{name}] is not an alias");
                return item_error(404, "index_not_found_exception", &reason);
            }
            None => name.to_owned(),
        };
        if !self.indices.contains_key(&concrete) {
            self.make(&concrete);
        }
        let index = self.indices.entry(concrete.clone()).or_default();
        let Ok(source) = serde_json::from_str::<Value>(source) else {
            return item_error(400, "document_parsing_exception", "not JSON");
        };
        if let Some(error) = misfit(&index.mappings, &source) {
            return json!({ "_id": id, "status": 400, "error": error });
        }
        let is_conflict = |current: i64| match action["version_type"].as_str() {
            Some("external_gte") => current > version,
            _ => current >= version,
        };
        if index.version(id).is_some_and(is_conflict) {
            let mut error =
                item_error(409, "version_conflict_engine_exception", "version conflict");
            error["_index"] = Value::from(concrete);
            return error;
        }
        index.deleted.remove(id);
        let source = match self.forgets_sources {
            true => Value::Null,
            false => source,
        };
        let before = index.documents.insert(id.to_owned(), (version, source));
        let status = if before.is_some() { 200 } else { 201 };
        json!({ "_id": id, "_version": version, "status": status })
    }
}

fn item_error(status: u16, kind: &str, reason: &str) -> Value {
    json!({ "status": status, "error": { "type": kind, "reason": reason } })
}
