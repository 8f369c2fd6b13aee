//! The frontier: lists, totals, one URL and its hiexplanation.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use tidings_engine::SourceSettings;
use tidings_store::{Filter, HostId, Order, Origin, Store, Submission, Target, UrlRow};
use tidings_url::{FetchUrl, HostKey, ProxyHosts, Rules};

use crate::body_fields::BodyFields;
use crate::params::MAX_ID;
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::{Changed, HandlerResult, List, json};

/// After this a list returns the rows that it found so far.
pub(crate) const LIST_TIMEOUT: Duration = Duration::from_millis(80);

pub(crate) fn host_id(host: &str) -> HostId {
    HostId::of(&HostKey::from_stored(host.trim().to_lowercase()))
}

/// The filter that the parameters of a list describe.
pub(crate) fn filter(request: &CheckedRequest) -> Result<Filter, Problem> {
    Ok(Filter {
        status: request.params.parsed("status")?,
        source_id: request.params.parsed("source_id")?,
        host: request.params.text("host").map(host_id),
        origin: request.params.parsed("origin")?,
        reason: request.params.text("reason").map(str::to_owned),
        text: request.params.text("q").map(str::to_owned),
    })
}

/// The filter that a JSON object describes.
pub(crate) fn filter_from_body(mut fields: BodyFields) -> Result<Filter, Problem> {
    let filter = Filter {
        status: fields.parsed("status")?,
        source_id: fields.number("source_id", 0..=MAX_ID)?,
        host: fields.optional_text("host")?.as_deref().map(host_id),
        origin: fields.parsed("origin")?,
        reason: fields.optional_text("reason")?,
        text: fields.optional_text("q")?,
    };
    fields.finish()?;
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

pub(crate) async fn list(request: CheckedRequest) -> HandlerResult {
    let order: Order = request.params.parsed("order")?.unwrap_or_default();
    let after = request.params.parsed("after")?;
    let page = request
        .app
        .store
        .list_within(
            &filter(&request)?,
            order,
            after,
            request.params.limit()?,
            LIST_TIMEOUT,
        )
        .await?;
    json(&List::<UrlRow> {
        items: page.rows,
        next: page.next.map(|cursor| cursor.to_string()),
    })
}

pub(crate) async fn stats(request: CheckedRequest) -> HandlerResult {
    match request.params.text("host") {
        Some(host) => json(&request.app.store.host_stats(host_id(host)).await?),
        None => json(&request.app.store.stats().await?),
    }
}

/// The rules by which URLs of a source are canonicalized.
pub(crate) async fn rules(store: &Store, source_id: i64) -> Result<Rules, Problem> {
    if source_id == 0 {
        return Ok(Rules::default());
    }
    let source = store.source(source_id).await?;
    let Some(source) = source else {
        return Err(Problem::field(
            "source_id",
            format!("source {source_id} not found"),
        ));
    };
    let settings = SourceSettings::of(&source).unwrap_or_default();
    Ok(Rules {
        strip_params: settings.strip_params,
        keep_params: settings.keep_params,
        keep_trailing_slash: settings.keep_trailing_slash,
    })
}

pub(crate) fn target(url: FetchUrl, rules: &Rules, proxies: &ProxyHosts) -> Target {
    Target {
        key: url.canonical(rules).key(),
        host: url.host_key(proxies),
        url,
    }
}

pub(crate) async fn submit(request: CheckedRequest) -> HandlerResult {
    let mut fields = request.json()?;
    let url = fields.url("url")?;
    let source_id = fields.number("source_id", 0..=MAX_ID)?.unwrap_or(0);
    let priority = fields.number("priority", 1..=10)?.unwrap_or(5) as u8;
    fields.finish()?;
    let store = &request.app.store;
    let target = target(url, &rules(store, source_id).await?, store.proxy_hosts());
    let id = target.id();
    let submission = Submission {
        source_id,
        priority,
        ..Submission::new(target, Origin::Api)
    };
    let verdicts = request.app.store.submit(&[submission]).await?;
    json(&json!({ "id": id, "verdict": verdicts.first() }))
}

pub(crate) async fn get(request: CheckedRequest) -> HandlerResult {
    let row = request.app.store.url(request.params.frontier_id()?).await?;
    json(&row.ok_or_else(|| Problem::not_found("URL"))?)
}

pub(crate) async fn retry(request: CheckedRequest) -> HandlerResult {
    let changed = request
        .app
        .store
        .requeue(&[request.params.frontier_id()?])
        .await?;
    changed_response(changed)
}

pub(crate) async fn remove(request: CheckedRequest) -> HandlerResult {
    let changed = request
        .app
        .store
        .remove(&[request.params.frontier_id()?])
        .await?;
    changed_response(changed)
}

fn changed_response(changed: u64) -> HandlerResult {
    match changed {
        0 => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "URL not found, or it is being fetched right now",
        )),
        changed => json(&Changed { changed }),
    }
}

pub(crate) async fn events(request: CheckedRequest) -> HandlerResult {
    let explanation = request
        .app
        .store
        .explain(request.params.frontier_id()?)
        .await?;
    if explanation.row.is_none() && explanation.events.is_empty() {
        return Err(Problem::not_found("URL"));
    }
    json(&List {
        items: explanation.events,
        next: None,
    })
}

pub(crate) async fn explain(request: CheckedRequest) -> HandlerResult {
    let url: String = request.params.required("url")?;
    let url = FetchUrl::parse(&url)
        .map_err(|error| Problem::field("url", format!("url is invalid: {}", error.rule)))?;
    let proxies = request.app.store.proxy_hosts();
    let id = target(url, &Rules::default(), proxies).id();
    let explanation = request.app.store.explain(id).await?;
    if explanation.row.is_none() && explanation.events.is_empty() && explanation.alias_of.is_none()
    {
        return Err(Problem::new(
            StatusCode::NOT_FOUND,
            "URL not found; it was never submitted",
        ));
    }
    let mut body = serde_json::to_value(&explanation).map_err(Problem::internal)?;
    body["id"] = json!(id);
    json(&body)
}
