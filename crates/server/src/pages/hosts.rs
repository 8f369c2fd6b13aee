//! Hosts: how each may be asked, and what its robots.txt says.

use std::time::Duration;

use maud::{Markup, html};
use tidings_store::{Host, HostId, Moment, Role, Status};

use super::{button, may, next_page, page, see_done, segment, token, words};
use crate::api::frontier::host_id;
use crate::call::{Answer, Call};
use crate::problem::Problem;

const ROWS: u32 = 50;

pub(crate) async fn show(call: Call) -> Answer {
    let store = &call.app.store;
    let after = call.text("after").map(host_id);
    let mut hosts = store.hosts_after(after, ROWS + 1).await?;
    let has_more = hosts.len() > ROWS as usize;
    hosts.truncate(ROWS as usize);
    let next = hosts
        .last()
        .filter(|_| has_more)
        .map(|last| last.host.clone());
    let now = store.now().await?;
    let content = html! {
        h1 { "Hosts" }
        div #live { section.card {
            @if hosts.is_empty() { p.empty { "No hosts yet. They come with the first URLs." } }
            @else { table.list {
                tr { th { "Host" } th { "State" } th.n { "Delay" } th.n { "Under way" } th.n { "Errors" } th { "Last request" } th { "Next may start" } }
                @for host in &hosts { (line(host, now)) }
            } }
            (next_page(&call, "/hosts", next.as_deref()))
        } }
    };
    page(&call, "/hosts", "Hosts", &content)
}

fn state(host: &Host, now: Moment) -> Markup {
    html! {
        @match host.blocked_until.filter(|until| *until > now) {
            Some(until) => { span.badge.warn { "blocked" } " " small { (words::lasts(until, now)) " " (host.block_reason.as_deref().unwrap_or_default()) } }
            None => span.badge.good { "open" },
        }
    }
}

fn line(host: &Host, now: Moment) -> Markup {
    html! { tr {
        td { a href={ "/hosts/" (segment(&host.host)) } { (host.host) } }
        td { (state(host, now)) }
        td.n data-l="delay" { (words::number(host.delay_ms)) " ms" }
        td.n data-l="under way" { (host.in_flight) " of " (host.max_in_flight) }
        td.n data-l="errors" { (host.errors) }
        td.t data-l="last request" { (words::maybe_when(host.last_start_at, now)) }
        td.t data-l="next" { @if host.gate_at > now { (words::when(host.gate_at, now)) } @else { "at once" } }
    } }
}

async fn found(call: &Call) -> Result<(HostId, Host, String), Problem> {
    let name: String = call.needed("host")?;
    let id = host_id(&name);
    let host = call.app.store.host(id).await?;
    let host = host.ok_or_else(|| Problem::not_found("host of this name"))?;
    let path = format!("/hosts/{}", segment(&host.host));
    Ok((id, host, path))
}

pub(crate) async fn one(call: Call) -> Answer {
    let (id, host, path) = found(&call).await?;
    let store = &call.app.store;
    let (robots, stats, now) = (
        store.robots(id).await?,
        store.host_stats(id).await?,
        store.now().await?,
    );
    let content = html! {
        p.crumbs { a href="/hosts" { "Hosts" } " / " (host.host) }
        h1 { (host.host) " " (state(&host, now)) }
        div.grid { @for status in Status::ALL {
            a.stat href={ "/frontier?host=" (segment(&host.host)) "&status=" (status) } {
                span { (status) } b { (words::number(stats.by_status.get(status.as_str()).copied().unwrap_or(0))) }
            }
        } }
        @if stats.has_more { p.soft { "The host has more URLs; these are a sample of them." } }
        div.two {
            section.card {
                h2 { "How it is asked" }
                dl {
                    dt { "Errors in a row" } dd { (host.errors) }
                    dt { "Under way" } dd { (host.in_flight) " of " (host.max_in_flight) }
                    dt { "Last request" } dd { (words::maybe_when(host.last_start_at, now)) }
                }
                @if may(&call, Role::Operator) {
                    form.bar-above method="post" action=(path) {
                        (token(&call))
                        div.fields {
                            label { "Milliseconds between requests" input name="delay_ms" value=(host.delay_ms) inputmode="numeric"; }
                            label { "Requests at once" input name="max_in_flight" value=(host.max_in_flight) inputmode="numeric"; }
                        }
                        p { button { "Save" } }
                    }
                    (block_form(&call, &host, &path, now))
                }
            }
            section.card {
                h2 { "robots.txt" }
                @match &robots {
                    None => p.empty { "It was not asked for yet." },
                    Some(robots) => { p.soft { "Status " (robots.status) ", fetched " (words::when(robots.fetched_at, now)) } pre { (robots.body) } }
                }
            }
        }
    };
    page(&call, "/hosts", &host.host, &content)
}

fn block_form(call: &Call, host: &Host, path: &str, now: Moment) -> Markup {
    html! {
        @if host.blocked_until.is_some_and(|until| until > now) { div.bar-above { (button(call, &format!("{path}/unblock"), "Ask it again", "main", None)) } }
        @else {
            form.row.bar-above method="post" action={ (path) "/block" } {
                (token(call))
                input name="reason" required placeholder="A reason, for others to read" aria-label="Why";
                button.danger { "Leave it alone" }
            }
        }
    }
}

pub(crate) async fn change(call: Call) -> Answer {
    let (id, _, path) = found(&call).await?;
    let form = call.form();
    let number = |name: &'static str, most: u64| {
        let text = form.get(name).map_or("", |text| text.trim());
        let number = text.parse().ok().filter(|number| *number <= most);
        number.ok_or_else(|| {
            Problem::field(name, format!("{name} is not a whole number up to {most}"))
        })
    };
    let delay = Duration::from_millis(number("delay_ms", 3_600_000)?);
    let at_once = number("max_in_flight", 1000)? as u16;
    call.app.store.set_host_limits(id, delay, at_once).await?;
    see_done(&path, "changed", None)
}

pub(crate) async fn block(call: Call) -> Answer {
    let (id, _, path) = found(&call).await?;
    let reason = call.form().remove("reason").unwrap_or_default();
    if reason.trim().is_empty() {
        return Err(Problem::field("reason", "reason is missing"));
    }
    call.app
        .store
        .block_host(id, Moment::NEVER, reason.trim())
        .await?;
    see_done(&path, "blocked", None)
}

pub(crate) async fn unblock(call: Call) -> Answer {
    let (id, _, path) = found(&call).await?;
    call.app.store.unblock_host(id).await?;
    see_done(&path, "unblocked", None)
}
