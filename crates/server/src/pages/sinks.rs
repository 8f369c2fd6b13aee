//! Sinks: backlog and lag of each, which process serves it, dead letters, replay;
//! disabling, enabling and removing one.

use jiff::Timestamp;
use maud::{Markup, html};
use tidings_store::{DeadLetter, Moment, OutboxState, Role, StoredDocument};

use super::format;
use super::forms::{button, csrf_field, has_role};
use super::layout::{page, redirect_with_notice};
use super::links::segment;
use crate::api::sinks::find_sink;
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

pub(crate) async fn show(request: CheckedRequest) -> HandlerResult {
    let sinks = request.app.store.outbox().await?;
    let now = request.app.store.now().await?;
    let content = html! {
        h1 { "Sinks" }
        div #live { section.card {
            @if sinks.is_empty() { p.empty { "No sinks yet. Sinks are configured in the configuration file." } }
            @else { table.list {
                tr { th { "Sink" } th { "State" } th.n { "Delivered" } th.n { "Pending" } th { "Lag" } th.n { "Dead letters" } }
                @for sink in &sinks { (line(sink, now)) }
            } }
        } }
    };
    page(&request, "/sinks", "Sinks", &content)
}

fn state(sink: &OutboxState, now: Moment) -> Markup {
    html! {
        @if !sink.enabled { span.badge { "disabled" } }
        @else if sink.is_unserved(now) { span.badge.bad { "not served" } }
        @else if sink.dead > 0 { span.badge.bad { "dead letters" } }
        @else if sink.waiting > 0 { span.badge { "delivering" } }
        @else { span.badge.good { "up to date" } }
    }
}

fn line(sink: &OutboxState, now: Moment) -> Markup {
    html! { tr {
        td { a.strong href={ "/sinks/" (segment(&sink.sink)) } { (sink.sink) } }
        td { (state(sink, now)) }
        td.n data-l="delivered" { (format::number(sink.delivered)) }
        td.n data-l="pending" { (format::number(sink.waiting)) }
        td.t data-l="lag" { (sink.oldest.map_or("–".to_owned(), |oldest| format::duration(now.since(oldest)))) }
        td.n data-l="dead letters" { (format::number(sink.dead)) }
    } }
}

pub(crate) async fn detail(request: CheckedRequest) -> HandlerResult {
    let name = find_sink(&request).await?;
    let store = &request.app.store;
    let sinks = store.outbox().await?;
    let dead = store.dead_letters(&name, None, 100).await?;
    let ids: Vec<_> = dead.iter().map(|letter| letter.id).collect();
    let titles = store.documents(&ids).await?;
    let now = store.now().await?;
    let path = format!("/sinks/{}", segment(&name));
    let content = html! {
        p.crumbs { a href="/sinks" { "Sinks" } " / " (name) }
        h1 { (name) }
        div #live {
            @for sink in sinks.iter().filter(|sink| sink.sink == name) {
                (service(&request, sink, now))
                div.grid {
                    div.stat { span { "delivered" } b { (format::number(sink.delivered)) } }
                    div.stat { span { "pending" } b { (format::number(sink.waiting)) } }
                    div.stat { span { "dead letters" } b { (format::number(sink.dead)) } }
                    div.stat { span { "lag" } b { (sink.oldest.map_or("–".to_owned(), |oldest| format::duration(now.since(oldest)))) } }
                }
            }
            section.card {
                div.row.between { h2 { "Dead letters" } @if !dead.is_empty() { (button(&request, &format!("{path}/retry"), "Retry all", "main", None)) } }
                @if dead.is_empty() { p.empty { "None." } }
                @else { table.list {
                    tr { th { "Document" } th { "Reason" } th { "When" } }
                    @for letter in &dead { tr {
                        td.u { a href={ "/documents/" (letter.id) } { (title(&titles, letter)) } }
                        td.u { (letter.reason) }
                        td.t { (format::when(letter.died_at, now)) }
                    } }
                }
                @if dead.len() == 100 { p.soft { "Only the latest 100 are shown." } } }
            }
        }
        @if has_role(&request, Role::Operator) {
            section.card {
                h2 { "Replay" }
                form.row method="post" action={ (path) "/replay" } data-confirm="Replay these documents to the sink?" {
                    (csrf_field(&request))
                    input name="since" placeholder="2026-11-01T00:00:00Z (empty: all)" aria-label="Since" size="30";
                    button { "Replay" }
                }
                p.soft { "Delivers every document fetched since then once more. Deliveries are idempotent." }
            }
        }
    };
    page(&request, "/sinks", &name, &content)
}

