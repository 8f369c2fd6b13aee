//! Collection runs over HTTP. A run that was begun goes to its end, also when
//! whoever asked for it has left.

use std::sync::Arc;

use http::StatusCode;
use tidings_engine::{CollectError, CollectOptions, Collected};

use crate::app::App;
use crate::call::{Answer, Call, json};
use crate::problem::Problem;

pub(crate) async fn run(call: Call) -> Answer {
    let mut fields = call.json()?;
    let defaults = CollectOptions::default();
    let options = CollectOptions {
        sources: fields.texts("sources")?,
        dry_run: fields.flag("dry_run")?,
        most_new: match fields.number("max_new_items", 1..=1_000_000)? {
            Some(most) => most as usize,
            None => defaults.most_new,
        },
        ..defaults
    };
    fields.end()?;
    json(&collected(&call.app, options).await?)
}

pub(crate) async fn test(call: Call) -> Answer {
    let options = CollectOptions {
        sources: vec![call.needed("source")?],
        dry_run: true,
        ..CollectOptions::default()
    };
    json(&collected(&call.app, options).await?)
}

async fn collected(app: &App, options: CollectOptions) -> Result<Collected, Problem> {
    let poller = Arc::clone(&app.poller);
    let run = tokio::spawn(async move { poller.collect(&options, |_| {}).await });
    let ended = run.await.map_err(Problem::internal)?;
    ended.map_err(|error| match error {
        CollectError::Running(_) => Problem {
            retry_after: Some(30),
            ..Problem::new(StatusCode::CONFLICT, error.to_string())
        },
        CollectError::NoSuchSource(_) => Problem::field("source", error.to_string()),
        CollectError::Store(error) => error.into(),
    })
}
