//! Collection runs over HTTP. A run that was begun goes to its end, also when
//! whoever asked for it has left.

use std::sync::Arc;

use http::StatusCode;
use tidings_engine::{CollectError, CollectOptions};

use crate::call::{Answer, Call, json};
use crate::problem::Problem;

pub(crate) async fn run(call: Call) -> Answer {
    let mut fields = call.json()?;
    let defaults = CollectOptions::default();
    let options = CollectOptions {
        sources: fields.texts("sources")?,
        dry_run: fields.flag("dry_run")?,
        max_new: match fields.number("max_new_items", 1..=1_000_000)? {
            Some(most) => most as usize,
            None => defaults.max_new,
        },
        ..defaults
    };
    fields.end()?;
    let poller = Arc::clone(&call.app.poller);
    let run = tokio::spawn(async move { poller.collect(&options, |_| {}).await });
    json(&run.await.map_err(Problem::internal)?.map_err(refused)?)
}

pub(crate) async fn test(call: Call) -> Answer {
    let name: String = call.needed("source")?;
    let checked = call.app.poller.check_source(&name).await;
    json(&checked.map_err(refused)?)
}

fn refused(error: CollectError) -> Problem {
    match error {
        CollectError::Running(_) => Problem {
            retry_after: Some(30),
            ..Problem::new(StatusCode::CONFLICT, error.to_string())
        },
        CollectError::NoSuchSource(_) => Problem::field("source", error.to_string()),
        CollectError::Store(error) => error.into(),
    }
}
