//! Collection runs over HTTP. A run that was started is a task, and completes also
//! when the client disconnects or does not wait.

use std::sync::Arc;

use http::StatusCode;
use serde_json::json;
use tidings_engine::{CollectError, CollectOptions};

use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::{HandlerResult, json, json_with_status};

pub(crate) async fn run(request: CheckedRequest) -> HandlerResult {
    let mut fields = request.json()?;
    let defaults = request.app.poller.collect_options();
    let options = CollectOptions {
        sources: fields.texts("sources")?,
        dry_run: fields.flag("dry_run")? || request.params.is_set("dry"),
        max_new: match fields.number("max_new_items", 1..=1_000_000)? {
            Some(max) => max as usize,
            None => defaults.max_new,
        },
        ..defaults
    };
    fields.finish()?;
    let poller = Arc::clone(&request.app.poller);
    if options.dry_run {
        // It writes nothing, not even a task: whoever wants its result waits.
        let run = tokio::spawn(async move { poller.collect(&options, |_| {}).await });
        let collected = run.await.map_err(Problem::internal)?;
        return json(&collected.map_err(collect_problem)?);
    }
    let started = poller.start_run(options).await.map_err(collect_problem)?;
    let task_id = started.task.task_id;
    let run = tokio::spawn(async move { poller.finish_run(started).await });
    if !request.params.waits() {
        return json_with_status(StatusCode::ACCEPTED, &json!({ "task_id": task_id }));
    }
    let collected = run.await.map_err(Problem::internal)?;
    let collected = collected.map_err(collect_problem)?;
    let mut response = serde_json::to_value(&collected).map_err(Problem::internal)?;
    response["task_id"] = task_id.into();
    json(&response)
}

pub(crate) async fn preview(request: CheckedRequest) -> HandlerResult {
    let name: String = request.params.required("source")?;
    let checked = request.app.poller.check_source(&name).await;
    json(&checked.map_err(collect_problem)?)
}

fn collect_problem(error: CollectError) -> Problem {
    match error {
        CollectError::Running(_) => Problem {
            retry_after: Some(30),
            ..Problem::new(StatusCode::CONFLICT, error.to_string())
        },
        CollectError::NoSuchSource(_) => Problem::field("source", error.to_string()),
        CollectError::Store(error) => error.into(),
    }
}
