//! Feeds and sitemaps: their health, their fetch log, and resuming one.

use serde_json::json;
use tidings_store::Feed;

use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::{Changed, HandlerResult, List, json};

pub(crate) async fn list(request: CheckedRequest) -> HandlerResult {
    let limit = request.params.limit()?;
    let after = request.params.parsed("after")?.unwrap_or(i64::MIN);
    let feeds = request.app.store.feeds_after(after, limit + 1).await?;
    json(&List::page(feeds, limit, |feed: &Feed| {
        feed.feed_id.to_string()
    }))
}

pub(crate) async fn get(request: CheckedRequest) -> HandlerResult {
    let id: i64 = request.params.required("id")?;
    let feed = request.app.store.feed(id).await?;
    let feed = feed.ok_or_else(|| Problem::not_found(&format!("feed {id}")))?;
    let log = request
        .app
        .store
        .fetch_log(id, request.params.limit()?)
        .await?;
    json(&json!({ "feed": feed, "log": log }))
}

pub(crate) async fn resume(request: CheckedRequest) -> HandlerResult {
    let now = request.app.store.now().await?;
    request
        .app
        .store
        .resume_feed(request.params.required("id")?, now)
        .await?;
    json(&Changed { changed: 1 })
}
