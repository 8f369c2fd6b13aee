//! One URL: where it stands, and everything that happened to it.

use maud::{Markup, html};
use serde_json::{Map, Value as Json};
use tidings_store::{Event, Explanation, Moment};
use tidings_url::{FetchUrl, Rules};

use super::{button, outside, page, see, see_done, words};
use crate::api::frontier::target;
use crate::call::{Answer, Call};
use crate::problem::Problem;

pub(crate) async fn find(call: Call) -> Answer {
    let url: String = call.needed("url")?;
    let url = FetchUrl::parse(&url).map_err(|error| Problem::field("url", error.to_string()))?;
    see(&format!(
        "/frontier/{}",
        target(url, &Rules::default()).id()
    ))
}

pub(crate) async fn show(call: Call) -> Answer {
    let id = call.frontier_id()?;
    let store = &call.app.store;
    let story = store.explain(id).await?;
    if story.row.is_none() && story.events.is_empty() && story.alias_of.is_none() {
        return Err(Problem::not_found("URL of this id"));
    }
    let now = store.now().await?;
    let has_document = store.document(id).await?.is_some();
    let title = story
        .row
        .as_ref()
        .map_or("A URL that was removed", |row| row.url.as_str());
    let path = format!("/frontier/{id}");
    let content = html! {
        p.crumbs { a href="/frontier" { "Frontier" } " / URL" }
        h1 { (title) }
        div.row.bar {
            (button(&call, &format!("{path}/retry"), "Fetch again now", "", None))
            (button(&call, &format!("{path}/delete"), "Delete", "danger", Some("Take this URL out of the frontier?")))
            @if has_document { a.button.small href={ "/documents/" (id) } { "Document" } }
        }
        div #live {
            div.two {
                section.card { h2 { "Where it stands" } (standing(&story, now)) }
                section.card { h2 { "What happened" } (timeline(&story.events, now)) }
            }
        }
    };
    page(&call, "/frontier", "URL", &content)
}

fn standing(story: &Explanation, now: Moment) -> Markup {
    html! {
        @if let Some(row) = &story.row {
            dl {
                dt { "Status" } dd { (words::status(row.status)) @if let Some(reason) = &row.reason { " " (reason) } }
                dt { "Address" } dd { (outside(&row.url)) }
                dt { "Host" } dd { a href={ "/hosts/" (super::segment(&row.host)) } { (row.host) } }
                dt { "Found by" } dd { (row.origin) @if row.source_id != 0 { " of " a href={ "/sources/" (row.source_id) } { "source " (row.source_id) } } }
                @if let Some(parent) = &row.parent_url { dt { "Found on" } dd { (outside(parent)) } }
                dt { "Priority, depth" } dd { (row.priority) ", " (row.depth) }
                dt { "Next fetch" } dd { (words::maybe_when(row.next_fetch_at, now)) }
                dt { "Last fetch" } dd { (words::maybe_when(row.last_fetched_at, now)) }
                dt { "Fetches, tries, retries" } dd { (row.fetch_count) ", " (row.attempts) ", " (row.retry_count) }
                @if let Some(error) = &row.last_error { dt { "Last error" } dd { (error) } }
                dt { "Id" } dd { code { (row.id) } }
            }
        } @else { p { "It is not in the frontier any more." } }
        @if let Some(alias) = story.alias_of { p { "It is another name of " a href={ "/frontier/" (alias) } { "this page" } "." } }
        @if !story.deliveries.is_empty() {
            h2 { "Waiting for" }
            ul { @for delivery in &story.deliveries { li { (text(&delivery["sink"])) ": " (text(&delivery["attempts"])) " tries " (text(&delivery["last_error"])) } } }
        }
    }
}

fn timeline(events: &[Event], now: Moment) -> Markup {
    html! {
        ol.line {
            @for event in events {
                @let class = match event.kind.as_str() { "fetched" | "not_modified" => "good", "failed" | "dead" | "quarantined" => "bad", _ => "" };
                li class=(class) {
                    b { (event.kind) } " " small { (words::when(event.at, now)) }
                    @if let Some(fields) = event.detail.as_object() { div.soft { (told(fields)) } }
                }
            }
        }
        @if events.is_empty() { p.empty { "Nothing yet." } }
    }
}

/// The details of an event in one line.
fn told(fields: &Map<String, Json>) -> String {
    let known = fields.iter().filter(|(_, value)| !value.is_null());
    let told: Vec<_> = known
        .map(|(name, value)| format!("{} {}", name.replace('_', " "), text(value)))
        .collect();
    told.join(" · ")
}

fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Null => String::new(),
        other => other.to_string(),
    }
}

pub(crate) async fn retry(call: Call) -> Answer {
    let id = call.frontier_id()?;
    match call.app.store.requeue(&[id]).await? {
        0 => Err(Problem::not_found(
            "URL of this id, or it is being fetched right now",
        )),
        _ => see_done(&format!("/frontier/{id}"), "retried", None),
    }
}

pub(crate) async fn delete(call: Call) -> Answer {
    let id = call.frontier_id()?;
    match call.app.store.remove(&[id]).await? {
        0 => Err(Problem::not_found("URL of this id")),
        _ => see_done("/frontier", "deleted", None),
    }
}
