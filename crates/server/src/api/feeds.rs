//! Feeds and sitemaps: their health, their log, and waking one.

use serde_json::json;
use tidings_store::Feed;

use super::Changed;
use crate::call::{Answer, Call, List, json};
use crate::problem::Problem;

pub(crate) async fn list(call: Call) -> Answer {
    let limit = call.limit()?;
    let after = call.parsed("after")?.unwrap_or(i64::MIN);
    let feeds = call.app.store.feeds_after(after, limit + 1).await?;
    json(&List::cut(feeds, limit, |feed: &Feed| {
        feed.feed_id.to_string()
    }))
}

pub(crate) async fn one(call: Call) -> Answer {
    let id: i64 = call.needed("id")?;
    let feed = call.app.store.feed(id).await?;
    let feed = feed.ok_or_else(|| Problem::not_found(&format!("feed {id}")))?;
    let log = call.app.store.fetch_log(id, call.limit()?).await?;
    json(&json!({ "feed": feed, "log": log }))
}

pub(crate) async fn wake(call: Call) -> Answer {
    let now = call.app.store.now().await?;
    call.app.store.resume_feed(call.needed("id")?, now).await?;
    json(&Changed { changed: 1 })
}
