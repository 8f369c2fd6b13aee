//! Sinks: backlog, dead letters, retry, replay, disable, enable and remove.

use jiff::Timestamp;
use serde::Serialize;
use tidings_store::Moment;

use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::{Changed, HandlerResult, List, json};

pub(crate) async fn list(request: CheckedRequest) -> HandlerResult {
    let items = request.app.store.outbox().await?;
    json(&List { items, next: None })
}

/// The name of a sink that exists.
pub(crate) async fn find_sink(request: &CheckedRequest) -> Result<String, Problem> {
    let name: String = request.params.required("sink")?;
    let known = request.app.store.outbox().await?;
    match known.iter().any(|state| state.sink == name) {
        true => Ok(name),
        false => Err(Problem::not_found("sink")),
    }
}

pub(crate) async fn dead(request: CheckedRequest) -> HandlerResult {
    let sink = find_sink(&request).await?;
    let (limit, after) = (request.params.limit()?, request.params.parsed("after")?);
    let letters = request
        .app
        .store
        .dead_letters(&sink, after, limit + 1)
        .await?;
    json(&List::page(letters, limit, |letter| {
        letter.cursor().to_string()
    }))
}

#[derive(Debug, Serialize)]
struct Retried {
    changed: u64,
    missing_documents: u64,
}

pub(crate) async fn retry(request: CheckedRequest) -> HandlerResult {
    let sink = find_sink(&request).await?;
    let letters = request.app.store.retry_dead_letters(&sink).await?;
    json(&Retried {
        changed: letters.retried,
        missing_documents: letters.missing_documents,
    })
}

pub(crate) async fn replay(request: CheckedRequest) -> HandlerResult {
    let mut fields = request.json()?;
    let since: Option<Timestamp> = fields.parsed("since")?;
    fields.finish()?;
    let sink = find_sink(&request).await?;
    let changed = request
        .app
        .store
        .replay(&sink, since.map(Moment::from))
        .await?;
    json(&Changed { changed })
}

pub(crate) async fn disable(request: CheckedRequest) -> HandlerResult {
    let sink = find_sink(&request).await?;
    let changed = request.app.store.disable_sink(&sink).await?;
    json(&Changed {
        changed: changed.into(),
    })
}

/// Counts the documents that changed while it was disabled.
pub(crate) async fn enable(request: CheckedRequest) -> HandlerResult {
    let sink = find_sink(&request).await?;
    let queued = request.app.store.enable_sink(&sink).await?;
    json(&Changed {
        changed: queued.unwrap_or_default(),
    })
}

pub(crate) async fn remove(request: CheckedRequest) -> HandlerResult {
    let sink = find_sink(&request).await?;
    let changed = request.app.store.remove_sink(&sink).await?;
    json(&Changed {
        changed: changed.into(),
    })
}
