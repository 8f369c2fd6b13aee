//! The log of changes: who did what through the API and the dashboard, and
//! whether it was let through.

use maud::{Markup, html};
use tidings_store::{AuditEntry, Moment};

use super::{next_page, page, words};
use crate::call::{Answer, Call, List};

const ROWS: u32 = 50;

pub(crate) async fn show(call: Call) -> Answer {
    let store = &call.app.store;
    let rows = store.audit_entries(call.parsed("after")?, ROWS + 1).await?;
    let List { items, next } = List::cut(rows, ROWS, |one| one.audit_id.to_string());
    let now = store.now().await?;
    let content = html! {
        h1 { "Changes" }
        section.card {
            @if items.is_empty() { p.empty { "Nobody has changed anything here yet." } }
            @else { table.list {
                tr { th { "When" } th { "Who" } th { "What" } th { "Where" } th { "Answer" } }
                @for one in &items { (line(one, now)) }
            } }
            (next_page(&call, "/audit", next.as_deref()))
        }
        p.soft { "What was asked of the API and the dashboard by those who have a token, for a year. URLs that are submitted one by one are in the frontier, with their own history." }
    };
    page(&call, "/audit", "Changes", &content)
}

fn line(one: &AuditEntry, now: Moment) -> Markup {
    html! { tr {
        td.t data-l="when" { (words::when(one.at, now)) }
        td data-l="who" { (one.who) " " span.badge { (one.role) } }
        td data-l="what" { (one.action) }
        td data-l="where" { code { (one.method) " " (one.path) } }
        td data-l="answer" {
            @if one.status < 400 { span.badge.good { (one.status) } }
            @else { span.badge.bad { (one.status) } " " small { "refused" } }
        }
    } }
}
