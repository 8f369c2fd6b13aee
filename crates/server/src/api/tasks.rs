//! Tasks that people asked for, and collection runs.

use serde_json::{Value as Json, json};
use tidings_store::Run;

use crate::call::{Answer, Call, List, json};
use crate::problem::Problem;

pub(crate) async fn task(call: Call) -> Answer {
    let id: i64 = call.needed("id")?;
    let task = call.app.store.task(id).await?;
    json(
        &task
            .ok_or_else(|| Problem::not_found(&format!("task {id}; they are kept for an hour")))?,
    )
}

pub(crate) async fn runs(call: Call) -> Answer {
    let limit = call.limit()?;
    let runs = call
        .app
        .store
        .runs(call.parsed("after")?, limit + 1)
        .await?;
    let shown = |run: Run| {
        let metrics: Json = serde_json::from_str(&run.metrics).unwrap_or_default();
        json!({ "run_id": run.run_id, "started_at": run.started_at, "finished_at": run.finished_at, "metrics": metrics })
    };
    let List { items, next } = List::cut(runs, limit, |run| run.run_id.to_string());
    let items: Vec<Json> = items.into_iter().map(shown).collect();
    json(&List { items, next })
}
