//! The frontier: lists, numbers, one URL and its story.

use std::time::Duration;

use serde_json::json;
use tidings_engine::SourceSettings;
use tidings_store::{Filter, HostId, Order, Origin, Store, Submission, Target, UrlRow};
use tidings_url::{FetchUrl, HostKey, ProxyHosts, Rules};

use super::Changed;
use crate::call::{Answer, Call, Fields, List, json};
use crate::problem::Problem;

/// How long a list is looked for before a short page is given.
pub(crate) const PATIENCE: Duration = Duration::from_millis(80);

pub(crate) fn host_id(host: &str) -> HostId {
    HostId::of(&HostKey::from_stored(host.trim().to_lowercase()))
}

/// The filter that the parameters of a list describe.
pub(crate) fn filter(call: &Call) -> Result<Filter, Problem> {
    Ok(Filter {
        status: call.parsed("status")?,
        source_id: call.parsed("source_id")?,
        host: call.text("host").map(host_id),
        origin: call.parsed("origin")?,
        reason: call.text("reason").map(str::to_owned),
        text: call.text("q").map(str::to_owned),
    })
}

/// The same of a JSON object.
pub(crate) fn filter_of(mut fields: Fields) -> Result<Filter, Problem> {
    let filter = Filter {
        status: fields.parsed("status")?,
        source_id: fields.number("source_id", 0..=crate::routes::MOST_ID)?,
        host: fields.optional_text("host")?.as_deref().map(host_id),
        origin: fields.parsed("origin")?,
        reason: fields.optional_text("reason")?,
        text: fields.optional_text("q")?,
    };
    fields.end()?;
    Ok(filter)
}

pub(crate) fn is_everything(filter: &Filter) -> bool {
    let Filter {
        status,
        source_id,
        host,
        origin,
        reason,
        text,
    } = filter;
    status.is_none()
        && source_id.is_none()
        && host.is_none()
        && origin.is_none()
        && reason.is_none()
        && text.is_none()
}

pub(crate) async fn list(call: Call) -> Answer {
    let order: Order = call.parsed("order")?.unwrap_or_default();
    let after = call.parsed("after")?;
    let page = call
        .app
        .store
        .list_within(&filter(&call)?, order, after, call.limit()?, PATIENCE)
        .await?;
    json(&List::<UrlRow> {
        items: page.rows,
        next: page.next.map(|cursor| cursor.to_string()),
    })
}

pub(crate) async fn stats(call: Call) -> Answer {
    match call.text("host") {
        Some(host) => json(&call.app.store.host_stats(host_id(host)).await?),
        None => json(&call.app.store.stats().await?),
    }
}

/// The rules by which URLs of a source are told apart.
pub(crate) async fn rules(store: &Store, source_id: i64) -> Result<Rules, Problem> {
    if source_id == 0 {
        return Ok(Rules::default());
    }
    let source = store.source(source_id).await?;
    let Some(source) = source else {
        return Err(Problem::field(
            "source_id",
            format!("there is no source {source_id}"),
        ));
    };
    let settings = SourceSettings::of(&source).unwrap_or_default();
    Ok(Rules {
        strip_params: settings.strip_params,
        keep_params: settings.keep_params,
        keep_trailing_slash: settings.keep_trailing_slash,
    })
}

pub(crate) fn target(url: FetchUrl, rules: &Rules) -> Target {
    Target {
        key: url.canonical(rules).key(),
        host: url.host_key(&ProxyHosts::default()),
        url,
    }
}

pub(crate) async fn submit(call: Call) -> Answer {
    let mut fields = call.json()?;
    let url = fields.url("url")?;
    let source_id = fields
        .number("source_id", 0..=crate::routes::MOST_ID)?
        .unwrap_or(0);
    let priority = fields.number("priority", 1..=10)?.unwrap_or(5) as u8;
    fields.end()?;
    let target = target(url, &rules(&call.app.store, source_id).await?);
    let id = target.id();
    let submission = Submission {
        source_id,
        priority,
        ..Submission::new(target, Origin::Api)
    };
    let verdicts = call.app.store.submit(&[submission]).await?;
    json(&json!({ "id": id, "verdict": verdicts.first() }))
}

pub(crate) async fn one(call: Call) -> Answer {
    let row = call.app.store.url(call.frontier_id()?).await?;
    json(&row.ok_or_else(|| Problem::not_found("URL of this id"))?)
}

pub(crate) async fn retry(call: Call) -> Answer {
    let changed = call.app.store.requeue(&[call.frontier_id()?]).await?;
    told(changed)
}

pub(crate) async fn remove(call: Call) -> Answer {
    let changed = call.app.store.remove(&[call.frontier_id()?]).await?;
    told(changed)
}

fn told(changed: u64) -> Answer {
    match changed {
        0 => Err(Problem::not_found(
            "URL of this id, or it is being fetched right now",
        )),
        changed => json(&Changed { changed }),
    }
}

pub(crate) async fn events(call: Call) -> Answer {
    let story = call.app.store.explain(call.frontier_id()?).await?;
    if story.row.is_none() && story.events.is_empty() {
        return Err(Problem::not_found("URL of this id"));
    }
    json(&List {
        items: story.events,
        next: None,
    })
}

pub(crate) async fn explain(call: Call) -> Answer {
    let url: String = call.needed("url")?;
    let url = FetchUrl::parse(&url)
        .map_err(|error| Problem::field("url", format!("url can't be used: {}", error.rule)))?;
    let id = target(url, &Rules::default()).id();
    let story = call.app.store.explain(id).await?;
    if story.row.is_none() && story.events.is_empty() && story.alias_of.is_none() {
        return Err(Problem::not_found("URL like this; it was never submitted"));
    }
    let mut answer = serde_json::to_value(&story).map_err(Problem::internal)?;
    answer["id"] = json!(id);
    json(&answer)
}
