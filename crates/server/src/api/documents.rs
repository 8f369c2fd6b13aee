//! Documents: lists, changes, search, and one document.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value as Json, json};
use tidings_engine::{near_duplicates, stored_document};
use tidings_sinks::{Hit, SearchError, SearchQuery, SearchResults};
use tidings_store::{ChangeCursor, FrontierId, HostId, StoredDocument, UrlId};
use tidings_url::{FetchUrl, ProxyHosts};

use crate::app::App;
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::{HandlerResult, List, json};

/// A document with its frontier id.
pub(crate) fn document_json(stored: &StoredDocument) -> Result<Json, Problem> {
    let document = stored_document(stored).map_err(Problem::internal)?;
    let mut shown = serde_json::to_value(&document).map_err(Problem::internal)?;
    shown["frontier_id"] = json!(stored.frontier_id);
    Ok(shown)
}

/// A document in a list: without its long fields.
fn summary(stored: &StoredDocument) -> Result<Json, Problem> {
    let mut summary = document_json(stored)?;
    if let Some(fields) = summary.as_object_mut() {
        fields.remove("body_text");
        fields.remove("raw_content");
    }
    Ok(summary)
}

pub(crate) async fn list(request: CheckedRequest) -> HandlerResult {
    let limit = request.params.limit()?;
    let after: Option<FrontierId> = request.params.parsed("after")?;
    let mut stored = request.app.store.documents_after(after, limit + 1).await?;
    let has_more = stored.len() > limit as usize;
    stored.truncate(limit as usize);
    let next = stored.last().filter(|_| has_more);
    let next = next.map(|last| last.frontier_id.to_string());
    let items = stored.iter().map(summary).collect::<Result<Vec<_>, _>>()?;
    json(&List { items, next })
}

pub(crate) async fn changes(request: CheckedRequest) -> HandlerResult {
    let after: Option<ChangeCursor> = request.params.parsed("after")?;
    let changes = request
        .app
        .store
        .document_changes(after, request.params.limit()?)
        .await?;
    // Also on the last page: later changes come after it.
    let next = changes.last().map(|(cursor, _)| cursor.to_string());
    let next = next.or_else(|| after.map(|after| after.to_string()));
    let items = changes
        .iter()
        .map(|(cursor, stored)| {
            Ok(json!({ "cursor": cursor.to_string(), "document": document_json(stored)? }))
        })
        .collect::<Result<Vec<_>, Problem>>()?;
    json(&List { items, next })
}

pub(crate) async fn search(request: CheckedRequest) -> HandlerResult {
    let limit = request.params.limit()?;
    let offset = request.params.parsed("offset")?.unwrap_or(0);
    let query = SearchQuery {
        source: request.params.text("source").map(str::to_owned),
        tag: request.params.text("tag").map(str::to_owned),
        language: request.params.text("language").map(str::to_owned),
        since: request.params.parsed("since")?,
        until: request.params.parsed("until")?,
        limit: limit as usize,
        offset,
        ..SearchQuery::new(request.params.text("q").unwrap_or_default())
    };
    let results = run_search(&request.app, query).await?;
    let reached = offset + results.hits.len();
    let next = (reached < results.total && !results.hits.is_empty()).then(|| reached.to_string());
    let proxies = request.app.store.proxy_hosts();
    let items: Vec<Json> = results
        .hits
        .iter()
        .map(|found| hit(found, proxies))
        .collect();
    json(&json!({ "total": results.total, "items": items, "next": next }))
}

fn hit(hit: &Hit, proxies: &ProxyHosts) -> Json {
    let mut shown = json!(hit);
    shown["frontier_id"] = json!(frontier_id(hit, proxies));
    shown
}

/// The frontier id of a hit: its host by the URL, its key by the document id.
pub(crate) fn frontier_id(hit: &Hit, proxies: &ProxyHosts) -> Option<FrontierId> {
    let host = FetchUrl::parse(&hit.url).ok()?.host_key(proxies);
    let half = u128::from_str_radix(hit.id.get(..32)?, 16).ok()?;
    Some(FrontierId {
        host: HostId::of(&host),
        url: UrlId(half.to_be_bytes()),
    })
}

pub(crate) async fn run_search(
    app: &Arc<App>,
    query: SearchQuery,
) -> Result<SearchResults, Problem> {
    let app = Arc::clone(app);
    let search = move || match app.search() {
        None => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "the embedded search is disabled; set search.enabled = true",
        )),
        Some(Err(SearchError::None(_))) => Ok(SearchResults {
            total: 0,
            hits: Vec::new(),
        }),
        Some(index) => index
            .and_then(|index| index.search(&query))
            .map_err(Problem::internal),
    };
    tokio::task::spawn_blocking(search)
        .await
        .map_err(Problem::internal)?
}

pub(crate) async fn get(request: CheckedRequest) -> HandlerResult {
    let stored = request
        .app
        .store
        .document(request.params.frontier_id()?)
        .await?;
    let stored = stored.ok_or_else(|| Problem::not_found("document"))?;
    let mut document = document_json(&stored)?;
    document["near_duplicates"] = json!(near_duplicates(&request.app.store, &stored).await?);
    json(&document)
}
