//! Sinks: how they stand, what they could not take, sending again.

use jiff::Timestamp;
use tidings_store::Moment;

use super::Changed;
use crate::call::{Answer, Call, List, json};
use crate::problem::Problem;

pub(crate) async fn list(call: Call) -> Answer {
    let items = call.app.store.outbox().await?;
    json(&List { items, next: None })
}

/// The name of a sink that there is.
pub(crate) async fn found(call: &Call) -> Result<String, Problem> {
    let name: String = call.needed("sink")?;
    let known = call.app.store.outbox().await?;
    match known.iter().any(|state| state.sink == name) {
        true => Ok(name),
        false => Err(Problem::not_found("sink of this name")),
    }
}

pub(crate) async fn dead(call: Call) -> Answer {
    let sink = found(&call).await?;
    let (limit, after) = (call.limit()?, call.parsed("after")?);
    let letters = call.app.store.dead_letters(&sink, after, limit + 1).await?;
    json(&List::cut(letters, limit, |letter| {
        letter.cursor().to_string()
    }))
}

pub(crate) async fn retry(call: Call) -> Answer {
    let sink = found(&call).await?;
    let changed = call.app.store.retry_dead_letters(&sink).await?;
    json(&Changed { changed })
}

pub(crate) async fn replay(call: Call) -> Answer {
    let mut fields = call.json()?;
    let since: Option<Timestamp> = fields.parsed("since")?;
    fields.end()?;
    let sink = found(&call).await?;
    let changed = call
        .app
        .store
        .replay(&sink, since.map(Moment::from))
        .await?;
    json(&Changed { changed })
}
