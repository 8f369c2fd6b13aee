//! The overview: the pipeline with its rates, problems, backlog and URL totals.

use maud::{Markup, html};
use tidings_store::Status;

use super::layout::page;
use super::{chart, format, problems, status};
use crate::history::{self, Sample};
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

const MAX_PROBLEMS: usize = 12;
/// Points of a chart.
const CHART_POINTS: usize = 120;

pub(crate) async fn show(request: CheckedRequest) -> HandlerResult {
    let store = &request.app.store;
    let now = history::sample(store).await?;
    let overdue = store.longest_overdue().await?;
    let sinks = store.outbox().await?;
    let stats = store.stats().await?;
    let of = |status: &str| stats.by_status.get(status).copied().unwrap_or(0);
    let problems = problems::find(&request, &sinks, overdue, now.at).await?;
    let has_sources = !store.sources_after(i64::MIN, 1).await?.is_empty();
    let pending_deliveries: i64 = sinks.iter().map(|sink| sink.waiting).sum();
    let content = html! {
        div.row.between { h1 { "Overview" } a.button.main href="/sources/new" { "Add a source" } }
        div #live {
            @if !has_sources {
                p.notice { "No sources yet. " a href="/sources/new" { "Add a site" } " and its feeds are discovered." }
            }
            (flow(&request, &now, sinks.iter().filter(|sink| sink.enabled).count()))
            section.card.problems[!problems.is_empty()] {
                h2 { "Problems" }
                @if problems.is_empty() { p.well { "No problems" } }
                @for problem in problems.iter().take(MAX_PROBLEMS) { (problem) }
                @if problems.len() > MAX_PROBLEMS { p.soft { "and " (problems.len() - MAX_PROBLEMS) " more: see " a href="/feeds" { "feeds" } " and " a href="/hosts" { "hosts" } } }
            }
            (charts(&request.app.history.all()))
            div.two {
                section.card {
                    h2 { "Backlog" }
                    dl {
                        dt { "Oldest overdue URL" } dd { (overdue.map_or("none".to_owned(), |late| format!("overdue by {}", format::duration(late)))) }
                        dt { "Retrying" } dd { a href="/frontier?status=failed" { (format::number(of("failed"))) } }
                        dt { "In flight" } dd { a href="/frontier?status=fetching" { (format::number(of("fetching"))) } }
                        dt { "Pending deliveries" } dd { a href="/sinks" { (format::number(pending_deliveries)) } }
                        dt { "Hosts" } dd { a href="/hosts" { (format::number(stats.hosts)) } }
                    }
                }
                section.card { h2 { "URL totals" } (totals(&now, &of)) }
            }
        }
    };
    page(&request, "/", "Overview", &content)
}

/// The pipeline of every URL, with the rate per minute of each step.
fn flow(request: &CheckedRequest, now: &Sample, sinks: usize) -> Markup {
    let rate = |of: fn(&Sample) -> i64| request.app.history.per_minute(of);
    let step = |path: &str, name: &str, count: i64, hint: &Markup| {
        html! { a.step href=(path) { span { (name) } b { (format::number(count)) } small { (hint) } } }
    };
    let rated = |rate: Option<f64>| {
        html! { @if let Some(rate) = rate { (format::number(rate.round() as i64)) " per minute" } @else { "measuring …" } }
    };
    let delivered = html! { (rated(rate(|s| s.delivered))) ", to " (sinks) @if sinks == 1 { " sink" } @else { " sinks" } };
    let queue = html! { @if now.queued == 0 { "queue empty" } @else { "waiting to be fetched" } };
    html! {
        div.flow {
            (step("/sources", "discovered", now.found, &rated(rate(|s| s.found))))
            (step("/frontier?status=pending", "queued", now.queued, &queue))
            (step("/frontier?status=fetched", "fetched", now.fetched, &rated(rate(|s| s.fetched))))
            (step("/sinks", "delivered", now.delivered, &delivered))
        }
    }
}

fn charts(samples: &[Sample]) -> Markup {
    let from = match (samples.first(), samples.last()) {
        (Some(first), Some(last)) => format!("{} ago", format::duration(last.at.since(first.at))),
        _ => String::new(),
    };
    let levels = |of: fn(&Sample) -> i64| {
        let levels: Vec<f64> = samples.iter().map(|sample| of(sample) as f64).collect();
        chart::thinned(&levels, CHART_POINTS)
    };
    html! {
        div.three {
            (titled("Fetched per minute", &rates(samples, |s| s.fetched), &from, ""))
            (titled("Queue", &levels(|s| s.queued), &from, ""))
            (titled("Retrying", &levels(|s| s.retrying), &from, ""))
            (titled("Failed or redirected", &levels(|s| s.dead), &from, "bad"))
        }
    }
}

/// Every URL has exactly one status, so the totals sum up.
fn totals(now: &Sample, of: &impl Fn(&str) -> i64) -> Markup {
    let sum: i64 = Status::ALL.iter().map(|status| of(status.as_str())).sum();
    html! {
        table.totals {
            @for status in Status::ALL {
                tr { td { a href={ "/frontier?status=" (status) } { (status::total_label(*status)) } } td.n { (format::number(of(status.as_str()))) } }
            }
            tr { td { b { "Total" } } td.n { b { (format::number(now.found)) } } }
        }
        @if sum == now.found { span.badge.good { "consistent" } }
        @else { span.badge.warn { "changing: " (format::number(sum)) " now" } }
    }
}

/// A chart with its name and its current value.
fn titled(name: &str, points: &[f64], from: &str, class: &str) -> Markup {
    let now = points.last().copied().unwrap_or(0.0);
    html! {
        section.card {
            h2.row.between { (name) span { (format::number(now.round() as i64)) } }
            (chart::line(points, name, from, class))
        }
    }
}

fn rates(samples: &[Sample], of: impl Fn(&Sample) -> i64) -> Vec<f64> {
    let rate = |pair: &[Sample]| {
        let minutes = (pair[1].at.0 - pair[0].at.0).max(1) as f64 / 60_000.0;
        (of(&pair[1]) - of(&pair[0])) as f64 / minutes
    };
    let rates: Vec<f64> = samples.windows(2).map(rate).collect();
    chart::thinned(&rates, CHART_POINTS)
}
