//! Documents: full-text search with snippets, and one document as plain text.
//! HTML of strangers is never shown.

use maud::{Markup, html};
use serde_json::Value as Json;
use tidings_document::Document;
use tidings_engine::{NearDuplicateStory, near_duplicates, stored_document};
use tidings_sinks::{Hit, SearchQuery, Snippet};

use super::{outside, page, with_params, words};
use crate::api::documents::{frontier_id, searched};
use crate::call::{Answer, Call};
use crate::problem::Problem;

const HITS: usize = 20;

pub(crate) async fn show(call: Call) -> Answer {
    let offset: usize = call.parsed("offset")?.unwrap_or(0);
    let has_search = call.app.options.search_folder.is_some();
    let query = SearchQuery {
        source: call.text("source").map(str::to_owned),
        language: call.text("language").map(str::to_owned),
        limit: HITS,
        offset,
        ..SearchQuery::new(call.text("q").unwrap_or_default())
    };
    let results = match has_search {
        true => Some(searched(&call.app, query).await?),
        false => None,
    };
    let latest = match has_search {
        true => Vec::new(),
        false => call.app.store.documents_after(None, 50).await?,
    };
    let value = |name: &str| call.text(name).unwrap_or_default().to_owned();
    let content = html! {
        h1 { "Documents" }
        form.filters method="get" action="/documents" role="search" {
            input type="search" name="q" value=(value("q")) placeholder="Words, \"a phrase\", -without, title:word ( / )" aria-label="Words";
            input name="source" value=(value("source")) placeholder="source" aria-label="Source" size="16";
            input name="language" value=(value("language")) placeholder="language" aria-label="Language" size="8";
            button.main { "Search" }
        }
        div #live { section.card {
            @if let Some(results) = &results {
                p.soft { (words::number(results.total as i64)) " documents" @if call.text("q").is_none() { ", the newest first" } }
                @for hit in &results.hits { (hit_line(hit)) }
                @if results.hits.is_empty() {
                    p.empty { @if call.text("q").is_some() { "Nothing was found. Fewer words find more." } @else { "No documents yet. They come as soon as a source brings some." } }
                }
                p.more.row {
                    @if offset > 0 { a.button href=(with_params(&call, "/documents", &[("offset", None)])) { "First page" } }
                    @if offset + results.hits.len() < results.total {
                        a.button href=(with_params(&call, "/documents", &[("offset", Some(&(offset + HITS).to_string()))])) { "Next page" }
                    }
                }
            } @else {
                p.soft { "The embedded search is off (" code { "search.enabled" } "); these are some documents." }
                @if latest.is_empty() { p.empty { "There are none yet." } }
                @for stored in &latest { div.hit { a.title href={ "/documents/" (stored.frontier_id) } { (stored.title) } } }
            }
        } }
    };
    page(&call, "/documents", "Documents", &content)
}

fn hit_line(hit: &Hit) -> Markup {
    let date = hit.published_at.unwrap_or(hit.fetched_at);
    let title = if hit.title.trim().is_empty() {
        hit.url.as_str()
    } else {
        hit.title.as_str()
    };
    html! {
        div.hit {
            @match frontier_id(hit) {
                Some(id) => a.title href={ "/documents/" (id) } { (title) },
                None => b { (title) },
            }
            p.soft { (date.strftime("%Y-%m-%d %H:%M")) " · " (hit.source) @if let Some(language) = &hit.language { " · " (language) } }
            p { (marked(&hit.snippet)) }
        }
    }
}

/// A snippet with the words marked; places that are none are passed over.
fn marked(snippet: &Snippet) -> Markup {
    let text = snippet.text.as_str();
    let mut at = 0;
    let mut parts = Vec::new();
    for range in &snippet.highlights {
        let (Some(before), Some(word)) = (text.get(at..range.start), text.get(range.clone()))
        else {
            continue;
        };
        parts.push((before, word));
        at = range.end;
    }
    html! {
        @for (before, word) in &parts { (before) mark { (word) } }
        (text.get(at..).unwrap_or_default())
    }
}

pub(crate) async fn one(call: Call) -> Answer {
    let id = call.frontier_id()?;
    let stored = call.app.store.document(id).await?;
    let stored = stored.ok_or_else(|| Problem::not_found("document of this id"))?;
    let document = stored_document(&stored).map_err(Problem::internal)?;
    let waiting = call.app.store.explain(id).await?.deliveries;
    let others = near_duplicates(&call.app.store, &stored).await?;
    let content = html! {
        p.crumbs { a href="/documents" { "Documents" } " / " (document.source_name) }
        h1 { (document.title) }
        div.row.bar {
            a.button.small href={ "/frontier/" (id) } { "Timeline" }
            a.button.small href={ "/api/v1/documents/" (id) } { "JSON" }
        }
        div.reading {
            section.card.article {
                @if document.body_text.is_empty() { p { (document.excerpt) } }
                @for part in document.body_text.split("\n\n") { p { (part) } }
            }
            section.card { (facts(&document, &others, &waiting)) }
        }
    };
    page(&call, "/documents", &document.title, &content)
}

fn facts(document: &Document, others: &[NearDuplicateStory], waiting: &[Json]) -> Markup {
    let time = |at: Option<jiff::Timestamp>| {
        html! { @match at { Some(at) => time datetime=(at) title=(at) { (at.strftime("%Y-%m-%d %H:%M UTC")) }, None => "–" } }
    };
    html! {
        dl {
            dt { "Address" } dd { (outside(document.address())) }
            dt { "Published" } dd { (time(document.published_at)) }
            dt { "Fetched" } dd { (time(Some(document.fetched_at))) ", revision " (document.revision) }
            @if !document.authors.is_empty() { dt { "Authors" } dd { (document.authors.join(", ")) } }
            @if !document.tags.is_empty() { dt { "Tags" } dd { @for tag in &document.tags { span.badge { (tag) } " " } } }
            dt { "Text" } dd { (words::number(document.word_count as i64)) " words, " (document.content_quality) ", " (document.language.as_deref().unwrap_or("unknown language")) ", licence " (document.license) }
            dt { "Found by" } dd { (document.origin) ", extracted by " (document.extraction.method) " (" (format!("{:.0} %", document.extraction.confidence * 100.0)) ")" }
            @if !others.is_empty() {
                dt { "Also told by" }
                dd { @for other in others { a href={ "/documents/" (other.frontier_id) } { (other.source_name) ": " (other.title) } br; } }
            }
            @if let Some(first) = &document.duplicate_of { dt { "Same text as" } dd { code { (first) } } }
            dt { "Deliveries" } dd {
                @if waiting.is_empty() { "no sink waits for it" }
                @for (n, order) in waiting.iter().enumerate() {
                    @if n > 0 { ", " }
                    (order["sink"].as_str().unwrap_or_default()) " waits, after " (order["attempts"].to_string()) " tries"
                    @if let Some(error) = order["last_error"].as_str() { ": " (error) }
                }
            }
        }
    }
}
