//! Tasks that users started, and collection runs.

use http::StatusCode;
use serde_json::{Value as Json, json};
use tidings_store::Run;

use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::{HandlerResult, List, json};

pub(crate) async fn list(request: CheckedRequest) -> HandlerResult {
    let (limit, before) = (request.params.limit()?, request.params.parsed("after")?);
    let tasks = request.app.store.tasks(before, limit + 1).await?;
    json(&List::page(tasks, limit, |task| task.task_id.to_string()))
}

pub(crate) async fn task(request: CheckedRequest) -> HandlerResult {
    let id: i64 = request.params.required("id")?;
    let task = request.app.store.task(id).await?;
    json(&task.ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            format!("task {id} not found; tasks are kept for retention.tasks_hours"),
        )
    })?)
}

pub(crate) async fn runs(request: CheckedRequest) -> HandlerResult {
    let limit = request.params.limit()?;
    let runs = request
        .app
        .store
        .runs(request.params.parsed("after")?, limit + 1)
        .await?;
    let run_json = |run: Run| {
        let metrics: Json = serde_json::from_str(&run.metrics).unwrap_or_default();
        json!({ "run_id": run.run_id, "started_at": run.started_at, "finished_at": run.finished_at, "metrics": metrics })
    };
    let List { items, next } = List::page(runs, limit, |run| run.run_id.to_string());
    let items: Vec<Json> = items.into_iter().map(run_json).collect();
    json(&List { items, next })
}
