//! Hosts: politeness limits, blocks, URL totals and robots.txt.

use std::time::Duration;

use maud::{Markup, html};
use tidings_store::{Host, HostId, Moment, Role, Status};

use super::forms::{button, csrf_field, has_role};
use super::layout::{page, redirect_with_notice};
use super::links::{next_page, segment};
use super::{format, status};
use crate::api::frontier::host_id;
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

const ROWS: u32 = 50;

pub(crate) async fn show(request: CheckedRequest) -> HandlerResult {
    let store = &request.app.store;
    let after = request.params.text("after").map(host_id);
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
            @if hosts.is_empty() { p.empty { "No hosts yet. Hosts appear with their first URL." } }
            @else { table.list {
                tr { th { "Host" } th { "State" } th.n { "Delay" } th.n { "In flight" } th.n { "Errors" } th { "Last request" } th { "Next request" } }
                @for host in &hosts { (line(host, now)) }
            } }
            (next_page(&request.params, "/hosts", next.as_deref()))
        } }
    };
    page(&request, "/hosts", "Hosts", &content)
}

fn state(host: &Host, now: Moment) -> Markup {
    html! {
        @match host.blocked_until.filter(|until| *until > now) {
            Some(until) => { span.badge.warn { "blocked" } " " small { (format::until(until, now)) " " (host.block_reason.as_deref().unwrap_or_default()) } }
            None => span.badge.good { "allowed" },
        }
    }
}

fn line(host: &Host, now: Moment) -> Markup {
    html! { tr {
        td { a href={ "/hosts/" (segment(&host.host)) } { (host.host) } }
        td { (state(host, now)) }
        td.n data-l="delay" { (format::number(host.delay_ms)) " ms" }
        td.n data-l="in flight" { (host.in_flight) " of " (host.max_in_flight) }
        td.n data-l="errors" { (host.errors) }
        td.t data-l="last request" { (format::maybe_when(host.last_start_at, now)) }
        td.t data-l="next request" { @if host.gate_at > now { (format::when(host.gate_at, now)) } @else { "now" } }
    } }
}

async fn find_host(request: &CheckedRequest) -> Result<(HostId, Host, String), Problem> {
    let name: String = request.params.required("host")?;
    let id = host_id(&name);
    let host = request.app.store.host(id).await?;
    let host = host.ok_or_else(|| Problem::not_found("host"))?;
    let path = format!("/hosts/{}", segment(&host.host));
    Ok((id, host, path))
}

pub(crate) async fn detail(request: CheckedRequest) -> HandlerResult {
    let (id, host, path) = find_host(&request).await?;
    let store = &request.app.store;
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
                span { (status::total_label(*status)) } b { (format::number(stats.by_status.get(status.as_str()).copied().unwrap_or(0))) }
            }
        } }
        @if stats.has_more { p.soft { "The host has more URLs than were counted; these totals are a sample." } }
        div.two {
            section.card {
                h2 { "Politeness" }
                dl {
                    dt { "Consecutive errors" } dd { (host.errors) }
                    dt { "In flight" } dd { (host.in_flight) " of " (host.max_in_flight) }
                    dt { "Last request" } dd { (format::maybe_when(host.last_start_at, now)) }
                }
                @if has_role(&request, Role::Operator) {
                    form.bar-above method="post" action=(path) {
                        (csrf_field(&request))
                        div.fields {
                            label { "Delay between requests (ms)" input name="delay_ms" value=(host.delay_ms) inputmode="numeric"; }
                            label { "Max requests in flight" input name="max_in_flight" value=(host.max_in_flight) inputmode="numeric"; }
                        }
                        p { button { "Save" } }
                    }
                    (block_form(&request, &host, &path, now))
                }
            }
            section.card {
                h2 { "robots.txt" }
                @match &robots {
                    None => p.empty { "Not fetched yet." },
                    Some(robots) => { p.soft { "Status " (robots.status) ", fetched " (format::when(robots.fetched_at, now)) } pre { (robots.body) } }
                }
            }
        }
    };
    page(&request, "/hosts", &host.host, &content)
}

fn block_form(request: &CheckedRequest, host: &Host, path: &str, now: Moment) -> Markup {
    html! {
        @if host.blocked_until.is_some_and(|until| until > now) { div.bar-above { (button(request, &format!("{path}/unblock"), "Unblock", "main", None)) } }
        @else {
            form.row.bar-above method="post" action={ (path) "/block" } {
                (csrf_field(request))
                input name="reason" required placeholder="Reason" aria-label="Reason";
                button.danger { "Block host" }
            }
        }
    }
}

pub(crate) async fn change(request: CheckedRequest) -> HandlerResult {
    let (id, _, path) = find_host(&request).await?;
    let form = request.form();
    let number = |name: &'static str, max: u64| {
        let text = form.get(name).map_or("", |text| text.trim());
        let number = text.parse().ok().filter(|number| *number <= max);
        number.ok_or_else(|| {
            Problem::field(name, format!("{name} is not a whole number up to {max}"))
        })
    };
    let delay = Duration::from_millis(number("delay_ms", 3_600_000)?);
    let max_in_flight = number("max_in_flight", 1000)? as u16;
    request
        .app
        .store
        .set_host_limits(id, delay, max_in_flight)
        .await?;
    redirect_with_notice(&path, "changed", None)
}

pub(crate) async fn block(request: CheckedRequest) -> HandlerResult {
    let (id, _, path) = find_host(&request).await?;
    let reason = request.form().remove("reason").unwrap_or_default();
    if reason.trim().is_empty() {
        return Err(Problem::field("reason", "reason is missing"));
    }
    request
        .app
        .store
        .block_host(id, Moment::NEVER, reason.trim())
        .await?;
    redirect_with_notice(&path, "blocked", None)
}

pub(crate) async fn unblock(request: CheckedRequest) -> HandlerResult {
    let (id, _, path) = find_host(&request).await?;
    request.app.store.unblock_host(id).await?;
    redirect_with_notice(&path, "unblocked", None)
}
