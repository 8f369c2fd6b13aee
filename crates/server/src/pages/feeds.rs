//! Feeds and sitemaps: when each is polled next and why, and its fetch log.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use maud::{Markup, html};
use serde_json::Value as Json;
use tidings_polling::State;
use tidings_store::{Feed, FetchLogRow, Moment};

use super::format;
use super::forms::button;
use super::layout::{page, redirect_with_notice};
use super::links::{external_link, next_page};
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

const ROWS: u32 = 50;

pub(crate) async fn show(request: CheckedRequest) -> HandlerResult {
    let store = &request.app.store;
    let after = request.params.parsed("after")?.unwrap_or(i64::MIN);
    let mut feeds = store.feeds_after(after, ROWS + 1).await?;
    let has_more = feeds.len() > ROWS as usize;
    feeds.truncate(ROWS as usize);
    let next = feeds
        .last()
        .filter(|_| has_more)
        .map(|last| last.feed_id.to_string());
    let now = store.now().await?;
    let mut names = BTreeMap::new();
    for feed in &feeds {
        if let Entry::Vacant(entry) = names.entry(feed.source_id) {
            let source = store.source(feed.source_id).await?;
            entry.insert(source.map_or_else(String::new, |source| source.name));
        }
    }
    let content = html! {
        h1 { "Feeds" }
        div #live { section.card {
            @if feeds.is_empty() { p.empty { "No feeds yet. Feeds belong to sources: " a href="/sources/new" { "add a source" } "." } }
            @else { table.list {
                tr { th { "Feed" } th { "State" } th { "Polled" } th { "Last new item" } th { "Next poll" } th.n { "Items" } }
                @for feed in &feeds { (line(feed, names.get(&feed.source_id).map_or("", String::as_str), now)) }
            } }
            (next_page(&request.params, "/feeds", next.as_deref()))
        } }
    };
    page(&request, "/feeds", "Feeds", &content)
}

fn state(feed: &Feed) -> Markup {
    html! {
        @if let Some(reason) = &feed.paused_reason { span.badge.bad { "paused" } " " small { (reason) } }
        @else if feed.consecutive_errors > 0 {
            span.badge.bad[feed.consecutive_errors > 2].warn[feed.consecutive_errors <= 2] {
                (feed.consecutive_errors) @if feed.consecutive_errors == 1 { " error" } @else { " consecutive errors" }
            }
            " " small { (feed.error_class.as_deref().unwrap_or_default()) }
        }
        @else if feed.last_polled_at.is_none() { span.badge { "new" } }
        @else { span.badge.good { "healthy" } }
    }
}

fn line(feed: &Feed, source: &str, now: Moment) -> Markup {
    html! { tr {
        td { a.cut href={ "/feeds/" (feed.feed_id) } title=(feed.url) { (feed.url) } small.cut { (feed.kind) " of " (source) } }
        td { (state(feed)) }
        td.t data-l="polled" { (format::maybe_when(feed.last_polled_at, now)) }
        td.t data-l="last new item" { (format::maybe_when(feed.last_new_at, now)) }
        td.t data-l="next poll" { (format::when(feed.next_poll_at, now)) }
        td.n data-l="items" { (format::number(feed.item_count)) }
    } }
}

pub(crate) async fn detail(request: CheckedRequest) -> HandlerResult {
    let id: i64 = request.params.required("id")?;
    let store = &request.app.store;
    let feed = store
        .feed(id)
        .await?
        .ok_or_else(|| Problem::not_found(&format!("feed {id}")))?;
    let log = store.fetch_log(id, 100).await?;
    let source = store.source(feed.source_id).await?;
    let now = store.now().await?;
    let content = html! {
        p.crumbs { a href="/feeds" { "Feeds" } " / " (feed.kind) }
        div.row.between { h1 { (source.as_ref().map_or(feed.url.as_str(), |source| source.name.as_str())) } (button(&request, &format!("/feeds/{id}/resume"), "Poll now", "main", None)) }
        div #live {
            section.card {
                dl {
                    dt { "State" } dd { (state(&feed)) }
                    dt { "URL" } dd { (external_link(&feed.url)) }
                    dt { "Source" } dd { a href={ "/sources/" (feed.source_id) } { (source.as_ref().map_or("removed", |source| source.name.as_str())) } }
                    dt { "Next poll" } dd { (format::when(feed.next_poll_at, now)) span.soft { " · " (schedule_reason(&feed)) } }
                    dt { "Last poll" } dd { (format::maybe_when(feed.last_polled_at, now)) }
                    dt { "Last new item" } dd { (format::maybe_when(feed.last_new_at, now)) }
                    @if let Some(error) = &feed.last_error { dt { "Last error" } dd { (error) } }
                }
                details { summary { "Polling model" } pre { (polling_model(&feed.policy)) } }
            }
            section.card { h2 { "Fetch log" } (log_table(&log, now)) }
        }
    };
    page(&request, "/feeds", "Feed", &content)
}

fn log_table(log: &[FetchLogRow], now: Moment) -> Markup {
    html! {
        @if log.is_empty() { p.empty { "Not polled yet." } }
        @else { table.list {
            tr { th { "When" } th { "Outcome" } th.n { "Items" } th.n { "New" } th.n { "Bytes" } th.n { "ms" } th { "Error" } }
            @for poll in log { tr {
                td.t { (format::when(poll.started_at, now)) }
                td { span.badge.bad[poll.outcome == "failed"].good[poll.items_new > 0] { (poll.outcome) } }
                td.n data-l="items" { (poll.items_seen) }
                td.n data-l="new" { (poll.items_new) }
                td.n data-l="bytes" { (format::number(poll.bytes)) }
                td.n data-l="ms" { (poll.elapsed_ms) }
                td.u { @if let Some(class) = &poll.error_class { (class) " " small { (poll.error_message.as_deref().unwrap_or_default()) } } }
            } }
        } }
    }
}

/// Why the next poll is when it is.
fn schedule_reason(feed: &Feed) -> String {
    if let Some(reason) = &feed.paused_reason {
        return format!("paused until resumed: {reason}");
    }
    match feed.consecutive_errors {
        0 if feed.last_polled_at.is_none() => "new: polled as soon as a poller is free".to_owned(),
        0 => {
            let policy: Json = serde_json::from_str(&feed.policy).unwrap_or_default();
            let state = State::from_json(&policy["polling"].to_string());
            format!("expected rate: {:.1} items per day", state.items_per_day())
        }
        1 => "backing off after an error".to_owned(),
        errors => format!("backing off after {errors} consecutive errors"),
    }
}

/// The state of the polling policy as indented JSON.
fn polling_model(policy: &str) -> String {
    let state: Json = serde_json::from_str(policy).unwrap_or_default();
    serde_json::to_string_pretty(&state).unwrap_or_else(|_| policy.to_owned())
}

pub(crate) async fn resume(request: CheckedRequest) -> HandlerResult {
    let id: i64 = request.params.required("id")?;
    let now = request.app.store.now().await?;
    request.app.store.resume_feed(id, now).await?;
    redirect_with_notice(&format!("/feeds/{id}"), "resumed", None)
}
