//! One URL: its status and its history.

use http::StatusCode;
use maud::{Markup, html};
use serde_json::{Map, Value as Json};
use tidings_store::{Event, Explanation, Moment};
use tidings_url::{FetchUrl, Rules};

use super::forms::button;
use super::layout::{page, redirect, redirect_with_notice};
use super::links::{external_link, segment};
use super::{format, status};
use crate::api::frontier::target;
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

pub(crate) async fn find(request: CheckedRequest) -> HandlerResult {
    let url: String = request.params.required("url")?;
    let url = FetchUrl::parse(&url).map_err(|error| Problem::field("url", error.to_string()))?;
    let target = target(url, &Rules::default(), request.app.store.proxy_hosts());
    redirect(&format!("/frontier/{}", target.id()))
}

pub(crate) async fn show(request: CheckedRequest) -> HandlerResult {
    let id = request.params.frontier_id()?;
    let store = &request.app.store;
    let explanation = store.explain(id).await?;
    if explanation.row.is_none() && explanation.events.is_empty() && explanation.alias_of.is_none()
    {
        return Err(Problem::not_found("URL"));
    }
    let now = store.now().await?;
    let has_document = store.document(id).await?.is_some();
    let title = explanation
        .row
        .as_ref()
        .map_or("Deleted URL", |row| row.url.as_str());
    let path = format!("/frontier/{id}");
    let content = html! {
        p.crumbs { a href="/frontier" { "Frontier" } " / URL" }
        h1 { (title) }
        div.row.bar {
            (button(&request, &format!("{path}/retry"), "Retry now", "", None))
            (button(&request, &format!("{path}/delete"), "Delete", "danger", Some("Delete this URL from the frontier?")))
            @if has_document { a.button.small href={ "/documents/" (id) } { "Document" } }
        }
        div #live {
            div.two {
                section.card { h2 { "Status" } (facts(&explanation, now)) }
                section.card { h2 { "History" } (timeline(&explanation.events, now)) }
            }
        }
    };
    page(&request, "/frontier", "URL", &content)
}

fn facts(explanation: &Explanation, now: Moment) -> Markup {
    html! {
        @if let Some(row) = &explanation.row {
            dl {
                dt { "Status" } dd { (status::badge(row.status, row.reason.as_deref())) @if let Some(reason) = &row.reason { " " (reason) } }
                dt { "URL" } dd { (external_link(&row.url)) }
                dt { "Host" } dd { a href={ "/hosts/" (segment(&row.host)) } { (row.host) } }
                dt { "Origin" } dd { (row.origin) @if row.source_id != 0 { " of " a href={ "/sources/" (row.source_id) } { "source " (row.source_id) } } }
                @if let Some(parent) = &row.parent_url { dt { "Found on" } dd { (external_link(parent)) } }
                dt { "Priority, depth" } dd { (row.priority) ", " (row.depth) }
                dt { "Next fetch" } dd { (format::maybe_when(row.next_fetch_at, now)) }
                dt { "Last fetch" } dd { (format::maybe_when(row.last_fetched_at, now)) }
                dt { "Fetches, attempts, retries" } dd { (row.fetch_count) ", " (row.attempts) ", " (row.retry_count) }
                @if let Some(error) = &row.last_error { dt { "Last error" } dd { (error) } }
                dt { "Id" } dd { code { (row.id) } }
            }
        } @else { p { "Not in the frontier any more." } }
        @if let Some(alias) = explanation.alias_of { p { "Redirects to " a href={ "/frontier/" (alias) } { "this URL" } "." } }
        @if !explanation.deliveries.is_empty() {
            h2 { "Pending deliveries" }
            ul { @for delivery in &explanation.deliveries { li { (text(&delivery["sink"])) ": " (text(&delivery["attempts"])) " attempts " (text(&delivery["last_error"])) } } }
        }
    }
}

fn timeline(events: &[Event], now: Moment) -> Markup {
    html! {
        ol.line {
            @for event in events {
                @let (label, class) = status::event_label(&event.kind, event.detail["reason"].as_str());
                li class=(class) {
                    b { (label) } " " small { (format::when(event.at, now)) }
                    @if let Some(fields) = event.detail.as_object() { div.soft { (details(fields)) } }
                }
            }
        }
        @if events.is_empty() { p.empty { "No events yet." } }
    }
}

/// The details of an event in one line.
fn details(fields: &Map<String, Json>) -> String {
    let known = fields.iter().filter(|(_, value)| !value.is_null());
    let shown: Vec<_> = known
        .map(|(name, value)| format!("{} {}", name.replace('_', " "), text(value)))
        .collect();
    shown.join(" · ")
}

fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Null => String::new(),
        other => other.to_string(),
    }
}

pub(crate) async fn retry(request: CheckedRequest) -> HandlerResult {
    let id = request.params.frontier_id()?;
    match request.app.store.requeue(&[id]).await? {
        0 => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "URL not found, or it is being fetched right now",
        )),
        _ => redirect_with_notice(&format!("/frontier/{id}"), "retried", None),
    }
}

pub(crate) async fn delete(request: CheckedRequest) -> HandlerResult {
    let id = request.params.frontier_id()?;
    match request.app.store.remove(&[id]).await? {
        0 => Err(Problem::not_found("URL")),
        _ => redirect_with_notice("/frontier", "deleted", None),
    }
}
