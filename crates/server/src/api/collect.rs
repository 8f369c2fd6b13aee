//! Collection runs over HTTP. A run that was started completes also when the client
//! disconnects.

use std::sync::Arc;

use http::StatusCode;
use tidings_engine::{CollectError, CollectOptions};

use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::{HandlerResult, json};

pub(crate) async fn run(request: CheckedRequest) -> HandlerResult {
    let mut fields = request.json()?;
    let defaults = CollectOptions::default();
    let options = CollectOptions {
        sources: fields.texts("sources")?,
        dry_run: fields.flag("dry_run")?,
        max_new: match fields.number("max_new_items", 1..=1_000_000)? {
            Some(max) => max as usize,
            None => defaults.max_new,
        },
        ..defaults
    };
    fields.finish()?;
    let poller = Arc::clone(&request.app.poller);
    let run = tokio::spawn(async move { poller.collect(&options, |_| {}).await });
    json(
        &run.await
            .map_err(Problem::internal)?
            .map_err(collect_problem)?,
    )
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