/// Whether it is enabled and who serves it, and the buttons to change that.
fn service(request: &CheckedRequest, sink: &OutboxState, now: Moment) -> Markup {
    let path = format!("/sinks/{}", segment(&sink.sink));
    let seen = sink.last_seen.map_or("never".to_owned(), |seen| {
        format!("{} ago", format::duration(now.since(seen)))
    });
    html! {
        div.row.between {
            p.lead {
                (state(sink, now)) " "
                @if let Some(disabled_at) = sink.disabled_at.filter(|_| !sink.enabled) {
                    "Disabled " (format::when(disabled_at, now)) "; configuration does not enable it. "
                }
                @if let Some(node) = &sink.node { "Belongs to " (node) ". " }
                @if sink.enabled { span.soft { "Last served: " (seen) "." } }
            }
            div.row {
                @if sink.enabled { (button(request, &format!("{path}/disable"), "Disable", "", Some("Disable this sink on all machines?"))) }
                @else { (button(request, &format!("{path}/enable"), "Enable", "main", None)) }
                (button(request, &format!("{path}/delete"), "Remove", "", Some("Remove this sink with its pending deliveries and dead letters?")))
            }
        }
    }
}

fn title<'a>(documents: &'a [StoredDocument], letter: &DeadLetter) -> &'a str {
    let of_letter = |document: &&StoredDocument| document.frontier_id == letter.id;
    let title = documents
        .iter()
        .find(of_letter)
        .map_or("", |document| document.title.trim());
    if title.is_empty() {
        "(no title)"
    } else {
        title
    }
}

pub(crate) async fn retry(request: CheckedRequest) -> HandlerResult {
    let name = find_sink(&request).await?;
    let letters = request.app.store.retry_dead_letters(&name).await?;
    let (notice, count) = match letters.missing_documents {
        0 => ("retried", letters.retried),
        missing => ("missing_documents", missing),
    };
    redirect_with_notice(&format!("/sinks/{}", segment(&name)), notice, Some(count))
}

pub(crate) async fn replay(request: CheckedRequest) -> HandlerResult {
    let name = find_sink(&request).await?;
    let since = request.form().remove("since").unwrap_or_default();
    let since = match since.trim() {
        "" => None,
        text => Some(text.parse::<Timestamp>().map_err(|_| {
            Problem::field("since", "since is not a time such as 2026-11-01T00:00:00Z")
        })?),
    };
    let count = request
        .app
        .store
        .replay(&name, since.map(Moment::from))
        .await?;
    redirect_with_notice(
        &format!("/sinks/{}", segment(&name)),
        "replayed",
        Some(count),
    )
}

pub(crate) async fn disable(request: CheckedRequest) -> HandlerResult {
    let name = find_sink(&request).await?;
    request.app.store.disable_sink(&name).await?;
    redirect_with_notice(&format!("/sinks/{}", segment(&name)), "sink-disabled", None)
}

pub(crate) async fn enable(request: CheckedRequest) -> HandlerResult {
    let name = find_sink(&request).await?;
    let queued = request.app.store.enable_sink(&name).await?;
    redirect_with_notice(
        &format!("/sinks/{}", segment(&name)),
        "sink-enabled",
        queued,
    )
}

pub(crate) async fn remove(request: CheckedRequest) -> HandlerResult {
    let name = find_sink(&request).await?;
    request.app.store.remove_sink(&name).await?;
    redirect_with_notice("/sinks", "sink-removed", None)
}
