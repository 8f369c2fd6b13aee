//! Sinks: how far behind each is, what it could not take, sending again.

use jiff::Timestamp;
use maud::{Markup, html};
use tidings_store::{DeadLetter, Moment, OutboxState, Role, StoredDocument};

use super::{button, may, page, see_done, segment, token, words};
use crate::api::sinks::found;
use crate::call::{Answer, Call};
use crate::problem::Problem;

pub(crate) async fn show(call: Call) -> Answer {
    let sinks = call.app.store.outbox().await?;
    let now = call.app.store.now().await?;
    let content = html! {
        h1 { "Sinks" }
        div #live { section.card {
            @if sinks.is_empty() { p.empty { "No sinks are known. They are tables of the configuration file." } }
            @else { table.list {
                tr { th { "Sink" } th { "State" } th.n { "Delivered" } th.n { "Waiting" } th { "Behind by" } th.n { "Dead letters" } }
                @for sink in &sinks { (line(sink, now)) }
            } }
        } }
    };
    page(&call, "/sinks", "Sinks", &content)
}

fn state(sink: &OutboxState) -> Markup {
    html! {
        @if !sink.enabled { span.badge { "off" } }
        @else if sink.dead > 0 { span.badge.bad { "dead letters" } }
        @else if sink.waiting > 0 { span.badge { "delivering" } }
        @else { span.badge.good { "up to date" } }
    }
}

fn line(sink: &OutboxState, now: Moment) -> Markup {
    html! { tr {
        td { a.strong href={ "/sinks/" (segment(&sink.sink)) } { (sink.sink) } }
        td { (state(sink)) }
        td.n data-l="delivered" { (words::number(sink.delivered)) }
        td.n data-l="waiting" { (words::number(sink.waiting)) }
        td.t data-l="behind by" { (sink.oldest.map_or("–".to_owned(), |oldest| words::duration(now.since(oldest)))) }
        td.n data-l="dead letters" { (words::number(sink.dead)) }
    } }
}

pub(crate) async fn one(call: Call) -> Answer {
    let name = found(&call).await?;
    let store = &call.app.store;
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
                div.grid {
                    div.stat { span { "delivered" } b { (words::number(sink.delivered)) } }
                    div.stat { span { "waiting" } b { (words::number(sink.waiting)) } }
                    div.stat { span { "dead letters" } b { (words::number(sink.dead)) } }
                    div.stat { span { "behind by" } b { (sink.oldest.map_or("–".to_owned(), |oldest| words::duration(now.since(oldest)))) } }
                }
            }
            section.card {
                div.row.between { h2 { "Dead letters" } @if !dead.is_empty() { (button(&call, &format!("{path}/retry"), "Retry all", "main", None)) } }
                @if dead.is_empty() { p.empty { "None." } }
                @else { table.list {
                    tr { th { "Document" } th { "Reason" } th { "When" } }
                    @for letter in &dead { tr {
                        td.u { a href={ "/documents/" (letter.id) } { (title(&titles, letter)) } }
                        td.u { (letter.reason) }
                        td.t { (words::when(letter.died_at, now)) }
                    } }
                }
                @if dead.len() == 100 { p.soft { "The latest 100 are shown." } } }
            }
        }
        @if may(&call, Role::Operator) {
            section.card {
                h2 { "Send again" }
                form.row method="post" action={ (path) "/replay" } data-confirm="Send these documents to the sink again?" {
                    (token(&call))
                    input name="since" placeholder="2026-11-01T00:00:00Z (empty: all)" aria-label="Since" size="30";
                    button { "Replay" }
                }
                p.soft { "Everything that was fetched since then. Sending twice is harmless." }
            }
        }
    };
    page(&call, "/sinks", &name, &content)
}

fn title<'a>(documents: &'a [StoredDocument], letter: &DeadLetter) -> &'a str {
    let of_letter = |document: &&StoredDocument| document.frontier_id == letter.id;
    let title = documents
        .iter()
        .find(of_letter)
        .map_or("", |document| document.title.trim());
    if title.is_empty() {
        "without a title"
    } else {
        title
    }
}

pub(crate) async fn retry(call: Call) -> Answer {
    let name = found(&call).await?;
    let count = call.app.store.retry_dead_letters(&name).await?;
    see_done(
        &format!("/sinks/{}", segment(&name)),
        "retried",
        Some(count),
    )
}

pub(crate) async fn replay(call: Call) -> Answer {
    let name = found(&call).await?;
    let since = call.form().remove("since").unwrap_or_default();
    let since = match since.trim() {
        "" => None,
        text => Some(text.parse::<Timestamp>().map_err(|_| {
            Problem::field("since", "since is not a time such as 2026-11-01T00:00:00Z")
        })?),
    };
    let count = call
        .app
        .store
        .replay(&name, since.map(Moment::from))
        .await?;
    see_done(
        &format!("/sinks/{}", segment(&name)),
        "replayed",
        Some(count),
    )
}
