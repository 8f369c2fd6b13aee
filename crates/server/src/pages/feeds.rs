//! Feeds and sitemaps: when each is due and why, and its last polls.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use maud::{Markup, html};
use serde_json::Value as Json;
use tidings_polling::State;
use tidings_store::{Feed, FetchLogRow, Moment};

use super::{button, next_page, outside, page, see_done, words};
use crate::call::{Answer, Call};
use crate::problem::Problem;

const ROWS: u32 = 50;

pub(crate) async fn show(call: Call) -> Answer {
    let store = &call.app.store;
    let after = call.parsed("after")?.unwrap_or(i64::MIN);
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
        if let Entry::Vacant(place) = names.entry(feed.source_id) {
            let source = store.source(feed.source_id).await?;
            place.insert(source.map_or_else(String::new, |source| source.name));
        }
    }
    let content = html! {
        h1 { "Feeds" }
        div #live { section.card {
            @if feeds.is_empty() { p.empty { "No feeds yet. They come with sources: " a href="/sources/new" { "add one" } "." } }
            @else { table.list {
                tr { th { "Feed" } th { "State" } th { "Polled" } th { "Last news" } th { "Next poll" } th.n { "Items" } }
                @for feed in &feeds { (line(feed, names.get(&feed.source_id).map_or("", String::as_str), now)) }
            } }
            (next_page(&call, "/feeds", next.as_deref()))
        } }
    };
    page(&call, "/feeds", "Feeds", &content)
}

fn state(feed: &Feed) -> Markup {
    html! {
        @if let Some(reason) = &feed.paused_reason { span.badge.bad { "paused" } " " small { (reason) } }
        @else if feed.consecutive_errors > 0 {
            span.badge.bad[feed.consecutive_errors > 2].warn[feed.consecutive_errors <= 2] {
                (feed.consecutive_errors) @if feed.consecutive_errors == 1 { " error" } @else { " errors in a row" }
            }
            " " small { (feed.error_class.as_deref().unwrap_or_default()) }
        }
        @else if feed.last_polled_at.is_none() { span.badge { "new" } }
        @else { span.badge.good { "good" } }
    }
}

fn line(feed: &Feed, source: &str, now: Moment) -> Markup {
    html! { tr {
        td { a.cut href={ "/feeds/" (feed.feed_id) } title=(feed.url) { (feed.url) } small.cut { (feed.kind) " of " (source) } }
        td { (state(feed)) }
        td.t data-l="polled" { (words::maybe_when(feed.last_polled_at, now)) }
        td.t data-l="last news" { (words::maybe_when(feed.last_new_at, now)) }
        td.t data-l="next poll" { (words::when(feed.next_poll_at, now)) }
        td.n data-l="items" { (words::number(feed.item_count)) }
    } }
}

pub(crate) async fn one(call: Call) -> Answer {
    let id: i64 = call.needed("id")?;
    let store = &call.app.store;
    let feed = store
        .feed(id)
        .await?
        .ok_or_else(|| Problem::not_found(&format!("feed {id}")))?;
    let log = store.fetch_log(id, 100).await?;
    let source = store.source(feed.source_id).await?;
    let now = store.now().await?;
    let content = html! {
        p.crumbs { a href="/feeds" { "Feeds" } " / " (feed.kind) }
        div.row.between { h1 { (source.as_ref().map_or(feed.url.as_str(), |source| source.name.as_str())) } (button(&call, &format!("/feeds/{id}/wake"), "Poll now", "main", None)) }
        div #live {
            section.card {
                dl {
                    dt { "State" } dd { (state(&feed)) }
                    dt { "Address" } dd { (outside(&feed.url)) }
                    dt { "Source" } dd { a href={ "/sources/" (feed.source_id) } { (source.as_ref().map_or("removed", |source| source.name.as_str())) } }
                    dt { "Next poll" } dd { (words::when(feed.next_poll_at, now)) span.soft { " · " (why(&feed)) } }
                    dt { "Last poll" } dd { (words::maybe_when(feed.last_polled_at, now)) }
                    dt { "Last news" } dd { (words::maybe_when(feed.last_new_at, now)) }
                    @if let Some(error) = &feed.last_error { dt { "Last error" } dd { (error) } }
                }
                details { summary { "What the policy has learned" } pre { (learned(&feed.policy)) } }
            }
            section.card { h2 { "Fetch log" } (log_table(&log, now)) }
        }
    };
    page(&call, "/feeds", "Feed", &content)
}

fn log_table(log: &[FetchLogRow], now: Moment) -> Markup {
    html! {
        @if log.is_empty() { p.empty { "It was not polled yet." } }
        @else { table.list {
            tr { th { "When" } th { "Outcome" } th.n { "Items" } th.n { "New" } th.n { "Bytes" } th.n { "ms" } th { "Error" } }
            @for poll in log { tr {
                td.t { (words::when(poll.started_at, now)) }
                td { span.badge.bad[poll.outcome == "failed"].good[poll.items_new > 0] { (poll.outcome) } }
                td.n data-l="items" { (poll.items_seen) }
                td.n data-l="new" { (poll.items_new) }
                td.n data-l="bytes" { (words::number(poll.bytes)) }
                td.n data-l="ms" { (poll.elapsed_ms) }
                td.u { @if let Some(class) = &poll.error_class { (class) " " small { (poll.error_message.as_deref().unwrap_or_default()) } } }
            } }
        } }
    }
}

/// Why it is polled when it is, in a sentence.
fn why(feed: &Feed) -> String {
    if let Some(reason) = &feed.paused_reason {
        return format!("not before somebody says so: {reason}");
    }
    match feed.consecutive_errors {
        0 if feed.last_polled_at.is_none() => "new, so as soon as a poller is free".to_owned(),
        0 => {
            let memory: Json = serde_json::from_str(&feed.policy).unwrap_or_default();
            let state = State::from_json(&memory["polling"].to_string());
            format!(
                "about {:.1} items a day are expected of it",
                state.items_per_day()
            )
        }
        1 => "after an error it is asked less often".to_owned(),
        errors => format!("after {errors} errors in a row it is asked less often"),
    }
}

/// JSON as people read it.
fn learned(policy: &str) -> String {
    let memory: Json = serde_json::from_str(policy).unwrap_or_default();
    serde_json::to_string_pretty(&memory).unwrap_or_else(|_| policy.to_owned())
}

pub(crate) async fn wake(call: Call) -> Answer {
    let id: i64 = call.needed("id")?;
    let now = call.app.store.now().await?;
    call.app.store.resume_feed(id, now).await?;
    see_done(&format!("/feeds/{id}"), "woken", None)
}
