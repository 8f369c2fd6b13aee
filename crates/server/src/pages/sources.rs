//! The sources: a list with their health, and lists to bring and take away.

use maud::{Markup, html};
use tidings_engine::{IngestionMode, ListFormat, SourceSettings, import_list, read_list};
use tidings_store::{Feed, Moment, Role, Source};

use super::health::{self, Health, Polls};
use super::{chart, may, next_page, page, see_done, token, words};
use crate::call::{Answer, Call};
use crate::problem::Problem;

const ROWS: u32 = 50;

pub(crate) async fn show(call: Call) -> Answer {
    let store = &call.app.store;
    let after = call.parsed("after")?.unwrap_or(i64::MIN);
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
        let polls = Polls::of(store, &feeds, health::FOR_A_LINE).await?;
        lines.push(line(source, &feeds, &polls, now));
    }
    let content = html! {
        div.row.between {
            h1 { "Sources" }
            div.row {
                a.button href="/api/v1/sources/export?format=opml" { "OPML" }
                a.button href="/api/v1/sources/export?format=csv" { "CSV" }
                @if may(&call, Role::Operator) { a.button.main href="/sources/new" { "Add a source" } }
            }
        }
        div #live { section.card {
            @if lines.is_empty() { p.empty { "No sources yet. Add one, or bring a list." } }
            @else { table.list {
                tr { th { "Source" } th { "Found by" } th { "Health" } th { "Items a day" } th { "Next poll" } th { "Last news" } th.n { "Priority" } }
                @for line in &lines { (line) }
            } }
            (next_page(&call, "/sources", next.as_deref()))
        } }
        @if may(&call, Role::Operator) {
            section.card {
                h2 { "Bring a list" }
                form method="post" action="/sources/import" {
                    (token(&call))
                    textarea name="list" required placeholder="OPML, CSV (first line: name,url,feed_url) or JSON lines" aria-label="The list" {}
                    p.row {
                        select name="format" aria-label="Format" { option value="opml" { "OPML" } option value="csv" { "CSV" } option value="jsonl" { "JSON lines" } }
                        button { "Import" }
                    }
                }
            }
        }
    };
    page(&call, "/sources", "Sources", &content)
}

fn line(source: &Source, feeds: &[Feed], polls: &Polls, now: Moment) -> Markup {
    let settings = SourceSettings::of(source).unwrap_or_default();
    let next = feeds
        .iter()
        .filter(|feed| feed.paused_reason.is_none())
        .map(|feed| feed.next_poll_at)
        .min();
    let news = feeds.iter().filter_map(|feed| feed.last_new_at).max();
    let days = polls.by_day(now);
    let label = format!(
        "{} new items in {} days",
        words::number(days.iter().sum()),
        days.len()
    );
    html! { tr {
        td { a.strong href={ "/sources/" (source.source_id) } { (source.name) } small.cut { (source.url) } }
        td { span.badge { (mode(&settings, feeds)) } }
        td { (Health::of(source, feeds, &polls.rows).show()) }
        td { (chart::bars(&days, &label)) }
        td.t data-l="next poll" { (words::maybe_when(next.filter(|_| source.enabled), now)) }
        td.t data-l="last news" { (words::maybe_when(news, now)) }
        td.n data-l="priority" { (source.priority) }
    } }
}

/// How its articles are found.
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
        (false, false) => "looking for a feed",
    };
    match settings.ingestion_mode {
        Some(IngestionMode::Spider) => "spider".to_owned(),
        Some(IngestionMode::Both) => format!("{mode} + spider"),
        _ => mode.to_owned(),
    }
}

pub(crate) async fn import(call: Call) -> Answer {
    let mut form = call.form();
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
    let report = import_list(&call.app.store, rows, false, |_| {}).await?;
    if report.bad.is_empty() {
        return see_done("/sources", "imported", Some(report.added as u64));
    }
    let content = html! {
        h1 { "Imported, but for some rows" }
        section.card {
            p { (report.added) " added, " (report.known) " known, " (report.bad.len()) " can't be used:" }
            table { @for (line, why) in &report.bad { tr { td.t { "line " (line) } td { (why) } } } }
            p { a.button href="/sources" { "Sources" } }
        }
    };
    page(&call, "/sources", "Import", &content)
}
