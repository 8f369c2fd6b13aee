//! Documents: full-text search with snippets, and one document as plain text.
//! Untrusted HTML is never shown.

use maud::{Markup, html};
use serde_json::Value as Json;
use tidings_document::Document;
use tidings_engine::{NearDuplicateStory, near_duplicates, stored_document};
use tidings_sinks::{Hit, SearchQuery, Snippet};
use tidings_url::ProxyHosts;

use super::format;
use super::layout::page;
use super::links::{external_link, with_params};
use crate::api::documents::{frontier_id, run_search};
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

const HITS: usize = 20;

pub(crate) async fn show(request: CheckedRequest) -> HandlerResult {
    let offset: usize = request.params.parsed("offset")?.unwrap_or(0);
    let has_search = request.app.options.search_folder.is_some();
    let query = SearchQuery {
        source: request.params.text("source").map(str::to_owned),
        language: request.params.text("language").map(str::to_owned),
        limit: HITS,
        offset,
        ..SearchQuery::new(request.params.text("q").unwrap_or_default())
    };
    let results = match has_search {
        true => Some(run_search(&request.app, query).await?),
        false => None,
    };
    let latest = match has_search {
        true => Vec::new(),
        false => request.app.store.documents_after(None, 50).await?,
    };
    let value = |name: &str| request.params.text(name).unwrap_or_default().to_owned();
    let content = html! {
        h1 { "Documents" }
        form.filters method="get" action="/documents" role="search" {
            input type="search" name="q" value=(value("q")) placeholder="Words, \"a phrase\", -without, title:word ( / )" aria-label="Search";
            input name="source" value=(value("source")) placeholder="source" aria-label="Source" size="16";
            input name="language" value=(value("language")) placeholder="language" aria-label="Language" size="8";
            button.main { "Search" }
        }
        div #live { section.card {
            @if let Some(results) = &results {
                p.soft { (format::number(results.total as i64)) " documents" @if request.params.text("q").is_none() { ", newest first" } }
                @for hit in &results.hits { (hit_line(hit, request.app.store.proxy_hosts())) }
                @if results.hits.is_empty() {
                    p.empty { @if request.params.text("q").is_some() { "No document matches. Try fewer words." } @else { "No documents yet. Add a source to fetch some." } }
                }
                p.more.row {
                    @if offset > 0 { a.button href=(with_params(&request.params, "/documents", &[("offset", None)])) { "First page" } }
                    @if offset + results.hits.len() < results.total {
                        a.button href=(with_params(&request.params, "/documents", &[("offset", Some(&(offset + HITS).to_string()))])) { "Next page" }
                    }
                }
            } @else {
                p.soft { "The embedded search is disabled (" code { "search.enabled" } "); this is a sample of the documents." }
                @if latest.is_empty() { p.empty { "No documents yet." } }
                @for stored in &latest { div.hit { a.title href={ "/documents/" (stored.frontier_id) } { (stored.title) } } }
            }
        } }
    };
    page(&request, "/documents", "Documents", &content)
}

fn hit_line(hit: &Hit, proxies: &ProxyHosts) -> Markup {
    let date = hit.published_at.unwrap_or(hit.fetched_at);
    let title = if hit.title.trim().is_empty() {
        hit.url.as_str()
    } else {
        hit.title.as_str()
    };
    html! {
        div.hit {
            @match frontier_id(hit, proxies) {
                Some(id) => a.title href={ "/documents/" (id) } { (title) },
                None => b { (title) },
            }
            p.soft { (date.strftime("%Y-%m-%d %H:%M")) " · " (hit.source) @if let Some(language) = &hit.language { " · " (language) } }
            p { (marked(&hit.snippet)) }
        }
    }
}

/// A snippet with its highlights marked; invalid ranges are skipped.
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

pub(crate) async fn detail(request: CheckedRequest) -> HandlerResult {
    let id = request.params.frontier_id()?;
    let stored = request.app.store.document(id).await?;
    let stored = stored.ok_or_else(|| Problem::not_found("document"))?;
    let document = stored_document(&stored).map_err(Problem::internal)?;
    let pending = request.app.store.explain(id).await?.deliveries;
    let duplicates = near_duplicates(&request.app.store, &stored).await?;
    let content = html! {
        p.crumbs { a href="/documents" { "Documents" } " / " (document.source_name) }
        h1 { (document.title) }
        div.row.bar {
            a.button.small href={ "/frontier/" (id) } { "History" }
            a.button.small href={ "/api/v1/documents/" (id) } { "JSON" }
        }
        div.reading {
            section.card.article {
                @if document.body_text.is_empty() { p { (document.excerpt) } }
                @for part in document.body_text.split("\n\n") { p { (part) } }
            }
            section.card { (facts(&document, &duplicates, &pending)) }
        }
    };
    page(&request, "/documents", &document.title, &content)
}

fn facts(document: &Document, duplicates: &[NearDuplicateStory], pending: &[Json]) -> Markup {
    let time = |at: Option<jiff::Timestamp>| {
        html! { @match at { Some(at) => time datetime=(at) title=(at) { (at.strftime("%Y-%m-%d %H:%M UTC")) }, None => "–" } }
    };
    html! {
        dl {
            dt { "URL" } dd { (external_link(document.address())) }
            dt { "Published" } dd { (time(document.published_at)) }
            dt { "Fetched" } dd { (time(Some(document.fetched_at))) ", revision " (document.revision) }
            @if !document.authors.is_empty() { dt { "Authors" } dd { (document.authors.join(", ")) } }
            @if !document.tags.is_empty() { dt { "Tags" } dd { @for tag in &document.tags { span.badge { (tag) } " " } } }
            @if document.important { dt { "Important" } dd { "yes" } }
            dt { "Text" } dd { (format::number(document.word_count as i64)) " words, " (document.content_quality) ", " (document.language.as_deref().unwrap_or("unknown language")) ", licence " (document.license) }
            dt { "Origin" } dd { (document.origin) ", extracted by " (document.extraction.method) " (" (format!("{:.0} %", document.extraction.confidence * 100.0)) ")" }
            @if !duplicates.is_empty() {
                dt { "Near-duplicates" }
                dd { @for other in duplicates { a href={ "/documents/" (other.frontier_id) } { (other.source_name) ": " (other.title) } br; } }
            }
            @if let Some(first) = &document.duplicate_of { dt { "Duplicate of" } dd { code { (first) } } }
            dt { "Deliveries" } dd {
                @if pending.is_empty() { "delivered to all sinks" }
                @for (n, delivery) in pending.iter().enumerate() {
                    @if n > 0 { ", " }
                    (delivery["sink"].as_str().unwrap_or_default()) " pending after " (delivery["attempts"].to_string()) " attempts"
                    @if let Some(error) = delivery["last_error"].as_str() { ": " (error) }
                }
            }
        }
    }
}
