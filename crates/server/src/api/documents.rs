//! Documents: lists, changes, search, and one of them.

use serde_json::{Value as Json, json};
use tidings_engine::{near_duplicates, stored_document};
use tidings_sinks::{Hit, SearchError, SearchQuery, SearchResults};
use tidings_store::{ChangeCursor, FrontierId, HostId, StoredDocument, UrlId};
use tidings_url::{FetchUrl, ProxyHosts};

use crate::app::App;
use crate::call::{Answer, Call, List, json};
use crate::problem::Problem;
use std::sync::Arc;

/// A document with the id under which it is asked for.
pub(crate) fn shown(stored: &StoredDocument) -> Result<Json, Problem> {
    let document = stored_document(stored).map_err(Problem::internal)?;
    let mut shown = serde_json::to_value(&document).map_err(Problem::internal)?;
    shown["frontier_id"] = json!(stored.frontier_id);
    Ok(shown)
}

/// The same in a list: what is long stays out.
fn summary(stored: &StoredDocument) -> Result<Json, Problem> {
    let mut shown = shown(stored)?;
    if let Some(fields) = shown.as_object_mut() {
        fields.remove("body_text");
        fields.remove("raw_content");
    }
    Ok(shown)
}

pub(crate) async fn list(call: Call) -> Answer {
    let limit = call.limit()?;
    let after: Option<FrontierId> = call.parsed("after")?;
    let mut stored = call.app.store.documents_after(after, limit + 1).await?;
    let has_more = stored.len() > limit as usize;
    stored.truncate(limit as usize);
    let next = stored.last().filter(|_| has_more);
    let next = next.map(|last| last.frontier_id.to_string());
    let items = stored.iter().map(summary).collect::<Result<Vec<_>, _>>()?;
    json(&List { items, next })
}

pub(crate) async fn changes(call: Call) -> Answer {
    let after: Option<ChangeCursor> = call.parsed("after")?;
    let changes = call
        .app
        .store
        .document_changes(after, call.limit()?)
        .await?;
    // Also on the last page: the next change comes after it.
    let next = changes.last().map(|(cursor, _)| cursor.to_string());
    let next = next.or_else(|| after.map(|after| after.to_string()));
    let items = changes
        .iter()
        .map(|(cursor, stored)| {
            Ok(json!({ "cursor": cursor.to_string(), "document": shown(stored)? }))
        })
        .collect::<Result<Vec<_>, Problem>>()?;
    json(&List { items, next })
}

pub(crate) async fn search(call: Call) -> Answer {
    let limit = call.limit()?;
    let offset = call.parsed("offset")?.unwrap_or(0);
    let query = SearchQuery {
        source: call.text("source").map(str::to_owned),
        tag: call.text("tag").map(str::to_owned),
        language: call.text("language").map(str::to_owned),
        since: call.parsed("since")?,
        until: call.parsed("until")?,
        limit: limit as usize,
        offset,
        ..SearchQuery::new(call.text("q").unwrap_or_default())
    };
    let results = searched(&call.app, query).await?;
    let reached = offset + results.hits.len();
    let next = (reached < results.total && !results.hits.is_empty()).then(|| reached.to_string());
    let items: Vec<Json> = results.hits.iter().map(hit).collect();
    json(&json!({ "total": results.total, "items": items, "next": next }))
}

fn hit(hit: &Hit) -> Json {
    let mut shown = json!(hit);
    shown["frontier_id"] = json!(frontier_id(hit));
    shown
}

/// Where a hit stands in the store: host by its address, URL by its key.
pub(crate) fn frontier_id(hit: &Hit) -> Option<FrontierId> {
    let host = FetchUrl::parse(&hit.url)
        .ok()?
        .host_key(&ProxyHosts::default());
    let half = u128::from_str_radix(hit.id.get(..32)?, 16).ok()?;
    Some(FrontierId {
        host: HostId::of(&host),
        url: UrlId(half.to_be_bytes()),
    })
}

pub(crate) async fn searched(app: &Arc<App>, query: SearchQuery) -> Result<SearchResults, Problem> {
    let app = Arc::clone(app);
    let search = move || match app.search() {
        None => Err(Problem::not_found(
            "embedded search; set search.enabled = true",
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

pub(crate) async fn one(call: Call) -> Answer {
    let stored = call.app.store.document(call.frontier_id()?).await?;
    let stored = stored.ok_or_else(|| Problem::not_found("document of this id"))?;
    let mut shown = shown(&stored)?;
    shown["also_told_by"] = json!(near_duplicates(&call.app.store, &stored).await?);
    json(&shown)
}
