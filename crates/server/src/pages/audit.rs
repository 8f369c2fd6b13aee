//! The audit log: who changed what through the API and the dashboard, allowed or
//! denied.

use maud::{Markup, html};
use tidings_store::{AuditEntry, Moment};

use super::format;
use super::layout::page;
use super::links::next_page;
use crate::request::CheckedRequest;
use crate::response::{HandlerResult, List};

const ROWS: u32 = 50;

pub(crate) async fn show(request: CheckedRequest) -> HandlerResult {
    let store = &request.app.store;
    let rows = store
        .audit_entries(request.params.parsed("after")?, ROWS + 1)
        .await?;
    let List { items, next } = List::page(rows, ROWS, |entry| entry.audit_id.to_string());
    let now = store.now().await?;
    let content = html! {
        h1 { "Audit log" }
        section.card {
            @if items.is_empty() { p.empty { "No changes yet." } }
            @else { table.list {
                tr { th { "When" } th { "Who" } th { "Action" } th { "Request" } th { "Result" } }
                @for entry in &items { (line(entry, now)) }
            } }
            (next_page(&request.params, "/audit", next.as_deref()))
        }
        p.soft { "Changes made with a token through the API and the dashboard, kept for a year. URLs submitted one by one are not listed: each has its own history in the frontier." }
    };
    page(&request, "/audit", "Audit log", &content)
}

fn line(entry: &AuditEntry, now: Moment) -> Markup {
    html! { tr {
        td.t data-l="when" { (format::when(entry.at, now)) }
        td data-l="who" { (entry.who) " " span.badge { (entry.role) } }
        td data-l="action" { (entry.action) }
        td data-l="request" { code { (entry.method) " " (entry.path) } }
        td data-l="result" {
            @if entry.status < 400 { span.badge.good { "allowed" } } @else { span.badge.bad { "denied" } }
            " " small { (entry.status) }
        }
    } }
}
