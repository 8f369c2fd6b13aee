//! The sources: a list with their health, import and export.

use maud::{Markup, html};
use tidings_engine::{IngestionMode, ListFormat, SourceSettings, import_list, read_list};
use tidings_store::{Feed, Moment, Role, Source};

use super::forms::{csrf_field, has_role};
use super::layout::{page, redirect_with_notice};
use super::links::next_page;
use super::source_health::{self, Health, Polls};
use super::{chart, format};
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

const ROWS: u32 = 50;

pub(crate) async fn show(request: CheckedRequest) -> HandlerResult {
    let store = &request.app.store;
    let after = request.params.parsed("after")?.unwrap_or(i64::MIN);
    let mut sources = store.sources_after(after, ROWS + 1).await?;
    let has_more = sources.len() > ROWS as usize;
    sources.truncate(ROWS as usize);
    let next = sources
        .last()
        .filter(|_| has_more)
        .map(|last| last.source_id.to_string());
    let now = store.now().await?;
    let mut lines = Vec::new();
    for source in &sources {
        let feeds = store.feeds_of_source(source.source_id).await?;
        let polls = Polls::of(store, &feeds, source_health::LINE_POLLS).await?;
        lines.push(line(source, &feeds, &polls, now));
    }
    let content = html! {
        div.row.between {
            h1 { "Sources" }
            div.row {
                a.button href="/api/v1/sources/export?format=opml" { "OPML" }
                a.button href="/api/v1/sources/export?format=csv" { "CSV" }
                @if has_role(&request, Role::Operator) { a.button.main href="/sources/new" { "Add a source" } }
            }
        }
        div #live { section.card {
            @if lines.is_empty() { p.empty { "No sources yet. Add one, or import a list." } }
            @else { table.list {
                tr { th { "Source" } th { "Origin" } th { "Health" } th { "Items per day" } th { "Next poll" } th { "Last new item" } th.n { "Priority" } }
                @for line in &lines { (line) }
            } }
            (next_page(&request.params, "/sources", next.as_deref()))
        } }
        @if has_role(&request, Role::Operator) {
            section.card {
                h2 { "Import" }
                form method="post" action="/sources/import" {
                    (csrf_field(&request))
                    textarea name="list" required placeholder="OPML, CSV (first line: name,url,feed_url) or JSON lines" aria-label="List" {}
                    p.row {
                        select name="format" aria-label="Format" { option value="opml" { "OPML" } option value="csv" { "CSV" } option value="jsonl" { "JSON lines" } }
                        button { "Import" }
                    }
                }
            }
        }
    };
    page(&request, "/sources", "Sources", &content)
}

fn line(source: &Source, feeds: &[Feed], polls: &Polls, now: Moment) -> Markup {
    let settings = SourceSettings::of(source).unwrap_or_default();
    let next = feeds
        .iter()
        .filter(|feed| feed.paused_reason.is_none())
        .map(|feed| feed.next_poll_at)
        .min();
    let last_new = feeds.iter().filter_map(|feed| feed.last_new_at).max();
    let days = polls.by_day(now);
    let label = format!(
        "{} new items in {} days",
        format::number(days.iter().sum()),
        days.len()
    );
    html! { tr {
        td { a.strong href={ "/sources/" (source.source_id) } { (source.name) } small.cut { (source.url) } }
        td { span.badge { (mode(&settings, feeds)) } }
        td { (Health::of(source, feeds, &polls.rows).show()) }
        td { (chart::bars(&days, &label)) }
        td.t data-l="next poll" { (format::maybe_when(next.filter(|_| source.enabled), now)) }
        td.t data-l="last new item" { (format::maybe_when(last_new, now)) }
        td.n data-l="priority" { (source.priority) }
    } }
}

/// The origin of its URLs.
pub(super) fn mode(settings: &SourceSettings, feeds: &[Feed]) -> String {
    if settings.kind != "feed" {
        return settings.kind.clone();
    }
    let has = |kind: &str| feeds.iter().any(|feed| feed.kind == kind);
    let mode = match (
        settings.feed_url.is_some() || has("feed"),
        settings.sitemap_url.is_some() || has("sitemap"),
    ) {
        (true, true) => "feed + sitemap",
        (true, false) => "feed",
        (false, true) => "sitemap",
        (false, false) => "discovering a feed",
    };
    match settings.ingestion_mode {
        Some(IngestionMode::Spider) => "spider".to_owned(),
        Some(IngestionMode::Both) => format!("{mode} + spider"),
        _ => mode.to_owned(),
    }
}

pub(crate) async fn import(request: CheckedRequest) -> HandlerResult {
    let mut form = request.form();
    let list = form.remove("list").unwrap_or_default();
    let format = match form.remove("format").as_deref() {
        Some("opml") => ListFormat::Opml,
        Some("csv") => ListFormat::Csv,
        Some("jsonl") => ListFormat::JsonLines,
        _ => {
            return Err(Problem::field(
                "format",
                "format is not one of opml, csv, jsonl",
            ));
        }
    };
    let rows = read_list(format, list.as_bytes()).map_err(|why| Problem::field("list", why))?;
    let report = import_list(&request.app.store, rows, false, |_| {}).await?;
    if report.bad.is_empty() {
        return redirect_with_notice("/sources", "imported", Some(report.added as u64));
    }
    let content = html! {
        h1 { "Imported with errors" }
        section.card {
            p { (report.added) " added, " (report.known) " known, " (report.bad.len()) " invalid:" }
            table { @for (line, why) in &report.bad { tr { td.t { "line " (line) } td { (why) } } } }
            p { a.button href="/sources" { "Sources" } }
        }
    };
    page(&request, "/sources", "Import", &content)
}
